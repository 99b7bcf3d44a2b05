"""What a broker that starts reads of logs that it does not recover: the end of the last one, and the producers'
transactions. The classes of Kafka 4.1.0 did with these log dirs what is expected here.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import repair, verify
from mqindex.report import Report, Start
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_log_dir import PROPERTIES
from tests.support.kafka_writer import KafkaRecord, PartitionWriter, batch

ONE = LocalEngine(1)


def look(partition: Path) -> tuple[Report, Start]:
    """Of its log dir, in which it is alone. Some golden partitions have an interval of 1000 bytes."""
    report = verify(partition.parent, index_interval_bytes=1000, engine=ONE)
    assert report.start is not None
    return report, report.start


def errors(report: Report) -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == "error"}


def names(paths: tuple[str, ...]) -> list[str]:
    return [os.path.basename(path) for path in paths]


def in_the_way(start: Start) -> list[str]:
    return names(tuple(each.path for each in start.obstacles))


def stopped_cleanly(name: str, tmp_path: Path) -> Path:
    partition = PartitionCase(name).closed(tmp_path)
    (partition.parent / ".kafka_cleanshutdown").touch()
    return partition


def put(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def last_entry_moved(partition: Path, by: int) -> Path:
    """The last entry of the newest index leads so many bytes further."""
    index = max(partition.glob("*.index"))
    size = index.stat().st_size
    (position,) = struct.unpack(">i", index.read_bytes()[-4:])
    put(index, size - 4, struct.pack(">i", position + by))
    return index


def start_of_log(partition: Path, offset: int) -> None:
    topic, _, number = partition.name.rpartition("-")
    (partition.parent / "log-start-offset-checkpoint").write_text(f"0\n1\n{topic} {number} {offset}\n")


# ---- the log's end


def test_a_last_entry_that_leads_to_no_batch_stops_a_broker(tmp_path: Path) -> None:
    partition = stopped_cleanly("282-magic0", tmp_path)
    index = last_entry_moved(partition, 50)
    report, start = look(partition)
    assert (start.starts, in_the_way(start)) == (False, [index.name])
    assert "offset-index-position" in errors(report)
    assert repair(partition, index_interval_bytes=1000, engine=ONE).ok
    assert look(partition)[1].starts
    last_entry_moved(partition, 50)
    (partition.parent / ".kafka_cleanshutdown").unlink()
    (partition.parent / ".lock").touch()
    assert look(partition)[1].starts  # its recovery makes the index anew


def test_a_last_entry_that_ends_the_log_too_early_is_told(tmp_path: Path) -> None:
    """The broker gives offsets a second time, and deletes what it knew of producers."""
    partition = stopped_cleanly("410-txn", tmp_path)
    index = last_entry_moved(partition, 50)
    report, start = look(partition)
    assert (start.starts, names(start.deletes)) == (True, [f"{483:020d}.snapshot"])
    (finding,) = [one for one in report.findings if one.kind == "offset-index-end"]
    assert (finding.severity, finding.path, finding.expected, finding.got) == ("error", str(index), 483, 333)
    assert repair(partition, index_interval_bytes=1000, engine=ONE).ok
    assert look(partition)[1].deletes == ()


def test_an_end_that_a_damaged_log_gives_is_not_the_indexs_fault(tmp_path: Path) -> None:
    """Nothing is repaired, and the log's damage is told once."""
    partition = stopped_cleanly("410-idem", tmp_path)
    log = max(partition.glob("*.log"))
    put(log, 837, bytes(100))
    log.with_suffix(".timeindex").unlink()
    for report in (look(partition)[0], repair(partition, index_interval_bytes=1000, engine=ONE)):
        (finding,) = [one for one in report.findings if one.kind == "offset-index-end"]
        assert (finding.expected, finding.got) == (703, 2)
        assert finding.hint is not None
        assert "mqindex repair" not in finding.hint
        assert [one.kind for one in report.findings].count("log-bad-crc") == 1


@pytest.mark.parametrize("by", [-(2**31), 1 << 20])
def test_a_position_outside_the_log_is_taken_as_a_broker_takes_it(by: int, tmp_path: Path) -> None:
    """Below 0 for 0, and behind the end for nothing."""
    partition = stopped_cleanly("410-txn", tmp_path)
    last_entry_moved(partition, by)
    report, start = look(partition)
    assert start.starts
    assert ("offset-index-end" in errors(report)) == (by > 0)


def test_a_log_start_is_compared_with_the_end_that_no_checksum_shortens(tmp_path: Path) -> None:
    partition = stopped_cleanly("410-txn", tmp_path)
    log = max(partition.glob("*.log"))
    start_of_log(partition, int(log.stem) + 20)
    (partition.parent / "meta.properties").write_text(PROPERTIES)
    put(log, 64, bytes([log.read_bytes()[64] ^ 1]))
    report, start = look(partition)
    assert (start.starts, start.deletes) == (True, ())
    assert "log-bad-crc" in errors(report)
    assert "log-start-beyond-end" not in errors(report)
    log.with_suffix(".index").unlink()  # now it is recovered, and ends where the batch is bad
    _, start = look(partition)
    assert names(start.deletes) == sorted(path.name for path in partition.glob("*.log"))


