"""Between the stages, for consume queues: what the driver does with counts, and what it says of names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mqindex._words import plural
from mqindex.files.paths import join
from mqindex.report import Finding
from mqindex.rocketmq import catalogue, layout
from mqindex.rocketmq.pipeline.queue_stages import QueueBatch
from mqindex.rocketmq.pipeline.unit_runs import RANGES, UnitRun, range_of, units_by_range
from mqindex.rocketmq.queue.consume_queue_ext import EXT_UNIT
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import Oddities

_BATCH_UNITS = 1 << 20
_BATCHES = 16  # of many small queues at least, as one of them may be a thousand times as long as the others
_SMALL_BATCH = 1 << 16  # units: each task opens every run


def assign_queues(runs: Sequence[UnitRun], more: Collection[QueueName] = ()) -> list[QueueBatch]:
    """Assign the queues of all runs, and `more` that may be in no run, to tasks: neighbouring ranges, or a long one."""
    units = units_by_range(runs)
    named: list[list[QueueName]] = [[] for _ in range(RANGES)]
    for name in more:
        named[range_of(name)].append(name)
    limit = min(max(sum(units) // _BATCHES, _SMALL_BATCH), _BATCH_UNITS)
    batches: list[QueueBatch] = []
    for at in range(RANGES):
        one = QueueBatch(at, at + 1, units[at], tuple(named[at]))
        last = batches[-1] if batches else None
        if last is not None and last.units + one.units <= limit:
            batches[-1] = QueueBatch(last.first, one.stop, last.units + one.units, last.more + one.more)
        else:
            batches.append(one)
    return [batch for batch in batches if batch.units or batch.more]


def least_space(batches: Sequence[QueueBatch], rules: QueueRules) -> int:
    """Bytes that the files of all queues will take at least: each task looks once more, when it knows the queues."""
    unit = layout.QUEUE_UNIT_SIZE + (EXT_UNIT.itemsize if rules.ext_file_size is not None else 0)
    return unit * sum(batch.units for batch in batches)


# ---- findings about queues


def left_out_findings(left_out: Mapping[QueueName, int], root: str) -> list[Finding]:
    """Queues that get no files, by how many units each has, and why."""
    found = []
    for (topic, queue_id), count in sorted(left_out.items()):
        left = plural(count, "unit of this queue is", "units of this queue are")
        got = f"{name_problem(topic, queue_id)}: {topic[:80]!r} queue {queue_id}"
        kind = catalogue.IMPOSSIBLE_QUEUE_NAME
        found.append(kind.finding(join(root, "consumequeue"), got=got, units=left))
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
