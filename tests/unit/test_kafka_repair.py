"""Verify, rebuild and repair of Kafka partitions: what is refused, what is explained, what is left alone."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine, Progress
from mqindex.errors import BadMagicError, OutputExistsError, StoreInUseError
from mqindex.files.backups.backup_record import RECORD
from mqindex.kafka import (
    LogSegment,
    OffsetIndex,
    PartitionLog,
    TimeIndex,
    TransactionIndex,
    rebuild,
    repair,
    undo_repair,
    verify,
)
from mqindex.kafka.log.active_segment import greatest_timestamp
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_log_dir import closed_log_dir, look, names, unclean
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch, snapshot

ONE = LocalEngine(1)
INTERVAL = {"index_interval_bytes": 100, "engine": ONE}
ENDINGS = (".index", ".timeindex", ".txnindex")


def write(directory: Path, segments: int = 3, base: int = 10) -> PartitionWriter:
    """Segments of ten batches, times one second apart."""
    writer = PartitionWriter(directory, base, index_interval=100)
    for segment in range(segments):
        if segment:
            writer.roll()
        for _ in range(10):
            time = FIRST_TIME + 1000 * writer.next_offset
            writer.append([KafkaRecord(b"value" * 5, timestamp=time), KafkaRecord(timestamp=time)])
    writer.close()
    return writer


def index_files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.suffix in ENDINGS}


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def kinds(report: Any, severity: str = "error") -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == severity}


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    write(tmp_path / "logs" / "topic-0")
    return tmp_path / "logs" / "topic-0"


# ---- what is asked for


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kafka_version": "four"}, ValueError),
        ({"kafka_version": "0.10.2"}, ValueError),
        ({"index_interval_bytes": -1}, ValueError),
        ({"index_interval_bytes": 2.5}, TypeError),
        ({"max_index_size": 11}, ValueError),
        ({"max_index_size": True}, TypeError),
    ],
)
def test_options_that_are_none_are_refused(wrong: dict[str, Any], error: type[Exception], tmp_path: Path) -> None:
    for call in (lambda: verify(tmp_path, **wrong), lambda: repair(tmp_path, **wrong)):
        with pytest.raises(error, match=next(iter(wrong))):
            call()
    with pytest.raises(error, match=next(iter(wrong))):
        rebuild(tmp_path, tmp_path / "out", **wrong)


def test_what_is_no_log_dir_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "none", engine=ONE)
    with pytest.raises(BadMagicError, match="neither a partition nor a log dir"):
        verify(tmp_path, engine=ONE)
    (tmp_path / "meta.properties").touch()
    assert verify(tmp_path, engine=ONE).ok


def test_a_report_says_what_was_used(partition: Path) -> None:
    report = verify(partition, kafka_version="3.9.1", index_interval_bytes=100, engine=ONE)
    assert {name: (value.value, value.source) for name, value in report.settings.items()} == {
        "kafka_version": ("3.9.1", "given"),
        "index_interval_bytes": (100, "given"),
        "max_index_size": (10_485_760, "default"),
    }
    assert (report.segments, report.batches, report.files, report.findings) == (3, 30, 6, [])
    assert report.bytes == sum(path.stat().st_size for path in partition.glob("*.log"))
    assert report.entries == sum(
        len(content) // (8 if name.endswith(".index") else 12) for name, content in index_files(partition).items()
    )


# ---- rebuild


def test_a_log_dir_is_rebuilt_partition_by_partition(partition: Path, tmp_path: Path) -> None:
    write(partition.parent / "other-topic-12", segments=1, base=0)
    (partition.parent / "empty-3").mkdir()
    (partition.parent / "gone-1.0123456789abcdef0123456789abcdef-delete").mkdir()
    (partition.parent / "remote-log-index-cache").mkdir()
    (partition.parent / "meta.properties").touch()
    report = rebuild(partition.parent, tmp_path / "out", **INTERVAL)
    assert report.ok
    assert sorted(os.listdir(tmp_path / "out")) == ["empty-3", "other-topic-12", "topic-0"]
    for name in ("topic-0", "other-topic-12"):
        assert index_files(tmp_path / "out" / name) == index_files(partition.parent / name)
    assert sorted(report.out_files) == sorted(map(str, (tmp_path / "out").glob("*/*")))
    (empty,) = verify(partition.parent, **INTERVAL).findings
    assert (empty.kind, empty.path) == ("no-segment", str(partition.parent / "empty-3"))


def test_many_workers_give_the_same_files(partition: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    engine = LocalEngine(3, progress=told.append)
    rebuild(partition, tmp_path / "out", index_interval_bytes=100, engine=engine)
    assert index_files(tmp_path / "out") == index_files(partition)
    assert {one.stage for one in told} >= {"look at the files", "plan", "recover the segments", "publish"}
    assert any("reads" in one.note for one in told)


def test_output_is_never_overwritten_unless_asked(partition: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_bytes(b"precious")
    with pytest.raises(OutputExistsError):
        rebuild(partition, tmp_path / "out", **INTERVAL)
    assert tree(tmp_path / "out") == {"mine": b"precious"}
    rebuild(partition, tmp_path / "out", overwrite=True, **INTERVAL)
    assert index_files(tmp_path / "out") == index_files(partition)
    (backup,) = tmp_path.glob("out.backup-*")
    assert tree(backup) == {"mine": b"precious"}
    assert not list(tmp_path.glob(".mqindex-*"))


def test_output_within_the_log_dir_is_refused(partition: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    for out in (partition, partition / "out", partition.parent):
        with pytest.raises(ValueError, match="out: expected a place of its own"):
            rebuild(partition, out, **INTERVAL)
    (partition.parent / "meta.properties").touch()
    with pytest.raises(ValueError, match="out: expected a place of its own"):  # a broker refuses a strange directory
        rebuild(partition, partition.parent / "out", **INTERVAL)
    (partition.parent / "meta.properties").unlink()
    assert tree(tmp_path) == before


def test_an_index_that_becomes_too_large_is_refused_as_by_the_broker(partition: Path, tmp_path: Path) -> None:
    report = rebuild(partition, tmp_path / "out", max_index_size=24, **INTERVAL)
    assert not report.ok
    assert kinds(report) == {"log-refused"}
    assert index_files(tmp_path / "out") == {}
    assert verify(partition, max_index_size=24, **INTERVAL).ok  # what is there is right all the same


# ---- transactions


def transactional(directory: Path) -> PartitionWriter:
    """Producer 5 begins in the first segment, and aborts in the second; producer 6 aborts in between."""
    writer = PartitionWriter(directory, 100, index_interval=100)
    for producer in (5, 6):
        writer.append([KafkaRecord()], producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    writer.roll()
    writer.marker(6)
    writer.append([KafkaRecord()] * 2)
    writer.marker(5)
    writer.roll()
    writer.append([KafkaRecord()])
    writer.close()
    return writer


def test_transactions_are_followed_over_segments(tmp_path: Path) -> None:
    transactional(tmp_path / "t-0")
    rebuild(tmp_path / "t-0", tmp_path / "out", **INTERVAL)
    assert index_files(tmp_path / "out") == index_files(tmp_path / "t-0")
    assert struct.unpack(">hqqqqhqqqq", (tmp_path / "out" / f"{102:020d}.txnindex").read_bytes()) == (
        0, 6, 101, 102, 100, 0, 5, 100, 105, 106,
    )  # fmt: skip


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("aborts", [True, False])
def test_a_marker_is_read_however_it_is_written(codec: str, aborts: bool, tmp_path: Path) -> None:
    key = struct.pack(">hh", 0, 0 if aborts else 1)
    record = KafkaRecord(b"\0" * 6, key, FIRST_TIME, headers=[("h", b"")], offset=12)  # an offset delta, a header
    written = batch([record], 11, producer_id=7, transactional=True, control=True, codec=codec)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{10:020d}.log").write_bytes(
        batch([KafkaRecord()], 10, producer_id=7, transactional=True) + written
    )
    rebuild(tmp_path / "t-0", tmp_path / "out", **INTERVAL)
    found = {path.suffix: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found.get(".txnindex") == (struct.pack(">hqqqq", 0, 7, 10, 11, 12) if aborts else None)


def test_a_snapshot_tells_what_began_before_the_first_segment(tmp_path: Path) -> None:
    transactional(tmp_path / "t-0")
    for path in (tmp_path / "t-0").glob(f"{100:020d}.*"):
        path.unlink()
    assert verify(tmp_path / "t-0", **INTERVAL).ok  # entries whose transactions the log does not show are only told
    assert "transaction-index-unknown" in kinds(verify(tmp_path / "t-0", **INTERVAL), "info")
    snapshot(tmp_path / "t-0" / f"{102:020d}.snapshot", (5, 100), (6, 101), (7, -1))
    assert verify(tmp_path / "t-0", **INTERVAL).findings == []
    (tmp_path / "t-0" / f"{102:020d}.txnindex").unlink()
    assert kinds(verify(tmp_path / "t-0", **INTERVAL)) == {"transaction-index-missing"}
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 102\n")  # the broker drops snapshots up to there
    assert verify(tmp_path / "t-0", **INTERVAL).ok


BROKEN = [lambda data: data[:-1], lambda data: b"\0\2" + data[2:], lambda data: data[:9] + b"!" * 5, lambda data: b""]


@pytest.mark.parametrize("spoil", BROKEN)
def test_a_broken_snapshot_counts_as_none(spoil: Any, tmp_path: Path) -> None:
    transactional(tmp_path / "t-0")
    for path in (tmp_path / "t-0").glob(f"{100:020d}.*"):
        path.unlink()
    path = tmp_path / "t-0" / f"{102:020d}.snapshot"
    snapshot(path, (5, 100), (6, 101))
    path.write_bytes(spoil(path.read_bytes()))
    rebuild(tmp_path / "t-0", tmp_path / "out", **INTERVAL)
    assert not list((tmp_path / "out").glob("*.txnindex"))


def test_behind_a_damaged_segment_the_next_snapshot_tells(tmp_path: Path) -> None:
    transactional(tmp_path / "t-0")
    first = tmp_path / "t-0" / f"{100:020d}.log"
    first.write_bytes(first.read_bytes()[:-1] + b"\xee")  # producer 6 is lost
    assert struct.pack(">qqq", 5, 100, 105) in (tmp_path / "t-0" / f"{102:020d}.txnindex").read_bytes()
    snapshot(tmp_path / "t-0" / f"{102:020d}.snapshot", (5, 100), (6, 101))
    report = rebuild(tmp_path / "t-0", tmp_path / "out", **INTERVAL)
    assert kinds(report) == {"log-bad-crc"}
    right = (tmp_path / "t-0" / f"{102:020d}.txnindex").read_bytes()
    assert (tmp_path / "out" / f"{102:020d}.txnindex").read_bytes() == right


def test_a_snapshot_from_before_a_damaged_segment_tells_nothing_behind_it(tmp_path: Path) -> None:
    """What was open there may have ended in the segment that cannot be read."""
    writer = PartitionWriter(tmp_path / "t-0", 100, index_interval=100)
    begin = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    writer.append([KafkaRecord()], **begin)
    writer.roll()
    damaged = writer.path()
    writer.append([KafkaRecord()])
    writer.marker(5, abort=False)
    writer.roll()
    writer.append([KafkaRecord()], **begin)
    writer.marker(5)
    writer.close()
    snapshot(tmp_path / "t-0" / f"{101:020d}.snapshot", (5, 100))
    assert verify(tmp_path / "t-0", **INTERVAL).findings == []
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xee")
    assert kinds(verify(tmp_path / "t-0", **INTERVAL)) == {"log-bad-crc"}
    right = writer.path("txnindex").read_bytes()
    rebuild(tmp_path / "t-0", tmp_path / "out", **INTERVAL)
    assert (tmp_path / "out" / writer.path("txnindex").name).read_bytes() == right


def test_what_the_cleaner_and_followers_leave_is_explained(tmp_path: Path) -> None:
    transactional(tmp_path / "t-0")
    path = tmp_path / "t-0" / f"{102:020d}.txnindex"
    right = path.read_bytes()
    path.write_bytes(right.replace(struct.pack(">qq", 5, 100), struct.pack(">qq", 5, 90)))
    report = verify(tmp_path / "t-0", **INTERVAL)
    assert [(one.severity, one.kind) for one in report.findings] == [("info", "transaction-index-first-offset")]
    path.write_bytes(right.replace(struct.pack(">qq", 5, 100), struct.pack(">qq", 5, 101)))
    assert kinds(verify(tmp_path / "t-0", **INTERVAL)) == {"transaction-index-first-offset"}


@pytest.mark.parametrize(
    ("stable", "between", "severity"),
    [(104, False, "info"), (106, False, "info"), (107, False, "error"), (104, True, "error"), (103, True, "info")],
)
def test_a_follower_that_was_truncated_behind_a_last_stable_offset(
    stable: int, between: bool, severity: str, tmp_path: Path
) -> None:
    """It told the begin of a transaction that a truncation took away: an error still, though nothing is hidden.

    Where another began before that offset, a search that ends there misses it.
    """
    writer = PartitionWriter(tmp_path / "t-0", 100, index_interval=100)
    writer.append([KafkaRecord()], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    writer.marker(5)
    writer.append([KafkaRecord()])
    if between:
        writer.append([KafkaRecord()], producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    writer.append([KafkaRecord()] * (2 if between else 3))
    writer.close()
    path = tmp_path / "t-0" / f"{100:020d}.txnindex"
    entry = struct.Struct(">h4q")
    path.write_bytes(entry.pack(0, 5, 100, 101, 102))
    assert verify(tmp_path / "t-0", **INTERVAL).findings == []
    path.write_bytes(entry.pack(0, 5, 100, 101, stable))
    (finding,) = verify(tmp_path / "t-0", **INTERVAL).findings
    assert (finding.kind, finding.severity) == ("transaction-index-last-stable-offset", severity)


def test_a_last_stable_offset_below_the_logs_start_ends_no_search(tmp_path: Path) -> None:
    """So a broker writes it that forgot, when it read the log from its start on, what was open before."""
    transactional(tmp_path / "t-0")
    path = tmp_path / "t-0" / f"{102:020d}.txnindex"
    right = path.read_bytes()
    path.write_bytes(right.replace(struct.pack(">qq", 102, 100), struct.pack(">qq", 102, 101)))
    assert kinds(verify(tmp_path / "t-0", **INTERVAL)) == {"transaction-index-last-stable-offset"}
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 101\n")
    assert verify(tmp_path / "t-0", **INTERVAL).ok


def test_transactions_without_a_record_above_the_logs_start_mislead_nobody(tmp_path: Path) -> None:
    """The cleaner takes their entries away, and a broker that reads the log from its start on does not know of them."""
    transactional(tmp_path / "t-0")  # producer 5 wrote 100, 6 wrote 101
    path = tmp_path / "t-0" / f"{102:020d}.txnindex"
    right = path.read_bytes()
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    first = right.replace(struct.pack(">qq", 5, 100), struct.pack(">qq", 5, 101))
    for data, start in ((b"", 101), (right[34:], 101), (right[:34], 100), (first, 100)):
        path.write_bytes(data)
        checkpoint.write_text(f"0\n1\nt 0 {start}\n")
        assert not verify(tmp_path / "t-0", **INTERVAL).ok
        for higher in (start + 1, 106):
            checkpoint.write_text(f"0\n1\nt 0 {higher}\n")
            assert verify(tmp_path / "t-0", **INTERVAL).ok


def test_an_entry_may_begin_with_the_first_record_above_the_logs_start(tmp_path: Path) -> None:
    """So a broker writes it that forgot what lies below, and so it says what was open."""
    writer = PartitionWriter(tmp_path / "t-0", 0, index_interval=100)
    for producer in (3, 3, 4, 3, 4, 4):  # 0..2, 3..5, and so on
        writer.append([KafkaRecord()] * 3, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    writer.marker(4)  # 18
    writer.marker(3)
    writer.close()
    entry, index = struct.Struct(">hqqqq"), writer.path("txnindex")
    assert index.read_bytes() == entry.pack(0, 4, 6, 18, 0) + entry.pack(0, 3, 0, 19, 20)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    for first, stable, ok in ((3, 3, True), (4, 3, True), (5, 3, False), (3, 4, True), (3, 5, False)):
        index.write_bytes(entry.pack(0, 4, 6, 18, stable) + entry.pack(0, 3, first, 19, 20))
        assert verify(tmp_path / "t-0", **INTERVAL).ok == ok, (first, stable)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 12\n")
    for first, ok in ((6, True), (9, True), (12, True), (13, False)):  # and of producer 3 no record is left
        index.write_bytes(entry.pack(0, 4, first, 18, 19))
        assert verify(tmp_path / "t-0", **INTERVAL).ok == ok, first


# ---- verify


def test_an_index_that_a_broker_is_writing_is_explained(tmp_path: Path) -> None:
    writer = write(tmp_path / "topic-0", segments=2)
    writer.preallocate()
    report = verify(tmp_path / "topic-0", **INTERVAL)
    assert report.ok
    assert report.actions == []
    assert kinds(report, "info") == {"offset-index-unwritten", "time-index-unwritten"}
    closed = tmp_path / "topic-0" / f"{10:020d}.timeindex"
    closed.write_bytes(closed.read_bytes() + bytes(12))  # its largest timestamp reads 0: retention deletes the segment
    assert kinds(verify(tmp_path / "topic-0", **INTERVAL)) == {"time-index-unwritten"}
    assert repair(tmp_path / "topic-0", **INTERVAL).ok
    assert closed.stat().st_size % 4096


@pytest.mark.parametrize("closing", [False, True], ids=["nothing yet", "a closing entry"])
def test_an_open_index_without_entries_may_be_one_of_a_longer_interval(tmp_path: Path, closing: bool) -> None:
    """While a broker runs, or after a crash: what is given is not the interval of this segment's begin."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=1 << 20)
    for number in range(20):
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
        if closing and number == 9:
            writer.close()  # by a broker that started anew then
    writer.preallocate()
    report = verify(tmp_path / "topic-0", **INTERVAL)
    assert report.ok, report.findings
    assert "offset-index-empty" in kinds(report, "warning")
    assert repair(tmp_path / "topic-0", **INTERVAL).ok
    assert verify(tmp_path / "topic-0", **INTERVAL).findings == []
    (tmp_path / "topic-0" / f"{0:020d}.index").write_bytes(bytes(7))
    assert not verify(tmp_path / "topic-0", **INTERVAL).ok


