"""A partition that a broker writes: what it wrote after the log was read is compared with nothing, and is no fault."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqindex.files.lock import Holder
from mqindex.kafka import LogSegment, verify
from mqindex.kafka.checks import segment_check
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

Write = Callable[[PartitionWriter], None]
FULL = {"index": 240, "timeindex": 360}  # bytes of an open segment's indexes


def append(writer: PartitionWriter, batches: int = 8) -> None:
    for _ in range(batches):
        writer.append([KafkaRecord(timestamp=FIRST_TIME + writer.next_offset)])


def append_and_roll(writer: PartitionWriter) -> None:
    append(writer)
    writer.roll()
    append(writer, 2)


def abort(writer: PartitionWriter) -> None:
    writer.append([KafkaRecord(timestamp=FIRST_TIME + writer.next_offset)], producer_id=1, transactional=True)
    writer.marker(1, timestamp=FIRST_TIME + writer.next_offset)


def as_a_broker_has_it(writer: PartitionWriter, to: Path, log: int) -> Path:
    """Its files, the indexes of the last segment with zeros to their full length; so its log, where that is not 0."""
    shutil.copytree(writer.directory, to)
    if log:
        os.truncate(to / writer.path().name, log)
    for kind, size in FULL.items():
        os.truncate(to / writer.path(kind).name, size)
    return to


def goes_on(partition: Path, later: Path) -> None:
    """A partition becomes what it is later; every file is the same one."""
    for path in sorted(later.iterdir()):
        with open(partition / path.name, "r+b" if (partition / path.name).exists() else "wb") as file:
            file.write(path.read_bytes())
            file.truncate()


@pytest.fixture
def verified_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, int]]:
    """What verify finds where each of the writes happens after one look at the last log; and how many looks it took."""

    def run(first: Write, *writes: Write, cut: int = 0, of: str = "", preallocated: int = 0) -> tuple[Any, int]:
        writer = PartitionWriter(tmp_path / "build" / "topic-0", 10, index_interval=60)
        append(writer, 3)
        writer.roll()
        first(writer)
        partition = as_a_broker_has_it(writer, tmp_path / "logs" / "topic-0", preallocated)
        (tmp_path / "logs" / "meta.properties").touch()
        active = str(partition / writer.path().name)
        os.truncate(active, os.path.getsize(active) - cut)
        later = []
        for number, write in enumerate(writes):
            write(writer)
            later.append(as_a_broker_has_it(writer, tmp_path / str(number), preallocated))
        looks, recover = [], LogSegment.recover

        def recovered(segment: LogSegment, **options: Any) -> Any:
            made = recover(segment, **options)
            if segment.path == active:
                looks.append(made)
                if len(looks) <= len(later):
                    goes_on(partition, later[len(looks) - 1])
            return made

        monkeypatch.setattr(LogSegment, "recover", recovered)
        report = verify(active if of == "log" else partition if of else tmp_path / "logs", index_interval_bytes=60)
        return report, len(looks)

    return run


@pytest.mark.parametrize("of", ["", "partition", "log"])
@pytest.mark.parametrize("write", [append, append_and_roll, abort])
@pytest.mark.parametrize("batches", [1, 2, 5])
def test_what_is_written_after_the_log_was_read_is_no_fault(batches, write, of, verified_while) -> None:
    """Entries of batches that came later were beyond the log's end; an index that was closed meanwhile was wrong."""
    report, looks = verified_while(lambda writer: append(writer, batches), write, of=of)
    assert [str(one) for one in report.findings if one.severity != "info"] == []
    assert (report.ok, looks) == (True, 1)


@pytest.mark.parametrize("write", [append, append_and_roll, abort])
@pytest.mark.parametrize("batches", [0, 2, 5])
def test_what_is_written_into_the_zeros_of_a_preallocated_log_is_no_fault(batches, write, verified_while) -> None:
    """Its length does not tell that it was written: a bad batch followed, and entries were beyond the log's end."""
    report, looks = verified_while(lambda writer: append(writer, batches), write, preallocated=4096)
    assert [str(one) for one in report.findings if one.severity != "info"] == []
    assert report.ok and looks <= 2


def test_a_transaction_index_that_came_between_the_listing_and_the_log_is_not_missing(tmp_path, monkeypatch) -> None:
    writer = PartitionWriter(tmp_path / "build" / "topic-0", 10, index_interval=60)
    append(writer)
    partition = as_a_broker_has_it(writer, tmp_path / "logs" / "topic-0", 0)
    for _ in range(8):
        abort(writer)
    later, opened = as_a_broker_has_it(writer, tmp_path / "later", 0), LogSegment.open
    assert list(later.glob("*.txnindex")) and not list(partition.glob("*.txnindex"))

    def open_later(path: str, **options: Any) -> LogSegment:
        goes_on(partition, later)
        return opened(path, **options)

    monkeypatch.setattr(segment_check.LogSegment, "open", open_later)
    report = verify(partition, index_interval_bytes=60)
    assert [str(one) for one in report.findings if one.severity != "info"] == []


def test_the_zeros_of_a_preallocated_log_are_no_fault(verified_while) -> None:
    report, looks = verified_while(append, preallocated=4096)
    assert {(one.severity, one.kind) for one in report.findings} == {
        ("info", "log-tail"),
        ("info", "offset-index-unwritten"),
        ("info", "time-index-unwritten"),
    }
    assert looks == 1