@pytest.mark.parametrize(("length", "starts"), [(13, False), (14, True)])
def test_a_length_that_only_a_batch_of_magic_2_cannot_have_is_read(length: int, starts: bool, tmp_path: Path) -> None:
    """Of the least length a broker reads a header; its own end is in it, and what follows is none."""
    writer = PartitionWriter(tmp_path / "t-0", index_interval=0)
    for _ in range(3):
        writer.append([KafkaRecord()])
    writer.append_bytes(batch([KafkaRecord(b"\x7f" * 60, b"\x7f" * 60)], 3), 3, -1)
    writer.close()
    (tmp_path / ".kafka_cleanshutdown").touch()
    last = struct.unpack(">i", writer.path("index").read_bytes()[-4:])[0]
    put(writer.path(), last + 8, struct.pack(">i", length))
    put(writer.path(), last + 26, b"\x7f" * 34)
    report, start = look(writer.directory)
    assert start.starts is starts
    assert "offset-index-end" not in errors(report)


# ---- a load that fails


def test_a_segment_with_a_base_above_its_offsets_that_is_recovered_stops_a_broker(tmp_path: Path) -> None:
    """Its `.txnindex` has the broker recover it, and below the base nothing can be split."""
    partition = stopped_cleanly("410-txn", tmp_path)
    for path in partition.glob(f"{0:020d}.*"):
        path.rename(partition / f"{100:020d}{path.suffix}")
    _, start = look(partition)
    assert (start.starts, in_the_way(start), start.recovers) == (False, [f"{100:020d}.log"], 1)
    (partition / f"{100:020d}.txnindex").unlink()
    assert look(partition)[1].starts  # nothing has it recovered


def test_a_log_that_only_its_last_offset_splits(tmp_path: Path) -> None:
    """A broker looks at the last one before it splits a segment."""
    writer = PartitionWriter(tmp_path / "t-0", 10, index_interval=0)
    writer.append_bytes(batch([KafkaRecord()], 2**40), 11, -1)
    writer.append([KafkaRecord()])
    writer.close()
    writer.path("index").unlink()
    (tmp_path / ".kafka_cleanshutdown").touch()
    report, start = look(writer.directory)
    assert (start.starts, in_the_way(start)) == (False, [writer.path().name])
    (finding,) = [one for one in report.findings if one.kind == "log-refused"]
    assert "splits it" not in str(finding.hint)


# ---- an exchange of a log


def test_an_index_that_an_exchange_lacks_is_not_recovered(tmp_path: Path) -> None:
    """The broker makes one of zeros, and deletes what the log's old segment had."""
    partition = stopped_cleanly("410-txn", tmp_path)
    log = partition / f"{170:020d}.log"
    log.rename(f"{log}.swap")
    report, start = look(partition)
    assert (start.starts, start.recovers) == (True, 0)
    assert f"{170:020d}.txnindex" in names(start.deletes)
    (lost,) = [one for one in report.findings if one.kind == "transaction-index-missing"]
    assert lost.severity == "error"
    (missing,) = [one for one in report.findings if one.kind == "offset-index-missing"]
    assert "one of zeros" in str(missing.hint)


def test_a_bad_length_in_a_log_of_an_exchange_stops_a_broker(tmp_path: Path) -> None:
    """It reads such a log for its end, whatever comes behind it."""
    partition = stopped_cleanly("410-txn", tmp_path)
    log = partition / f"{170:020d}.log"
    log.write_bytes(log.read_bytes() + bytes(4096))
    assert look(partition)[1].starts
    for path in partition.glob(f"{170:020d}.*"):
        path.rename(f"{path}.swap")
    _, start = look(partition)
    assert (start.starts, in_the_way(start)) == (False, [f"{log.name}.swap"])


# ---- the producers


def test_a_recovery_has_later_logs_read_for_their_producers(tmp_path: Path) -> None:
    """It deletes the snapshots above its segment."""
    partition = stopped_cleanly("410-plain-mono", tmp_path)
    first, second, _ = sorted(partition.glob("*.log"))
    second.write_bytes(second.read_bytes() + bytes(4096))
    assert look(partition)[1].starts
    first.with_suffix(".index").unlink()
    _, start = look(partition)
    assert (start.starts, in_the_way(start), start.recovers) == (False, [second.name], 1)
    second.with_suffix(".index").unlink()
    _, start = look(partition)
    assert (start.starts, names(start.cuts), start.recovers) == (True, [second.name], 2)


@pytest.mark.parametrize("clean", [True, False])
def test_a_lost_snapshot_has_a_log_read_for_its_producers(clean: bool, tmp_path: Path) -> None:
    """From the one before on; without any, a broker that was stopped cleanly reads nothing."""
    partition = stopped_cleanly("410-plain-mono", tmp_path)
    (partition.parent / "meta.properties").write_text(PROPERTIES)
    _, second, third = sorted(partition.glob("*.log"))
    second.write_bytes(second.read_bytes() + bytes(4096))
    if not clean:
        (partition.parent / ".kafka_cleanshutdown").unlink()
        topic, _, number = partition.name.rpartition("-")
        point = f"0\n1\n{topic} {number} {int(third.stem)}\n"
        (partition.parent / "recovery-point-offset-checkpoint").write_text(point)
    snapshots = sorted(partition.glob("*.snapshot"))
    assert look(partition)[1].starts
    for path in snapshots[1:]:
        path.unlink()
    assert names(tuple(map(str, snapshots)))[0] == f"{second.stem}.snapshot"
    assert in_the_way(look(partition)[1]) == [second.name]
    snapshots[0].unlink()
    assert in_the_way(look(partition)[1]) == ([] if clean else [second.name])
