"""`kafka_log` with `isolationLevel` gives what a consumer of that level gets."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex.spark.sources import kafka_log as kafka_log_source
from mqindex.spark.sources.kafka_log import KafkaLogSource
from tests.support.consumed import consumed
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import KafkaRecord, PartitionWriter


def found(path: Path, column: str = "offset", **options: str) -> list[int]:
    reader = KafkaLogSource({"path": str(path), **options}).reader(StructType([StructField(column, LongType())]))
    return [n for part in reader.partitions() for batch in reader.read(part) for n in batch.column(0).to_pylist()]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Offsets 0 plain, 1 aborted by the marker 4, 2 committed by 3, in the next segment 5 plain, 6 open, 7 plain."""
    writer = PartitionWriter(tmp_path / "t-0", index_interval=0)
    writer.append([KafkaRecord()])
    for producer in (1, 2):
        fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        writer.append([KafkaRecord()], **fields)
    writer.marker(2, abort=False)
    writer.roll()
    writer.marker(1)
    writer.append([KafkaRecord()])
    writer.append([KafkaRecord()], producer_id=3, producer_epoch=0, base_sequence=0, transactional=True)
    writer.append([KafkaRecord()])
    writer.close()
    return tmp_path / "t-0"


def test_aborted_records_and_markers_are_not_mixed_into_data(mixed: Path) -> None:
    assert found(mixed) == list(range(8))
    assert found(mixed, isolationLevel="read_uncommitted") == [0, 1, 2, 5, 6, 7]
    assert found(mixed, isolationLevel="read_committed") == [0, 2, 5]
    assert found(mixed, "base_offset", isolationLevel="read_committed", rows="batches") == [0, 2, 5]
    first = mixed / f"{0:020d}.log"
    assert found(first, isolationLevel="read_committed", startOffset="1") == [2]
    with pytest.raises(ValueError, match=r"^isolationLevel: expected read_uncommitted or .*, got 'committed'$"):
        found(mixed, isolationLevel="committed")


@pytest.mark.parametrize("task_bytes", [128 << 20, 500])
@pytest.mark.parametrize("name", ["410-txn", "410-txn-open"])
@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
def test_brokers_partitions_are_read_as_a_consumer_reads_them(
    name: str, level: str, task_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", task_bytes)
    partition = PartitionCase(name).closed(tmp_path)
    expected = consumed(partition, level)
    assert found(partition, isolationLevel=level) == expected
    assert 0 < len(expected) < len(found(partition))


def test_what_an_index_lacks_of_aborted_transactions_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path)
    index = min(partition.glob("*.txnindex"))
    index.unlink()
    with caplog.at_level(logging.WARNING):
        assert found(partition, isolationLevel="read_committed")
    assert f"lacks aborted transactions, and their records are among the answer: {index}" in caplog.text
