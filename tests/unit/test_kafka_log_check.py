"""What no checksum of a Kafka log covers: offsets, magic, leader epochs; each bit of a batch's header turned once."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError
from mqindex.kafka import PartitionLog, rebuild, repair, verify
from mqindex.report import Report
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch, snapshot

ONE = LocalEngine(1)
HEADER = {  # of magic 2: where each field is, and its bytes
    "base_offset": (0, 8), "length": (8, 4), "leader_epoch": (12, 4), "magic": (16, 1), "crc": (17, 4),
    "attributes": (21, 2), "last_offset_delta": (23, 4), "base_timestamp": (27, 8), "max_timestamp": (35, 8),
    "producer_id": (43, 8), "producer_epoch": (51, 2), "base_sequence": (53, 4), "count": (57, 4),
}  # fmt: skip


def errors(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "error"}


def turn(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def batches_of(path: Path) -> list[int]:
    """The positions of a log's batches."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        found.append(at)
        at += 12 + int(struct.unpack_from(">i", data, at + 8)[0])
    return found


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Three batches each in two segments."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 100)
    for segment in range(2):
        if segment:
            writer.roll()
        for _ in range(3):
            writer.append([KafkaRecord(), KafkaRecord()], leader_epoch=3 + 2 * segment)
    writer.close()
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n2\n3 100\n5 106\n")
    return writer.directory


UNCOVERED = ("base_offset", "leader_epoch", "magic")  # and length and checksum themselves, which the checksum tells


