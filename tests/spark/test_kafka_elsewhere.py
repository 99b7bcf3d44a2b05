"""Spark's sources of Kafka's files, and its look-ups of times, read what is elsewhere as they read it here."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex.errors import FileStateError
from mqindex.kafka import repair
from mqindex.spark.functions import kafka as functions
from mqindex.spark.options import given
from mqindex.spark.sources import kafka_log
from mqindex.spark.sources.kafka_index import KafkaIndexSource
from mqindex.spark.sources.kafka_log import KafkaLogSource
from tests.golden.test_kafka_elsewhere import narrow, written_now
from tests.spark.test_sources_elsewhere import OPTIONS, SECRET
from tests.support.elsewhere import Ways, memory
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.kafka_damage import filled_log_dir
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

__all__ = ["memory"]  # a fixture

LONGS = {
    "records": ("offset", "timestamp", "segment", "position", "producer_id"),
    "batches": ("segment", "position", "base_offset", "last_offset", "max_timestamp", "producer_id", "crc"),
    "offset": ("segment", "number", "offset"),
    "time": ("segment", "number", "timestamp", "offset"),
    "transaction": ("segment", "number", "producer_id", "first_offset", "last_offset", "last_stable_offset"),
}


def reader_of(path: Path | str, what: str, **options: str) -> Any:
    source, option = (KafkaLogSource, "rows") if what in ("records", "batches") else (KafkaIndexSource, "index")
    schema = StructType([StructField(name, LongType()) for name in LONGS[what]])
    return source({"path": str(path), option: what, **options}).reader(schema)


def rows(path: Path | str, what: str, **options: str) -> list[dict[str, Any]]:
    """All rows, as Spark reads them: the reader and each partition are pickled for a task."""
    reader = reader_of(path, what, **options)
    carried, found = pickle.dumps(reader), []
    for part in reader.partitions():
        data = pickle.dumps(part)
        assert SECRET.encode() not in data
        for batch in pickle.loads(carried).read(pickle.loads(data)):
            found += batch.to_pylist()
    return found


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_rows_are_those_of_the_files_here(
    name: str, tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 600)
    directory = PartitionCase(name).closed(tmp_path)
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    for what in LONGS:
        levels = [{}, {"isolationLevel": "read_uncommitted"}, {"isolationLevel": "read_committed"}]
        for more in levels if what in ("records", "batches") else levels[:1]:
            assert rows(url, what, storageOptions=OPTIONS, **more) == rows(directory, what, **more)
    for path in sorted(directory.glob("*.timeindex")):
        assert rows(f"{url}/{path.name}", "time", storageOptions=OPTIONS) == rows(path, "time")
    for path in sorted(directory.glob("*.log")):
        assert rows(f"{url}/{path.name}", "records", storageOptions=OPTIONS) == rows(path, "records")


def test_a_log_dir_is_read_whole(tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_log, "TASK_BYTES", 400)
    log_dir = filled_log_dir(tmp_path / "log-dir")
    url = memory.upload(log_dir)
    for what in LONGS:
        assert rows(url, what, storageOptions=OPTIONS) == rows(log_dir, what) != []
    assert len(reader_of(url, "records").partitions()) == len(reader_of(log_dir, "records").partitions()) > 3


def test_little_of_a_log_is_read_to_plan(tmp_path: Path, memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_log, "TASK_BYTES", 4 << 20)
    writer = PartitionWriter(tmp_path / "long-0", index_interval=4096)
    for _ in range(320):
        writer.append([KafkaRecord(bytes(50_000))])
    writer.close()
    url = memory.upload(tmp_path)
    reader = reader_of(f"{url}/long-0", "records")
    memory.ranges.clear()
    assert len(reader.partitions()) == 4
    assert sum(stop - start for path, start, stop in memory.ranges if path.endswith(".log")) <= 1 << 20


def test_a_segment_that_is_replaced_after_the_plan_is_an_error(tmp_path: Path, memory: Ways) -> None:
    log_dir = filled_log_dir(tmp_path / "log-dir")
    url = memory.upload(log_dir)
    reader = reader_of(url, "records")
    parts = reader.partitions()
    log = f"{url}/topic-0/{27:020d}.log"
    memory.put(log, memory.files(f"{url}/topic-0")[log.rpartition("/")[2]])
    with pytest.raises(FileStateError, match="the file was replaced while it was read") as raised:
        [batch for part in parts for batch in reader.read(part)]
    assert raised.value.path == log


def test_a_segment_that_goes_after_the_plan_is_left_out(tmp_path: Path, memory: Ways) -> None:
    log_dir = filled_log_dir(tmp_path / "log-dir")
    url, found = memory.upload(log_dir), []
    for place in (log_dir, url):
        reader = reader_of(place, "records")
        parts = reader.partitions()
        if place is log_dir:
            (log_dir / "topic-0" / f"{10:020d}.log").unlink()
        else:
            memory.store.delete(f"{url.removeprefix('memory://')}/topic-0/{10:020d}.log")
        found.append([offset for part in parts for batch in reader.read(part) for offset in batch[0].to_pylist()])
    assert found[0] == found[1]
    assert min(found[0]) == 27


def test_times_are_looked_up_there(tmp_path: Path, memory: Ways) -> None:
    case = PartitionCase("410-plain-mono")
    directory = written_now(case.closed(tmp_path))
    times = pa.array([None, *(row[0] for row in case.truth["log"]["fetchOffsetByTimestamp"])], pa.int64())
    here = functions._offsets(str(directory), times)
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    place = given(url, "directory", {"key": SECRET})
    assert functions._offsets(pickle.loads(pickle.dumps(place)), times) == here
    memory.ranges.clear()
    assert functions._offsets(place, times) == here
    assert memory.ranges == []  # what a worker's process has read stays
    assert here.null_count < len(here) - 1


def test_files_that_are_replaced_there_are_seen(tmp_path: Path, memory: Ways) -> None:
    case = PartitionCase("410-plain-mono")
    directory = written_now(case.closed(tmp_path))
    late = pa.array([case.truth["segments"][-1]["timeIndex"][-1][0]], pa.int64())
    for path in directory.glob("*.timeindex"):
        path.unlink()
    url = f"{memory.upload(directory.parent)}/{directory.name}"
    place = given(url, "directory")
    assert functions._offsets(place, late).to_pylist() == [None], "as a broker without them"
    repair(directory)
    for path in directory.glob("*.timeindex"):
        memory.put(f"{url}/{path.name}", path.read_bytes())
    assert functions._offsets(place, late) == functions._offsets(str(directory), late)
    assert functions._offsets(place, late).null_count == 0


def test_what_is_no_partition_there_is_told(tmp_path: Path, memory: Ways) -> None:
    url = memory.upload(filled_log_dir(tmp_path / "log-dir"))
    with pytest.raises(ValueError, match=f"directory: expected a Kafka partition's, got {url}$"):
        functions._offsets(given(url, "directory"), pa.array([5], pa.int64()))
    with pytest.raises(FileNotFoundError):
        functions._offsets(given(f"{url}/nothing", "directory"), pa.array([5], pa.int64()))
