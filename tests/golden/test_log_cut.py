"""`verify` says where the next start of a broker cuts the log, and how much it deletes there.

The brokers' own stores 4.9.3 and 5.5.0 did the same with such logs; the versions between them by their source.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqindex._words import plural
from mqindex.report import Finding, Report, Start
from mqindex.rocketmq import repair, verify
from mqindex.wording.verdict import verdict
from tests.golden.test_start_check import held, left_with
from tests.support.golden import case

KIND = "log-cut-at-next-start"
MESSAGES = (0xDAA320A7, 0xDAA320AB)
BLANK = 0xCBD43194


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Left by a clean stop: nine log files, and one that was made in advance."""
    root = case("killed-lost-493").unpack(tmp_path)
    (root / "abort").unlink()
    return root


def log_paths(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())


def records(path: Path) -> Iterator[tuple[int, int, int]]:
    """Position, length and magic of each record of a log file, the blank at its end too."""
    data, at = path.read_bytes(), 0
    while at + 8 <= len(data):
        size, magic = struct.unpack_from(">iI", data, at)
        if magic not in (*MESSAGES, BLANK):
            return
        yield at, size, magic
        at += size


def other_body(data: bytearray, at: int) -> None:
    data[at + 88] ^= 1


def no_head(data: bytearray, at: int) -> None:
    data[at : at + 8] = bytes(8)


def other_offset(data: bytearray, at: int) -> None:
    struct.pack_into(">q", data, at + 28, 77)


def other_size(data: bytearray, at: int) -> None:
    struct.pack_into(">i", data, at, 99)


def messages_from(root: Path, phy_offset: int) -> int:
    """By the log as it was before the harm."""
    every = [int(path.name) + at for path in log_paths(root) for at, _, magic in records(path) if magic in MESSAGES]
    return sum(one >= phy_offset for one in every)


def start_of(report: Report) -> Start:
    assert report.start is not None
    return report.start


def told(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.kind == KIND]


class Harmed:
    """A store with one bad record, the fourth of a log file, and what it costs to cut the log there."""

    def __init__(self, root: Path, number: int, harm: Callable[[bytearray, int], None] = other_body) -> None:
        logs = [path for path in log_paths(root) if next(records(path), None)]
        self.path, self.later = str(logs[number]), tuple(map(str, logs[number + 1 :]))
        self.position = list(records(logs[number]))[3][0]
        self.at = int(logs[number].name) + self.position
        self.messages = messages_from(root, self.at) - (harm is no_head)
        data = bytearray(logs[number].read_bytes())
        harm(data, self.position)
        logs[number].write_bytes(data)

    def is_cut_by(self, report: Report) -> bool:
        """Whether the report says it, and all of it; else it must say nothing."""
        start, found = start_of(report), told(report)
        log = tuple(path for path in start.deletes if "commitlog" in path)
        if not found:
            assert (start.cuts, log, start.messages_deleted) == ((), (), 0)
            return False
        assert (start.cuts, log, start.messages_deleted) == ((self.path,), self.later, self.messages)
        assert [(one.severity, one.path, one.at) for one in found] == [("error", self.path, self.position)]
        deleted = f"deletes {plural(self.messages, 'message')} and {plural(len(self.later), 'later file')}"
        assert f"the next start cuts the log here and {deleted}" in (found[0].hint or "")
        assert not report.ok
        return True


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("harm", [other_body, no_head])
@pytest.mark.parametrize(
    ("version", "number", "cut"),
    [("4.9.3", 7, True), ("4.9.3", 6, False), ("5.3.1", 7, True), ("5.3.2", 7, False), ("5.5.0", 7, False)],
)
def test_after_a_clean_end(
    store: Path, harm: Callable[[bytearray, int], None], version: str, number: int, *, cut: bool, deep: bool
) -> None:
    """It was said to be clean, and that a start deletes nothing. Up to 5.3.1 a broker reads the last three files, of
    which one was made in advance; later ones read what the queues lack."""
    harmed = Harmed(store, number, harm)
    report = verify(store, broker_version=version, deep=deep)
    assert harmed.is_cut_by(report) is cut
    assert report.ok is not (cut or deep or harm is no_head)


def test_without_a_file_made_in_advance_one_more_is_read(store: Path) -> None:
    log_paths(store)[-1].unlink()
    assert Harmed(store, 6).is_cut_by(verify(store, broker_version="4.9.3"))