def unseen(log: Path, at: int, field: str, *, deep: bool) -> list[tuple[str, int]]:
    """The bits of a field that nobody notices when they turn."""
    first, size = HEADER[field]
    whole, found = log.read_bytes(), []
    for bit in range(8 * size):
        turn(log, at + first + bit // 8, 7 - bit % 8)
        if not errors(verify(log, deep=deep, engine=ONE)):
            found.append((field, bit))
        log.write_bytes(whole)
    return found


@pytest.mark.parametrize("field", HEADER)
def test_no_bit_of_a_header_turns_unseen(field: str, tmp_path: Path) -> None:
    log = sorted(PartitionCase("410-plain-mono").closed(tmp_path).glob("*.log"))[1]
    assert unseen(log, batches_of(log)[1], field, deep=True) == []


@pytest.mark.parametrize("name", ["410-txn", "282-v2-record-offset"])
@pytest.mark.parametrize(("segment", "which"), [(0, 0), (0, -1), (-1, -1)])
def test_no_bit_that_no_checksum_covers_turns_unseen(name: str, segment: int, which: int, tmp_path: Path) -> None:
    """Of the log's last batch the snapshot of a clean stop tells."""
    log = sorted(PartitionCase(name).closed(tmp_path).glob("*.log"))[segment]
    (log.parent.parent / ".kafka_cleanshutdown").touch()
    for field in UNCOVERED:
        assert unseen(log, batches_of(log)[which], field, deep=False) == []


def test_a_log_that_was_cut_behind_the_brokers_back_is_told(tmp_path: Path) -> None:
    directory = PartitionCase("410-plain-mono").closed(tmp_path)
    last = sorted(directory.glob("*.log"))[-1]
    end = max(int(path.stem) for path in directory.glob("*.snapshot"))
    last.write_bytes(last.read_bytes()[: batches_of(last)[-1]])
    (finding,) = [one for one in verify(directory, engine=ONE).findings if one.kind == "log-end"]
    assert (finding.severity, finding.expected) == ("warning", f"{end} or more")


def test_offsets_that_run_backwards_are_told(partition: Path) -> None:
    log = partition / f"{100:020d}.log"
    second = batches_of(log)[1]
    turn(log, second + 7, 1)  # 102 becomes 100
    for deep in (False, True):
        (finding,) = [one for one in verify(partition, deep=deep, engine=ONE).findings if one.kind.startswith("log-")]
        assert (finding.kind, finding.severity, finding.at) == ("log-offset-order", "error", second)
        assert (finding.expected, finding.got) == ("102 or more", 100)


def test_an_offset_below_the_segments_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    writer = PartitionWriter(directory, 100)
    writer.append_bytes(batch([KafkaRecord(), KafkaRecord()], 99), 100, FIRST_TIME)
    writer.close()
    (finding,) = [one for one in verify(directory, engine=ONE).findings if one.severity == "error"]
    assert (finding.kind, finding.at, finding.got) == ("log-offset-order", 0, 99)


@pytest.mark.parametrize("magic", [3, 127, -126])
def test_a_magic_that_no_broker_knows_is_told(magic: int, tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    writer = PartitionWriter(directory)
    data = batch([KafkaRecord()], 0, magic=magic)
    if magic < 0:  # read as magic 1, whose checksum covers the magic
        data = data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:]
    writer.append_bytes(data, 0, -1)
    writer.close()
    assert "log-magic" in errors(verify(directory, check_crc=magic > 0, engine=ONE))


@pytest.mark.parametrize(("count", "delta"), [(3, 1), (-1, 1), (0, -1)])
def test_more_records_than_offsets_are_told(count: int, delta: int, tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    writer = PartitionWriter(directory)
    writer.append_bytes(batch([KafkaRecord()], 5, count=count, last_offset=5 + delta), 5, -1)
    writer.close()
    assert "log-count" in errors(verify(directory, engine=ONE))


def test_gaps_of_a_compaction_are_none(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    writer = PartitionWriter(directory, 7)
    for _ in range(5):
        writer.skip(1000)
        writer.append([KafkaRecord()])
        writer.append([], leader_epoch=2, last_offset=writer.next_offset + 5)  # all its records are gone
    writer.close()
    assert "log-offset-order" not in errors(verify(directory, engine=ONE))


LOST: list[bytes | None] = [None, b"", b"0\n", b"0\n0\n"]


@pytest.mark.parametrize("content", LOST)
def test_a_checkpoint_without_the_epochs_of_the_batches_is_told(content: bytes | None, partition: Path) -> None:
    """Once a broker has started on it, it knows none of them."""
    for name in (".kafka_cleanshutdown", "meta.properties"):
        (partition.parent / name).touch()
    assert verify(partition.parent, engine=ONE).findings == []
    checkpoint = partition / "leader-epoch-checkpoint"
    checkpoint.unlink() if content is None else checkpoint.write_bytes(content)
    (one,) = verify(partition.parent, engine=ONE).findings
    assert (one.severity, one.kind, one.path) == ("warning", "leader-epochs-lost", str(checkpoint))
    assert str(one.expected).startswith("5 as the last epoch")


@pytest.mark.parametrize("content", LOST)
def test_batches_of_an_old_format_and_an_empty_log_have_no_epochs_to_lose(
    content: bytes | None, tmp_path: Path
) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    if content != b"":
        writer.append([KafkaRecord()], leader_epoch=3)  # and then the topic got an old format
        writer.roll()
        writer.append([KafkaRecord()], magic=1)
    writer.close()
    for name in (".kafka_cleanshutdown", "meta.properties"):
        (tmp_path / name).touch()
    if content is not None:
        (writer.directory / "leader-epoch-checkpoint").write_bytes(content)
    assert verify(tmp_path, engine=ONE).findings == []


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("end", [16, 18])
def test_a_log_that_was_truncated_in_a_gap_is_none(end: int, clean: bool, tmp_path: Path) -> None:
    """As of a follower of a compacted partition; it ends there, by a snapshot, and then goes on at 18."""
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord()] * 15)
    writer.skip(3)
    writer.append([KafkaRecord()] * 4)
    writer.close()
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for at in (end, 22):
        snapshot(writer.directory / f"{at:020d}.snapshot")
    for name in (".kafka_cleanshutdown" if clean else ".lock", "meta.properties"):
        (tmp_path / name).touch()
    assert verify(tmp_path, engine=ONE).findings == []
    for wrong in (12, 20):
        snapshot(writer.directory / f"{wrong:020d}.snapshot")
        (one,) = verify(tmp_path, engine=ONE).findings
        assert (one.kind, one.expected) == ("log-offset-order", f"a batch to {wrong - 1}")
        (writer.directory / f"{wrong:020d}.snapshot").unlink()
    (writer.directory / f"{22:020d}.snapshot").unlink()
    assert bool(errors(verify(tmp_path, engine=ONE))) == clean  # it ended there, and not at 22


# ---- what is made of such a log


def test_a_rebuild_of_offsets_that_overlap_is_no_clean_one(partition: Path, tmp_path: Path) -> None:
    log = partition / f"{100:020d}.log"
    turn(log, batches_of(log)[1] + 7, 1)
    report = rebuild(partition, tmp_path / "out", engine=ONE)
    assert errors(report) == {"log-offset-order"}


def test_a_repair_leaves_the_good_index_of_a_bad_log(tmp_path: Path) -> None:
    directory = tmp_path / "logs" / "t-0"
    writer = PartitionWriter(directory, 0, index_interval=100)
    for _ in range(50):
        writer.append([KafkaRecord(b"value" * 5)])
    writer.close()
    log, index = directory / f"{0:020d}.log", directory / f"{0:020d}.index"
    turn(log, batches_of(log)[20] + 7, 4)  # 20 becomes 4
    good = index.read_bytes()
    report = repair(directory, index_interval_bytes=1000, engine=ONE)
    assert not report.ok
    assert report.actions == []
    assert index.read_bytes() == good
    assert errors(verify(directory, index_interval_bytes=1000, engine=ONE)) >= {"log-offset-order"}
    (directory / f"{0:020d}.timeindex").unlink()  # which no broker brings back
    assert repair(directory, index_interval_bytes=1000, engine=ONE).actions == [f"write {0:020d}.timeindex"]


# ---- leader epochs


def epochs(report: Report) -> list[tuple[object, object, object]]:
    return [(one.at, one.expected, one.got) for one in report.findings if one.kind == "log-leader-epoch"]


def write_epochs(directory: Path, *told: int) -> list[int]:
    """A batch of one record for each epoch; where they are."""
    writer = PartitionWriter(directory)
    for epoch in told:
        writer.append([KafkaRecord()], leader_epoch=epoch)
    writer.close()
    return batches_of(writer.path())


@pytest.mark.parametrize(
    ("told", "checkpoint", "wrong"),
    [
        ((0, 0, 4, 7), None, None),
        ((0, 4, 0, 0), None, (2, "4 or more", 0)),  # the second, or the others
        ((0, 4, 0, 0), "0\n1\n0 0\n", (1, "0, by leader-epoch-checkpoint", 4)),
        ((0, 0, 0, 4), "0\n1\n0 0\n", (3, "0, by leader-epoch-checkpoint", 4)),
        ((1, 1, 4, 4), "0\n2\n1 0\n4 2\n", None),
        ((1, 1, 4, 4), "0\n3\n1 0\n4 2\n9 4\n", None),  # a leader that has not written yet
        ((1, 1, 1, 4), "0\n2\n1 0\n4 2\n", (None, "4, by leader-epoch-checkpoint", 1)),
        ((1, 1, 4, 4), "0\n1\n4 3\n", None),  # the log's start is 3
        ((-1, 1, -1, 4), "0\n2\n1 0\n4 2\n", None),
        ((1, -2, 1, 1), None, (1, "1 or more", -2)),
        ((0, 0, 0, 0), "", None),
        ((0, 0, 0, 0), "0\n", None),
        ((0, 0, 1, 1), "0\n3\n0 0\n7 1\n1 2\n", None),  # an entry that a later one takes away
    ],
)
def test_epochs_are_held_against_their_order_and_the_checkpoint(
    told: tuple[int, ...], checkpoint: str | None, wrong: tuple[int | None, str, int] | None, tmp_path: Path
) -> None:
    at = write_epochs(tmp_path / "t-0", *told)
    if checkpoint is not None:
        (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text(checkpoint)
    report = verify(tmp_path / "t-0", engine=ONE)
    where = None if wrong is None or wrong[0] is None else at[wrong[0]]
    assert epochs(report) == ([] if wrong is None else [(where, *wrong[1:])])
    assert report.ok == (wrong is None)


def test_epochs_go_on_from_segment_to_segment(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord()], leader_epoch=5)
    writer.roll()
    writer.append([KafkaRecord()], leader_epoch=4)
    writer.close()
    assert epochs(verify(tmp_path / "t-0", engine=ONE)) == [(0, "5 or more", 4)]


def test_messages_of_old_formats_have_no_epoch(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord()], leader_epoch=5)
    writer.append([KafkaRecord()] * 3, magic=1)
    writer.append([KafkaRecord()] * 3, magic=1, codec="gzip")
    writer.append([KafkaRecord()], leader_epoch=6)
    writer.close()
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n6 7\n")  # old formats take the others away
    assert verify(tmp_path / "t-0", engine=ONE).ok


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n2\n0 0\n",
        b"0\n1\n0 0 0\n",
        b"0\n1\nx 0\n",
        b"0\n1\n-1 0\n",
        b"\xff\xfe",
        b"x",
        b"0\nx\n",
        b"0\v1\n0 0\n",
        b"0\n2\n0 0\v3 18\n",
        b"0\n1\n 0 0\n",
        b"0\n1\n1_0 0\n",
        b"0\n1\n0\xc2\xa00\n",
    ],
)
def test_a_checkpoint_that_stops_a_broker_is_told(content: bytes, tmp_path: Path) -> None:
    write_epochs(tmp_path / "t-0", 0, 0)
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_bytes(content)
    report = verify(tmp_path / "t-0", engine=ONE)
    assert errors(report) == {"leader-epoch-checkpoint"}


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_no_log_of_a_broker_is_called_odd(name: str, tmp_path: Path) -> None:
    directory = PartitionCase(name).closed(tmp_path)
    for home in (directory, shutil.copytree(directory, tmp_path / "logs" / directory.name)):
        assert not {kind for kind in errors(verify(home, deep=True, engine=ONE)) if kind.startswith(("log-", "leader"))}