@pytest.mark.parametrize("killed", [False, True])
def test_a_partition_whose_broker_is_stopped_before_each_entry_has_none(killed: bool, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "topic-0")
    for number in range(9):
        writer.append([KafkaRecord(bytes(2500), timestamp=FIRST_TIME + number)])
        if number % 2:
            writer.restart()
    writer.append([KafkaRecord(bytes(2500), timestamp=FIRST_TIME + 9)])
    if killed:
        writer.preallocate()
    else:
        writer.close()
    before = index_files(writer.directory)
    assert not before[writer.path("index").name].strip(b"\0")
    report = repair(writer.directory, engine=ONE)
    assert (report.actions, kinds(report, "warning") | kinds(report)) == ([], set())
    assert index_files(writer.directory) == before


def test_entries_that_were_lost_are_not_taken_for_stops(tmp_path: Path) -> None:
    """Each had one in the time index too."""
    writer = PartitionWriter(tmp_path / "topic-0")
    for number in range(9):
        writer.append([KafkaRecord(bytes(2500), timestamp=FIRST_TIME + number)])
        if number == 3:
            writer.restart()
    writer.close()
    assert writer.path("index").stat().st_size
    writer.path("index").write_bytes(b"")
    assert kinds(verify(writer.directory, engine=ONE), "warning") == {"offset-index-empty"}
    assert repair(writer.directory, engine=ONE).actions == [f"write {0:020d}.index anew"]


