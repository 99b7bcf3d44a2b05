"""What is right and wrong with the consume queues of a store: found once, reported by verify, mended by repair."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks import queue_check
from mqindex.rocketmq.checks.deleted_topics import deleted_topics, without_queues
from mqindex.rocketmq.checks.expected_units import ExpectedUnits, gather_expected
from mqindex.rocketmq.checks.log_check import Walked, walk_log
from mqindex.rocketmq.checks.patience import Patience
from mqindex.rocketmq.checks.queue_check import QueueCheck, QueueChecked
from mqindex.rocketmq.layout import number_of
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.log_end import frames_end_now
from mqindex.rocketmq.pipeline.queue_survey import queues_elsewhere
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.queue.batch_consume_queue import batch_queue_end
from mqindex.rocketmq.queue.consume_queue_table import list_queues
from mqindex.rocketmq.queue.queue_files import queue_file_paths
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.rocksdb import is_rocksdb

__all__ = ["CheckedQueue", "QueueDiagnosis", "diagnose_queues"]

_MAX_DIFFERENCES = 20


class CheckedQueue(NamedTuple):
    """One queue directory. A `good` one stays as it is; repair writes the others anew from the log.

    `min_offset`, `max_offset`: its queue offsets, [min, max), as far as its units are valid. `units`: those of them
    that the log gives.
    """

    topic: str
    queue_id: int
    good: bool
    findings: tuple[Finding, ...]
    files: int = 0
    units: int = 0
    min_offset: int = 0
    max_offset: int = 0


@dataclass(frozen=True, slots=True)
class QueueDiagnosis:
    """All queues that have a directory, those `missing` that have messages in the log, and all that was found.

    `deleted`: topics without any queue that were deleted; their queues are not among those missing.
    `survey`: the store with the log's end fixed. `messages`, `max_timestamp`: of the whole log.
    """

    survey: Survey
    queues: tuple[CheckedQueue, ...]
    missing: tuple[QueueName, ...]
    findings: tuple[Finding, ...]
    messages: int
    max_timestamp: int = 0
    deleted: frozenset[str] = frozenset()

    @property
    def bad(self) -> tuple[QueueName, ...]:
        """The queues that repair writes anew."""
        return tuple((one.topic, one.queue_id) for one in self.queues if not one.good)


def diagnose_queues(
    engine: Engine, found: Survey, *, deep: bool, split_size: int, walked: Walked | None = None
) -> QueueDiagnosis:
    """Compare every unit of every queue with the log, in both directions; nothing is written.

    `deep` also compares bodies with their checksums. `walked`: a walk that was made already.
    """
    if walked is None:
        walked = walk_log(engine, found, split_size, crc_from=0 if deep else None)
    if found.queues.rocksdb is not None:
        return _elsewhere(walked, found.queues.rocksdb)
    all_expected = gather_expected([run.queues for run in walked.runs])
    listed, patience = _list(engine, found), Patience(engine, walked.survey)
    while patience.waits(sum(_behind(found, all_expected, listed.batch_queues).values())):
        listed = _list(engine, found)
    batch = found.queues.batch_topics
    present = [name for name in listed.queues if name[0] not in batch]
    checks = [_check(walked, name, all_expected.get(name)) for name in present]
    weights = [1 + len(check.ranges) for check in checks]
    looked = engine.map(queue_check.check_queue, checks, name="check the queues", weights=weights, unit="stretch")
    end = walked.end
    if any(one.reach >= 0 for one in looked):  # units come after their messages: did somebody write these meanwhile?
        end = run_one(engine, frames_end_now, walked.survey, "look at the log's end")
    queues = [_judged(found, one, all_expected.get((one.topic, one.queue_id)), end) for one in looked]
    seen = set(present)
    wanted = [name for name, expected in sorted(all_expected.items()) if name not in seen and expected.units]
    missing = [name for name in wanted if name_problem(*name) is None and name[0] not in batch]
    deleted = _deleted(engine, walked, missing, present)
    missing = [name for name in missing if name[0] not in deleted]
    findings = [
        *listed.findings,
        *_missing(found, all_expected, missing),
        *_of_deleted(found, all_expected, deleted),
        *_left_out(found, all_expected, listed.batch_queues),
    ]
    return QueueDiagnosis(
        survey=walked.survey,
        queues=tuple(queues),
        missing=tuple(missing),
        findings=(*walked.findings, *findings, *(finding for one in queues for finding in one.findings)),
        messages=walked.messages,
        max_timestamp=walked.max_timestamp,
        deleted=deleted,
    )


def _deleted(
    engine: Engine, walked: Walked, missing: Sequence[QueueName], present: Sequence[QueueName]
) -> frozenset[str]:
    """After the log was walked: a topic is saved before its first message is stored."""
    runs = (queue for run in walked.runs for queue in run.queues)
    topics, there = (frozenset(topic for topic, _ in names) for names in (missing, present))
    looked = without_queues(walked.survey.options, runs, topics, there) if topics else None
    if looked is None or not looked.first:
        return frozenset()
    return run_one(engine, deleted_topics, looked, "look for deleted topics")


def _elsewhere(walked: Walked, rocksdb: str) -> QueueDiagnosis:
    """From 5.2 on the queues may be in RocksDB, which is not read."""
    findings = (*walked.findings, queues_elsewhere(rocksdb))
    return QueueDiagnosis(walked.survey, (), (), findings, walked.messages, walked.max_timestamp)


# ---- which queues there are


@dataclass(frozen=True, slots=True)
class _Listed:
    queues: tuple[QueueName, ...]
    findings: tuple[Finding, ...]
    batch_queues: Mapping[QueueName, int | None]  # the end of each; None: it cannot be read


def _list(engine: Engine, found: Survey) -> _Listed:
    return engine.map(_list_queues, [found.options], name="list the queues")[0]


def _list_queues(options: StoreOptions) -> _Listed:
    """The queues that have a directory, `<topic>/<queueId>/`, and the batch queues that have a file."""
    directory, batches = options.consume_queue, options.batch_consume_queue
    queues, skipped = list_queues(directory)
    if is_rocksdb(directory):  # a broker may write its queues twice, into one directory
        skipped = [one for one in skipped if os.path.dirname(one.path) != directory]
    return _Listed(
        tuple(queues),
        tuple(_skipped(one.path) for one in skipped),
        {name: batch_queue_end(batches, *name) for name in sorted(set(_batch_queues(batches)))},
    )


def _batch_queues(directory: str) -> Iterator[QueueName]:
    for path in queue_file_paths(directory):
        queue = os.path.dirname(path)
        queue_id = number_of(queue)
        if queue_id is not None and os.path.getsize(path):
            yield os.path.basename(os.path.dirname(queue)), queue_id


def _skipped(path: str) -> Finding:
    return catalogue.STRAY_FILE.finding(path)


def _check(walked: Walked, name: QueueName, expected: ExpectedUnits | None) -> QueueCheck:
    found = walked.survey
    damaged = tuple((one.at, walked.end if one.stop is None else one.stop) for one in walked.damage)
    return QueueCheck(
        topic=name[0],
        queue_id=name[1],
        path=os.path.join(found.options.consume_queue, name[0], str(name[1])),
        ranges=expected.places if expected else (),
        low=found.min_phy_offset,
        high=walked.end,
        damaged=damaged + tuple(_gaps(found)),
        file_size=found.queues.rules.file_size,
        broker_version=found.version.number,
    )


def _gaps(found: Survey) -> Iterable[tuple[int, int]]:
    """Where whole files of the log are missing."""
    for one, following in zip(found.spans, found.spans[1:], strict=False):
        if one.stop < following.file_start:
            yield one.stop, following.file_start


# ---- what to make of it

# with these alone the queue is what the log gives: there is nothing to write
_NOT_OF_UNITS = (catalogue.STRAY_QUEUE_FILE.name, catalogue.QUEUE_BEGAN_AGAIN.name)


def _judged(found: Survey, looked: QueueChecked, expected: ExpectedUnits | None, end: int) -> CheckedQueue:
    """`end`: where the log's frames end by now."""
    written = looked.reach < end  # units beyond the end that was fixed are of messages written since
    findings = [one for one in looked.findings if not (written and one.kind == catalogue.QUEUE_BEYOND_LOG.name)]
    if expected is not None:
        path = os.path.join(found.options.consume_queue, looked.topic, str(looked.queue_id))
        findings += expected.findings(path)
    spoilt = any(one.severity == "error" and one.kind not in _NOT_OF_UNITS for one in findings)
    expired = sum(one.got for one in findings if one.kind == catalogue.QUEUE_UNITS_EXPIRED.name)
    if expired and not looked.units and not spoilt:
        findings.append(_all_expired(found, looked))
    return CheckedQueue(
        topic=looked.topic,
        queue_id=looked.queue_id,
        good=not spoilt and not (expected is not None and expected.tag_hashes),
        findings=tuple(findings),
        files=looked.files,
        units=looked.units,
        min_offset=looked.min_offset,
        max_offset=looked.max_offset,
    )


