"""Stores of brokers whose index files were optimized: as right as before, and what is wrong with them is found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import MQIndexError, StoreInUseError
from mqindex.report import Report
from mqindex.rocketmq import IndexFile, IndexService, MessageStore, NewMessage, optimize, rebuild, repair, verify
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from tests.support.golden import STORE_CASES, StoreCase, case
from tests.support.tree import index_bytes, index_paths

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)


def kinds(report: Report) -> list[tuple[str, str]]:
    return sorted((finding.severity, finding.kind) for finding in report.findings)


def answers(root: Path, chosen: StoreCase, **times: int) -> list[Any]:
    slots, entries = chosen.geometry
    with IndexService.open(root / "index", hash_slot_num=slots, index_num=entries) as service:
        hashes = sorted({int(one) for file in service.files for one in file.entries()["key_hash"]})
        return [file._select_hashes(_array(hashes), 64, **times)[0].tolist() for file in service.files]


def _array(hashes: list[int]) -> Any:
    return np.array(hashes, np.int32)


@each_store
def test_it_is_as_right_as_before(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    windows = [{"begin": 0, "end": MAX_TIMESTAMP}, {"begin": 1_700_000_000_000, "end": MAX_TIMESTAMP}]
    before = [verify(root), verify(root, deep=True)], [answers(root, chosen, **one) for one in windows]
    old = index_bytes(root)
    report = optimize(root, root, overwrite=True)
    assert report.files > 0
    assert index_bytes(root) != old
    quick, deep = verify(root), verify(root, deep=True)
    assert kinds(quick) == kinds(before[0][0]), quick.findings
    assert kinds(deep) == kinds(before[0][1]), deep.findings
    assert (quick.actions, quick.entries, deep.entries) == (before[0][0].actions, before[0][0].entries, quick.entries)
    assert quick.settings == before[0][0].settings
    assert [answers(root, chosen, **one) for one in windows] == before[1]


@pytest.mark.parametrize("name", ["basic-493", "medium-493", "rolls-493", "basic-550"])
@pytest.mark.parametrize("deep", [False, True], ids=["quick", "deep"])
def test_a_gap_is_filled_and_good_files_stay(name: str, deep: bool, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    slots, entries = chosen.geometry
    options: dict[str, Any] = {"hash_slot_num": slots, "index_num": entries, "broker_version": chosen.version}
    original = dict(zip(index_paths(root), index_bytes(root), strict=True))
    optimize(root, root, overwrite=True)
    ordered = dict(zip(index_paths(root), index_bytes(root), strict=True))
    gone = index_paths(root)[1]
    gone.unlink()
    assert not verify(root, deep=deep, **options).ok
    report = repair(root, deep=deep, **options)
    assert report.ok, report.findings
    assert len(report.out_files) == 1
    assert verify(root, deep=True).ok
    now = dict(zip(index_paths(root), index_bytes(root), strict=True))
    assert sorted(now.values()) == sorted([*(held for path, held in ordered.items() if path != gone), original[gone]])


def test_the_last_file_is_gone_on_with(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    (root / "abort").unlink(missing_ok=True)
    optimize(root, root, overwrite=True)
    slots, entries = chosen.geometry
    config = {**chosen.truth["config"], "maxHashSlotNum": slots, "maxIndexNum": entries}
    config = {name: config[name] for name in ("maxHashSlotNum", "maxIndexNum", "mappedFileSizeCommitLog")}
    for turn in range(3):
        with MessageStore.open(root, writable=True, config=config) as store:
            for at in range(7):
                store.put_message(NewMessage("Later", b"body", keys=f"a{at} b{at} a{at}", tags="t"))
            assert len(store.query_message("Later", "a3").messages) == 2 * (turn + 1)
        for deep in (False, True):
            report = verify(root, deep=deep)
            assert report.ok, report.findings
    with IndexFile.open(index_paths(root)[-1], hash_slot_num=slots, index_num=entries) as last:
        assert last._order().entries < last.header.index_count - 1
    optimize(root, root, overwrite=True)
    assert verify(root, deep=True).ok


def changed(path: Path, at: int, value: int, size: int = 4) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + size] = value.to_bytes(size, "big", signed=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("field", "wrong"), [(0, "key_hash"), (4, "phy_offset"), (12, "time_diff"), (16, "prev_index")]
)
def test_a_wrong_entry_is_found(field: int, wrong: str, golden_store: GoldenStore) -> None:
    """Anywhere in the file; key_hash is changed by a multiple of the number of slots, so that the chains stay right."""
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    optimize(root, root, overwrite=True)
    path = index_paths(root)[1]
    good = path.read_bytes()
    for number in (1, entries // 2, entries - 1):
        at = 40 + 4 * slots + 20 * number + field
        size = 8 if wrong == "phy_offset" else 4
        value = int.from_bytes(good[at : at + size], "big")
        changed(path, at, value + {"key_hash": slots, "phy_offset": 1, "time_diff": 3000, "prev_index": 1}[wrong], size)
        report = verify(root, deep=True)
        assert not report.ok, (wrong, number)
        assert str(path) in {finding.path for finding in report.findings if finding.severity == "error"}
        path.write_bytes(good)
    assert verify(root, deep=True).ok


def test_entries_of_a_slot_that_changed_places_are_found(golden_store: GoldenStore) -> None:
    """All links stay right, and so does every entry; but a look-up answers in another order, or ends too early."""
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    optimize(root, root, overwrite=True)
    path = index_paths(root)[1]
    good = path.read_bytes()
    with IndexFile.open(path, hash_slot_num=slots, index_num=entries) as file:
        columns = file.entries()
    linked = np.flatnonzero((columns["prev_index"][1:] > 0) & (np.diff(columns["phy_offset"]) > 0)) + 2
    assert len(linked) > 2
    whole = np.stack([columns["key_hash"], columns["phy_offset"]], 1)
    twice = [number for number in linked.tolist() if number > 2 and (whole[number - 2] == whole[number - 3]).all()]
    for number in [*linked[[0, len(linked) // 2, -1]].tolist(), *twice[:2]]:  # of a message that has a key twice too
        at = 40 + 4 * slots + 20 * number
        path.write_bytes(
            good[: at - 20] + good[at : at + 16] + good[at - 4 : at] + good[at - 20 : at - 4] + good[at + 16 :]
        )
        report = verify(root, deep=True)
        assert str(path) in {finding.path for finding in report.findings if finding.severity == "error"}, number
        path.write_bytes(good)
    assert verify(root, deep=True).ok


@pytest.mark.parametrize("at", [0, 8, 16, 24], ids=["begin_time", "end_time", "begin_offset", "end_offset"])
def test_a_wrong_header_is_found(at: int, golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    optimize(root, root, overwrite=True)
    path = index_paths(root)[1]
    good = path.read_bytes()
    with IndexFile.open(path, hash_slot_num=slots, index_num=entries) as file:
        offsets = np.unique(file.entries()["phy_offset"])
    for step in (1, -1, 5000):
        changed(path, at, int.from_bytes(good[at : at + 8], "big") + step, 8)
        assert not verify(root).ok, (at, step)
    if at >= 16:  # the offset of another entry
        changed(path, at, int(offsets[len(offsets) // 2]), 8)
        assert not verify(root).ok, at


def test_another_log_is_found(tmp_path: Path) -> None:
    root, other = case("basic-493").unpack(tmp_path), case("clock-back-493").unpack(tmp_path)
    optimize(root, root, overwrite=True)
    for deep in (False, True):
        assert not verify(root, deep=deep, commitlog=other / "commitlog").ok


def test_a_missing_entry_is_found(golden_store: GoldenStore) -> None:
    """The file written anew without one entry of the middle: all links are right."""
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    path = index_paths(root)[1]
    with IndexFile.open(path, hash_slot_num=slots, index_num=entries) as source:
        columns, header = source.entries(), source.header
    keep = [at for at in range(len(columns["key_hash"])) if at != len(columns["key_hash"]) // 2]
    previous = index_paths(root)[0].read_bytes()[:40]
    seed_time, seed_offset = int.from_bytes(previous[8:16], "big"), int.from_bytes(previous[24:32], "big")
    path.unlink()
    with IndexFile.create(
        path, hash_slot_num=slots, index_num=entries, end_phy_offset=seed_offset, end_timestamp=seed_time
    ) as fresh:
        run = np.zeros(len(keep), np.dtype([("key_hash", "=i4"), ("phy_offset", "=i8"), ("store_timestamp", "=i8")]))
        run["key_hash"], run["phy_offset"] = columns["key_hash"][keep], columns["phy_offset"][keep]
        run["store_timestamp"] = header.begin_timestamp + 1000 * columns["time_diff"][keep].astype(np.int64)
        run["store_timestamp"][0], run["store_timestamp"][-1] = header.begin_timestamp, header.end_timestamp
        fresh._put_run(run)
    optimize(root, root, overwrite=True)
    report = verify(root, deep=True)
    assert not report.ok
    (missing,) = (finding for finding in report.findings if finding.path == str(path))
    assert (missing.kind, missing.got) == ("missing-entries", "none")


def test_elsewhere_in_another_geometry_it_is_verified_beside_the_log(golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("medium-493")
    optimize(root, tmp_path / "cold", hash_slot_num=11, index_num=5000)
    (tmp_path / "cold" / "commitlog").symlink_to(root / "commitlog")
    report = verify(tmp_path / "cold", deep=True, hash_slot_num=11, index_num=5000)
    assert {finding.kind for finding in report.findings if "index" in (finding.path or "")} <= {"deleted-at-next-start"}
    with pytest.raises(MQIndexError):
        optimize(root, tmp_path / "small", index_num=3)


def test_rebuild_of_an_optimized_store_gives_the_broker_s_bytes(golden_store: GoldenStore, tmp_path: Path) -> None:
    _, root = golden_store("medium-493")
    old = index_bytes(root)
    optimize(root, root, overwrite=True)
    rebuild(root, tmp_path / "anew")
    assert index_bytes(tmp_path / "anew") == old


@pytest.mark.parametrize("change", [partial(optimize, overwrite=True), repair], ids=["optimize", "repair"])
def test_a_store_whose_index_is_written_by_this_package_is_in_use(change: Any, golden_store: GoldenStore) -> None:
    """The writer went on in the file that had been replaced, and its entries were lost."""
    chosen, root = golden_store("basic-493")
    slots, entries = chosen.geometry
    geometry = {"hash_slot_num": slots, "index_num": entries}
    arguments = (root, root) if change is not repair else (root,)
    before = index_bytes(root)
    with (
        IndexFile.open(index_paths(root)[-1], writable=True, **geometry),
        pytest.raises(StoreInUseError, match="another writer has this index file open"),
    ):
        change(*arguments)
    if change is repair:
        index_paths(root)[0].unlink()
        before = index_bytes(root)
    with (
        IndexService.open(root / "index", writable=True, **geometry),
        pytest.raises(StoreInUseError, match="another writer has this index open"),
    ):
        change(*arguments)
    assert index_bytes(root) == before
