"""A partition answers as its broker did: closed cleanly, with indexes lost, and copied while the broker ran."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.kafka import PartitionLog
from tests.reference.kafka_partition import Partition, Record, read_partition
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase

each_partition = pytest.mark.parametrize("name", PARTITION_CASES)
FETCH = 5000  # bytes, so that a read has many parts
INDEXES = ("index", "timeindex", "txnindex")


def touch(directory: Path) -> None:
    """As the truth was computed: a segment without times has the time of its log's last change, which was then."""
    for path in directory.glob("*.log"):
        os.utime(path)


def delete(directory: Path, *endings: str) -> None:
    for ending in endings:
        for path in directory.glob(f"*.{ending}"):
            path.unlink()


def check_answers(log: PartitionLog, truth: dict[str, Any]) -> None:
    assert log.log_start_offset == truth["logStartOffset"]
    assert log.log_end_offset == truth["logEndOffset"]
    assert len(log.segments) == truth["numberOfSegments"]
    for start, upper, txns in truth["collectAbortedTransactions"]:
        assert [list(txn[:4]) for txn in log.collect_aborted_transactions(start, upper)] == txns, (start, upper)
    asked = [ms for ms, *_ in truth["fetchOffsetByTimestamp"]]
    said = [None if ms is None else (ms, offset) for _, ms, offset in truth["fetchOffsetByTimestamp"]]
    check_times(log, asked, said)


def check_times(log: PartitionLog, asked: list[int], said: list[tuple[int, int] | None]) -> None:
    assert [log.offset_for_timestamp(ms) for ms in asked] == said
    shuffled = np.random.default_rng(5).permutation(len(asked) * 3) % max(len(asked), 1)
    for order in (np.argsort(np.array(asked, np.int64)), shuffled):
        many = log.offsets_for_timestamps(np.array(asked, np.int64)[order])
        assert np.stack(many, 1).tolist() == [list(said[at] or (-1, -1)) for at in order.tolist()]


def consumed(log: PartitionLog, offset: int, isolation_level: Any) -> Iterator[list[Record]]:
    """What each poll of a consumer gives."""
    while True:
        got = log.read(offset, max_bytes=FETCH, isolation_level=isolation_level)
        if not got.num_rows:
            return
        columns = (got[name] for name in ("offset", "timestamp", "key", "value", "headers"))
        yield [
            Record(int(at), int(ms), key, value, headers)
            for at, ms, key, value, headers in zip(*map(plain, columns), strict=True)
        ]
        offset = int(got["offset"][-1]) + 1


def plain(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()


def runs(offsets: list[int]) -> list[list[int]]:
    cuts = [at + 1 for at, (one, other) in enumerate(pairwise(offsets)) if other != one + 1]
    return [[offsets[start], offsets[stop - 1]] for start, stop in pairwise([0, *cuts, len(offsets)]) if stop > start]


def check_consumer(log: PartitionLog, twin: Partition, answers: dict[str, Any]) -> None:
    for isolation_level, said in answers.items():
        assert said["end"] == (log.last_stable_offset if isolation_level == "read_committed" else log.log_end_offset)
        got = [record for poll in consumed(log, log.log_start_offset, isolation_level) for record in poll]
        assert runs([record.offset for record in got]) == said["offsetRuns"]
        assert got == twin.read(0, committed=isolation_level == "read_committed", stable=said["end"])
        whole = log.read(log.log_start_offset, max_bytes=2**40, isolation_level=isolation_level, columns=["offset"])
        assert whole["offset"].tolist() == [record.offset for record in got]
        for seek, first in said["seekFirstRecord"]:
            polled = log.read(seek, max_bytes=1, isolation_level=isolation_level, columns=["offset"])
            assert polled["offset"][:1].tolist() == [first] * (first is not None)


@each_partition
def test_a_cleanly_closed_partition_answers_as_the_brokers_classes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    touch(directory)
    with PartitionLog.open(directory) as log:
        check_answers(log, case.truth["log"])


@each_partition
def test_with_all_indexes_lost_the_answers_are_those_after_recovery(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    delete(directory, *INDEXES)
    touch(directory)
    before = sorted(os.listdir(directory))
    with PartitionLog.open(directory) as log:
        check_answers(log, case.truth["recoveredLog"])
    assert sorted(os.listdir(directory)) == before


@pytest.mark.parametrize("name", [name for name in PARTITION_CASES if PartitionCase(name).truth["broker"]])
def test_records_and_times_are_those_that_a_consumer_got(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    touch(directory)
    answers = case.truth["broker"]["answers"]
    with PartitionLog.open(directory) as log:
        check_consumer(log, read_partition(directory), answers)
        for isolation_level, said in answers.items():
            end = log.log_end_offset if isolation_level == "read_uncommitted" else log.last_stable_offset
            for ms, offset, found_ms in said["offsetsForTimes"]:
                found = log.offset_for_timestamp(ms)
                seen = None if found is None or found.offset >= end else found
                assert seen == (None if offset is None else (found_ms, offset)), (isolation_level, ms)
    delete(directory, *INDEXES)
    with PartitionLog.open(directory) as log:
        assert answers["read_committed"]["end"] == log.last_stable_offset
        for isolation_level, said in answers.items():
            got = [record.offset for poll in consumed(log, log.log_start_offset, isolation_level) for record in poll]
            assert runs(got) == said["offsetRuns"]


def date_as_answered(directory: Path, said: list[list[int]]) -> None:
    """Give each log the time of its last change that the broker's own answers tell: the last one found there."""
    bases = sorted(int(path.stem) for path in directory.glob("*.log"))
    for base, following in pairwise([*bases, 2**63]):
        ms = max(ms for ms, offset, _ in said if offset is not None and base <= offset < following)
        os.utime(directory / f"{base:020d}.log", ns=(ms * 1_000_000, ms * 1_000_000))


@pytest.mark.parametrize("name", [name for name in PARTITION_CASES if PartitionCase(name).truth["broker"]])
def test_with_the_time_indexes_lost_the_answers_are_as_wrong_as_the_brokers(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    delete(directory, "timeindex")
    touch(directory)
    said = case.truth["broker"]["answers_after_timeindex_deleted"]["offsetsForTimes"]
    if "append-time" in name:
        date_as_answered(directory, said)
    with PartitionLog.open(directory) as log:
        asked = [ms for ms, *_ in said]
        check_times(log, asked, [None if offset is None else (ms, offset) for _, offset, ms in said])


@each_partition
def test_a_copy_of_a_running_brokers_directory_answers_as_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    root = case.unpack(tmp_path)
    directory = root / "closed" / case.truth["partition"]
    live = root / "live" / case.truth["partition"]
    if live.is_dir():
        shutil.copytree(live, directory, dirs_exist_ok=True)
        assert max(directory.glob("*.timeindex")).read_bytes().endswith(bytes(12))
    touch(directory)
    with PartitionLog.open(directory) as log:
        check_answers(log, case.truth["log"])


@each_partition
def test_the_twin_answers_as_the_brokers_classes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    touch(directory)
    twin, truth = read_partition(directory), case.truth["log"]
    assert (twin.log_start, twin.log_end) == (truth["logStartOffset"], truth["logEndOffset"])
    for ms, *found in truth["fetchOffsetByTimestamp"]:
        assert twin.fetch(ms) == (None if found[0] is None else tuple(found))
    for start, upper, txns in truth["collectAbortedTransactions"]:
        assert twin.aborted(start, upper) == [tuple(txn) for txn in txns]