def test_an_empty_index_of_a_large_log_is_slow_and_no_error(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    for _ in range(30):
        writer.append([KafkaRecord(b"v" * 50_000)])
    writer.close()
    writer.path("index").write_bytes(b"")
    report = verify(tmp_path / "t-0", engine=ONE)
    assert report.ok
    assert [(one.severity, one.kind) for one in report.findings] == [("warning", "offset-index-empty")]
    assert report.actions == [f"write {0:020d}.index anew"]


@pytest.mark.parametrize("which", [1, 5])
def test_a_reader_is_given_no_record_of_a_wrong_checksum(which: int, partition: Path) -> None:
    """As a consumer; of the log's last batch too, for a broker that was closed does not cut it."""
    log = partition / f"{100 + which // 3 * 6:020d}.log"
    turn(log, batches_of(log)[which % 3] + 68, 0)
    bad = 100 + 2 * which
    with PartitionLog.open(partition) as opened:
        given, offset = [], 100
        while offset < bad:
            given += opened.read(offset)["offset"].tolist()
            offset = given[-1] + 1
        assert given == list(range(100, bad))
        with pytest.raises(CorruptIndexError, match=f"the log is damaged where offset {bad} is looked for"):
            opened.read(bad)


# ---- times of records


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (FIRST_TIME, None),
        (-1, None),
        (0, None),
        (86_400_000, None),  # a day after the epoch, as of a test
        (2**62, None),
        (FIRST_TIME // 1000, "seconds"),
        (FIRST_TIME * 1000, "microseconds"),
        (FIRST_TIME * 1_000_000, "nanoseconds"),
    ],
)
def test_times_in_another_unit_are_a_warning(time: int, said: str | None, tmp_path: Path) -> None:
    """A broker takes them for ms: retention by time then deletes all or nothing, of a log that was clean."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0")
    writer.append([KafkaRecord(timestamp=time)])
    writer.close()
    report = verify(writer.directory, engine=ONE)
    found = [one for one in report.findings if one.kind == "record-times"]
    assert report.ok
    assert [(one.severity, one.got) for one in found] == ([("warning", f"{time}: {said}")] if said else [])
    assert all(("deletes it" in str(one.hint)) is (said != "seconds") for one in found)
