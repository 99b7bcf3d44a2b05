"""Batch queues against the log: a unit belongs to the record at its phy offset, whatever its place in the queue.

```
each queue ──▶ look_at_batch_queue: do its phy offsets ascend? which are below, beyond, or in lost parts of the log?
each split of the log with records of batch queues ──▶ compare_batches: its units, with those that the queues have there
```
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.report import Finding, Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.queues.checked_queue import CheckedQueue, unit_finding
from mqindex.rocketmq.checks.queues.queue_check import file_findings
from mqindex.rocketmq.checks.start.loading import Loader
from mqindex.rocketmq.layout import BATCH_UNIT_SIZE
from mqindex.rocketmq.log.expiry import read_again
from mqindex.rocketmq.log.log_entries import FileWalk, units_of
from mqindex.rocketmq.pipeline.split_walk import SplitRange, SplitWalk, counts, walk_split
from mqindex.rocketmq.queue.batch.batch_consume_queue import BatchConsumeQueue
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT, BatchUnits, are_valid, batch_units, lives
from mqindex.rocketmq.queue.queue_files import queue_files
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import Oddities

_COMPARED = ("phy_offset", "size", "tags_code", "store_timestamp", "msg_base_offset", "batch_size", "compacted_offset")


class Seen(NamedTuple):
    """How many units have a fault, and the first of them."""

    units: int
    phy_offset: int = -1
    path: str | None = None
    at: int | None = None
    field: str | None = None
    expected: int | None = None
    got: int | None = None


class Faults(dict[Kind, Seen]):
    """What is wrong, by kind."""

    def see(self, kind: Kind, seen: Seen) -> None:
        """Note it, after what was seen before, of which the first stays."""
        if seen.units:
            self[kind] = self[kind]._replace(units=self[kind].units + seen.units) if kind in self else seen


# ---- a queue by itself


class BatchLook(NamedTuple):
    """A batch queue's directory to look at. The log's frames are in the phy offsets [low, high).

    `damaged`: the stretches that could not be read; `compared`: those that `compare_batches` looks at.
    """

    name: QueueName
    path: str
    low: int
    high: int
    damaged: tuple[tuple[int, int], ...]
    compared: tuple[tuple[int, int], ...]
    file_size: int
    loader: Loader


@dataclass(slots=True)
class BatchLooked(CheckedQueue):
    """`findings`: of its files; `faults`: of its units, up to the first that makes it not `in_order`, by phy offset."""

    in_order: bool = True
    faults: Faults = field(default_factory=Faults)


def look_at_batches(look: BatchLook) -> BatchLooked:
    """Look at every unit of one queue, without the files that a broker deletes meanwhile."""
    return read_again(lambda: _look(look))


def _look(look: BatchLook) -> BatchLooked:
    looked = BatchLooked(*look.name)
    files, skipped = queue_files(look.path, BATCH_UNIT_SIZE)
    looked.files = len(files)
    looked.findings = file_findings(look.path, files, skipped, look.file_size, look.loader)
    if not files:
        return looked
    try:
        with BatchConsumeQueue._of(look.path) as queue:
            looked.min_offset, looked.max_offset = queue.min_offset_in_queue, queue.max_offset_in_queue
            before = -1
            for number, rows in queue._blocks(*queue._bounds()):
                _judge(look, looked, queue, number, rows, before)
                before = max(before, int(rows["phy_offset"].max()))
    except MQIndexError as error:
        require_answer(error, look.path)
        looked.findings += (catalogue.QUEUE_UNREADABLE.finding(look.path, error=error),)
        looked.in_order = False
    return looked


def _judge(
    look: BatchLook, looked: BatchLooked, queue: BatchConsumeQueue, number: int, rows: BatchUnits, before: int
) -> None:
    phys, valid = rows["phy_offset"].astype(np.int64), are_valid(rows)
    follows = phys > np.maximum.accumulate(np.concatenate([[before], phys]))[:-1]
    held = valid & (phys >= look.low) & (phys < look.high)
    damaged, compared = within(phys, look.damaged), within(phys, look.compared)
    kinds = {
        catalogue.INVALID_UNIT: ~valid,
        catalogue.WRONG_UNIT: valid & ~follows,
        catalogue.QUEUE_UNITS_EXPIRED: valid & (phys < look.low),
        catalogue.QUEUE_BEYOND_LOG: valid & (phys >= look.high),
        catalogue.QUEUE_UNITS_OF_DAMAGED_LOG: held & damaged,
        catalogue.FOREIGN_UNIT: held & ~damaged & ~compared,
    }
    looked.in_order &= bool((valid & follows).all())
    looked.reach = max(looked.reach, int(phys.max(where=valid & (phys >= look.high), initial=-1)))
    for kind, which in kinds.items():
        looked.faults.see(kind, _first(queue, number, rows, which, "phy_offset"))


def _first(
    queue: BatchConsumeQueue, number: int, rows: BatchUnits, which: npt.NDArray[np.bool_], name: str | None = None
) -> Seen:
    """Those of the stored `rows`, which begin with unit `number`."""
    if not which.any():
        return Seen(0)
    at = int(which.argmax())
    path, place = queue._place(number + at)
    phy_offset = int(rows["phy_offset"][at])
    return Seen(int(np.count_nonzero(which)), phy_offset, path, place, name, None, phy_offset)


def within(phys: npt.NDArray[np.int64], ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Which are in one of the ranges [start, stop)."""
    found = np.zeros(len(phys), bool)
    for start, stop in ranges:
        found |= (phys >= start) & (phys < stop)
    return found