@pytest.mark.parametrize("records", [20, 200], ids=["less than the default interval", "more"])
@pytest.mark.parametrize("left", [b"", bytes(800)], ids=["empty", "zeros"])
def test_that_entries_may_be_lost_is_said_where_the_interval_is_not_given(
    left: bytes, records: int, tmp_path: Path
) -> None:
    """As if the segment had been closed after each record: only the interval tells that it was not."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=10)
    for number in range(records):
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
    writer.close()
    assert "offset-index-perhaps-lost" not in kinds(verify(writer.directory, engine=ONE), "info")
    before = writer.path("index").read_bytes()
    writer.path("index").write_bytes(left)
    report = repair(writer.directory, engine=ONE)
    (told,) = [one for one in report.findings if one.kind == "offset-index-perhaps-lost"]
    assert (report.actions, told.got) == ([], f"no entry, and {records - 1} entries in the time index")
    given = {"index_interval_bytes": 10, "engine": ONE}
    assert "offset-index-empty" in kinds(verify(writer.directory, **given), "warning")
    repair(writer.directory, **given)
    assert writer.path("index").read_bytes() == before


def test_a_time_index_of_several_entries_shows_that_the_offset_index_was_there(tmp_path: Path) -> None:
    """A broker has made it before the second of them, so that it is none that has still to be made."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=10)
    for number in range(20):
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
    writer.path("index").unlink()
    assert kinds(verify(writer.directory, engine=ONE)) == {"offset-index-missing"}


