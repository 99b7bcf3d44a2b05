"""A log of any length that is not there: an engine that answers the stages of a rebuild with what tasks would return.

All that a driver does between the stages is done: it plans, puts splits together, assigns entries and queues, and names
the files. Items and results travel pickled in groups, as on Spark.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mqindex.engines import OnProgress
from mqindex.engines.transport import group_by_weight, outcome, results
from mqindex.files import disk
from mqindex.files.results.publication import Publication, Published
from mqindex.report import RebuildReport
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.queue_stages import BuiltQueue, BuiltQueues, QueueBatch, QueueWork
from mqindex.rocketmq.pipeline.stages import Built, Part, Run, Split
from mqindex.rocketmq.pipeline.survey import Survey, survey
from mqindex.rocketmq.pipeline.unit_runs import RANGES, UnitRun, range_of
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.rebuild import rebuild
from mqindex.several import Plan
from tests.support.log_writer import LogMessage, LogWriter

__all__ = ["SimulatedLog", "rebuild_simulated"]

GROUPS = 1000
CONFIG = {"maxHashSlotNum": 5_000_000, "maxIndexNum": 20_000_000, "mappedFileSizeConsumeQueue": 6_000_000}
_INTO = 37  # bytes of a split before its first frame, which are the end of the last one before it


@dataclass
class SimulatedLog:
    """`files` of the log of `file_size` bytes, read by splits of `split_size`, with so many `queues`.

    `largest`: bytes of the largest pickled stage, group of items, or group of results; `crossed`: of all. `elsewhere`:
    seconds of processors for what a driver does not do.
    """

    files: int
    queues: int
    file_size: int = 1 << 30
    split_size: int = 64 << 20
    entries: int = 106_250  # of a split
    messages: int = 64 << 10
    progress: OnProgress | None = None
    found: Survey | None = None
    largest: int = 0
    crossed: int = 0
    elsewhere: float = 0.0
    ranges: list[list[QueueName]] = field(default_factory=lambda: [[] for _ in range(RANGES)])
    counts: bytes = b""
    time: int = 1_700_000_000_000

    @property
    def splits(self) -> int:
        return self.files * (self.file_size // self.split_size)

    def lie_in(self, store: Path) -> None:
        """Make a store of one small file, of which everything is taken but the length of the log."""
        LogWriter(store / "commitlog", mapped_file_size=4096).write(LogMessage("T", keys="a"))
        found = survey(store_options(store, config=CONFIG, broker_version="4.9.3"))
        name = str(store / "commitlog")
        starts = range(0, self.files * self.file_size, self.file_size)
        spans = [LogSpan(os.path.join(name, f"{start:020d}"), start, start + self.file_size) for start in starts]
        self.found = replace(found, spans=(*spans[:-1], replace(spans[-1], last=True)), findings=())
        for number in range(self.queues):
            name = f"topic-{number // 4:05d}", number % 4
            self.ranges[range_of(name)].append(name)
        shares = [len(names) * self.messages // self.queues for names in self.ranges]
        shares[range_of(("topic-00000", 0))] += self.messages - sum(shares)
        self.counts = np.array(shares, np.uint32).tobytes()

    # ---- the engine

    def map(
        self,
        stage: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Any]:
        """As `SparkEngine.map`."""
        groups = group_by_weight(weights or [1] * len(items), GROUPS)
        packed = [pickle.dumps(items[group.start : group.stop]) for group in groups]
        began = time.process_time()
        own, *common = (stage.func, *stage.args) if isinstance(stage, partial) else (stage,)
        answer = getattr(self, own.__name__.strip("_"))
        done = {i: outcome(lambda: [answer(*common, item) for item in pickle.loads(packed[i])], pickle.dumps)  # noqa: B023
                for i in range(len(groups))}  # fmt: skip
        self.elsewhere += time.process_time() - began
        sizes = [*map(len, packed), *map(len, done.values()), len(pickle.dumps(stage))]
        self.largest, self.crossed = max(self.largest, *sizes), self.crossed + sum(sizes)
        packed.clear()
        return [one for group in results(done).values() for one in group]

    # ---- the stages

    def begin(self, order: object) -> Plan[Survey]:
        assert self.found is not None
        return Plan(self.found, self.found.log_bytes, 0, "is not there")

    def check_room(self, item: object) -> None:
        pass

    def extract(self, split: Split) -> Run:
        assert split.out is not None
        ends_file = split.stop == split.span.stop
        return Run(
            entries=self.entries,
            messages=self.messages,
            first=split.start + _INTO * split.resync,
            end=split.stop + (0 if ends_file else _INTO),
            path=disk.temporary(split.out, "run"),
            last_message=split.stop - 1000,
            last_entry=split.stop - 1000,
            units=UnitRun(os.path.basename(disk.temporary(split.out, "units")), bytes(bytearray(self.counts))),
        )

    def build(self, part: Part) -> Built:
        count = sum(piece.count for piece in part.slices)
        self.time += 60_000
        return Built(disk.temporary(part.out, "part"), count, self.time, self.time, 0, 0.0)

    def build_queues(self, work: QueueWork, batch: QueueBatch) -> BuiltQueues:
        assert len(work.runs) == self.splits
        names = [name for at in range(batch.first, batch.stop) for name in self.ranges[at]]
        home = disk.temporary(work.out, "queues")
        units = [batch.units // len(names)] * len(names)
        units[0] += batch.units - sum(units)
        built = [
            BuiltQueue(name, f"{home}/{number}", None, units=count, files=-(-count // 300_000))
            for number, (name, count) in enumerate(zip(names, units, strict=True))
        ]
        return BuiltQueues(tuple(built), {}, 0.0)

    def publish(self, publication: Publication) -> Published:
        per_queue = -(-self.splits * self.messages // self.queues // 300_000)
        paths = []
        for _, name in publication.moves:
            path = os.path.join(publication.out, name)
            index = name.startswith("index")
            paths += [path] if index else [f"{path}/{at * 6_000_000:020d}" for at in range(per_queue)]
        return Published(paths, None, 0.0)


def rebuild_simulated(log: SimulatedLog, home: Path) -> RebuildReport:
    """The driver of a rebuild of this log, in the directory `home`."""
    log.lie_in(home / "store")
    return rebuild(home / "store", home / "out", split_size=log.split_size, engine=log)
