"""A broker's store whose index was optimised: what verify says of fences and filters, and what goes with its file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex._native.crc import crc32c
from mqindex.report import Finding
from mqindex.rocketmq import IndexFile, IndexService, repair, verify
from mqindex.rocketmq.layout import SIDECAR_HEADER_SIZE, SidecarHeader
from mqindex.rocketmq.sidecar.binding import sealed
from mqindex.rocketmq.sidecar.names import sidecar_paths
from mqindex.rocketmq.sidecar.writing import write_sidecars
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import optimised
from tests.support.golden import case
from tests.support.optimised import never_in_memory

CASE = case("rolls-493")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Every index file optimised, with its sidecars."""
    root = CASE.unpack(tmp_path)
    (root / "mqindex-index").mkdir()
    for path in (root / "index").iterdir():
        path.write_bytes(optimised(TwinFile.load(path.read_bytes(), *CASE.geometry)).data)
        write_sidecars(str(path), str(root / "mqindex-index"), geometry=CASE.geometry)
    return root


def told(root: Path) -> list[Finding]:
    findings = verify(root, hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1]).findings
    return [one for one in findings if one.kind.startswith("sidecar")]


def first(root: Path) -> Path:
    return min((root / "index").iterdir())


def test_sidecars_that_fit_are_no_finding(store: Path) -> None:
    assert told(store) == []


def cut(root: Path) -> None:
    path = Path(sidecar_paths(str(first(root)))[0])
    path.write_bytes(path.read_bytes()[:-1])


def lose_one(root: Path) -> None:
    Path(sidecar_paths(str(first(root)))[1]).unlink()


def swap(root: Path) -> None:
    one, other = sorted((root / "index").iterdir())[:2]
    shutil.copy(sidecar_paths(str(one))[0], sidecar_paths(str(other))[0])


def damage_fingerprints(root: Path) -> None:
    path = Path(sidecar_paths(str(first(root)))[1])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damage_slots(root: Path) -> None:
    path = Path(sidecar_paths(str(first(root)))[0])
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def forge_slots(root: Path) -> None:
    """With the right checksums: the last slot is one too high."""
    path = Path(sidecar_paths(str(first(root)))[0])
    data = bytearray(path.read_bytes())
    data[-1] += 1
    header = SidecarHeader.from_bytes(data)._replace(content=crc32c(data[SIDECAR_HEADER_SIZE:]))
    path.write_bytes(sealed(header) + data[SIDECAR_HEADER_SIZE:])


def rebuilt(root: Path) -> None:
    fresh = CASE.unpack(root.parent / "again")
    shutil.copy(first(fresh), first(root))


def alone(root: Path) -> None:
    (root / "mqindex-index" / "notes.txt").write_text("mine")


def appended(root: Path) -> None:
    path = max((root / "index").iterdir())
    with IndexFile.open(path, hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1], writable=True) as index:
        assert index.put_key("TopicTest#more", 1 << 40, index.header.end_timestamp)


@pytest.mark.parametrize(
    ("change", "kind", "severity"),
    [
        (cut, "sidecar-unused", "warning"),
        (lose_one, "sidecar-unused", "warning"),
        (swap, "sidecar-unused", "warning"),
        (damage_fingerprints, "sidecar-unused", "warning"),
        (damage_slots, "sidecar-unused", "warning"),
        (forge_slots, "sidecar-wrong", "error"),
        (rebuilt, "sidecar-unused", "warning"),
        (alone, "sidecar-alone", "warning"),
        (appended, "sidecar-behind", "info"),
    ],
)
def test_sidecars_that_do_not_fit_are_found(
    change: Callable[[Path], None], kind: str, severity: str, store: Path
) -> None:
    change(store)
    assert [(one.kind, one.severity) for one in told(store)] == [(kind, severity)], told(store)


def test_sidecars_go_with_the_file_that_expires(store: Path) -> None:
    oldest = first(store)
    with IndexService.open(
        store / "index", hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1], writable=True
    ) as service:
        gone = service.delete_expired_file(service.files[0].header.end_phy_offset + 1)
    assert str(oldest) in gone
    assert not any(Path(path).exists() for path in sidecar_paths(str(oldest)))
    assert told(store) == []


def test_sidecars_go_to_the_backup_with_the_file_that_is_replaced(store: Path) -> None:
    damaged = first(store)
    data = bytearray(damaged.read_bytes())
    data[40 : 40 + 4 * CASE.geometry[0]] = bytes(4 * CASE.geometry[0])
    damaged.write_bytes(data)
    report = repair(store, hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1])
    assert not any(Path(path).exists() for path in sidecar_paths(str(damaged)))
    assert report.backup is not None
    kept = {path.name for path in Path(report.backup).rglob("*.f*")}
    assert {Path(path).name for path in sidecar_paths(str(damaged))} <= kept
    assert not [one for one in told(store) if one.kind != "sidecar-unused"]


def test_while_one_file_is_searched_the_filter_of_the_next_is_read(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50 cold files each waited for the disk, one after the other."""
    done: list[tuple[str, str]] = []
    will_search, select = IndexFile.will_search, IndexFile.select_hashes
    never_in_memory(monkeypatch)

    def noted_will(index: IndexFile, n: int) -> None:
        done.append(("read ahead", index.path))
        will_search(index, n)

    def noted_select(index: IndexFile, *arguments: Any, **options: Any) -> Any:
        done.append(("search", index.path))
        return select(index, *arguments, **options)

    keys = [f"{one['topic']}#{key}" for one in CASE.truth["messages"] for key in (one["keys"] or "").split()][:500]
    keys += [f"absent {number}" for number in range(500)]
    with IndexService.open(CASE.unpack(store.parent / "plain") / "index") as plain:
        expected = plain.query_offsets(None, keys).to_pylist()
    monkeypatch.setattr(IndexFile, "will_search", noted_will)
    monkeypatch.setattr(IndexFile, "select_hashes", noted_select)
    with IndexService.open(store / "index") as service:
        assert service.query_offsets(None, keys).to_pylist() == expected
        paths = [file.path for file in reversed(service.files)]
    assert len(paths) > 2
    assert done == [
        event
        for path, following in zip(paths, [*paths[1:], None], strict=True)
        for event in [*([("read ahead", following)] if following else []), ("search", path)]
    ]
