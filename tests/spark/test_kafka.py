"""Kafka on a Spark session: the engine gives what threads give, the column function what the broker answered."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka
from mqindex.engines import LocalEngine
from mqindex.errors import BadMagicError
from mqindex.spark import SparkEngine, offset_for_timestamp
from tests.support.golden_kafka import PartitionCase

pytestmark = pytest.mark.spark
MONO = PartitionCase("410-plain-mono")
CASES = ("410-plain-mono", "410-txn", "410-txn-open", "390-follower")
OPTIONS = {"index_interval_bytes": 512}


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Partitions of several brokers, some of their indexes lost."""
    root = tmp_path / "log-dir"
    root.mkdir()
    for name in CASES:
        shutil.move(PartitionCase(name).closed(tmp_path / "unpacked"), root / f"{name}-0")
    for lost in ("410-plain-mono-0/*.timeindex", "410-txn-0/*.txnindex", "410-txn-open-0/*.index"):
        for path in root.glob(lost):
            path.unlink()
    return root


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    directory = MONO.closed(tmp_path)
    for log in directory.glob("*.log"):
        os.utime(log)
    return directory


def indexes(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*index"))}


def told(report: Any) -> list[tuple[Any, ...]]:
    return [(one.severity, one.kind, os.path.basename(one.path), one.expected, one.got) for one in report.findings]


def test_the_engine_gives_what_threads_give(spark: Any, log_dir: Path, tmp_path: Path) -> None:
    engine, threads = SparkEngine(spark), LocalEngine(1)
    found = kafka.verify(log_dir, engine=engine, **OPTIONS)
    local = kafka.verify(log_dir, engine=threads, **OPTIONS)
    assert not found.ok
    assert told(found) == told(local)
    assert (found.actions, found.segments, found.batches) == (local.actions, local.segments, local.batches)

    rebuilt = kafka.rebuild(log_dir, tmp_path / "spark", engine=engine, **OPTIONS)
    kafka.rebuild(log_dir, tmp_path / "threads", engine=threads, **OPTIONS)
    assert indexes(tmp_path / "spark") == indexes(tmp_path / "threads")
    assert rebuilt.files == len(indexes(tmp_path / "spark"))

    shutil.copytree(log_dir, tmp_path / "copy")
    kafka.repair(log_dir, engine=engine, **OPTIONS)
    kafka.repair(tmp_path / "copy", engine=threads, **OPTIONS)
    assert kafka.verify(log_dir, engine=threads, **OPTIONS).ok
    repaired = {path: data for path, data in indexes(log_dir).items() if "backup" not in path}
    assert repaired == {path: data for path, data in indexes(tmp_path / "copy").items() if "backup" not in path}


def test_an_error_of_a_stage_arrives_unchanged(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(BadMagicError, match="neither a partition nor a log dir"):
        kafka.verify(tmp_path, engine=SparkEngine(spark))


def times_frame(spark: Any, times: list[int | None]) -> Any:
    return spark.createDataFrame([(ms,) for ms in times], "ms bigint").repartition(2)


def test_offsets_of_times_are_those_of_the_broker(spark: Any, mono: Path) -> None:
    said = MONO.truth["log"]["fetchOffsetByTimestamp"]
    frame = times_frame(spark, [row[0] for row in said] + [None])
    rows = frame.select("ms", offset_for_timestamp(mono)("ms").alias("offset")).collect()
    expected = {ms: None if offset is None or offset < 0 else offset for ms, _, offset in said}
    assert {row.ms: row.offset for row in rows} == {**expected, None: None}
    assert None in expected.values()


def test_the_sql_function_takes_directories_row_by_row(registered: Any, mono: Path, tmp_path: Path) -> None:
    other = PartitionCase("410-codecs").closed(tmp_path)
    codecs_time = PartitionCase("410-codecs").truth["segments"][0]["batches"][0][4]
    late = MONO.truth["segments"][0]["timeIndex"][2][0]
    rows = [(str(mono), late), (str(other), codecs_time), (None, late), (str(mono), None)]
    registered.createDataFrame(rows, "place string, ms bigint").coalesce(1).createOrReplaceTempView("asked")
    found = registered.sql("SELECT place, ms, offset_for_timestamp(place, ms) o FROM asked").collect()
    with kafka.PartitionLog.open(mono) as log, kafka.PartitionLog.open(other) as codecs:
        first, second = log.offset_for_timestamp(late), codecs.offset_for_timestamp(codecs_time)
    assert first is not None
    assert second is not None
    assert [row.o for row in found] == [first.offset, second.offset, None, None]


def test_files_that_are_replaced_are_seen(spark: Any, mono: Path) -> None:
    late = MONO.truth["segments"][-1]["timeIndex"][-1][0]
    frame, find = times_frame(spark, [late]), offset_for_timestamp(mono)
    for path in mono.glob("*.timeindex"):
        path.unlink()
    assert frame.select(find("ms").alias("o")).collect()[0].o is None, "as a broker without them"
    kafka.repair(mono, **OPTIONS)
    assert frame.select(find("ms").alias("o")).collect()[0].o is not None


def test_what_cannot_be_asked_is_told(spark: Any, mono: Path) -> None:
    frame = spark.createDataFrame([("yesterday", 5)], "word string, ms bigint")
    with pytest.raises(Exception, match="timestamp: expected ms since the epoch, a bigint, got string"):
        frame.select(offset_for_timestamp(mono)("word")).collect()
    with pytest.raises(Exception, match="directory: expected a Kafka partition's, got"):
        frame.select(offset_for_timestamp(mono.parent)("ms")).collect()
