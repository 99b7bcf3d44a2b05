"""`repair` brings back every entry in place, and leaves alone what is right."""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import repair, verify
from tests.golden.test_index_service import strings_of
from tests.reference.commit_log import scan_log
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.index_service import IndexService as TwinService
from tests.reference.rebuild import build_index, build_index_bytes, log_files
from tests.support.golden import KILLED_CASES, STORE_CASES, StoreCase, case
from tests.support.nightly import one_of
from tests.support.tree import contents, identities, index_bytes, index_paths, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)
GONE: dict[str, Callable[[list[Path]], list[Path]]] = {
    "newest": lambda paths: paths[-1:],
    "first": lambda paths: paths[:1],
    "middle": lambda paths: paths[len(paths) // 2 : len(paths) // 2 + 1],
    "every other": lambda paths: paths[::2],
    "all but the newest": lambda paths: paths[:-1],
    "all but the first": lambda paths: paths[1:],
    "all": lambda paths: paths,
}


def settings(chosen: StoreCase) -> dict[str, Any]:
    slots, entries = chosen.geometry
    return {"hash_slot_num": slots, "index_num": entries, "broker_version": chosen.version}


@pytest.mark.parametrize(("name", "gone"), one_of(3, STORE_CASES, GONE))
def test_what_is_gone_comes_back_with_the_broker_s_bytes(name: str, gone: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    expected = index_bytes(root)
    for path in GONE[gone](index_paths(root)):
        path.unlink()
    survivors = identities(root / "index")
    report = repair(root, engine=LocalEngine(2), **settings(chosen))
    assert index_bytes(root) == expected
    assert report.ok, report.findings
    assert survivors.items() <= identities(root / "index").items()
    assert scraps(root) == []
    assert verify(root, deep=True, **settings(chosen)).ok


@pytest.mark.parametrize("name", [name for name in STORE_CASES if len(case(name).truth["indexFiles"]) > 1])
def test_newest_file_comes_back_without_any_option(name: str, golden_store: GoldenStore) -> None:
    _, root = golden_store(name)
    expected = index_bytes(root)
    index_paths(root)[-1].unlink()
    repair(root)
    assert index_bytes(root) == expected


@each_store
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_right_index_is_left_alone(name: str, deep: bool, golden_store: GoldenStore) -> None:
    _, root = golden_store(name)
    before = identities(root / "index"), contents(root / "commitlog")
    report = repair(root, deep=deep)
    assert report.ok
    assert (identities(root / "index"), contents(root / "commitlog")) == before
    assert scraps(root) == []


@each_store
def test_dry_run_tells_and_changes_nothing(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    index_paths(root)[0].unlink()
    before = identities(root), contents(root)
    report = repair(root, dry_run=True, **settings(chosen))
    assert report.dry_run
    assert report.actions
    assert (identities(root), contents(root)) == before


@each_store
def test_second_repair_finds_nothing_to_do(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    index_paths(root)[len(index_paths(root)) // 2].unlink()
    repair(root, **settings(chosen))
    before = identities(root)
    report = repair(root, **settings(chosen))
    assert report.ok
    assert identities(root) == before


@each_store
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_last_file_that_is_not_complete_is_continued(name: str, share: float, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    expected = index_bytes(root)
    last = index_paths(root)[-1]
    keep = int(chosen.truth["indexFiles"][-1]["indexCount"] * share)
    last.write_bytes(beginning_of(root, chosen, keep))
    repair(root, **settings(chosen))
    assert index_bytes(root) == expected


@each_store
@pytest.mark.parametrize("which", [0, -1])
def test_spoilt_file_is_replaced_and_kept_in_the_backup(name: str, which: int, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    expected = index_bytes(root)
    path = index_paths(root)[which]
    spoilt = bytearray(path.read_bytes())
    slots = chosen.geometry[0]
    spoilt[40 : 40 + 4 * slots] = struct.pack(f">{slots}i", *[2] * slots)
    path.write_bytes(spoilt)
    report = repair(root, **settings(chosen))
    assert index_bytes(root) == expected
    assert report.backup is not None
    kept = [file for file in Path(report.backup).rglob("*") if file.is_file() and file.name == path.name]
    assert [file.read_bytes() for file in kept] == [bytes(spoilt)]
    assert Path(report.backup).parent == root
    assert Path(report.backup).name.startswith("mqindex-backup-")


@pytest.mark.parametrize("name", KILLED_CASES)
def test_crashed_store_has_every_entry_again(name: str, tmp_path: Path) -> None:
    before, after = case(name).unpack(tmp_path), case(name).unpack_after(tmp_path)
    survivors = identities(after / "index")
    report = repair(after)
    assert report.ok, report.findings
    assert survivors.items() <= identities(after / "index").items()
    lost = entries_of(case(name), before) - entries_of(case(name), after)
    assert not lost
    for query in case(name).truth["queryOffset"]:
        if query["begin"] == 0 and query["end"] == (1 << 63) - 1:
            found = service_of(case(name), after).query_offset(query["topic"], query["key"], 1 << 20)
            expected = service_of(case(name), before).query_offset(query["topic"], query["key"], 1 << 20)
            assert set(found.phy_offsets) == set(expected.phy_offsets)
    assert verify(after, deep=True).ok


def test_file_from_after_the_crash_stays_when_the_one_before_comes_back(tmp_path: Path) -> None:
    chosen = case("killed-lost-493")
    after = chosen.unpack_after(tmp_path)
    (survivor,) = index_paths(after)
    repair(after)
    first, second = index_paths(after)
    assert second == survivor
    messages = [m for m in scan_log(log_files(after / "commitlog"))[0] if m.phy_offset < 114688]
    (expected,) = build_index(messages, *chosen.geometry, tags=False).files
    assert first.read_bytes() == bytes(expected.data)


@pytest.mark.parametrize("name", KILLED_CASES)
def test_checkpoint_moves_up_where_the_broker_would_delete_the_file_again(name: str, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    assert (root / "abort").exists()
    expected, old = index_bytes(root), (root / "checkpoint").read_bytes()
    index_paths(root)[-1].unlink()
    report = repair(root, **settings(case(name)))
    assert index_bytes(root) == expected
    assert (root / "abort").exists()
    new = (root / "checkpoint").read_bytes()
    latest = max(struct.unpack_from(">q", data, 8)[0] for data in expected)
    assert struct.unpack_from(">q", new, 16)[0] == latest
    assert (new[:16], new[24:], len(new)) == (old[:16], old[24:], len(old))
    assert report.backup is not None
    assert [path.read_bytes() for path in Path(report.backup).rglob("checkpoint")] == [old]


def test_the_offset_that_a_5_5_broker_wrote_into_its_checkpoint_stays(tmp_path: Path) -> None:
    """It became 0, and a 5.5.0 broker with enableAcceleratedRecovery does not start without it."""
    root = case("basic-550").unpack(tmp_path)
    (root / "abort").touch()
    old = bytearray((root / "checkpoint").read_bytes())
    assert any(old[40:48])
    old[16:24] = bytes(8)  # as if no index file had been full
    (root / "checkpoint").write_bytes(old)
    assert repair(root, broker_version="5.5.0").ok
    new = (root / "checkpoint").read_bytes()
    assert any(new[16:24])
    assert new[24:] == old[24:]


def test_missing_checkpoint_of_a_crashed_store_is_made(tmp_path: Path) -> None:
    root = case("killed-493").unpack(tmp_path)
    (root / "checkpoint").unlink()
    index_paths(root)[-1].unlink()
    repair(root)
    made = (root / "checkpoint").read_bytes()
    latest = max(struct.unpack_from(">q", data, 8)[0] for data in index_bytes(root))
    assert (len(made), struct.unpack_from(">q", made, 16)[0]) == (4096, latest)


def test_checkpoint_that_is_a_directory_gives_way_to_a_file(tmp_path: Path) -> None:
    root = case("killed-493").unpack(tmp_path)
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()
    index_paths(root)[-1].unlink()
    report = repair(root)
    assert report.backup is not None
    assert len((root / "checkpoint").read_bytes()) == 4096
    assert [path.is_dir() for path in Path(report.backup).glob("checkpoint")] == [True]


def test_checkpoint_of_a_store_that_was_closed_is_left_alone(golden_store: GoldenStore) -> None:
    _, root = golden_store("basic-493")
    old = (root / "checkpoint").read_bytes()
    index_paths(root)[-1].unlink()
    repair(root)
    assert (root / "checkpoint").read_bytes() == old


@pytest.mark.parametrize(("under", "log"), [("basic-493", "clock-back-493"), ("medium-493", "exactfit-493")])
def test_index_of_a_log_that_was_swapped_is_made_anew(under: str, log: str, tmp_path: Path) -> None:
    root, other = case(under).unpack(tmp_path), case(log).unpack(tmp_path)
    old = contents(root / "index")
    shutil.rmtree(root / "commitlog")
    shutil.copytree(other / "commitlog", root / "commitlog")
    report = repair(root)
    assert index_bytes(root) == build_index_bytes(log_files(root / "commitlog"), *case(under).geometry, tags=False)
    assert report.backup is not None
    kept = {path.name: path for path in Path(report.backup).rglob("*") if path.is_file()}
    assert contents(Path(report.backup) / "index") == old, kept
    assert verify(root, deep=True, **settings(case(under))).ok


def beginning_of(root: Path, chosen: StoreCase, entries: int) -> bytes:
    """The last index file as it was when it held that many entries."""
    tags = chosen.truth["tagsIndexed"]
    service = build_index(scan_log(log_files(root / "commitlog"))[0], *chosen.geometry, tags=tags)
    before = service.files[-2] if len(service.files) > 1 else None
    seeds = (before.end_phy_offset, before.end_timestamp) if before else (0, 0)
    part = TwinFile(*chosen.geometry, *seeds)
    skip = sum(file.index_count - 1 for file in service.files[:-1])
    for string, phy_offset, timestamp in strings_of(root, tags=tags)[skip : skip + entries]:
        part.put(string, phy_offset, timestamp)
    return bytes(part.data)


def service_of(chosen: StoreCase, root: Path) -> TwinService:
    return TwinService(*chosen.geometry, [TwinFile.load(data, *chosen.geometry) for data in index_bytes(root)])


def entries_of(chosen: StoreCase, root: Path) -> Counter[tuple[int, int]]:
    return Counter(entry[:2] for file in service_of(chosen, root).files for entry in file.entries())