def test_a_broker_may_be_killed_between_the_entries_of_the_two_indexes(tmp_path: Path) -> None:
    """It appends to the log, then to the offset index, then to the time index: one entry behind is no error, two are.

    Retention and searches by time do not miss it: the newest segment is recovered first.
    """
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=400)
    for number in range(20):  # every few of them an entry
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
    writer.preallocate()
    path, offsets = writer.path("timeindex"), writer.path("index")
    entries = -(-len(offsets.read_bytes().rstrip(b"\0")) // 8)
    assert 2 < entries < 10
    for behind in range(entries):
        with open(path, "r+b") as file:
            file.seek(12 * (entries - behind))
            file.write(bytes(12 * behind))
        report = verify(tmp_path / "topic-0", **{**INTERVAL, "index_interval_bytes": 400})
        assert ("time-index-incomplete" in kinds(report)) is (behind > 1), behind
        assert report.ok is (behind < 2)
        with LogSegment.open(writer.path()) as segment:
            assert greatest_timestamp(segment) == FIRST_TIME + 19


def test_the_greatest_time_may_stand_before_the_last_entry_of_an_open_index(tmp_path: Path) -> None:
    """A batch before the last place in the offset index has it, and the time index lacks its entry."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=400)
    sizes = []
    while len(sizes) < 20 and (not sizes or sizes[-1] < 24):
        late = bool(sizes) and sizes[-1] == 16 and sizes.count(16) == 1
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + len(sizes) + 1000 * late)])
        sizes.append(len(writer.path("index").read_bytes()))
    assert sizes.count(16) > 1
    writer.preallocate()
    with open(writer.path("timeindex"), "r+b") as file:
        file.seek(24)
        file.write(bytes(12))
    with LogSegment.open(writer.path()) as segment:
        assert greatest_timestamp(segment) == FIRST_TIME + sizes.index(16) + 1001


@pytest.mark.parametrize("size", [0, 200])
def test_open_indexes_may_hold_what_was_cut_from_their_log(size: int, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=100)
    sizes = []
    for number in range(8):
        writer.append([KafkaRecord(bytes(50), timestamp=FIRST_TIME + number)])
        sizes.append(writer.path().stat().st_size)
    os.truncate(writer.path(), sizes[3])  # and then one other batch with a later time, too little for an entry
    with open(writer.path(), "ab") as log:
        log.write(batch([KafkaRecord(bytes(size), timestamp=FIRST_TIME + 100)], 4))
    writer.preallocate()
    report = verify(tmp_path / "topic-0", **INTERVAL)
    assert report.ok, report.findings
    assert {"offset-index-beyond-log", "time-index-beyond-log"} <= kinds(report, "warning")


def cut_and_continued(directory: Path, left: int) -> PartitionWriter:
    """A follower's partition of six batches, cut to the first of them and continued with a large one; not closed."""
    writer = PartitionWriter(directory, index_interval=0)
    for number in range(6):
        writer.append([KafkaRecord(bytes(100), timestamp=FIRST_TIME + number)])
    os.truncate(writer.path(), left * writer.path().stat().st_size // 6)
    with open(writer.path(), "ab") as log:
        log.write(batch([KafkaRecord(bytes(300), timestamp=FIRST_TIME + 9)] * 8, left))
    writer.preallocate()
    return writer


@pytest.mark.parametrize("left", range(1, 6))
def test_places_that_a_truncation_left_in_an_open_index_stand_in_order_behind_the_others(
    left: int, tmp_path: Path
) -> None:
    writer = cut_and_continued(tmp_path / "topic-0", left)
    before = index_files(writer.directory)
    report = repair(writer.directory, index_interval_bytes=0, engine=ONE)
    assert report.ok, report.findings
    assert index_files(writer.directory) == before
    assert left > 3 or "offset-index-position" in kinds(report, "warning")
    (tmp_path / ".kafka_cleanshutdown").touch()  # closed: a broker takes them for entries
    assert {"offset-index-unwritten", "time-index-incomplete"} <= kinds(
        verify(writer.directory, index_interval_bytes=0, engine=ONE)
    )


def test_an_open_index_may_hold_nothing_but_what_was_cut(tmp_path: Path) -> None:
    """A truncation begins to count the bytes to the next entry anew; one of a time may still come."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=200)
    for number in range(6):
        writer.append([KafkaRecord(bytes(100), timestamp=FIRST_TIME + number)])
    os.truncate(writer.path(), writer.path().stat().st_size // 6)
    with open(writer.path(), "ab") as log:
        for number in (1, 2):
            log.write(batch([KafkaRecord(bytes(105), timestamp=FIRST_TIME + 9)], number))
    assert len(writer.path("index").read_bytes()) == 16
    writer.preallocate()
    report = repair(writer.directory, index_interval_bytes=200, engine=ONE)
    assert (report.ok, report.actions) == (True, []), report.findings


@pytest.mark.parametrize(("at", "field"), [(3, "offset"), (23, "position")])
def test_a_wrong_entry_before_right_ones_is_an_error_in_an_open_index(at: int, field: str, tmp_path: Path) -> None:
    """What a truncation left stands behind what is right."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=0)
    for number in range(6):
        writer.append([KafkaRecord(timestamp=FIRST_TIME + number)] * 4)
    writer.preallocate()
    data = bytearray(writer.path("index").read_bytes())
    data[at] -= 4
    writer.path("index").write_bytes(data)
    assert f"offset-index-{field}" in kinds(verify(writer.directory, index_interval_bytes=0, engine=ONE))


def test_an_empty_log_of_full_length_needs_no_index_yet(tmp_path: Path) -> None:
    """As preallocate=true leaves it: its files are made when they are first needed."""
    writer = write(tmp_path / "topic-0")
    writer.roll()
    os.truncate(writer.path(), 4096)
    writer.path("index").unlink()
    writer.path("timeindex").write_bytes(bytes(120))
    report = verify(tmp_path / "topic-0", **INTERVAL)
    assert report.ok, report.findings


@pytest.mark.parametrize(
    ("batches", "made"),
    [(0, {"index"}), (0, {"timeindex"}), (0, set()), (1, {"timeindex"})],
    ids=["a look-up", "an append that failed", "nothing", "one append"],
)
def test_indexes_that_a_broker_had_still_to_make_are_no_reason_to_cut_the_other(
    batches: int, made: set[str], tmp_path: Path
) -> None:
    """A look-up makes the offset index of a new segment, or else its second append; the first makes its time index."""
    writer = write(tmp_path / "topic-0")
    writer.roll()
    for _ in range(batches):
        writer.append([KafkaRecord(timestamp=FIRST_TIME + 100_000)])
    writer.preallocate()
    for kind in {"index", "timeindex"} - made:
        writer.path(kind).unlink()
    left = index_files(writer.directory)
    report = verify(writer.directory, **INTERVAL)
    assert report.ok, report.findings
    assert repair(writer.directory, **INTERVAL).ok
    after = index_files(writer.directory)
    assert {name: after[name] for name in left} == left
    assert not any(after[name] for name in after.keys() - left)


def test_first_offsets_of_compressed_messages_are_explained(tmp_path: Path) -> None:
    """Brokers up to 1.1 index them, and the header of a compressed message of magic 1 tells only the last."""
    writer = PartitionWriter(tmp_path / "topic-0", index_interval=100)
    for number in range(10):
        records = [KafkaRecord(timestamp=FIRST_TIME + 10 * number + i) for i in range(5)]
        writer.append(records, magic=1, codec="gzip")
    writer.close()
    rebuild(tmp_path / "topic-0", tmp_path / "out", kafka_version="1.1.1", **INTERVAL)
    for path in (tmp_path / "out").iterdir():
        path.replace(tmp_path / "topic-0" / path.name)
    assert kinds(verify(tmp_path / "topic-0", **INTERVAL), "warning") == set()


def test_an_offset_after_the_log_in_a_closed_index_is_an_error(tmp_path: Path) -> None:
    """A broker that starts reads the log from its last entry on, and would take the segment's begin for the end."""
    writer = write(tmp_path / "topic-0")
    writer.close()
    with PartitionLog.open(writer.directory) as log:
        end = log.log_end_offset
    offsets, times = writer.path("index"), writer.path("timeindex")
    good = offsets.read_bytes(), times.read_bytes()
    for path, kind, at in ((offsets, "offset-index-beyond-log", -6), (times, "time-index-beyond-log", -2)):
        data = bytearray(path.read_bytes())
        data[at] += 1  # 256 offsets later
        path.write_bytes(data)
        assert kinds(verify(writer.directory, **INTERVAL)) == {kind}
        assert repair(writer.directory, **INTERVAL).ok
        assert (offsets.read_bytes(), times.read_bytes()) == good
    with PartitionLog.open(writer.directory) as log:
        assert log.log_end_offset == end


def test_a_torn_tail_is_told_and_stays(partition: Path) -> None:
    log = max(partition.glob("*.log"))
    whole = log.read_bytes()
    for tail, severity, kind in [
        (b"torn", "warning", "log-tail"),
        (bytes(100), "info", "log-tail"),
        (batch([KafkaRecord()], 70)[:-1] + b"\xee", "warning", "log-bad-crc"),
        (batch([KafkaRecord()], 70)[:-1] + b"\xee" + batch([KafkaRecord()], 71), "error", "log-bad-crc"),
    ]:
        log.write_bytes(whole + tail)
        report = repair(partition, **INTERVAL)
        told = [one for one in report.findings if one.kind != "index-unlike-rebuilt"]  # as the batch behind the damage
        assert [(one.severity, one.kind, one.at) for one in told] == [(severity, kind, len(whole))]
        cut = f"cuts {len(tail)} bytes" if severity != "error" else "good batches behind: 1 (1 record). The next start"
        assert cut in str(report.findings[0].hint)
        assert log.read_bytes() == whole + tail
        assert report.actions == []
    first = min(partition.glob("*.log"))
    first.write_bytes(first.read_bytes() + bytes(100))  # behind it nothing of the segment is read
    assert "error" in {one.severity for one in verify(partition, **INTERVAL).findings if one.path == str(first)}


def spoil(log: Path, how: str) -> None:
    """The log's end: `zeros` or a part of a batch after it, or a `last` or `first` batch with a wrong checksum."""
    data = bytearray(log.read_bytes())
    if how == "zeros":
        data += bytes(500)
    elif how == "torn":
        data = data[:-5]
    else:
        data[-1 if how == "last" else 40] ^= 1
    log.write_bytes(data)


BAD_ENDS = pytest.mark.parametrize("how", ["zeros", "torn", "last"])


@BAD_ENDS
@pytest.mark.parametrize("number", [1, 2], ids=["inner", "newest"])
def test_an_index_whose_want_lets_a_broker_cut_the_log_is_left_missing(how: str, number: int, tmp_path: Path) -> None:
    """Brokers 2.8.2 to 3.9.1 cut such a log as they load it. With the index they do not start, or serve what is bad."""
    log_dir = closed_log_dir(tmp_path)
    log = sorted((log_dir / "topic-0").glob("*.log"))[number]
    spoil(log, how)
    log.with_suffix(".index").unlink()
    before = tree(log_dir)
    report = repair(log_dir, engine=ONE)
    assert (report.actions, tree(log_dir)) == ([], before)
    (lost,) = [one for one in report.findings if one.kind == "offset-index-missing"]
    assert lost.severity == "error"
    assert "cuts its log where it is bad" in lost.hint
    (bad,) = [one for one in report.findings if one.path == str(log) and one.kind != "log-end"]
    assert ".kafka_cleanshutdown" not in bad.hint
    assert "later segment" not in bad.hint
    _, start = look(log_dir)
    assert (start.starts, names(start.cuts), start.deletes) == (True, [log.name], ())


@pytest.mark.parametrize("how", ["zeros", "torn", "last", "first"])
def test_an_index_that_makes_a_broker_drop_all_later_segments_is_left_missing(how: str, tmp_path: Path) -> None:
    """After an unclean stop: without it the log is cut as it is loaded, and its recovery has nothing to cut."""
    log_dir = closed_log_dir(tmp_path)
    unclean(log_dir, "0\n1\ntopic 0 10\n")
    log = sorted((log_dir / "topic-0").glob("*.log"))[1]
    spoil(log, how)
    log.with_suffix(".index").unlink()
    assert repair(log_dir, engine=ONE).actions == []
    _, start = look(log_dir)
    assert (start.starts, names(start.cuts), start.deletes) == (True, [log.name], ())


@pytest.mark.parametrize(("stop", "number"), [("clean", 1), ("clean", 2), ("flushed", 1)])
def test_an_index_that_keeps_good_batches_behind_a_bad_one_is_written(stop: str, number: int, tmp_path: Path) -> None:
    log_dir = closed_log_dir(tmp_path)
    if stop == "flushed":
        unclean(log_dir, "0\n1\ntopic 0 19\n")
    log = sorted((log_dir / "topic-0").glob("*.log"))[number]
    spoil(log, "first")
    log.with_suffix(".index").unlink()
    assert f"write topic-0/{log.stem}.index" in repair(log_dir, engine=ONE).actions
    _, start = look(log_dir)
    assert (start.starts, start.cuts, start.deletes) == (True, (), ())


@BAD_ENDS
def test_a_broker_before_2_3_makes_no_lost_index_and_gets_one(how: str, tmp_path: Path) -> None:
    log_dir = closed_log_dir(tmp_path)
    log = max((log_dir / "topic-0").glob("*.log"))
    spoil(log, how)
    log.with_suffix(".index").unlink()
    assert f"write topic-0/{log.stem}.index" in repair(log_dir, kafka_version="2.2.2", engine=ONE).actions


@BAD_ENDS
def test_a_wrong_index_is_taken_away_where_a_broker_must_cut_the_log(how: str, tmp_path: Path) -> None:
    """After a clean stop. With a right one 3.9.1 does not start behind zeros, and else appends behind what is bad."""
    log_dir = closed_log_dir(tmp_path)
    log = max((log_dir / "topic-0").glob("*.log"))
    spoil(log, how)
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">ii", 2, 10**6))
    before = tree(log_dir)
    report = repair(log_dir, engine=ONE)
    assert f"move topic-0/{index.name} to the backup" in report.actions
    assert not index.exists()
    _, start = look(log_dir)
    assert (start.starts, names(start.cuts)) == (True, [log.name])
    assert report.backup is not None
    assert repair(log_dir, engine=ONE).actions == []
    undo_repair(log_dir, report.backup)
    assert {name: data for name, data in tree(log_dir).items() if "mqindex-backup" not in name} == before


