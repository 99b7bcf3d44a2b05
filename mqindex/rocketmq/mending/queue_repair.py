"""Repair of consume queues and batch queues: those that are missing or wrong are written anew in a scratch, then only
files that differ are exchanged.

Units of messages that the log holds come from the log. Those that it no longer holds, because its first files expired
or because it is damaged, are kept from the queue's old files. So are those behind the place at which the next start
cuts the log; the log's are not written: a queue would have blanks before them, and end with these after the cut.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from mqindex.engines import Engine
from mqindex.files import disk
from mqindex.files.backups.exchange import Change
from mqindex.files.paths import is_link, join, relative
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.checks.queues.checked_queue import CheckedQueue
from mqindex.rocketmq.checks.queues.queue_diagnosis import QueueDiagnosis
from mqindex.rocketmq.kinds import names_in
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.rocketmq.pipeline.builds import require_room
from mqindex.rocketmq.pipeline.queue_splits import assign_queues, least_space
from mqindex.rocketmq.pipeline.queue_stages import BuiltQueue, OldQueues, QueueBatch, QueueWork, build_queues
from mqindex.rocketmq.pipeline.splits import SPLIT_SIZE, LogRange, cut, extract
from mqindex.rocketmq.pipeline.unit_runs import names_of
from mqindex.rocketmq.queue.queue_names import QueueName

_STRAY = "stray-queue-file"
_MAX_LISTED = 20
_AT_ONCE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class MendedQueue:
    """What changes below the store: files of a queue, or its whole directory where it has none."""

    name: QueueName
    units: int
    changes: tuple[Change, ...]


def planned_queue_actions(diagnosis: QueueDiagnosis) -> list[str]:
    """What `repair` would do to the queues, one sentence each."""
    actions = [_write(name) for name in diagnosis.missing]
    both = (*diagnosis.queues, *diagnosis.batch_queues)
    actions += [_rewrite(queue) for queue in both if not queue.good]
    actions += [
        f"move {name} to the backup"
        for queue in both
        if queue.good
        for name in _strays(queue, diagnosis.survey.options.root)
    ]
    more = len(actions) - _MAX_LISTED
    return actions if more < 2 else [*actions[:_MAX_LISTED], f"and so on with {more} more"]


def _write(name: QueueName) -> str:
    return f"write the units of queue {name[0]}/{name[1]} anew"


def _rewrite(queue: CheckedQueue) -> str:
    if not queue.files:
        return _write((queue.topic, queue.queue_id))
    kinds = sorted({one.kind for one in queue.findings if one.severity != "info"})
    return f"write the files of queue {queue.topic}/{queue.queue_id} that differ anew ({', '.join(kinds)})"


def _strays(queue: CheckedQueue, root: str) -> list[str]:
    """What keeps a broker from starting, by its path below the store."""
    found = [one.path for one in queue.findings if one.kind == _STRAY and one.severity == "error"]
    return [relative(path, root) for path in found if path is not None]


# ---- writing queues in a scratch


def move_strays(diagnosis: QueueDiagnosis) -> list[MendedQueue]:
    """What is in the way in queues that are good."""
    return [
        MendedQueue((queue.topic, queue.queue_id), 0, tuple(map(Change, names)))
        for queue in (*diagnosis.queues, *diagnosis.batch_queues)
        if queue.good and (names := _strays(queue, diagnosis.survey.options.root))
    ]


def mend_queues(
    engine: Engine, diagnosis: QueueDiagnosis, wanted: frozenset[QueueName], scratch: str
) -> list[MendedQueue]:
    """Write the queues `wanted`, which are bad or missing, anew in `scratch`, and return what has to change."""
    if not wanted:
        return []
    found = diagnosis.survey
    stop = min(found.spans[-1].stop, diagnosis.cut) if found.spans else 0
    splits = cut(
        found.spans,
        LogRange(found.min_phy_offset, stop),
        SPLIT_SIZE,
        tags=found.tags,
        out=scratch,
        index=False,
        rules=found.queues.rules,
        only=wanted,
    )
    (extracted,) = extract(engine, [splits], name="read the log for queues")
    options, topics = found.options, found.queues.batches(found.options)
    directories = options.consume_queue, options.consume_queue_ext_directory, options.batch_consume_queue
    old = OldQueues(*directories, (*diagnosis.lost, (diagnosis.cut, MAX_TIMESTAMP)))
    rules, log_bytes = found.queues.rules, found.log_bytes
    work = QueueWork(scratch, rules, names_of(extracted.units), topics, log_bytes, old)
    batches = assign_queues(extracted.units, more=sorted(wanted))
    require_room(engine, scratch, (), least_space(batches, rules))
    weights = [batch.units + 1 for batch in batches]
    stage = partial(_mend, options.root, work)
    mended = engine.map(stage, batches, name="build the queues", weights=weights, unit="unit")
    return sorted((queue for task in mended for queue in task if queue.changes), key=attrgetter("name"))


def _mend(root: str, work: QueueWork, batch: QueueBatch) -> list[MendedQueue]:
    """Build a batch, and compare it with the files that are there."""
    return [_compared(root, queue) for queue in build_queues(work, batch).queues]


def _compared(root: str, queue: BuiltQueue) -> MendedQueue:
    changes: list[Change] = []
    for side, source in ((queue.side, queue.path), ("consumequeue_ext", queue.ext)):
        below = join(side, queue.name[0], str(queue.name[1]))
        target = join(root, below)
        if source is None:
            continue
        if not disk.is_directory(target):
            if queue.files:
                changes.append(Change(below, source))
            continue
        names = names_in(source)
        changes += [
            Change(join(below, name), join(source, name))
            for name in names
            if not _same(join(source, name), join(target, name))
        ]
        changes += [Change(join(below, name)) for name in names_in(target) if name not in set(names)]
    return MendedQueue(queue.name, queue.units, tuple(changes))


def _same(one: str, other: str) -> bool:
    """Whether both are files of the same bytes."""
    if not disk.is_file(other) or is_link(other):
        return False
    with SparseFile(one) as first, SparseFile(other) as second:
        if first.size != second.size:
            return False
        end = max(first.data_end(), second.data_end())
        borders = itertools.pairwise([*range(0, end, _AT_ONCE), end])
        return all(first.read(start, stop) == second.read(start, stop) for start, stop in borders)
