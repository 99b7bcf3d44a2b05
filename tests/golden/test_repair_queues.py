"""`repair` gives every consume queue its units back in place, and leaves alone what is right."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.files.backups.backup_record import RECORD
from mqindex.report import RepairReport
from mqindex.rocketmq import repair, verify
from mqindex.rocketmq.settings import MESSAGE_DELAY_LEVEL
from tests.reference.consume_queue import BLANK
from tests.support.golden import STORE_CASES, StoreCase, case
from tests.support.nightly import one_of
from tests.support.tree import contents, identities, queue_contents, queue_paths, scraps

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
each_store = pytest.mark.parametrize("name", STORE_CASES)
QUEUES = ["consumequeue"]


def mended(chosen: StoreCase, root: Path, **options: Any) -> RepairReport:
    config = {MESSAGE_DELAY_LEVEL.name: MESSAGE_DELAY_LEVEL.default, **chosen.truth["config"]}
    options = {"config": config, "broker_version": chosen.version, "engine": LocalEngine(2), **options}
    return repair(root, **options)


def patched(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def ordinary(root: Path) -> list[Path]:
    return sorted(path for path in (root / "consumequeue").rglob("*") if path.is_file())


def all_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "consumequeue_ext", ignore_errors=True)


def queue_gone(root: Path) -> None:
    shutil.rmtree(ordinary(root)[0].parent)


def first_gone(root: Path) -> None:
    ordinary(root)[0].unlink()


def every_other_gone(root: Path) -> None:
    for path in ordinary(root)[::2]:
        path.unlink()


def empty_unit(root: Path) -> None:
    patched(ordinary(root)[1], 20, bytes(20))


def wrong_phy_offset(root: Path) -> None:
    patched(ordinary(root)[1], 20, struct.pack(">q", 12345))


def wrong_size(root: Path) -> None:
    patched(ordinary(root)[1], 8, struct.pack(">i", 1))


def random_bytes(root: Path) -> None:
    ordinary(root)[0].write_bytes(b"\x07" * ordinary(root)[0].stat().st_size)


def beyond_log(root: Path) -> None:
    """A whole unit behind the last one, of a message that the log does not have."""
    path = ordinary(root)[-1]
    units = path.read_bytes()
    free = next(at for at in range(0, len(units), 20) if units[at : at + 20] == bytes(20))
    patched(path, free, struct.pack(">qiq", 2**40, 100, 7))


def cut_short(root: Path) -> None:
    path = ordinary(root)[0]
    path.write_bytes(path.read_bytes()[:77])


def too_long(root: Path) -> None:
    path = ordinary(root)[0]
    path.write_bytes(path.read_bytes() + bytes(20))


def made_empty(root: Path) -> None:
    ordinary(root)[-1].write_bytes(b"")


SPOILT: list[Callable[[Path], None]] = [
    all_gone, queue_gone, first_gone, every_other_gone, empty_unit, wrong_phy_offset, wrong_size, random_bytes,
    cut_short, too_long, made_empty,
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoil"), one_of(4, STORE_CASES, SPOILT))
def test_what_is_spoilt_comes_back_with_the_broker_s_bytes(
    name: str, spoil: Callable[[Path], None], golden_store: GoldenStore
) -> None:
    chosen, root = golden_store(name)
    before, expected, others = identities(root), queue_contents(root), contents(root / "index")
    spoil(root)
    spoilt = {path: data for path, data in queue_contents(root).items() if expected[path] != data}
    untouched = {path for path, data in queue_contents(root).items() if expected[path] == data}
    report = mended(chosen, root)
    assert queue_contents(root) == expected
    assert report.ok, report.findings
    assert report.actions
    assert contents(root / "index") == others
    assert {path: before[path] for path in untouched}.items() <= identities(root).items()
    if spoilt:
        assert report.backup is not None
        assert {str(path.relative_to(report.backup)): path.read_bytes() for path in files_below(report.backup)
                if "consumequeue" in str(path)} == spoilt  # fmt: skip
    assert scraps(root) == []
    assert verify(root, deep=True, config=chosen.truth["config"], broker_version=chosen.version).ok


def files_below(directory: str | None) -> list[Path]:
    return [path for path in Path(directory or "").rglob("*") if path.is_file() and path.name != RECORD]


@pytest.mark.parametrize("name", ["basic-493", "rolls-493", "crc-v2-lmq-550"])
def test_units_of_messages_that_the_log_never_had_go(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    expected = queue_contents(root)
    beyond_log(root)
    assert not mended(chosen, root, dry_run=True).ok
    assert mended(chosen, root).ok
    assert queue_contents(root) == expected


@each_store
def test_right_queues_are_left_alone(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    before = identities(root / "consumequeue"), contents(root / "commitlog")
    report = mended(chosen, root, parts=QUEUES)
    assert [one for one in report.findings if one.severity == "error" and "consumequeue" in (one.path or "")] == []
    assert report.actions == []
    assert (identities(root / "consumequeue"), contents(root / "commitlog")) == before
    assert scraps(root) == []


@each_store
def test_dry_run_tells_and_changes_nothing(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    every_other_gone(root)
    before = identities(root), contents(root)
    report = mended(chosen, root, parts=QUEUES, dry_run=True)
    assert not report.ok
    assert report.actions
    assert (identities(root), contents(root)) == before


@each_store
def test_second_repair_finds_nothing_to_do(name: str, golden_store: GoldenStore) -> None:
    chosen, root = golden_store(name)
    random_bytes(root)
    mended(chosen, root, parts=QUEUES)
    before = identities(root)
    assert mended(chosen, root, parts=QUEUES).actions == []
    assert identities(root) == before


def test_strangers_in_queue_directories_go_to_the_backup(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    expected, before = queue_contents(root), identities(root / "consumequeue")
    home = ordinary(root)[0].parent
    (home / "stranger").write_bytes(b"mine")
    (home / "directory").mkdir()
    (home / "directory" / "file").write_bytes(b"mine too")
    report = mended(chosen, root, parts=QUEUES)
    assert queue_contents(root) == expected
    assert identities(root / "consumequeue") == before
    assert sorted(home.iterdir()) == [path for path in ordinary(root) if path.parent == home]
    assert sorted(path.read_bytes() for path in files_below(report.backup)) == [b"mine", b"mine too"]


def test_file_in_the_place_of_a_directory_goes_to_the_backup(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("rolls-493")
    expected = queue_contents(root)
    shutil.rmtree(root / "consumequeue" / "RollTopic")
    (root / "consumequeue" / "RollTopic").write_bytes(b"mine")
    report = mended(chosen, root, parts=QUEUES)
    assert queue_contents(root) == expected
    assert [path.read_bytes() for path in files_below(report.backup)] == [b"mine"]


@pytest.mark.parametrize("name", ["medium-493", "exactfit-493", "basic-550"])
def test_units_of_expired_messages_stay(name: str, golden_store: GoldenStore) -> None:
    """The log's first files are gone; the units that lead there can come from the old files only."""
    chosen, root = golden_store(name)
    expected = queue_contents(root)
    for path in sorted((root / "commitlog").iterdir())[:-1][:2]:
        path.unlink()
    last = ordinary(root)[-1]
    patched(last, last.read_bytes().rstrip(b"\0").__len__() // 20 * 20, struct.pack(">qiq", 2**40, 100, 7))
    for queue in sorted({path.parent for path in ordinary(root)}):
        newest = max(path for path in ordinary(root) if path.parent == queue)
        patched(newest, 0, b"\x01" * 12)  # one unit of each queue is spoilt
    report = mended(chosen, root, parts=QUEUES)
    got = queue_contents(root)
    low = int(min(path.name for path in (root / "commitlog").iterdir()))
    assert report.ok, report.findings
    for path, data in expected.items():
        for at in range(0, len(data), 20):
            unit, old = got[path][at : at + 20], data[at : at + 20]
            spoilt = at == 0 and 0 <= struct.unpack_from(">q", old)[0] < low
            assert unit == old or (spoilt and unit == BLANK), (path, at)


def test_queue_of_an_expired_log_without_old_files_begins_with_blanks(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("medium-493")
    expected = queue_contents(root)
    for path in sorted((root / "commitlog").iterdir())[:1]:
        path.unlink()
    low = int(min(path.name for path in (root / "commitlog").iterdir()))
    shutil.rmtree(root / "consumequeue")
    assert mended(chosen, root, parts=QUEUES).ok
    for path, data in queue_contents(root).items():
        units = [expected[path][at : at + 20] for at in range(0, len(data), 20)]
        lost = [unit != bytes(20) and struct.unpack_from(">q", unit)[0] < low for unit in units]
        assert data == b"".join(BLANK if gone else unit for gone, unit in zip(lost, units, strict=True))


def test_new_files_have_the_owner_and_mode_of_their_neighbours(golden_store: GoldenStore) -> None:
    chosen, root = golden_store("basic-493")
    for path in queue_paths(root):
        path.chmod(0o640)
    gone = [path for path in ordinary(root) if path.parent.name == "0"][1:2]
    gone[0].unlink()
    mended(chosen, root, parts=QUEUES)
    assert {path.stat().st_mode & 0o777 for path in ordinary(root)} == {0o640}


@pytest.mark.parametrize("name", ["killed-493", "killed-lost-493"])
def test_queues_of_a_crashed_broker_are_continued(name: str, tmp_path: Path) -> None:
    """The newest files are as an earlier flush left them."""
    root = case(name).unpack(tmp_path)
    expected = queue_contents(root)
    for path in ordinary(root):
        data = path.read_bytes()
        keep = len(data.rstrip(b"\0")) // 40 * 20
        path.write_bytes(data[:keep].ljust(len(data), b"\0"))
    assert mended(case(name), root).ok
    assert queue_contents(root) == expected