def test_what_is_bad_in_a_log_is_told_once(tmp_path: Path) -> None:
    log_dir = closed_log_dir(tmp_path)
    log = max((log_dir / "topic-0").glob("*.log"))
    spoil(log, "zeros")
    log.with_suffix(".timeindex").unlink()
    told = [one for one in repair(log_dir, engine=ONE).findings if one.path == str(log)]
    assert [(one.kind, one.severity) for one in told] == [("log-bad-length", "error")]


def test_segments_that_overlap_are_told(partition: Path) -> None:
    middle = sorted(partition.glob("*.log"))[1]
    for path in partition.glob(f"{middle.stem}.*"):
        shutil.copy(path, partition / f"{15:020d}{path.suffix}")
    report = verify(partition, **INTERVAL)
    assert "segment-overlap" in kinds(report)


def test_a_log_that_begins_elsewhere_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "topic-0", segments=1)
    for path in list((tmp_path / "topic-0").iterdir()):
        path.rename(tmp_path / "topic-0" / f"{5000:020d}{path.suffix}")
    before = tree(tmp_path)
    report = repair(tmp_path / "topic-0", **INTERVAL)
    assert kinds(report) == {"log-refused"}
    assert tree(tmp_path) == before


def test_leftovers_of_a_crash_are_told_and_left(partition: Path) -> None:
    (partition / f"{500:020d}.index").write_bytes(b"orphan")
    (partition / f"{10:020d}.log.deleted").write_bytes(b"")
    (partition / f"{600:020d}.log.cleaned").write_bytes(b"")
    before = tree(partition)
    report = repair(partition, **INTERVAL)
    assert report.ok
    assert tree(partition) == before
    assert kinds(report, "info") == {"leftover-file"}
    assert kinds(report, "warning") == {"orphan-index"}


