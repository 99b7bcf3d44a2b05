"""A broker's store whose index was optimised: what verify says of fences and filters, and what goes with its file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex._native.crc import crc32c
from mqindex.report import Finding
from mqindex.rocketmq import IndexFile, IndexService, repair, verify
from mqindex.rocketmq.checks.sidecar_check import check_sidecar, sidecars_to_check
from mqindex.rocketmq.sidecar.binding import sealed
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FenceHeader
from mqindex.rocketmq.sidecar.names import FILTER, fence_path
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import optimised
from tests.support.golden import case
from tests.support.optimised import put_sidecars

CASE = case("rolls-493")


def optimised_store(home: Path) -> Path:
    """Every index file optimised, with its sidecars."""
    root = CASE.unpack(home)
    paths = sorted((root / "index").iterdir())
    for path in paths:
        path.write_bytes(optimised(TwinFile.load(path.read_bytes(), *CASE.geometry)).data)
    put_sidecars(root, paths, CASE.geometry)
    return root


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return optimised_store(tmp_path)


def told(root: Path) -> list[Finding]:
    findings = verify(root, hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1]).findings
    return [one for one in findings if one.kind.startswith("sidecar")]


def first(root: Path) -> Path:
    return min((root / "index").iterdir())


def test_sidecars_that_fit_are_no_finding(store: Path) -> None:
    assert told(store) == []


@pytest.mark.parametrize("one", ["fence", "filter"])
def test_without_a_fence_or_the_filter_nothing_is_wrong(store: Path, one: str) -> None:
    """A file may be optimised or not; the filter only saves reads."""
    lose_the_fence(store) if one == "fence" else lose_the_filter(store)
    assert told(store) == []


def cut(root: Path) -> None:
    path = Path(fence_path(str(first(root))))
    path.write_bytes(path.read_bytes()[:-1])


def lose_the_fence(root: Path) -> None:
    Path(fence_path(str(first(root)))).unlink()


def lose_the_filter(root: Path) -> None:
    (root / "mqindex-index" / FILTER).unlink()


def lose_the_fences(root: Path) -> None:
    for path in (root / "mqindex-index").glob("*.fence"):
        path.unlink()


def swap(root: Path) -> None:
    one, other = sorted((root / "index").iterdir())[:2]
    shutil.copy(fence_path(str(one)), fence_path(str(other)))


def damage_rows(root: Path) -> None:
    path = root / "mqindex-index" / FILTER
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damage_slots(root: Path) -> None:
    path = Path(fence_path(str(first(root))))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def forge_slots(root: Path) -> None:
    """With the right checksums: the last slot is one too high."""
    path = Path(fence_path(str(first(root))))
    data = bytearray(path.read_bytes())
    data[-1] += 1
    header = FenceHeader.from_bytes(data)._replace(content=crc32c(data[FENCE_HEADER_SIZE:]))
    path.write_bytes(sealed(header.to_bytes()) + data[FENCE_HEADER_SIZE:])


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
        (lose_the_fences, "sidecar-alone", "warning"),
        (swap, "sidecar-unused", "warning"),
        (damage_rows, "sidecar-unused", "warning"),
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
    assert not Path(fence_path(str(oldest))).exists()
    assert told(store) == []


def test_sidecars_that_may_not_be_listed_are_a_finding(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user who may read the store but not this directory; `verify` then said nothing else."""
    shutil.rmtree(store / "mqindex-index")
    (store / "mqindex-index").write_text("no directory")

    def denied(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("mqindex.rocketmq.checks.sidecar_check.kinds.names_in", denied)
    (finding,) = check_sidecar(*sidecars_to_check(str(store / "index"), [str(first(store))], CASE.geometry))
    assert (finding.kind, finding.severity) == ("sidecar-unused", "warning")


def test_the_filter_goes_with_the_last_fence(store: Path) -> None:
    """Only the newest file stays, which was not optimised."""
    newest = max((store / "index").iterdir())
    Path(fence_path(str(newest))).unlink()
    with IndexService.open(
        store / "index", hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1], writable=True
    ) as service:
        service.delete_expired_file(1 << 40)
    assert list((store / "index").iterdir()) == [newest]
    assert [one.kind for one in told(store)] == []
    assert list((store / "mqindex-index").iterdir()) == []


def test_sidecars_go_to_the_backup_with_the_file_that_is_replaced(store: Path) -> None:
    damaged = first(store)
    data = bytearray(damaged.read_bytes())
    data[40 : 40 + 4 * CASE.geometry[0]] = bytes(4 * CASE.geometry[0])
    damaged.write_bytes(data)
    report = repair(store, hash_slot_num=CASE.geometry[0], index_num=CASE.geometry[1])
    assert not Path(fence_path(str(damaged))).exists()
    assert report.backup is not None
    assert [path.name for path in Path(report.backup).rglob("*.f*")] == [Path(fence_path(str(damaged))).name]
    assert told(store) == []