def _all_expired(found: Survey, looked: QueueChecked) -> Finding:
    path = os.path.join(found.options.consume_queue, looked.topic, str(looked.queue_id))
    expected = f"min offset {looked.max_offset}"
    return catalogue.QUEUE_MIN_OFFSET_STALE.finding(path, expected=expected, got=looked.min_offset)


def _missing(
    found: Survey, all_expected: dict[QueueName, ExpectedUnits], missing: Sequence[QueueName]
) -> list[Finding]:
    root = found.options.consume_queue
    units = {name: all_expected[name].units for name in missing}
    if missing and len(missing) == len([name for name in all_expected if name_problem(*name) is None]) > 1:
        expected = f"{plural(len(missing), 'queue')}, {plural(sum(units.values()), 'unit')}"
        return [catalogue.QUEUES_MISSING.finding(root, expected=expected, got="none")]
    return [
        catalogue.QUEUE_MISSING.finding(
            os.path.join(root, topic, str(queue_id)), expected=plural(units[topic, queue_id], "unit"), got="none"
        )
        for topic, queue_id in missing
    ]


def _of_deleted(found: Survey, all_expected: dict[QueueName, ExpectedUnits], deleted: frozenset[str]) -> list[Finding]:
    units = Counter[str]()
    for (topic, _), expected in all_expected.items():
        units[topic] += expected.units
    paths = {topic: os.path.join(found.options.consume_queue, topic) for topic in sorted(deleted)}
    return [
        catalogue.TOPIC_DELETED.finding(path, expected="a topic that is listed", got=plural(units[topic], "message"))
        for topic, path in paths.items()
    ]