def test_a_batch_that_was_being_written_is_no_tail(verified_while) -> None:
    """A broker's recovery would cut it, but it is not there to be recovered."""
    report, looks = verified_while(append, append, cut=20)
    assert [str(one) for one in report.findings if one.severity != "info"] == []
    assert looks == 1 and report.start.cuts == ()


def test_a_batch_that_nobody_goes_on_to_write_is_a_tail(verified_while) -> None:
    report, looks = verified_while(append, cut=20)
    assert [(one.severity, one.kind) for one in report.findings if one.severity != "info"][:1] == [
        ("warning", "log-tail")
    ]
    assert looks == 1


def test_a_fault_of_a_log_that_grows_is_looked_at_again_and_told(verified_while, tmp_path: Path) -> None:
    """Not for ever: its writer need not stop."""

    def wrong(writer: PartitionWriter) -> None:
        append(writer)
        with open(writer.path("index"), "r+b") as file:
            file.seek(4)
            file.write((7).to_bytes(4, "big"))

    report, looks = verified_while(wrong, append, append, append, append)
    assert not report.ok and "offset-index-position" in {one.kind for one in report.findings}
    assert looks == 3


def test_an_index_that_a_broker_has_not_made_yet_is_no_error(tmp_path: Path) -> None:
    """It makes a new segment's at the second append; until then an idle partition was damaged."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10)
    append(writer, 3)
    writer.roll()
    append(writer, 1)
    (tmp_path / "logs" / "meta.properties").touch()
    os.remove(writer.path("index"))
    os.truncate(writer.path("timeindex"), FULL["timeindex"])
    report = verify(tmp_path / "logs")
    assert report.ok, report.findings
    assert [one.severity for one in report.findings if one.kind == "offset-index-missing"] == ["info"]
    (tmp_path / "logs" / ".kafka_cleanshutdown").touch()
    assert not verify(tmp_path / "logs").ok


class Clock:
    """Only sleeping takes time. After the third sleep, indexes appear."""

    def __init__(self, late: dict[Path, bytes]) -> None:
        self.slept: list[float] = []
        self._late = late

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            for path, data in self._late.items():
                path.write_bytes(data)


def without_indexes(writer: PartitionWriter, *kinds: str) -> dict[Path, bytes]:
    """A partition of a log dir, whose last segment lacks these indexes; returns them."""
    append(writer, 3)
    writer.roll()
    append(writer, 2)
    (writer.directory.parent / "meta.properties").touch()
    late = {writer.path(kind): writer.path(kind).read_bytes() for kind in kinds}
    for path in late:
        os.remove(path)
    return late


@pytest.mark.parametrize("held", [Holder("held", 1), Holder("held"), Holder("free"), Holder("held", os.getpid())])
@pytest.mark.parametrize("age", [0, 60])
def test_a_running_broker_gets_a_moment_to_make_the_indexes_of_what_it_appended(
    held: Holder, age: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the log first: if it had no processor just then, both indexes of its new segment were missing."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10, index_interval=60)
    late = without_indexes(writer, "index", "timeindex")
    os.utime(writer.directory, (time.time() - age,) * 2)
    asked: list[str] = []
    clock = Clock(late)

    def holder(path: str) -> Holder:
        asked.append(path)
        return held

    monkeypatch.setattr(segment_check, "lock", SimpleNamespace(holder=holder))
    monkeypatch.setattr(segment_check, "time", clock)
    report = verify(tmp_path / "logs", index_interval_bytes=60)
    waits = age == 0 and held.state == "held" and held.pid != os.getpid()
    assert report.ok == waits, report.findings
    assert clock.slept == [0.05] * (3 * waits)
    assert set(asked) == ({str(tmp_path / "logs" / ".lock")} if age == 0 else set())


def test_what_a_running_broker_does_not_make_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10, index_interval=60)
    without_indexes(writer, "timeindex")
    clock = Clock({})
    monkeypatch.setattr(segment_check, "lock", SimpleNamespace(holder=lambda path: Holder("held", 1)))
    monkeypatch.setattr(segment_check, "time", clock)
    report = verify(tmp_path / "logs", index_interval_bytes=60)
    assert [one.kind for one in report.findings if one.severity == "error"] == ["time-index-missing"]
    assert sum(clock.slept) == pytest.approx(1, abs=0.1)


def test_an_index_that_is_not_due_yet_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10)
    append(writer, 1)
    (tmp_path / "logs" / "meta.properties").touch()
    os.remove(writer.path("index"))
    os.truncate(writer.path("timeindex"), FULL["timeindex"])
    clock = Clock({})
    monkeypatch.setattr(segment_check, "lock", SimpleNamespace(holder=lambda path: Holder("held", 1)))
    monkeypatch.setattr(segment_check, "time", clock)
    assert verify(tmp_path / "logs").ok
    assert clock.slept == []


@pytest.mark.parametrize("at", ["time", "log_dir_of"])
def test_a_partition_that_goes_just_then_is_no_failure(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker renames a partition whose topic is deleted."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10, index_interval=60)
    without_indexes(writer, "timeindex")

    def rename() -> float:
        os.rename(writer.directory, f"{writer.directory}.{'0' * 32}-delete")
        return 0.0

    if at == "time":
        monkeypatch.setattr(segment_check, "time", SimpleNamespace(time=rename))
    else:
        look = segment_check.log_dir_of
        monkeypatch.setattr(segment_check, "log_dir_of", lambda path: rename() or look(path))
    report = verify(tmp_path / "logs", index_interval_bytes=60)
    assert [one.kind for one in report.findings if one.severity == "error"] == ["time-index-missing"]
