"""Random filters over the golden partitions: a scan gives what a plain read of everything gives, filtered in Python."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.crc import crc32
from mqindex.columns.columns import Columns
from mqindex.kafka import LogSegment, PartitionLog, scan
from mqindex.kafka.partition.partition_files import list_segments
from mqindex.kafka.scanning.scan import SCAN_COLUMNS
from tests.golden.test_kafka_partition import consumed
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase

Row = dict[str, Any]
FILTERS = 40  # of each partition


def rows_of(batches: Iterable[Columns]) -> list[Row]:
    found = []
    for batch in batches:
        columns = [batch[name].tolist() if isinstance(batch[name], np.ndarray) else batch[name] for name in batch]
        found += [dict(zip(batch, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def everything(directory: Path, topic: str, partition: int) -> list[Row]:
    """All records of a partition, segment by segment, with their times as ms."""
    found = []
    for files in list_segments(directory).segments:
        if Path(files.log).stat().st_size:
            with LogSegment.of_files(files) as segment:
                place = {"topic": topic, "partition": partition, "segment": files.base_offset}
                found += [{**row, **place} for row in rows_of(segment.records())]
    return found


class Partition:
    """A golden partition, what is in it, and what a consumer of committed records gets."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        topic, _, number = directory.name.rpartition("-")
        self.rows = everything(directory, topic, int(number))
        with PartitionLog.open(directory) as log:
            polls = consumed(log, log.log_start_offset, "read_committed")
            self.committed = {record.offset for poll in polls for record in poll}

    def answer(self, asked: dict[str, Any]) -> list[Row]:
        """The slow way."""
        keys = asked.get("keys")
        keys = keys and [key.encode() if isinstance(key, str) else key for key in keys]
        level, names = asked.get("isolation_level"), asked.get("columns") or SCAN_COLUMNS
        found = []
        for row in self.rows:
            offset, time = row["offset"], row["timestamp"]
            if ("begin" in asked or "end" in asked) and time == -1:
                continue
            if not asked.get("begin", time) <= time < asked.get("end", time + 1):
                continue
            if not asked.get("start_offset", offset) <= offset < asked.get("end_offset", offset + 1):
                continue
            if keys is not None and row["key"] not in keys:
                continue
            if (level and row["is_control"]) or (level == "read_committed" and offset not in self.committed):
                continue
            found.append({name: row[name] for name in names})
        return found

    def question(self, rng: random.Random) -> dict[str, Any]:
        asked: dict[str, Any] = {}
        times = [row["timestamp"] for row in self.rows] or [0]
        offsets = [row["offset"] for row in self.rows] or [0]
        if rng.random() < 0.5:
            asked["begin"] = rng.choice(times) + rng.randint(-1, 1)
        if rng.random() < 0.5:
            asked["end"] = asked.get("begin", rng.choice(times)) + rng.choice([0, 1, 50, 1000, 10_000, -100])
        if rng.random() < 0.5:
            asked["start_offset"] = rng.choice(offsets) + rng.randint(-1, 1)
        if rng.random() < 0.5:
            asked["end_offset"] = asked.get("start_offset", rng.choice(offsets)) + rng.choice([0, 1, 7, 200])
        if rng.random() < 0.3:
            keys = [row["key"] for row in self.rows] or [None]
            asked["keys"] = [key for key in rng.choices(keys, k=rng.choice([1, 3, 40])) if key is not None] + [b"none"]
        asked["isolation_level"] = rng.choice([None, "read_uncommitted", "read_committed"])
        if rng.random() < 0.7:
            asked["columns"] = rng.sample(SCAN_COLUMNS, rng.randint(1, 4))
        return asked


def as_before(rows: list[Row]) -> list[Row]:
    """Times as ms, -1 where there is none."""
    return [{**row, "timestamp": as_ms(row["timestamp"])} if "timestamp" in row else row for row in rows]


def as_ms(time: Any) -> int:
    return -1 if time is None else int(np.datetime64(time, "ms").astype(np.int64))


# ---- what becomes of the cache between two scans


def absent(cache: Path, rng: random.Random) -> None:
    shutil.rmtree(cache, ignore_errors=True)


def warm(cache: Path, rng: random.Random) -> None:
    """As it was left."""


def truncated(cache: Path, rng: random.Random) -> None:
    for file in kept(cache):
        file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def of_another_file(cache: Path, rng: random.Random) -> None:
    files = kept(cache)
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)


def hostile(cache: Path, rng: random.Random) -> None:
    """A map that says that nothing is there, whole, of another version of the file, which ends otherwise."""
    for file in kept(cache):
        head = bytearray(file.read_bytes()[:104])
        head[8] ^= 1  # the version
        head[40] ^= 1  # the mark of the end
        head[88:104] = bytes(16)
        file.write_bytes(head + struct.pack("<I", crc32(head)))


def kept(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.exists() else []


FATES: list[Callable[[Path, random.Random], None]] = [absent, warm, truncated, of_another_file, hostile]


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_a_scan_gives_what_a_plain_read_gives(name: str, tmp_path: Path, rng: random.Random) -> None:
    partition, cache = Partition(PartitionCase(name).closed(tmp_path)), tmp_path / "cache"
    for number in range(FILTERS):
        asked, fate = partition.question(rng), FATES[number % len(FATES)]
        rows_of(scan(partition.directory, begin=0, columns=[], cache=cache))
        fate(cache, rng)
        with scan(partition.directory, cache=cache, **asked) as records:
            found = as_before(rows_of(records))
        assert found == partition.answer(asked), (fate.__name__, asked)
        assert records.damage == []