def _left_out(
    found: Survey, all_expected: dict[QueueName, ExpectedUnits], batch_queues: Mapping[QueueName, int | None]
) -> list[Finding]:
    """Queues that can have no directory here, or are of another kind."""
    findings, behind = [], _behind(found, all_expected, batch_queues)
    for (topic, queue_id), expected in sorted(all_expected.items()):
        problem = name_problem(topic, queue_id)
        if problem is not None:
            got = f"{problem}: {topic[:80]!r} queue {queue_id}"
            units = plural(expected.units, "unit of this queue is", "units of this queue are")
            name = catalogue.IMPOSSIBLE_QUEUE_NAME.finding(found.options.consume_queue, got=got, units=units)
            findings.append(name)
        elif topic in found.queues.batch_topics:
            path = os.path.join(found.options.root, "batchconsumequeue", topic, str(queue_id))
            messages = plural(expected.units, "message")
            if expected.units and (topic, queue_id) not in batch_queues:
                findings.append(catalogue.BATCH_QUEUE_MISSING.finding(path, expected=messages, got="none"))
                continue
            findings.append(catalogue.BATCH_QUEUE_NOT_COMPARED.finding(path, messages=messages))
            if (topic, queue_id) in behind:
                above, end = f"an end above {expected.next - 1}", batch_queues[topic, queue_id]
                findings.append(catalogue.BATCH_QUEUE_BEHIND.finding(path, expected=above, got=end))
    return findings


def _behind(
    found: Survey, all_expected: dict[QueueName, ExpectedUnits], batch_queues: Mapping[QueueName, int | None]
) -> dict[QueueName, int]:
    """The batch queues that end too early, and by how much at least: a log tells only where the last batch begins."""
    return {
        name: all_expected[name].next - end
        for name, end in batch_queues.items()
        if end is not None
        and name[0] in found.queues.batch_topics
        and name in all_expected
        and end < all_expected[name].next
    }
