"""A batch read of `rocketmq_commitlog` is planned without reading the log: its end is found in a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import CommitLog
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.spark.sources.rocketmq_commitlog import CommitLogSource
from tests.support.log_writer import LogMessage, LogWriter

LIMIT = 64 << 10  # bytes that are read to plan
FILE_SIZE = 1 << 20
OFFSET = StructType([StructField("phy_offset", LongType())])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Files of 1 MiB: two are full, of the third a half is; the fourth, made in advance, is of zeros on the disk."""
    writer = LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=FILE_SIZE)
    while writer.position < 5 * FILE_SIZE // 2:
        writer.write(LogMessage("Topic", body=bytes(4000), keys="k"))
    os.truncate(writer.path(writer.position), FILE_SIZE)
    (tmp_path / "store" / "commitlog" / f"{3 * FILE_SIZE:020d}").write_bytes(bytes(FILE_SIZE))
    return tmp_path / "store"


def reader_of(log: Path, **options: str) -> Any:
    return CommitLogSource({"path": str(log), **options}).reader(OFFSET)


def rows(reader: Any, parts: list[Any]) -> list[int]:
    return [n for part in parts for batch in reader.read(part) for n in batch.column(0).to_pylist()]


@contextmanager
def only_the_begin_is_mapped(patch: pytest.MonkeyPatch, first: int = 0) -> Iterator[list[bool]]:
    """While a log's file is open it ends at `LIMIT`. For each one, whether what was mapped behind that was read.

    first : files that begin before this phy offset stay as they are.
    """
    read_on, opens = [], LogFile.open

    @contextmanager
    def cut(file: LogFile) -> Iterator[MappedFile]:
        data = Path(file.path).read_bytes()
        with opens(file) as mapped:
            if file.start < first:
                yield mapped
                return
            os.truncate(file.path, LIMIT)
            try:
                yield mapped
            finally:
                read_on.append(mapped.map.cut)
                Path(file.path).write_bytes(data)

    with patch.context() as patched:
        patched.setattr(LogFile, "open", cut)
        yield read_on


def read_by_calls() -> int:
    """Bytes that this process has read so far, by `read` and the like."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["rchar"])


@pytest.mark.parametrize("options", [{}, {"endOffset": str(1 << 20)}, {"endOffset": "3000000"}, {"startOffset": "9"}])
def test_little_of_a_log_is_read_to_plan(log: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    reader = reader_of(log, **options)
    with only_the_begin_is_mapped(monkeypatch) as read_on:
        parts = reader.partitions()
    assert read_on and not any(read_on)
    assert len(read_on) * 2 * os.sysconf("SC_PAGESIZE") <= LIMIT  # a message's begin, and its end
    if os.path.exists("/proc/self/io"):
        before = read_by_calls()
        reader.partitions()
        assert read_by_calls() - before <= LIMIT
    start, stop = int(options.get("startOffset", 0)), int(options.get("endOffset", 4 * FILE_SIZE))
    with CommitLog.open(log / "commitlog") as whole:
        expected = [n for batch in whole.scan(start, stop) for n in batch["phy_offset"].tolist()]
    assert rows(reader, parts) == expected


def test_what_is_written_after_the_plan_leaves_no_gap(log: Path) -> None:
    reader = reader_of(log)
    parts = reader.partitions()
    before = rows(reader, parts)
    with CommitLog.open(log / "commitlog") as whole:
        end = whole.max_phy_offset
    writer = LogWriter(log / "commitlog", mapped_file_size=FILE_SIZE, start=end)
    later = [at for _ in range(200) for at in writer.write(LogMessage("Topic", body=bytes(4000)))]
    assert later[-1] > 3 * FILE_SIZE
    assert rows(reader, parts) == before + later


def test_a_task_before_the_newest_file_reads_none_made_in_advance(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = reader_of(log)
    first = reader.partitions()[0]
    with only_the_begin_is_mapped(monkeypatch, 2 * FILE_SIZE) as read_on:
        assert rows(reader, [first])
    assert read_on and not any(read_on)
