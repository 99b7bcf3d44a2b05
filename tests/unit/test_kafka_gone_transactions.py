"""Entries of a `.txnindex` whose transactions the cleaner took away: which are as brokers leave them, which mislead."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import PartitionLog, repair, verify
from mqindex.report import Report
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

OPTIONS: dict[str, Any] = {"index_interval_bytes": 100, "engine": LocalEngine(1)}
ENTRY = struct.Struct(">h4q")
FIELDS = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")


def compacted(directory: Path) -> Path:
    """A partition of which the cleaner removed two aborted transactions, not their markers; its `.txnindex`."""
    writer = PartitionWriter(directory, 90, index_interval=100)
    index = writer.path("txnindex")
    writer.append([KafkaRecord()] * 8)
    append(writer, 5, 2)
    writer.marker(5, abort=False)  # at 100
    writer.skip(2)
    writer.marker(5)  # at 103
    index.write_bytes(entry(5, 101, 103, 104))
    append(writer, 6)
    writer.skip(1)
    writer.marker(5)  # at 106, while that of 6 is open
    index.write_bytes(index.read_bytes() + entry(5, 105, 106, 104))
    append(writer, 6)
    writer.marker(6)  # at 108
    append(writer, 7)
    writer.marker(7)  # at 110
    append(writer, 5)
    writer.marker(5, abort=False)  # at 112
    writer.append([KafkaRecord()] * 5)
    writer.close()
    return index


def append(writer: PartitionWriter, producer: int, records: int = 1) -> None:
    writer.append(
        [KafkaRecord()] * records, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
    )


def entry(*fields: int) -> bytes:
    return ENTRY.pack(0, *fields)


def change(index: Path, number: int, **fields: int) -> None:
    """Other values in one entry."""
    data = bytearray(index.read_bytes())
    values = dict(zip(FIELDS, ENTRY.unpack_from(data, number * ENTRY.size), strict=True))
    ENTRY.pack_into(data, number * ENTRY.size, *(values | fields).values())
    index.write_bytes(data)


def kinds(report: Report, severity: str = "error") -> set[str]:
    return {finding.kind for finding in report.findings if finding.severity == severity}


def committed(directory: Path) -> list[list[int]]:
    """What a reader of committed records gets from each offset on, a batch and more at once."""
    with PartitionLog.open(directory) as log:
        return [
            log.read(start, columns=["offset"], max_bytes=size, isolation_level="read_committed")["offset"].tolist()
            for start in range(log.log_start_offset, log.log_end_offset)
            for size in (1, 2**20)
        ]


def test_what_the_cleaner_leaves_is_told(tmp_path: Path) -> None:
    compacted(tmp_path / "t-0")
    report = verify(tmp_path / "t-0", **OPTIONS)
    (finding,) = report.findings
    assert (finding.severity, finding.kind) == ("info", "transaction-index-unknown")
    assert str(finding.hint).startswith("2 entries of this kind")
    with PartitionLog.open(tmp_path / "t-0") as log:
        read = log.read(90, columns=["offset"], isolation_level="read_committed")["offset"].tolist()
    assert read == [*range(90, 100), 111, *range(113, 118)]


@pytest.mark.parametrize(
    ("number", "fields"),
    [
        (0, {"last_stable_offset": 102}),  # another was open, and is gone too
        (0, {"first_offset": 103}),  # a marker without records, as older brokers wrote it
        (0, {"first_offset": 102}),
        (1, {"last_stable_offset": 101}),
        (0, {"last_offset": 102, "last_stable_offset": 103}),  # 0.11.0 removed the marker before the entry
    ],
)
def test_what_brokers_can_have_written_is_no_error(number: int, fields: dict[str, int], tmp_path: Path) -> None:
    index = compacted(tmp_path / "t-0")
    change(index, number, **fields)
    report = verify(tmp_path / "t-0", **OPTIONS)
    told = {"transaction-index-unknown"} if "last_offset" in fields else set()
    assert (report.ok, kinds(report, "warning")) == (True, told)


def test_a_transaction_whose_begin_retention_deleted_is_no_finding(tmp_path: Path) -> None:
    """Nor is the last stable offset of another one, which that transaction held back."""
    writer = PartitionWriter(tmp_path / "t-0", 100, index_interval=100)
    append(writer, 3)
    writer.roll()
    append(writer, 5)
    writer.marker(5)
    writer.marker(3)
    writer.append([KafkaRecord()])
    writer.close()
    for path in (tmp_path / "t-0").glob(f"{100:020d}.*"):
        path.unlink()
    report = verify(tmp_path / "t-0", **OPTIONS)
    assert kinds(report, "error") | kinds(report, "warning") == set()
    assert kinds(report, "info") == {"transaction-index-unknown", "transaction-index-last-stable-offset"}
    assert repair(tmp_path / "t-0", **OPTIONS).actions == []


@pytest.mark.parametrize("records", [1, 3])
def test_a_follower_sees_what_begins_in_the_same_append(records: int, tmp_path: Path) -> None:
    """The last stable offset is then the begin of a later transaction, or of one that was cut away since."""
    index = compacted(tmp_path / "t-0")
    data = index.read_bytes()
    writer = PartitionWriter(tmp_path / "f-0", 100, index_interval=100)
    writer.skip(2)
    writer.marker(5)  # at 102
    writer.append([KafkaRecord()] * records)
    append(writer, 6)
    writer.marker(6)
    writer.close()
    own = writer.path("txnindex")
    own.write_bytes(entry(5, 100, 102, 103 + records) + own.read_bytes())
    assert verify(tmp_path / "f-0", **OPTIONS).ok
    change(own, 0, last_stable_offset=104 + records)  # a search that ends there misses the transaction of 6
    assert kinds(verify(tmp_path / "f-0", **OPTIONS)) == {"transaction-index-last-stable-offset"}
    assert index.read_bytes() == data


@pytest.mark.parametrize(
    ("number", "fields", "kind"),
    [
        (0, {"last_stable_offset": 105}, "transaction-index-last-stable-offset"),
        (0, {"last_stable_offset": 104 + 2**40}, "transaction-index-last-stable-offset"),
        (1, {"last_stable_offset": 105}, "transaction-index-last-stable-offset"),  # 6 began at 104
        (1, {"last_stable_offset": 107}, "transaction-index-last-stable-offset"),
        (0, {"last_stable_offset": -104}, "transaction-index-range"),
        (0, {"first_offset": 104}, "transaction-index-range"),
        (0, {"first_offset": -101}, "transaction-index-range"),
        (0, {"producer_id": 7}, "transaction-index-unknown"),
        (0, {"producer_id": 4}, "transaction-index-unknown"),
        (0, {"last_offset": 89}, "transaction-index-offset"),
        (1, {"first_offset": 112, "last_offset": 113, "last_stable_offset": 114}, "transaction-index-unknown"),
    ],
)
def test_what_no_broker_wrote_is_an_error_and_repaired(
    number: int, fields: dict[str, int], kind: str, tmp_path: Path
) -> None:
    """The entries of transactions that are gone go with it: the log does not show what they said."""
    index = compacted(tmp_path / "t-0")
    right = committed(tmp_path / "t-0")
    change(index, number, **fields)
    assert kind in kinds(verify(tmp_path / "t-0", **OPTIONS))
    assert repair(tmp_path / "t-0", **OPTIONS).ok
    assert index.read_bytes() == entry(6, 104, 108, 109) + entry(7, 109, 110, 111)
    assert verify(tmp_path / "t-0", **OPTIONS).findings == []
    assert committed(tmp_path / "t-0") == right


@pytest.mark.parametrize("abort", [True, False])
def test_an_entry_without_its_marker_hides_what_its_producer_commits_later(abort: bool, tmp_path: Path) -> None:
    """A consumer leaves out what the producer wrote up to its next abort marker, and the cleaner took the right one."""
    writer = PartitionWriter(tmp_path / "t-0", 100, index_interval=100)
    writer.append([KafkaRecord()])
    writer.skip(2)
    append(writer, 5)
    writer.marker(5, abort=abort)
    writer.close()
    index = writer.path("txnindex")
    index.write_bytes(entry(5, 101, 102, 103) + (index.read_bytes() if abort else b""))
    assert kinds(verify(tmp_path / "t-0", **OPTIONS)) == (set() if abort else {"transaction-index-unknown"})


def test_an_index_whose_log_a_crash_cut(tmp_path: Path) -> None:
    """Entries behind the log's end: a broker recovers the segment, and what they say is not known."""
    index = compacted(tmp_path / "t-0")
    index.write_bytes(index.read_bytes() + entry(9, 120, 130, 140))
    report = verify(tmp_path / "t-0", **OPTIONS)
    assert (report.ok, kinds(report, "warning")) == (True, {"transaction-index-unknown"})


def test_a_flipped_bit_is_found_where_it_changes_what_is_read(tmp_path: Path, rng: random.Random) -> None:
    index = compacted(tmp_path / "t-0")
    good, right = index.read_bytes(), committed(tmp_path / "t-0")
    found = 0
    for bit in rng.sample(range(len(good) * 8), 150):
        data = bytearray(good)
        data[bit // 8] ^= 1 << bit % 8
        index.write_bytes(data)
        if verify(tmp_path / "t-0", **OPTIONS).ok:
            assert committed(tmp_path / "t-0") == right, f"bit {bit}"
        else:
            found += 1
    assert found > 120
