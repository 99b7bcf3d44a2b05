"""`rocketmq_commitlog` of a damaged log: the query fails, or what is left out is said; as `kafka_log` does."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from mqindex.errors import FormatError
from mqindex.rocketmq import CommitLog
from mqindex.spark.sources.commitlog_ranges import COLUMNS
from mqindex.spark.sources.commitlog_stream import LogStreamReader
from mqindex.spark.sources.rocketmq_commitlog import _LogReader
from tests.unit.test_commit_log import FILE_SIZE, write

OFFSET = StructType([StructField("phy_offset", LongType())])


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[str, int, int]:
    """A log, and the phy offsets [at, next) of a message in its first file whose magic is destroyed."""
    writer = write(tmp_path)
    victim, size = writer.frames[3]
    writer.overwrite(victim + 4, b"\0\0\0\0")
    return str(tmp_path), victim, victim + size


def read(path: str, **options: str) -> list[int]:
    reader: Any = _LogReader({"path": path, **options}, OFFSET, COLUMNS)
    return [row for part in reader.plan() for table in reader.tables(part) for row in table["phy_offset"].to_pylist()]


def streamed(path: str, **options: str) -> list[int]:
    reader = LogStreamReader({"path": path, **options}, OFFSET)
    start, end = reader.initialOffset(), reader.latestOffset()
    try:
        parts = reader.partitions(start, end)
        return [row for part in parts for batch in reader.read(part) for row in batch.column(0).to_pylist()]
    finally:
        reader.stop()


@pytest.mark.parametrize("reading", [read, streamed])
def test_damage_fails_the_query_or_is_said(
    damaged: tuple[str, int, int], caplog: pytest.LogCaptureFixture, reading: Any
) -> None:
    """It was left out without a word."""
    path, victim, after = damaged
    with pytest.raises(FormatError, match=rf"the log is damaged: .*{victim} to {after}, .*failOnDataLoss"):
        reading(path)
    with caplog.at_level(logging.WARNING):
        left = reading(path, failOnDataLoss="false")
    assert victim not in left and after in left
    said = f"from phy offset {victim} to {after}, {after - victim} bytes"
    assert said in caplog.text
    with CommitLog.open(path) as log:
        assert [row for batch in log.scan() for row in batch["phy_offset"].tolist()] == left
        assert said in str(log.damage[0])


@pytest.mark.parametrize("reading", [read, streamed])
def test_frames_behind_the_logs_end_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture, reading: Any) -> None:
    """They are no part of the log, so no query fails; they were left out without a word."""
    writer = write(tmp_path)
    last = [at for at, _ in writer.frames if at >= writer.position // FILE_SIZE * FILE_SIZE]
    writer.overwrite(last[1] + 28, b"\xff")
    with caplog.at_level(logging.WARNING):
        assert max(reading(str(tmp_path))) == last[0]
    assert f"and {len(last) - 2} complete frames behind its end are not read" in caplog.text
