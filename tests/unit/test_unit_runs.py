"""Runs of units: what is in a range, where it is, and which bytes of a run a task reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqindex.engines import LocalEngine
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.log.log_entries import UNIT, LogSpan, Tags
from mqindex.rocketmq.pipeline.queue_splits import assign_queues
from mqindex.rocketmq.pipeline.splits import LogRange, cut, extract
from mqindex.rocketmq.pipeline.unit_runs import RANGES, UnitRun, range_of, read_ranges, units_by_range
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules
from tests.support.log_writer import LogMessage, LogWriter

QUEUES = [(topic, number) for topic in ("A", "of a longer name", '\N{SNOWMAN}/"x') for number in range(7)]
MESSAGES = [
    LogMessage(topic, queue_id=queue_id, queue_offset=at, body=bytes(queue_id))
    for at in range(30)
    for topic, queue_id in QUEUES[: 1 + at]
]


def runs_of(directory: Path, only: frozenset[QueueName] | None = None) -> list[UnitRun]:
    log = LogWriter(directory / "commitlog", mapped_file_size=1 << 20)
    log.write(*MESSAGES)
    (directory / "scratch").mkdir()
    spans = [LogSpan(str(log.path(0)), 0, 1 << 20, last=True)]
    whole = LogRange(0, log.position)
    out = str(directory / "scratch")
    splits = cut(spans, whole, 4096, tags=Tags(()), out=out, index=False, rules=QueueRules(), only=only)
    (extracted,) = extract(LocalEngine(1), [splits])
    assert len(extracted.units) > 5
    return extracted.units


def offsets_of(directory: Path, run: UnitRun, first: int, stop: int) -> list[tuple[QueueName, list[int]]]:
    rows = read_ranges(str(directory / "scratch" / run.name), first, stop)
    return [(name, np.frombuffer(units, UNIT)["queue_offset"].tolist()) for name, units in rows]


@pytest.mark.parametrize("only", [None, frozenset(QUEUES[3:12])])
def test_every_unit_is_once_in_the_range_of_its_queue(only: frozenset[QueueName] | None, tmp_path: Path) -> None:
    found: dict[QueueName, list[int]] = {}
    runs = runs_of(tmp_path, only)
    for run in runs:
        counts = np.frombuffer(run.counts, np.uint32).tolist()
        for at in range(RANGES):
            rows = offsets_of(tmp_path, run, at, at + 1)
            assert all(range_of(name) == at for name, _ in rows)
            assert sum(len(offsets) for _, offsets in rows) == counts[at]
            for name, offsets in rows:
                found.setdefault(name, []).extend(offsets)
    expected = [m for m in MESSAGES if only is None or (m.topic, m.queue_id) in only]
    assert found == {
        name: [m.queue_offset for m in expected if (m.topic, m.queue_id) == name]
        for name in {(m.topic, m.queue_id) for m in expected}
    }
    assert sum(units_by_range(runs)) == len(expected)


def test_neighbouring_ranges_are_one_stretch(tmp_path: Path) -> None:
    for run in runs_of(tmp_path):
        each = [row for at in range(RANGES) for row in offsets_of(tmp_path, run, at, at + 1)]
        assert offsets_of(tmp_path, run, 0, RANGES) == each
        assert offsets_of(tmp_path, run, 0, 20) + offsets_of(tmp_path, run, 20, RANGES) == each


def test_a_task_reads_two_stretches_of_a_run_and_nothing_of_other_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(tmp_path)
    asked: list[tuple[int, int]] = []
    read = SparseFile.read

    def noted(self: SparseFile, start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return read(self, start, stop)

    monkeypatch.setattr(SparseFile, "read", noted)
    size = (tmp_path / "scratch" / runs[0].name).stat().st_size
    ends = []
    for at in range(RANGES):
        asked.clear()
        offsets_of(tmp_path, runs[0], at, at + 1)
        (start, stop), (begin, end) = asked  # its places, then its names and units
        assert (start, stop) == (16 * at, 16 * at + 32)
        ends += [begin, end]
    assert ends[0] == 16 * (RANGES + 1)
    assert ends[1:-1:2] == ends[2::2]  # each begins where the one before it ends
    assert ends[-1] == size


def test_a_split_without_units_writes_no_run(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, frozenset({QUEUES[-1], ("A", 0)}))
    assert len(runs) == len(list((tmp_path / "scratch").iterdir()))


def runs_with(*counts: int) -> list[UnitRun]:
    found = np.zeros(RANGES, np.uint32)
    found[: len(counts)] = counts
    return [UnitRun("one", found.tobytes())]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((), []),
        ((5, 6), [(0, 64, 11)]),  # few units: one task
        ((70_000, 6, 0, 70_000), [(0, 1, 70_000), (1, 3, 6), (3, 4, 70_000)]),
        ((1 << 22, 1, 1 << 22), [(0, 1, 1 << 22), (1, 2, 1), (2, 3, 1 << 22)]),  # long ones are alone
        ((1 << 15,) * 64, [(4 * at, 4 * at + 4, 1 << 17) for at in range(16)]),
        ((1 << 12,) * 64, [(16 * at, 16 * at + 16, 1 << 16) for at in range(4)]),
    ],
)
def test_ranges_are_assigned_to_tasks(counts: tuple[int, ...], expected: list[tuple[int, int, int]]) -> None:
    assert [(one.first, one.stop, one.units) for one in assign_queues(runs_with(*counts))] == expected


def test_queues_that_no_run_has_are_assigned_too() -> None:
    (one,) = assign_queues([], more=[("A", 0), ("A", 1)])
    assert (one.units, sorted(one.more)) == (0, [("A", 0), ("A", 1)])
    assert {range_of(name) for name in one.more} <= set(range(one.first, one.stop))
