"""The stages of the pipeline for consume queues, beside those for the index (`stages`).

```
extract         a split's units               ->  a run of units (`unit_runs`)
build_queues    ranges of queues of all runs  ->  the queues' files, under temporary names
```
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mqindex.engines.python_turn import python_turn
from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.files.places.place import Place
from mqindex.files.results.delivery import deliver, workshop
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.pipeline.batch_queue_build import BatchQueueBuilder
from mqindex.rocketmq.pipeline.queue_build import QueueBuilder
from mqindex.rocketmq.pipeline.unit_runs import Units, read_ranges
from mqindex.rocketmq.queue.batch.old_batch_queue import OldBatchQueue
from mqindex.rocketmq.queue.old_queue import OldQueue
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import NO_ODDITIES, Oddities

_READ_AT_ONCE = 10 << 20  # bytes of units
_SMALL = 4096  # units of a queue, below which making its files takes longer than filling them


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
        return OldBatchQueue(join(self.batch_directory, name[0], str(name[1])), file_size, self.lost)

    def of(self, name: QueueName, file_size: int) -> OldQueue:
        """One queue's files."""
        below = join(name[0], str(name[1]))
        directory, ext = join(self.directory, below), join(self.ext_directory, below)
        return OldQueue(directory, ext, file_size, self.lost)


@dataclass(frozen=True, slots=True, eq=False)
class QueueWork:
    """What all tasks that build queues have in common.

    `out`: the scratch directory, which has the runs. `runs`: their names, in the log's order, as ASCII bytes.
    `batches`: which of the queues are batch queues. `log_bytes`: the length of the log. `old`: the files so far, for
    messages that the log no longer holds.
    """

    out: str
    rules: QueueRules
    runs: npt.NDArray[np.bytes_]
    batches: BatchTopics
    log_bytes: int
    old: OldQueues | None = None