def _first_absent(rows: BatchUnits) -> Seen:
    """Those of the log's `rows` that are nowhere."""
    return Seen(len(rows), int(rows["phy_offset"][0])) if len(rows) else Seen(0)


# ---- the log


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCheck(SplitRange):
    """A split of the log, from a frame on. `topics`: those of batch queues, below `directory`; `present`: the queues
    that are there, and in order. `damaged`: as in `BatchLook`."""

    rules: QueueRules
    directory: str
    topics: frozenset[str]
    present: frozenset[QueueName]
    damaged: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class BatchRun:
    """What a split gives one queue, up to where its queue offsets start again. `first`: its first queue offset.

    `found`: those units that the queue has, rightly or not.
    """

    name: QueueName
    first: int = -1
    units: int = 0
    phy_offset: int = -1
    found: int = 0
    faults: Faults = field(default_factory=Faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRuns(SplitWalk):
    """What a split gives all batch queues, in its order."""

    runs: tuple[BatchRun, ...] = ()


def compare_batches(check: BatchCheck) -> BatchRuns:
    """Walk a split, and compare the units of batch queues that its frames give."""
    return walk_split(check, lambda log, first: _compare(check, log, first), BatchRuns())


def _compare(check: BatchCheck, log: MappedFile, first: int) -> BatchRuns:
    table = check.rules.table()
    walk = FileWalk(log, check.span, first, check.stop, tags=check.tags, queues=table)
    queues: dict[QueueName, _Compared] = {}
    with ExitStack() as stack:
        for name, units in units_of(walk, table, lambda name: name[0] in check.topics and name_problem(*name) is None):
            if name not in queues:
                queues[name] = stack.enter_context(_Compared(check, name, first))
            first_byte = units["phy_offset"] - check.span.file_start
            window = log.windows(first_byte, first_byte + units["size"])
            queues[name].put(*batch_units(window, check.span.file_start, units))
        runs = [run for queue in queues.values() for run in queue.finish(check.stop)]
    for name in sorted(check.present - queues.keys()):  # of which the log has nothing here
        with _Compared(check, name, first) as queue:
            runs += queue.finish(check.stop)
    return BatchRuns(runs=tuple(runs), **counts(walk, first))


class _Compared:
    """One queue: the units of a split as they come, and those that it has at the same phy offsets."""

    def __init__(self, check: BatchCheck, name: QueueName, start: int) -> None:
        self._damaged, self._at = check.damaged, start
        self._runs = [BatchRun(name)]
        self._queue: BatchConsumeQueue | None = None
        self._last = -1
        if name in check.present:
            with suppress(FileNotFoundError):  # its topic was deleted meanwhile
                self._queue = BatchConsumeQueue._of(join(check.directory, name[0], str(name[1])))
                _, end = self._queue._bounds()
                for _, rows in self._queue._blocks(end - 1, end):
                    self._last = int(rows["phy_offset"][-1])

    def put(self, rows: BatchUnits, valid: npt.NDArray[np.bool_]) -> None:
        """The next units of the log."""
        self._runs[-1].faults.see(catalogue.QUEUE_OFFSET_IMPOSSIBLE, _first_absent(rows[~valid]))
        rows = rows[valid]
        rows = rows[np.diff(rows["phy_offset"], prepend=-1) > 0]  # a record that names its own queue once more
        for part in lives(rows):
            self._put(part)

    def _put(self, rows: BatchUnits) -> None:
        run = self._runs[-1]
        if run.units and not rows["msg_base_offset"][0]:
            run = BatchRun(run.name)
            self._runs.append(run)
        if not run.units:
            run.first, run.phy_offset = int(rows["msg_base_offset"][0]), int(rows["phy_offset"][0])
        run.units += len(rows)
        stop = int(rows["phy_offset"][-1]) + 1
        self._compare(run, rows, stop)

    def _compare(self, run: BatchRun, rows: BatchUnits, stop: int) -> None:
        """The units of the log with the phy offsets from where the last ones ended, up to `stop`."""
        found = np.zeros(len(rows), bool)
        if self._queue is not None:
            for number, stored in self._queue._blocks(*self._queue._numbers(self._at, stop)):
                self._compare_stored(self._queue, run, rows, number, stored, found)
        self._at = stop
        run.found += int(np.count_nonzero(found))
        absent = rows[~found]
        behind = absent["phy_offset"] > self._last
        run.faults.see(catalogue.MISSING_UNITS, _first_absent(absent[~behind]))
        run.faults.see(catalogue.BATCH_QUEUE_BEHIND, _first_absent(absent[behind]))

    def _compare_stored(
        self,
        queue: BatchConsumeQueue,
        run: BatchRun,
        rows: BatchUnits,
        number: int,
        stored: BatchUnits,
        found: npt.NDArray[np.bool_],
    ) -> None:
        """What the queue has from unit `number` on; `found` gets those of `rows` that are there."""
        at = np.searchsorted(rows["phy_offset"], stored["phy_offset"])
        known = at < len(rows)
        known[known] = rows["phy_offset"][at[known]] == stored["phy_offset"][known]
        found[at[known]] = True
        foreign = ~known & ~within(stored["phy_offset"].astype(np.int64), self._damaged)
        run.faults.see(catalogue.FOREIGN_UNIT, _first(queue, number, stored, foreign, "phy_offset"))
        differ = {name: np.zeros(len(stored), bool) for name in _COMPARED}
        for name, which in differ.items():
            which[known] = stored[name][known] != rows[name][at[known]]
        wrong = np.logical_or.reduce(list(differ.values()))
        if wrong.any():
            first = int(wrong.argmax())
            name = next(name for name, which in differ.items() if which[first])
            seen = _first(queue, number, stored, wrong, name)
            expected, got = int(rows[name][at[first]]), int(stored[name][first])
            run.faults.see(catalogue.WRONG_UNIT, seen._replace(expected=expected, got=got))

    def finish(self, stop: int) -> list[BatchRun]:
        """The runs, once the rest up to `stop` is compared."""
        self._compare(self._runs[-1], np.empty(0, BATCH_UNIT), stop)
        return self._runs

    def __enter__(self) -> _Compared:
        return self

    def __exit__(self, *_: object) -> None:
        if self._queue is not None:
            self._queue.close()


# ---- put together


def put_together(runs: Sequence[BatchRun]) -> tuple[int, Faults, Oddities]:
    """Of the units since the topic was created: how many, and what is wrong. Earlier ones are not the queue's."""
    begun = [at for at, run in enumerate(runs) if run.units and run.first == 0]
    earlier = [run for run in runs[: begun[-1]] if run.units] if begun else []
    now = runs[begun[-1] if begun else 0 :]
    faults, oddities = Faults(), Oddities()
    for run in earlier:
        twice = int(run is not earlier[0] and run.first == 0)
        oddities = oddities.noted(run.phy_offset, early=run.units, twice=twice)
        faults.see(catalogue.FOREIGN_UNIT, Seen(run.found, run.phy_offset))
    for run in now:
        for kind, seen in run.faults.items():
            if kind == catalogue.QUEUE_OFFSET_IMPOSSIBLE:
                oddities = oddities.noted(seen.phy_offset, impossible=seen.units)
            else:
                faults.see(kind, seen)
    return sum(run.units for run in now), faults, oddities


def fault_finding(kind: Kind, seen: Seen, path: str, max_offset: int, low: int, high: int) -> Finding:
    """A fault of the queue at `path`, which ends at `max_offset`; `low` and `high` as in `BatchLook`."""
    units = plural(seen.units, "unit")
    where, place = f"{units} from phy offset {seen.phy_offset} on", seen.path or path
    if kind == catalogue.BATCH_QUEUE_BEHIND:
        return kind.finding(path, expected=where, got=f"an end at queue offset {max_offset}")
    if kind == catalogue.MISSING_UNITS:
        return kind.finding(path, expected=where, got="none")
    if kind == catalogue.WRONG_UNIT:
        expected = "above that of the unit before" if seen.expected is None else seen.expected
        return catalogue.MANY_WRONG_UNITS.finding(place, seen.at, seen.field, expected, seen.got, units=units)
    return unit_finding(kind, seen.units, place, seen.at, seen.phy_offset, low, high, "record")
