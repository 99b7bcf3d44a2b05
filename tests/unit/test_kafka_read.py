"""`PartitionLog.read` gives what was asked for, also where that is in several segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqindex.errors import CorruptIndexError, FormatError
from mqindex.kafka import PartitionLog
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

RECORDS, SEGMENTS = 3, 4  # of a batch; of four batches each


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    writer = PartitionWriter(tmp_path / "t-0", 100)
    for number in range(SEGMENTS):
        if number:
            writer.roll()
        for codec in ("none", "gzip", "none", "zstd"):
            records = [KafkaRecord(b"v%d" % at, b"k", headers=[("a", b"b")]) for at in range(RECORDS)]
            writer.append(records, codec=codec)
    writer.close()
    return writer.directory


def sizes(log: PartitionLog) -> list[int]:
    return [size for segment in log.segments for size in segment.batches()["size"].tolist()]


def test_a_read_goes_on_in_the_next_segments(partition: Path) -> None:
    with PartitionLog.open(partition) as log:
        records = log.read(100)
        assert records["offset"].tolist() == list(range(100, 100 + SEGMENTS * 4 * RECORDS))
        assert records["value"].to_pylist() == [b"v0", b"v1", b"v2"] * 4 * SEGMENTS
        assert records["headers"].to_pylist() == [[("a", b"b")]] * len(records)
        assert log.read(131, columns=["offset"])["offset"].tolist() == list(range(131, 148))


def test_it_ends_with_the_last_batch_that_fits(partition: Path) -> None:
    with PartitionLog.open(partition) as log:
        ends = np.cumsum(sizes(log))
        for number, end in enumerate(ends.tolist(), 1):
            for max_bytes, batches in ((end, number), (end + 1, number), (end - 1, max(number - 1, 1))):
                records = log.read(100, max_bytes=max_bytes, columns=["offset"])
                assert records["offset"].tolist() == list(range(100, 100 + batches * RECORDS))
        assert len(log.read(112, max_bytes=0)) == RECORDS


def test_records_before_damage_are_given_and_then_the_error(partition: Path) -> None:
    path = partition / f"{124:020d}.log"
    data = bytearray(path.read_bytes())
    with PartitionLog.open(partition) as log:
        second = log.segments[2].batches()["position"].tolist()[1]
    data[second + 70] ^= 1
    path.write_bytes(data)
    with PartitionLog.open(partition) as log:
        assert log.read(100)["offset"].tolist() == list(range(100, 127))
        with pytest.raises(CorruptIndexError, match="read on from offset 130"):
            log.read(127)
        assert log.read(130)["offset"].tolist() == list(range(130, 148))


def test_records_before_a_batch_that_does_not_decompress_are_given_and_then_the_error(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord()])
    writer.roll()
    writer.append([KafkaRecord()])
    writer.append([KafkaRecord()], count=7)  # more than it holds
    writer.append([KafkaRecord()])
    writer.close()
    with PartitionLog.open(writer.directory) as log:
        assert log.read(0)["offset"].tolist() == [0, 1]
        with pytest.raises(FormatError):
            log.read(2)
        assert log.read(3)["offset"].tolist() == [3]


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_what_is_hidden_counts_but_does_not_end_a_read(level: str, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    for number in range(9):
        if number:
            writer.roll()
        writer.append([KafkaRecord()], producer_id=5, producer_epoch=0, base_sequence=number, transactional=True)
        writer.marker(5, abort=number % 3 != 0)
    begun = writer.append([KafkaRecord()], producer_id=5, producer_epoch=0, base_sequence=9, transactional=True)
    writer.close()
    with PartitionLog.open(writer.directory) as log:
        committed = level == "read_committed"
        expected = [0, 6, 12] if committed else [*range(0, 18, 2), begun]
        assert log.read(0, isolation_level=level)["offset"].tolist() == expected  # type: ignore[arg-type]
        for max_bytes in (0, 1, 100, 300, 900):
            found: list[int] = []
            while len(records := log.read(max([-1, *found]) + 1, max_bytes=max_bytes, isolation_level=level)):  # type: ignore[arg-type]
                found += records["offset"].tolist()
            assert found == expected