@dataclass(frozen=True, slots=True)
class QueueBatch:
    """The ranges [first, stop) of queues, and how many units all runs have of them: one task builds these queues.

    `more`: queues of these ranges that are built even if no run has them.
    """

    first: int
    stop: int
    units: int
    more: tuple[QueueName, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltQueue:
    """A queue's directory under a temporary name, `ext` that of its extension files.

    `side`: the directory of a store that it belongs into. `units`: of the log. `kept`: of the old files. `files`: how
    many in both directories.
    """

    name: QueueName
    path: str
    ext: str | None
    units: int = 0
    kept: int = 0
    files: int = 0
    oddities: Oddities = NO_ODDITIES
    side: str = "consumequeue"


@dataclass(frozen=True, slots=True)
class BuiltQueues:
    """What was built, how long the syncs took, and how many units there are of each queue that can have no files."""

    queues: tuple[BuiltQueue, ...]
    left_out: dict[QueueName, int]
    fsync_seconds: float


def build_queues(work: QueueWork, batch: QueueBatch) -> BuiltQueues:
    """Write the files of every queue of a batch."""
    with ExitStack() as stack:
        queues = _Queues(work, stack)
        for name in batch.more:
            queues.named(name)
        for units in _read(work, batch):
            queues.put(units)
        with python_turn(mostly_python=batch.units < _SMALL * len(queues.begun)):
            built, written = queues.finish()
        if isinstance(work.out, Place):
            return BuiltQueues(queues.delivered(built), queues.left_out, 0.0)
    return BuiltQueues(tuple(built), queues.left_out, disk.sync_files(written))


def _read(work: QueueWork, batch: QueueBatch) -> Iterator[dict[QueueName, Units]]:
    """The units of each queue of a batch, of some neighbouring runs at a time."""
    pieces: dict[QueueName, list[memoryview]] = {}
    held = 0
    for run in work.runs:  # one at a time: there may be millions
        for name, units in read_ranges(join(work.out, run.decode()), batch.first, batch.stop):
            pieces.setdefault(name, []).append(units)
            held += len(units)
        if held >= _READ_AT_ONCE:
            yield _joined(pieces)
            pieces, held = {}, 0
    yield _joined(pieces)


def _joined(pieces: dict[QueueName, list[memoryview]]) -> dict[QueueName, Units]:
    """As bytes: NumPy looks at each field of arrays that it joins."""
    return {name: np.frombuffer(b"".join(parts), UNIT) for name, parts in pieces.items()}


class _Queues:
    """The queues of a batch while they are built. `left_out`: as in `BuiltQueues`."""

    def __init__(self, work: QueueWork, stack: ExitStack) -> None:
        self._work, self._stack = work, stack
        self._home = disk.temporary(stack.enter_context(workshop(work.out)), "queues")
        disk.make_directory(self._home)
        self._log: CommitLog | None = None
        self.begun: dict[QueueName, tuple[QueueBuilder | BatchQueueBuilder, BuiltQueue]] = {}
        self.left_out: dict[QueueName, int] = {}

    def put(self, units: dict[QueueName, Units]) -> None:
        """The units that follow, in the log's order. There must be room for all of them before the first is written."""
        for name in [name for name in units if name_problem(*name) is not None]:
            self.left_out[name] = self.left_out.get(name, 0) + len(units.pop(name))
        with python_turn(mostly_python=sum(map(len, units.values())) < _SMALL * len(units)):
            both = [(self.named(name), some) for name, some in units.items()]
            log_bytes = self._work.log_bytes
            disk.check_space(self._home, sum(builder.space(some, log_bytes) for builder, some in both))
            for builder, some in both:
                try:
                    builder.put(some)
                finally:
                    builder.close()  # few files are open at a time, however many queues there are

    def named(self, name: QueueName) -> QueueBuilder | BatchQueueBuilder:
        """The builder of a queue, which begins here unless it has begun."""
        if name not in self.begun:
            home = join(self._home, str(len(self.begun)))
            disk.make_directory(home)
            begin = self._begin_batches if name[0] in self._work.batches.topics else self._begin
            self.begun[name] = begin(name, home)
        return self.begun[name][0]

    def _begin(self, name: QueueName, home: str) -> tuple[QueueBuilder, BuiltQueue]:
        rules, old = self._work.rules, self._work.old
        ext = f"{home}.ext" if rules.ext_file_size is not None else None
        if ext is not None:
            disk.make_directory(ext)
        before = old.of(name, rules.file_size) if old is not None else None
        return QueueBuilder(home, ext, rules, before), BuiltQueue(name, home, ext)

    def _begin_batches(self, name: QueueName, home: str) -> tuple[BatchQueueBuilder, BuiltQueue]:
        batches, old = self._work.batches, self._work.old
        self._log = self._log or self._stack.enter_context(CommitLog.open(batches.commitlog))
        before = old.of_batch(name, batches.file_size) if old is not None else None
        builder = BatchQueueBuilder(home, batches.file_size, self._log, before)
        return builder, BuiltQueue(name, home, None, side="batchconsumequeue")

    def finish(self) -> tuple[list[BuiltQueue], list[str]]:
        """All queues, and the paths of all files, which are not yet synced."""
        built, written = [], []
        for builder, queue in self.begun.values():
            try:
                builder.finish()
            finally:
                paths = builder.close()
            written += paths
            units, kept, odd = builder.units, builder.kept, builder.oddities
            built.append(replace(queue, units=units, kept=kept, files=len(paths), oddities=odd))
        return built, written

    def delivered(self, built: list[BuiltQueue]) -> tuple[BuiltQueue, ...]:
        """The same queues, with where they are in the scratch elsewhere."""
        home = deliver(self._home, self._work.out)
        moved = {one.path: join(home, base_name(one.path)) for one in built}
        moved |= {one.ext: join(home, base_name(one.ext)) for one in built if one.ext is not None}
        return tuple(replace(one, path=moved[one.path], ext=one.ext and moved[one.ext]) for one in built)
