"""Between the stages, for consume queues: what the driver does with names and counts."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.pipeline.queue_stages import BatchTopics, OldQueues, QueueBatch, QueuePiece, UnitRun
from mqindex.rocketmq.queue.consume_queue_ext import EXT_UNIT
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import Oddities, fits_hole

_BATCH_UNITS = 1 << 20
_BATCH_QUEUES = 256
FILE_BLOCK = 4096
"""What a file system takes at least for a file: its last block is not full."""


def assign_queues(
    runs: Sequence[UnitRun],
    rules: QueueRules,
    out: str,
    *,
    batches: BatchTopics,
    skip: Collection[QueueName] = (),
    more: Collection[QueueName] = (),
    old: OldQueues | None = None,
) -> list[QueueBatch]:
    """Assign the queues of all runs, and `more` that are in no run, to tasks: many small ones or a large one.

    `skip`: queues to be left out. `batches`, `old`: see `QueueBatch`.
    """
    names = sorted({name for run in runs for name in run.names()} | set(more))
    number = {name: n for n, name in enumerate(names)}
    numbers = [np.array([number[name] for name in run.names()], np.int64) for run in runs]
    units = np.zeros(len(names), np.int64)
    for run, queues in zip(runs, numbers, strict=True):
        units[queues] += run.queues["units"]
    borders = _borders(units)
    pieces: list[list[QueuePiece]] = [[] for _ in borders[1:]]
    for run, queues in zip(runs, numbers, strict=True):
        for batch, piece in _pieces(run, queues, borders):
            pieces[batch].append(piece)
    return [
        QueueBatch(
            out,
            rules,
            tuple(None if name in skip else name for name in names[first:stop]),
            tuple(held),
            int(units[first:stop].sum()),
            batches,
            old,
        )
        for (first, stop), held in zip(itertools.pairwise(borders), pieces, strict=True)
    ]


def _borders(units: npt.NDArray[np.int64]) -> list[int]:
    """Where a task's queues begin."""
    borders, held = [0], 0
    for number, count in enumerate(units.tolist()):
        if number > borders[-1] and (held + count > _BATCH_UNITS or number - borders[-1] == _BATCH_QUEUES):
            borders.append(number)
            held = 0
        held += count
    return [*borders, len(units)] if len(units) else [0]


def _pieces(run: UnitRun, queues: npt.NDArray[np.int64], borders: Sequence[int]) -> Iterable[tuple[int, QueuePiece]]:
    starts = np.concatenate([[0], np.cumsum(run.queues["units"])])
    cuts = np.searchsorted(queues, borders)
    for batch, (low, high) in enumerate(itertools.pairwise(cuts.tolist())):
        if low < high:
            within = (queues[low:high] - borders[batch]).astype(np.int32)
            yield batch, QueuePiece(run.path, int(starts[low]), within, run.queues["units"][low:high].copy())


def queue_space(runs: Sequence[UnitRun], rules: QueueRules, log_bytes: int, batches: BatchTopics | None = None) -> int:
    """Bytes that the files of all queues will take; they are sparse after their units."""
    known: dict[QueueName, tuple[int, int]] = {}  # how many places, and the last stop
    units = 0
    for run in runs:
        units += run.units
        rows = zip(*(run.queues[field].tolist() for field in ("units", "first", "stop")), strict=True)
        for name, (count, first, stop) in zip(run.names(), rows, strict=True):
            if batches is not None and name[0] in batches.topics:  # no holes
                known[name] = known.get(name, (0, 0))[0] + count, 0
                continue
            places, before = known.get(name, (max(first, 0) % (rules.file_size // layout.QUEUE_UNIT_SIZE), first))
            hole = first - before
            known[name] = places + count + (hole if hole > 0 and fits_hole(hole, log_bytes) else 0), stop
    ext = units * EXT_UNIT.itemsize if rules.ext_file_size is not None else 0
    return ext + sum(_space_of(places, rules, name[0], batches) for name, (places, _) in known.items())


def _space_of(places: int, rules: QueueRules, topic: str, batches: BatchTopics | None) -> int:
    unit, size = layout.QUEUE_UNIT_SIZE, rules.file_size
    if batches is not None and topic in batches.topics:
        unit, size = layout.BATCH_UNIT_SIZE, batches.file_size
    return places * unit + -(-places // (size // unit)) * FILE_BLOCK


# ---- findings about queues


def skipped_findings(runs: Sequence[UnitRun], root: str) -> dict[QueueName, Finding]:
    """The queues that get no files, and why."""
    units: dict[QueueName, int] = {}
    for run in runs:
        for name, count in zip(run.names(), run.queues["units"].tolist(), strict=True):
            units[name] = units.get(name, 0) + count
    found = {}
    for name, count in sorted(units.items()):
        topic, queue_id = name
        problem = name_problem(topic, queue_id)
        if problem is not None:
            left = plural(count, "unit of this queue is", "units of this queue are")
            found[name] = catalogue.IMPOSSIBLE_QUEUE_NAME.finding(
                os.path.join(root, "consumequeue"), got=f"{problem}: {topic[:80]!r} queue {queue_id}", units=left
            )
    return found


def oddity_findings(odd: Oddities, path: str) -> list[Finding]:
    """Findings for units of the queue at `path` that an uninterrupted broker does not write."""
    return [finding for finding in _oddities(odd, path) if finding.got]


def _oddities(odd: Oddities, path: str) -> list[Finding]:
    where = f"from phy offset {odd.at} on"
    return [
        catalogue.QUEUE_OFFSET_HOLE.finding(
            path,
            expected="queue offsets without a gap",
            got=odd.blanks and f"{odd.blanks} that no message has, {where}",
        ),
        catalogue.QUEUE_OFFSET_JUMP.finding(
            path,
            expected="queue offsets that messages could have had",
            got=odd.misplaced and f"{odd.misplaced} that are far too large, {where}",
        ),
        catalogue.QUEUE_OFFSET_REPEATED.finding(
            path, expected="each queue offset once", got=odd.repeated and f"{odd.repeated} again, {where}"
        ),
        (catalogue.QUEUE_BEGAN_AGAIN if odd.twice else catalogue.TOPIC_CREATED_AGAIN).finding(
            path,
            expected="queue offsets that were given once",
            got=odd.early and f"{plural(odd.early, 'unit')} before they start again at 0, {where}",
        ),
        catalogue.QUEUE_OFFSET_IMPOSSIBLE.finding(
            path,
            expected="queue offsets that a file can hold",
            got=odd.impossible and f"{plural(odd.impossible, 'other')}, {where}",
        ),
    ]
