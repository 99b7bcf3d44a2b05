"""`offset_for_timestamp` of a column and in SQL answers as the broker did."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka
from mqindex.spark import offset_for_timestamp
from tests.support.golden_kafka import PartitionCase

MONO = PartitionCase("410-plain-mono")


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    directory = MONO.closed(tmp_path)
    for log in directory.glob("*.log"):
        os.utime(log)
    return directory


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
    kafka.repair(mono)
    assert frame.select(find("ms").alias("o")).collect()[0].o is not None


def test_what_cannot_be_asked_is_told(spark: Any, mono: Path) -> None:
    frame = spark.createDataFrame([("yesterday", 5, 1.5)], "word string, ms bigint, seconds double")
    for column, kind in (("word", "string"), ("seconds", "double")):
        with pytest.raises(Exception, match=f"timestamp: expected ms since the epoch, a bigint, got {kind}"):
            frame.select(offset_for_timestamp(mono)(column)).collect()
    moments = spark.sql("select timestamp '2023-11-14 22:13:35' moment")
    with pytest.raises(Exception, match=r"a bigint, got timestamp\[.*\]; unix_millis makes one of a timestamp"):
        moments.select(offset_for_timestamp(mono)("moment")).collect()
    with pytest.raises(Exception, match="directory: expected a Kafka partition's, got"):
        frame.select(offset_for_timestamp(mono.parent)("ms")).collect()


def test_a_link_that_leads_nowhere_does_not_fail_a_look_up(spark: Any, mono: Path) -> None:
    late = MONO.truth["segments"][-1]["timeIndex"][-1][0]
    frame, find = times_frame(spark, [late]), offset_for_timestamp(mono)
    expected = frame.select(find("ms").alias("o")).collect()
    (mono / "notes").symlink_to(mono / "nothing")
    assert frame.select(find("ms").alias("o")).collect() == expected
