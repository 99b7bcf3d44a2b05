"""What is right and wrong with the batch queues of a store, as `queue_diagnosis` has it of consume queues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.files.paths import join
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.brokers import BATCH_QUEUES
from mqindex.rocketmq.checks.log_check import Walked
from mqindex.rocketmq.checks.queues.batch_queue_check import (
    BatchCheck,
    BatchLook,
    BatchLooked,
    BatchRun,
    Faults,
    compare_batches,
    fault_finding,
    look_at_batches,
    put_together,
)
from mqindex.rocketmq.checks.queues.checked_queue import CheckedQueue, lost_stretches, spoils
from mqindex.rocketmq.checks.start.loading import Loader
from mqindex.rocketmq.checks.waiting import Waiting
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.pipeline.queue_splits import oddity_findings
from mqindex.rocketmq.queue.queue_names import QueueName

_ABSENT = (catalogue.BATCH_QUEUE_BEHIND, catalogue.MISSING_UNITS)


@dataclass(frozen=True, slots=True)
class ComparedBatches:
    """What was found in the files of batch queues, and what the log has for each."""

    looked: tuple[BatchLooked, ...]
    runs: Mapping[QueueName, Sequence[BatchRun]]

    @property
    def reach(self) -> int:
        """The greatest phy offset of a unit beyond the log's end; -1: there is none."""
        return max((one.reach for one in self.looked), default=-1)


def compare_all_batches(engine: Engine, walked: Walked, present: Sequence[QueueName]) -> ComparedBatches:
    """Compare the units of the batch queues that are `present` with the log; nothing is written."""
    topics = walked.survey.queues.batch_topics
    ranges = list(walked.stretches_of(lambda queue: queue.topic in topics and queue.units > 0))
    waiting = Waiting(engine, walked.survey)
    while True:
        compared = _compared(engine, walked, present, ranges)
        if not waiting.waits(sum(map(_absent, compared.runs.values()))):
            return compared


def _compared(
    engine: Engine, walked: Walked, present: Sequence[QueueName], ranges: Sequence[tuple[LogSpan, int, int]]
) -> ComparedBatches:
    found, damaged = walked.survey, lost_stretches(walked)
    directory, low, high = found.options.batch_consume_queue, found.min_phy_offset, walked.end
    borders = tuple((start, stop) for _, start, stop in ranges)
    paths = [join(directory, topic, str(queue_id)) for topic, queue_id in present]
    rules = found.queues.batch_file_size, Loader(found.next_broker, found.is_in_use(), BATCH_QUEUES)
    looks = [BatchLook(*one, low, high, damaged, borders, *rules) for one in zip(present, paths, strict=True)]
    looked = engine.map(look_at_batches, looks, name="look at the batch queues")
    checks = [
        BatchCheck(
            span=span,
            start=start,
            stop=stop,
            resync=False,
            tags=found.tags,
            rules=found.queues.rules,
            directory=directory,
            topics=found.queues.batch_topics,
            present=frozenset((one.topic, one.queue_id) for one in looked if one.in_order),
            damaged=damaged,
        )
        for span, start, stop in ranges
    ]
    weights = [check.stop - check.start for check in checks]
    runs: dict[QueueName, list[BatchRun]] = {}
    for split in engine.map(compare_batches, checks, name="check the batch queues", weights=weights, unit="byte"):
        for run in split.runs:
            runs.setdefault(run.name, []).append(run)
    return ComparedBatches(tuple(looked), runs)


def _absent(runs: Sequence[BatchRun]) -> int:
    return sum(seen.units for run in runs for kind, seen in run.faults.items() if kind in _ABSENT)


# ---- what to make of it


def judge_batches(
    walked: Walked, compared: ComparedBatches, missing: Sequence[QueueName], end: int
) -> list[CheckedQueue]:
    """Every batch queue, those that are `missing` too. `end`: where the log's frames end by now."""
    looked = {(one.topic, one.queue_id): one for one in compared.looked}
    return [
        _judged(walked, looked.get(name) or BatchLooked(*name), compared.runs.get(name, ()), end)
        for name in sorted({*looked, *missing})
    ]


def _judged(walked: Walked, looked: BatchLooked, runs: Sequence[BatchRun], end: int) -> CheckedQueue:
    options = walked.survey.options
    path = join(options.batch_consume_queue, looked.topic, str(looked.queue_id))
    units, faults, oddities = put_together(runs)
    if not looked.in_order:  # nothing else was compared
        faults = Faults()
    for kind, seen in looked.faults.items():
        faults.see(kind, seen)
    low, high = walked.survey.min_phy_offset, walked.end
    findings = [fault_finding(kind, seen, path, looked.max_offset, low, high) for kind, seen in faults.items()]
    if looked.reach < end:  # units beyond the end that was fixed are of messages written since
        findings = [one for one in findings if one.kind != catalogue.QUEUE_BEYOND_LOG.name]
    findings += looked.findings
    if units and not looked.files:
        findings = [one for one in findings if one.kind != catalogue.BATCH_QUEUE_BEHIND.name]
        findings.append(catalogue.BATCH_QUEUE_MISSING.finding(path, expected=plural(units, "unit"), got="none"))
    good, findings = not any(map(spoils, findings)), [*findings, *oddity_findings(oddities, path)]
    return replace(looked, good=good, findings=tuple(findings), units=units)
