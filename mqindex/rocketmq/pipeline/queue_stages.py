"""The stages of the pipeline for consume queues, beside those for the index (`stages`).

```
extract         a split's units           ->  a run of units: 40 bytes each, queue after queue, in a scratch file
build_queues    many queues' runs         ->  their files, under temporary names
```

Queues are in one order everywhere, that of (topic, queue_id): what a run holds of neighbouring queues is one stretch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import group_units
from mqindex._native.log_extract import QueueTable
from mqindex.engines.python_turn import python_turn
from mqindex.files import disk
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.pipeline.batch_queue_build import BatchQueueBuilder
from mqindex.rocketmq.pipeline.queue_build import NO_EXT, QueueBuilder
from mqindex.rocketmq.queue.batch.old_batch_queue import OldBatchQueue
from mqindex.rocketmq.queue.old_queue import OldQueue
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import Oddities

_READ_AT_ONCE = 1 << 16  # units
_SMALL = 4096  # units of a queue, below which making its files takes longer than filling them

QUEUE_RUN = np.dtype([("topic", "=i4"), ("queue_id", "=i4"), ("units", "=i8"), ("first", "=i8"), ("stop", "=i8")])
"""A queue's share of a run: its topic's number in `UnitRun.topics`, how many units, the queue offset of the first, and
that after the last."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitRun:
    """The units of a split. `queues`: rows of `QUEUE_RUN`, in the order of (topic, queue_id) and of the file."""

    path: str
    topics: tuple[str, ...]
    queues: npt.NDArray[Any]

    @property
    def units(self) -> int:
        return int(self.queues["units"].sum())

    def names(self) -> list[QueueName]:
        """The queues of the rows."""
        rows = zip(self.queues["topic"].tolist(), self.queues["queue_id"].tolist(), strict=True)
        return [(self.topics[topic], queue_id) for topic, queue_id in rows]


class UnitCollector:
    """Gathers the units of one walk in memory and writes them, grouped by queue. `only`: no other queues."""

    def __init__(self, table: QueueTable, rules: QueueRules, only: frozenset[QueueName] | None) -> None:
        self._table, self._rules, self._only = table, rules, only
        self._chunks: list[npt.NDArray[Any]] = []

    def add(self, units: npt.NDArray[Any]) -> None:
        """The units of the next chunk of frames; they are copied."""
        if len(units):
            self._chunks.append(units.copy())

    def write(self, out: str) -> UnitRun:
        """The run of everything that was added."""
        units = np.concatenate(self._chunks) if self._chunks else np.empty(0, UNIT)
        self._chunks.clear()
        if self._rules.ext_file_size is not None and len(units):
            more = np.diff(units["phy_offset"], prepend=-1) == 0  # after the message's own unit: multi-dispatch
            units["store_timestamp"][more] = NO_EXT
        names, units = self._renumber(units)
        units, borders = group_units(units, len(names))
        path = disk.temporary(out, "units")
        disk.write_new(path, memoryview(units.view(np.uint8).data))
        return _run(path, names, units, borders)

    def _renumber(self, units: npt.NDArray[Any]) -> tuple[list[QueueName], npt.NDArray[Any]]:
        """Number the queues by their order; two that differ by bytes in the table may have one name."""
        met = self._table.names()
        names = sorted(set(met) if self._only is None else set(met) & self._only)
        numbers = {name: number for number, name in enumerate(names)}
        of = np.array([numbers.get(name, -1) for name in met], np.int32)
        if len(units):
            units["queue"] = of[units["queue"]]
            if len(names) < len(met):
                units = units[units["queue"] >= 0]
        return names, units


def _run(path: str, names: list[QueueName], units: npt.NDArray[Any], borders: npt.NDArray[np.int64]) -> UnitRun:
    topics = list(dict.fromkeys(topic for topic, _ in names))
    number = {topic: n for n, topic in enumerate(topics)}
    rows = np.zeros(len(names), QUEUE_RUN)
    rows["topic"] = [number[topic] for topic, _ in names]
    rows["queue_id"] = [queue_id for _, queue_id in names]
    rows["units"] = np.diff(borders)
    rows = rows[rows["units"] > 0]
    ends = np.cumsum(rows["units"])
    rows["first"] = units["queue_offset"][ends - rows["units"]]
    rows["stop"] = units["queue_offset"][ends - 1] + 1
    return UnitRun(path, tuple(topics), rows)


# ---- building


@dataclass(frozen=True, slots=True, eq=False)
class QueuePiece:
    """Units [first, first + sum(counts)) of a run: `counts[i]` units of queue number `queues[i]` of a batch."""

    path: str
    first: int
    queues: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class QueueBatch:
    """Queues that one task builds, and the pieces of runs that hold their units, in the log's order.

    `queues`: None where a queue is left out. `old`: the files so far, for messages that the log no longer holds.
    `batches`: which of the queues are batch queues.
    """

    out: str
    rules: QueueRules
    queues: tuple[QueueName | None, ...]
    pieces: tuple[QueuePiece, ...]
    units: int
    batches: BatchTopics
    old: OldQueues | None = None