@pytest.mark.parametrize(
    ("version", "settings", "cut"),
    [
        ("4.9.3", {}, False),
        ("5.3.2", {}, True),
        ("5.4.0", {}, True),
        ("5.5.0", {}, True),
        ("5.5.0", {"commitLogRecoverMaxNum": 8}, True),
        ("5.5.0", {"commitLogRecoverMaxNum": 7}, False),
    ],
)
def test_newer_brokers_read_what_the_queues_lack(
    store: Path, version: str, settings: dict[str, object], *, cut: bool
) -> None:
    shutil.rmtree(store / "consumequeue")
    harmed = Harmed(store, 2)
    assert harmed.is_cut_by(verify(store, broker_version=version, config=settings)) is cut


@pytest.mark.parametrize(
    ("version", "offset", "number", "cut"),
    [
        ("4.9.3", 0, 6, False),
        ("4.9.3", 0, 7, True),
        ("5.5.0", 0, 7, False),
        ("5.5.0", 40_000, 1, False),
        ("5.5.0", 40_000, 2, True),
    ],
)
def test_after_an_unclean_end_it_hangs_on_the_checkpoint(
    store: Path, version: str, offset: int, number: int, *, cut: bool
) -> None:
    (store / "abort").touch()
    left_with(store, logics_physical_offset=offset)
    assert Harmed(store, number).is_cut_by(verify(store, broker_version=version)) is cut


@pytest.mark.parametrize("version", ["4.9.3", "5.5.0"])
def test_without_a_checkpoint_the_whole_log_is_read(store: Path, version: str) -> None:
    """The entries of the messages that are deleted do not come back either."""
    (store / "abort").touch()
    (store / "checkpoint").unlink()
    harmed = Harmed(store, 0)
    report = verify(store, broker_version=version)
    assert harmed.is_cut_by(report)
    start = start_of(report)
    assert start.entries_lost is not None
    assert 0 < start.entries_deleted - start.entries_lost < 10


@pytest.mark.parametrize("harm", [other_offset, other_size])
def test_what_a_broker_does_not_compare_cuts_no_log(store: Path, harm: Callable[[bytearray, int], None]) -> None:
    """Neither the place that a record has of itself nor the size in the blank at a file's end."""
    path = log_paths(store)[7]
    at = list(records(path))[3 if harm is other_offset else -1][0]
    data = bytearray(path.read_bytes())
    harm(data, at)
    path.write_bytes(data)
    report = verify(store, broker_version="4.9.3")
    assert (report.ok, told(report), start_of(report).messages_deleted) == (False, [], 0)


@pytest.mark.parametrize(
    ("size", "version", "cut"),
    [
        (1 << 20, "5.3.1", False), (1 << 20, "5.3.2", True), (1 << 20, "5.5.1", True),
        (-1, "5.5.0", False), (-1, "5.5.1", True), (0, "5.5.1", False), (9, "5.5.1", False),
    ],
)  # fmt: skip
def test_a_blank_of_an_impossible_size_cuts_the_log_of_newer_brokers(
    store: Path, size: int, version: str, *, cut: bool
) -> None:
    """It was said that no broker compares it: the real ones of these versions did this with such a log."""
    (store / "abort").touch()
    (store / "checkpoint").unlink()
    path = log_paths(store)[6]
    at = list(records(path))[-1][0]
    data = bytearray(path.read_bytes())
    struct.pack_into(">i", data, at, size)
    path.write_bytes(data)
    report = verify(store, broker_version=version)
    assert start_of(report).cuts == ((str(path),) if cut else ())
    assert start_of(report).messages_deleted == (messages_from(store, int(path.name) + at) if cut else 0)
    assert [one.at for one in told(report)] == ([at] if cut else [])


def test_a_record_of_another_log_is_read_over_up_to_a_bad_one(store: Path) -> None:
    path = log_paths(store)[7]
    data = bytearray(path.read_bytes())
    places = list(records(path))
    other_offset(data, places[3][0])
    other_offset(data, places[4][0])
    other_body(data, places[4][0])
    path.write_bytes(data)
    (found,) = told(verify(store, broker_version="4.9.3"))
    assert (found.path, found.at) == (str(path), places[4][0])


