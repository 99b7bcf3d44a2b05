"""Random filters over the golden partitions: a scan gives what a plain read of everything gives, filtered in Python."""

from __future__ import annotations

import random
import shutil
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.crc import crc32
from mqindex.columns.columns import Columns
from mqindex.kafka import LogSegment, PartitionLog, ScanDamage, scan
from mqindex.kafka.directories.partition_files import list_segments
from mqindex.kafka.scanning.scan import SCAN_COLUMNS
from tests.golden.test_kafka_partition import consumed
from tests.property.test_kafka_partition import made, write
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase

Row = dict[str, Any]
FILTERS = 40  # of each partition


def rows_of(batches: Iterable[Columns]) -> list[Row]:
    found = []
    for batch in batches:
        columns = [batch[name].tolist() if isinstance(batch[name], np.ndarray) else batch[name] for name in batch]
        found += [dict(zip(batch, row, strict=True)) for row in zip(*columns, strict=True)]
    return found


def everything(directory: Path, topic: str, partition: int) -> tuple[list[Row], list[ScanDamage]]:
    """All records of a partition, segment by segment, with their times as ms; and what is left out."""
    found, damage = [], []
    for files in list_segments(directory).segments:
        if Path(files.log).stat().st_size:
            with LogSegment._of_files(files) as segment:
                place = {"topic": topic, "partition": partition, "segment": files.base_offset}
                found += [{**row, **place} for row in rows_of(segment.records())]
                damage += [ScanDamage(files.log, fault) for fault in segment.damage]
    return found, damage


class Partition:
    """A golden partition, what is in it, and what a consumer of committed records gets."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        topic, _, number = directory.name.rpartition("-")
        self.rows, self.damage = everything(directory, topic, int(number))
        with PartitionLog.open(directory) as log:
            polls = consumed(log, log.log_start_offset, "read_committed") if not self.damage else []
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


@pytest.mark.filterwarnings("ignore:zone map not used:UserWarning")
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


@settings(max_examples=60)
@given(made, st.randoms(use_true_random=True))
def test_a_scan_of_any_partition_gives_what_a_plain_read_gives(spec: Any, rng: random.Random) -> None:
    """Old messages in wrappers, times that go back, transactions that stay open, offsets that are left out."""
    with TemporaryDirectory() as root:
        directory, cache = Path(root) / "t-0", Path(root) / "cache"
        write(directory, spec)
        partition = Partition(directory)
        for _ in range(10):
            asked = partition.question(rng)
            rng.choice([absent, warm])(cache, rng)
            with scan(directory, cache=cache, **asked) as records:
                assert as_before(rows_of(records)) == partition.answer(asked), asked


def spoil(log: Path, heads: list[int], rng: random.Random) -> None:
    """Bytes that are wrong, zeros, missing or too many, at any place of a log, or in the header of a batch."""
    data = bytearray(log.read_bytes())
    at, size = rng.randrange(len(data)), rng.choice([1, 4, 100, 2000])
    if heads and rng.random() < 0.5:
        at = min(rng.choice(heads) + rng.randrange(61), len(data) - 1)
    kind = rng.randrange(4)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at : at + size] = bytes(len(data[at : at + size]))
    elif kind == 2:
        del data[at : at + size]
    else:
        data[at:at] = rng.randbytes(size)
    log.write_bytes(data)


def is_within(damage: list[ScanDamage], whole: list[ScanDamage]) -> bool:
    """Whether each is a part of one: where reading begins in the middle less is known of what is before."""
    return all(any(path == of and known.at <= at.at < known.end for of, known in whole) for path, at in damage)


def increase(rows: list[Row], bases: list[int]) -> bool:
    """Whether offsets do so, within their segments: no checksum covers the first offset of a batch."""
    offsets = [row["offset"] for row in rows]
    within = (bases[bisect_right(bases, row["offset"]) - 1] == row["segment"] for row in rows)
    return offsets == sorted(set(offsets)) and all(within)


@pytest.mark.parametrize("name", [name for name in PARTITION_CASES if name != "410-empty"])
def test_a_scan_of_a_damaged_log_gives_what_a_plain_read_gives(name: str, tmp_path: Path, rng: random.Random) -> None:
    good, cache = PartitionCase(name).closed(tmp_path), tmp_path / "cache"
    whole = Partition(good)
    for number in range(8):
        directory = tmp_path / str(number) / good.name
        shutil.copytree(good, directory)
        logs = [Path(files.log) for files in list_segments(directory).segments]
        for _ in range(rng.randint(1, 2)):
            log = rng.choice([log for log in logs if log.stat().st_size])
            spoil(log, [row["position"] for row in whole.rows if row["segment"] == int(log.stem)], rng)
        partition = Partition(directory)
        if not increase(partition.rows, [int(log.stem) for log in logs]):
            continue
        for _ in range(8):
            asked = {**partition.question(rng), "isolation_level": None}
            with scan(directory, cache=cache, **asked) as records:
                found = as_before(rows_of(records))
            assert found == partition.answer(asked), asked
            assert is_within(records.damage, partition.damage)
            if not {"start_offset", "end_offset"} & asked.keys():
                assert records.damage == partition.damage