def test_deep_reads_every_record(partition: Path) -> None:
    log = max(partition.glob("*.log"))
    content = log.read_bytes()
    late = batch([KafkaRecord(timestamp=FIRST_TIME + 10**7)], 73, max_timestamp=FIRST_TIME)
    log.write_bytes(content + batch([KafkaRecord()], 70) + late)
    assert kinds(verify(partition, deep=True, **INTERVAL), "warning") == {"log-max-timestamp"}
    log.write_bytes(content + batch([KafkaRecord()], 70) + batch([KafkaRecord()], 71, count=2, last_offset=72) + late)
    report = verify(partition, deep=True, **INTERVAL)
    assert kinds(report) == {"log-records"}
    assert kinds(report, "warning") == {"log-max-timestamp"}  # it goes on behind the bad batch
    assert verify(partition, **INTERVAL).ok


# ---- repair


def test_only_what_is_wrong_is_written(partition: Path) -> None:
    (partition / f"{30:020d}.timeindex").unlink()
    before = {path: path.stat() for path in partition.iterdir()}
    report = repair(partition, **INTERVAL)
    assert report.out_files == [str(partition / f"{30:020d}.timeindex")]
    assert report.actions == [f"write {30:020d}.timeindex"]
    assert [path.name for path in Path(str(report.backup)).iterdir()] == [RECORD]
    assert [(one.severity, one.hint) for one in report.findings] == [("info", "repaired")]
    assert {path: path.stat().st_ino for path in before} == {path: was.st_ino for path, was in before.items()}
    assert verify(partition, **INTERVAL).findings == []
    again = repair(partition, **INTERVAL)
    assert (again.actions, again.out_files, again.backup) == ([], [], None)