def test_a_broker_that_compares_no_checksums_reads_on(store: Path) -> None:
    Harmed(store, 7)
    unlike = {"checkCRCOnRecover": "false"}
    assert verify(store, broker_version="4.9.3", config=unlike).ok
    report = verify(store, broker_version="4.9.3", config=unlike, deep=True)
    assert (start_of(report).cuts, [one.kind for one in report.findings]) == ((), ["log-bad-crc"])
    assert "unless checkCRCOnRecover=false is set" in str(told(verify(store, broker_version="4.9.3"))[0].hint)


def test_where_the_version_decides_it_is_asked_for(store: Path) -> None:
    harmed = Harmed(store, 7)
    report = verify(store)
    start = start_of(report)
    assert (report.ok, start.cuts, start.deletes, start.messages_deleted) == (False, (harmed.path,), (), None)
    (found,) = told(report)
    assert "perhaps the next start (--broker-version may decide it) cuts the log here" in str(found.hint)
    assert ("its start would", f"perhaps cut {harmed.path[len(str(store)) + 1 :]}, and delete what follows") in verdict(
        start, str(store)
    )


def test_where_the_queues_are_in_rocksdb_it_is_not_known(store: Path) -> None:
    harmed = Harmed(store, 2, no_head)
    (store / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    report = verify(store, broker_version="5.5.0")
    assert (start_of(report).cuts, start_of(report).messages_deleted) == ((harmed.path,), None)
    assert "perhaps the next start cuts the log here" in str(told(report)[0].hint)


def test_a_running_broker_may_end_either_way(store: Path) -> None:
    (store / "abort").touch()
    log_paths(store)[-1].unlink()
    harmed = Harmed(store, 6)
    left_with(store, physic_msg_timestamp=1 << 50, logics_msg_timestamp=1 << 50)
    assert not harmed.is_cut_by(verify(store, broker_version="4.9.3"))
    with held(store / "lock"):
        report = verify(store, broker_version="4.9.3")
    assert (report.ok, start_of(report).cuts, start_of(report).messages_deleted) == (False, (harmed.path,), None)


def test_a_repair_does_not_say_that_all_is_good(store: Path) -> None:
    harmed = Harmed(store, 7)
    shutil.rmtree(store / "consumequeue")
    report = repair(store, broker_version="4.9.3", config={"mappedFileSizeConsumeQueue": 1000})
    assert report.actions
    assert (report.ok, {one.kind for one in report.findings if one.severity == "error"}) == (
        False,
        {"log-bad-crc", KIND, "missing-units"},  # of messages that the start deletes
    )
    assert harmed.is_cut_by(verify(store, broker_version="4.9.3"))


@pytest.mark.parametrize(
    ("version", "settings", "starts"),
    [
        ("4.9.3", {}, False),
        ("5.5.0", {}, True),
        ("5.5.0", {"recheckReputOffsetFromCq": "true"}, False),
        (None, {}, None),
    ],
)
def test_a_file_is_missing_before_the_one_made_in_advance(
    store: Path, version: str | None, settings: dict[str, object], *, starts: bool | None
) -> None:
    """It was said to be clean after a repair, and that a broker would start: 4.9.3 waits for ever, 5.5.0 starts."""
    *_, full, lost, empty = log_paths(store)
    lost.unlink()
    for _ in range(2):
        report = verify(store, broker_version=version, config=settings)
        found = [one for one in report.findings if one.kind == "log-file-missing"]
        assert [(one.severity, one.path, one.got) for one in found] == [("error", str(full), int(empty.name))]
        assert (f"made in advance elsewhere: {empty.name}" in str(found[0].hint)) is not starts
        assert start_of(report).starts is starts
        assert [one.path for one in start_of(report).obstacles] == ([] if starts else [str(empty)])
        assert not repair(store, broker_version=version, config={"mappedFileSizeConsumeQueue": 1000, **settings}).ok
    empty.unlink()
    assert start_of(verify(store, broker_version=version, config=settings)).starts is True


def test_a_last_file_that_is_not_full_needs_no_next_one(store: Path) -> None:
    """A start deletes what was made in advance."""
    path = log_paths(store)[-1]
    path.rename(path.with_name(f"{int(path.name) + path.stat().st_size:020d}"))
    report = verify(store, broker_version="4.9.3")
    assert (report.ok, start_of(report).starts) == (True, True)