@dataclass(frozen=True, slots=True)
class BatchTopics:
    """The topics whose queues are batch queues, the length of these files, and the log that holds their records."""

    topics: frozenset[str]
    file_size: int
    commitlog: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OldQueues:
    """The directories of a store's queues, and what its log has lost (`OldQueue`)."""

    directory: str
    ext_directory: str
    batch_directory: str
    lost: tuple[tuple[int, int], ...]

    def of_batch(self, name: QueueName, file_size: int) -> OldBatchQueue:
        """One batch queue's files."""
        return OldBatchQueue(os.path.join(self.batch_directory, name[0], str(name[1])), file_size, self.lost)

    def of(self, name: QueueName, file_size: int) -> OldQueue:
        """One queue's files."""
        below = os.path.join(name[0], str(name[1]))
        directory, ext = os.path.join(self.directory, below), os.path.join(self.ext_directory, below)
        return OldQueue(directory, ext, file_size, self.lost)


@dataclass(frozen=True, slots=True)
class BuiltQueue:
    """A queue's directory under a temporary name, `ext` that of its extension files.

    `side`: the directory of a store that it belongs into. `units`: of the log. `kept`: of the old files. `files`: how
    many in both directories.
    """

    name: QueueName
    path: str
    ext: str | None
    units: int
    kept: int
    files: int
    oddities: Oddities
    side: str = "consumequeue"


@dataclass(frozen=True, slots=True)
class BuiltQueues:
    """What one task built, and how long the syncs took."""

    queues: tuple[BuiltQueue, ...]
    fsync_seconds: float


def build_queues(batch: QueueBatch) -> BuiltQueues:
    """Write the files of every queue of a batch."""
    home = disk.temporary(batch.out, "queues")
    disk.make_directory(home)
    load = _stream if len(batch.queues) == 1 else _load
    built: list[BuiltQueue] = []
    written: list[str] = []
    with python_turn(mostly_python=batch.units < _SMALL * len(batch.queues)), ExitStack() as stack:
        log: CommitLog | None = None
        for number, units in enumerate(load(batch)):
            name, place = batch.queues[number], os.path.join(home, str(number))
            if name is None:
                continue
            if name[0] not in batch.batches.topics:
                old = batch.old.of(name, batch.rules.file_size) if batch.old is not None else None
                built.append(_build_queue(name, place, batch.rules, units, old, written))
                continue
            log = log or stack.enter_context(CommitLog.open(batch.batches.commitlog))
            built.append(_build_batch_queue(name, place, batch, log, units, written))
    return BuiltQueues(tuple(built), disk.sync_files(written))


def _build_queue(
    name: QueueName,
    home: str,
    rules: QueueRules,
    units: Iterator[npt.NDArray[Any]],
    old: OldQueue | None,
    written: list[str],
) -> BuiltQueue:
    ext = f"{home}.ext" if rules.ext_file_size is not None else None
    disk.make_directory(home)
    if ext is not None:
        disk.make_directory(ext)
    builder = QueueBuilder(home, ext, rules, old)
    paths = _fill(builder, units)
    written += paths
    return BuiltQueue(name, home, ext, builder.units, builder.kept, len(paths), builder.oddities)


def _build_batch_queue(
    name: QueueName,
    home: str,
    batch: QueueBatch,
    log: CommitLog,
    units: Iterator[npt.NDArray[Any]],
    written: list[str],
) -> BuiltQueue:
    size = batch.batches.file_size
    disk.make_directory(home)
    builder = BatchQueueBuilder(home, size, log, batch.old.of_batch(name, size) if batch.old is not None else None)
    paths = _fill(builder, units)
    written += paths
    return BuiltQueue(name, home, None, builder.units, builder.kept, len(paths), builder.oddities, "batchconsumequeue")


def _fill(builder: QueueBuilder | BatchQueueBuilder, units: Iterator[npt.NDArray[Any]]) -> list[str]:
    """The paths of all files written."""
    try:
        for chunk in units:
            builder.put(chunk)
        builder.finish()
    finally:
        paths = builder.close()
    return paths


def _load(batch: QueueBatch) -> Iterator[Iterator[npt.NDArray[Any]]]:
    """The units of each queue, with the whole batch in memory."""
    parts: list[list[npt.NDArray[Any]]] = [[] for _ in batch.queues]
    for piece in batch.pieces:
        units = read_units(piece.path, piece.first, int(piece.counts.sum()))
        at = 0
        for queue, count in zip(piece.queues.tolist(), piece.counts.tolist(), strict=True):
            parts[queue].append(units[at : at + count])
            at += count
    return map(iter, parts)


def _stream(batch: QueueBatch) -> Iterator[Iterator[npt.NDArray[Any]]]:
    """The units of the one queue, a little at a time."""
    yield (
        read_units(piece.path, at, min(_READ_AT_ONCE, stop - at))
        for piece in batch.pieces
        for stop in [piece.first + int(piece.counts.sum())]
        for at in range(piece.first, stop, _READ_AT_ONCE)
    )


def read_units(path: str, first: int, count: int) -> npt.NDArray[Any]:
    """Units [first, first + count) of a run."""
    return np.fromfile(path, UNIT, count, offset=first * UNIT.itemsize)