def test_a_log_dir_is_repaired_and_each_partition_keeps_its_own_backup(partition: Path) -> None:
    other = partition.parent / "other-1"
    write(other, segments=1)
    right = tree(partition.parent)
    (partition / f"{30:020d}.index").write_bytes(b"")
    (other / f"{10:020d}.timeindex").write_bytes(b"\xff" * 24)
    report = repair(partition.parent, **INTERVAL)
    assert report.ok
    assert sorted(report.actions) == [
        f"write other-1/{10:020d}.timeindex anew", f"write topic-0/{30:020d}.index anew"
    ]  # fmt: skip
    name = Path(str(report.backup)).name
    assert report.backup == str(partition.parent / "*" / name)
    assert (partition / name / f"{30:020d}.index").read_bytes() == b""
    assert (other / name / f"{10:020d}.timeindex").read_bytes() == b"\xff" * 24
    for directory in (partition, other):
        shutil.rmtree(directory / name)
    assert tree(partition.parent) == right


def test_new_files_have_the_mode_of_those_they_replace_or_of_the_log(partition: Path) -> None:
    for path in partition.glob("*.log"):
        path.chmod(0o640)
    (partition / f"{10:020d}.index").write_bytes(b"")
    (partition / f"{10:020d}.index").chmod(0o604)
    (partition / f"{30:020d}.index").unlink()
    repair(partition, **INTERVAL)
    assert (partition / f"{10:020d}.index").stat().st_mode & 0o777 == 0o604
    assert (partition / f"{30:020d}.index").stat().st_mode & 0o777 == 0o640


def test_a_log_dir_that_a_broker_holds_is_only_read(partition: Path) -> None:
    (partition / f"{10:020d}.index").unlink()
    before = tree(partition.parent)
    lock = partition.parent / ".lock"
    lock.touch()
    program = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, 2); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == "held\n"
        for directory in (partition, partition.parent):
            with pytest.raises(StoreInUseError):
                repair(directory, **INTERVAL)
            assert repair(directory, dry_run=True, **INTERVAL).actions
            assert not verify(directory, **INTERVAL).ok
        broker.communicate("\n")
    lock.unlink()
    assert tree(partition.parent) == before


@pytest.mark.parametrize("writer", [OffsetIndex, TimeIndex, TransactionIndex])
def test_a_partition_with_an_index_open_for_writing_is_only_read(writer: Any, partition: Path) -> None:
    index = partition / f"{30:020d}.{writer.kind if writer is not TransactionIndex else 'txnindex'}"
    (partition / f"{10:020d}.index").unlink()
    backup = repair(partition, **INTERVAL).backup
    assert backup
    index.touch()
    (partition / f"{10:020d}.index").unlink()
    before = tree(partition.parent)
    with writer.open(index, writable=True):
        for directory in (partition, partition.parent):
            with pytest.raises(StoreInUseError, match="another writer has this index open"):
                repair(directory, **INTERVAL)
            with pytest.raises(StoreInUseError, match="another writer has this index open"):
                undo_repair(directory, os.path.basename(backup))
            assert repair(directory, dry_run=True, **INTERVAL).actions
    assert tree(partition.parent) == before


@pytest.mark.parametrize("ending", ["index", "timeindex", "txnindex"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_counts_as_no_index(ending: str, make: Any, partition: Path) -> None:
    index = partition / f"{30:020d}.{ending}"
    index.unlink(missing_ok=True)
    make(index)
    assert repair(partition, **INTERVAL).ok
    assert verify(partition, **INTERVAL).findings == []


@pytest.mark.parametrize("ending", ["index", "timeindex"])
def test_an_index_that_a_broker_has_still_to_put_in_place_is_written_there(ending: str, partition: Path) -> None:
    """The new one was beside it, where the broker would have replaced it by the wrong one."""
    index = partition / f"{10:020d}.{ending}"
    right = index.read_bytes()
    index.unlink()
    swap = index.with_name(f"{index.name}.swap")
    swap.write_bytes(right + bytes(24))
    before = index_files(partition) | {swap.name: swap.read_bytes()}
    report = repair(partition, **INTERVAL)
    assert (report.ok, report.actions) == (True, [f"write {swap.name} anew"])
    assert (swap.read_bytes(), index.exists()) == (right, False)
    assert verify(partition, **INTERVAL).findings == []
    assert report.backup
    undo_repair(partition, report.backup)
    assert index_files(partition) | {swap.name: swap.read_bytes()} == before


def test_an_empty_offset_index_is_not_explained_by_a_time_index_that_is_written_anew(tmp_path: Path) -> None:
    """A first repair wrote the time index, a second one the offset index, which had no excuse any more."""
    directory = PartitionCase("410-every-batch").closed(tmp_path)
    (directory / f"{0:020d}.index").write_bytes(b"")
    index = directory / f"{0:020d}.timeindex"
    index.write_bytes(index.read_bytes()[:204])
    assert len(repair(directory, engine=ONE, index_interval_bytes=4096).actions) == 2
    assert repair(directory, engine=ONE, index_interval_bytes=4096).actions == []


def test_an_unfinished_exchange_of_the_broker_is_left_to_it(tmp_path: Path) -> None:
    write(tmp_path / "topic-0", segments=2)
    log = tmp_path / "topic-0" / f"{10:020d}.log"
    for path in list((tmp_path / "topic-0").glob(f"{10:020d}.*")):
        path.rename(f"{path}.swap")
    for ending in ("index", "timeindex"):
        (tmp_path / "topic-0" / f"{log.stem}.{ending}.swap").unlink()
    before = tree(tmp_path)
    report = repair(tmp_path / "topic-0", **INTERVAL)
    assert kinds(report, "info") == {"segment-swapping"}
    assert kinds(report) == {"offset-index-missing", "time-index-missing"}
    hints = [str(one.hint) for one in report.findings if one.severity == "error"]
    assert all("completes the exchange" in hint and "writes it after that" in hint for hint in hints)
    assert tree(tmp_path) == before


# ---- threads


@pytest.mark.parametrize("workers", [2, 3])
def test_checksums_compared_side_by_side_find_the_same(
    workers: int, partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mqindex.kafka.checks.segment_log._WORTH_A_THREAD", 100)
    for path in list(partition.iterdir()):
        if not path.name.startswith(f"{10:020d}."):
            path.unlink()
    (log,) = partition.glob("*.log")
    whole = log.read_bytes()
    several = {"index_interval_bytes": 100, "engine": LocalEngine(workers)}
    assert verify(partition, **several).findings == []
    wrong = 0
    for at in range(70, len(whole), 97):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = verify(partition, **several)
        assert found.findings == verify(partition, **INTERVAL).findings
        wrong += not found.ok
    assert wrong > 5
    log.write_bytes(whole[:-1])
    assert verify(partition, **several).findings == verify(partition, **INTERVAL).findings


def test_checksums_are_compared_where_no_thread_can_be_started(
    partition: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as a bug."""

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("mqindex.kafka.checks.segment_log._WORTH_A_THREAD", 100)
    monkeypatch.setattr(threading.Thread, "start", refused)
    for path in list(partition.iterdir()):
        if not path.name.startswith(f"{10:020d}."):
            path.unlink()
    assert verify(partition, index_interval_bytes=100, engine=LocalEngine(2)).findings == []
