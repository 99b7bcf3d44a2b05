"""What is right and wrong with the consume queues of a store: found once, reported by verify, mended by repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.errors import FormatError
from mqindex.files.paths import join, parent_of
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.brokers import BATCH_QUEUES, follows
from mqindex.rocketmq.checks.log_check import Walked, walk_log
from mqindex.rocketmq.checks.queues import queue_check
from mqindex.rocketmq.checks.queues.batch_queue_diagnosis import compare_all_batches, judge_batches
from mqindex.rocketmq.checks.queues.checked_queue import CheckedQueue, lost_stretches, spoils
from mqindex.rocketmq.checks.queues.expected_units import ExpectedUnits, gather_expected
from mqindex.rocketmq.checks.queues.queue_check import QueueCheck
from mqindex.rocketmq.checks.queues.served import ServedMessage, name_served
from mqindex.rocketmq.checks.queues.unit_check import QueueRun
from mqindex.rocketmq.checks.start.loading import Loader
from mqindex.rocketmq.directories.rocksdb import config_in_rocksdb
from mqindex.rocketmq.kinds import is_rocksdb
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.metadata.topic_configs import TopicTable, read_topic_table
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.log_end import frames_end_now
from mqindex.rocketmq.pipeline.survey import Survey
from mqindex.rocketmq.pipeline.surveys.queue_survey import queues_elsewhere
from mqindex.rocketmq.queue.consume_queue_table import list_queues
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.topic_kinds import topic_kind
from mqindex.rocketmq.settings import MULTI_DISPATCH


@dataclass(frozen=True, slots=True)
class QueueDiagnosis:
    """All queues that have a directory, those `missing` that have messages in the log, and all that was found.

    `batch_queues`: those that are there, and those that the log has messages for; repair writes what is not `good` of
    them too. `deleted`: topics without any queue that were deleted; their queues are not among those missing.
    `survey`: the store with the log's end fixed. `messages`, `max_timestamp`: of the whole log. `lost`: phy offsets
    whose messages it no longer holds. `cut`: where the next start cuts it.
    """

    survey: Survey
    queues: tuple[CheckedQueue, ...]
    missing: tuple[QueueName, ...]
    findings: tuple[Finding, ...]
    messages: int
    max_timestamp: int = 0
    deleted: frozenset[str] = frozenset()
    batch_queues: tuple[CheckedQueue, ...] = ()
    lost: tuple[tuple[int, int], ...] = ()
    cut: int = MAX_TIMESTAMP

    @property
    def bad_batches(self) -> tuple[QueueName, ...]:
        """The batch queues that repair writes, anew or for the first time."""
        return tuple((one.topic, one.queue_id) for one in self.batch_queues if not one.good)

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
    listed, batch = run_one(engine, _list_queues, found.options, "list the queues"), found.queues.batch_topics
    # by a broker that has none they are not looked at
    batch_queues = listed.batch_queues if follows(found.version.broker, BATCH_QUEUES) else ()
    present = [name for name in listed.queues if name[0] not in batch]
    lost = lost_stretches(walked)
    loader = Loader(found.next_broker, found.is_in_use())
    checks = [_check(walked, name, all_expected.get(name), lost, loader) for name in present]
    weights = [1 + len(check.ranges) for check in checks]
    looked = engine.map(queue_check.check_queue, checks, name="check the queues", weights=weights, unit="stretch")
    compared, end = compare_all_batches(engine, walked, batch_queues), walked.end
    if max(compared.reach, *(one.reach for one in looked), -1) >= 0:
        # units come after their messages: did somebody write these meanwhile?
        end = run_one(engine, frames_end_now, walked.survey, "look at the log's end")
    served = _named(engine, found, {name: all_expected[name] for name in present if name in all_expected})
    queues = [
        _judged(found, one, all_expected.get((one.topic, one.queue_id)), served.get((one.topic, one.queue_id), {}), end)
        for one in looked
    ]
    there = {*present, *listed.batch_queues}
    wanted = [name for name, expected in sorted(all_expected.items()) if name not in there and expected.units]
    wanted = [name for name in wanted if name_problem(*name) is None]
    deleted = _deleted(engine, walked, wanted, tuple(there))
    missing = [name for name in wanted if name[0] not in batch | deleted]
    batches = judge_batches(walked, compared, [name for name in wanted if name[0] in batch - deleted], end)
    findings = [
        *listed.findings,
        *_missing(found, all_expected, missing),
        *_of_deleted(found, all_expected, deleted),
        *_left_out(found, all_expected),
    ]
    return QueueDiagnosis(
        survey=walked.survey,
        queues=tuple(queues),
        missing=tuple(missing),
        findings=(*walked.findings, *findings, *(said for one in (*queues, *batches) for said in one.findings)),
        messages=walked.messages,
        max_timestamp=walked.max_timestamp,
        deleted=deleted,
        batch_queues=tuple(batches),
        lost=((0, found.min_phy_offset), *lost),
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
    batch_queues: tuple[QueueName, ...]


def _list_queues(options: StoreOptions) -> _Listed:
    """The queues and the batch queues that have a directory, `<topic>/<queueId>/`."""
    directory, batches = options.consume_queue, options.batch_consume_queue
    queues, skipped = list_queues(directory)
    if is_rocksdb(directory):  # a broker may write its queues twice, into one directory
        skipped = [one for one in skipped if parent_of(one.path) != directory]
    strays = tuple(catalogue.STRAY_FILE.finding(one.path) for one in skipped)
    return _Listed(tuple(queues), strays, tuple(list_queues(batches)[0]))


def _check(
    walked: Walked, name: QueueName, expected: ExpectedUnits | None, lost: tuple[tuple[int, int], ...], loader: Loader
) -> QueueCheck:
    found = walked.survey
    return QueueCheck(
        topic=name[0],
        queue_id=name[1],
        path=join(found.options.consume_queue, name[0], str(name[1])),
        ranges=expected.places if expected else (),
        low=found.min_phy_offset,
        high=walked.end,
        damaged=lost,
        file_size=found.queues.rules.file_size,
        loader=loader,
    )


# ---- what to make of it


def _named(
    engine: Engine, found: Survey, expected: Mapping[QueueName, ExpectedUnits]
) -> dict[QueueName, dict[bool, tuple[ServedMessage, ...]]]:
    """The messages that a repair takes out of queues, by queue, and by whether they are the later ones."""
    asked = [one for name, units in sorted(expected.items()) for one in units.served(name)]
    call = partial(name_served, found.options)
    named: dict[QueueName, dict[bool, tuple[ServedMessage, ...]]] = {}
    for one, messages in zip(asked, engine.map(call, asked, name="name the messages") if asked else (), strict=True):
        named.setdefault(one.name, {})[one.later] = messages
    return named


def _judged(
    found: Survey,
    looked: CheckedQueue,
    expected: ExpectedUnits | None,
    served: Mapping[bool, tuple[ServedMessage, ...]],
    end: int,
) -> CheckedQueue:
    """`end`: where the log's frames end by now."""
    written = looked.reach < end  # units beyond the end that was fixed are of messages written since
    findings = [one for one in looked.findings if not (written and one.kind == catalogue.QUEUE_BEYOND_LOG.name)]
    path = join(found.options.consume_queue, looked.topic, str(looked.queue_id))
    if expected is not None:
        findings += expected.findings(path, served)
    spoilt = any(map(spoils, findings))
    expired = sum(one.got for one in findings if one.kind == catalogue.QUEUE_UNITS_EXPIRED.name)
    if expired and not looked.units and not spoilt:
        wanted, got = f"min offset {looked.max_offset}", looked.min_offset
        findings.append(catalogue.QUEUE_MIN_OFFSET_STALE.finding(path, expected=wanted, got=got))
    good = not spoilt and not (expected is not None and expected.tag_hashes)
    return replace(looked, good=good, findings=tuple(findings))


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
            join(root, topic, str(queue_id)), expected=plural(units[topic, queue_id], "unit"), got="none"
        )
        for topic, queue_id in missing
    ]


def _of_deleted(found: Survey, all_expected: dict[QueueName, ExpectedUnits], deleted: frozenset[str]) -> list[Finding]:
    units = Counter[str]()
    for (topic, _), expected in all_expected.items():
        units[topic] += expected.units
    paths = {topic: join(found.options.consume_queue, topic) for topic in sorted(deleted)}
    return [
        catalogue.TOPIC_DELETED.finding(path, expected="a topic that is listed", got=plural(units[topic], "message"))
        for topic, path in paths.items()
    ]


def _left_out(found: Survey, all_expected: dict[QueueName, ExpectedUnits]) -> list[Finding]:
    """Queues that can have no directory."""
    findings = []
    for (topic, queue_id), expected in sorted(all_expected.items()):
        problem = name_problem(topic, queue_id)
        if problem is not None:
            got = f"{problem}: {topic[:80]!r} queue {queue_id}"
            units = plural(expected.units, "unit of this queue is", "units of this queue are")
            name = catalogue.IMPOSSIBLE_QUEUE_NAME.finding(found.options.consume_queue, got=got, units=units)
            findings.append(name)
    return findings


@dataclass(frozen=True, slots=True)
class WithoutQueues:
    """Topics of users that have messages in the log but no queue: the phy offset of a first one. `others`: the rest."""

    options: StoreOptions
    first: Mapping[str, int]
    others: frozenset[str]


def without_queues(
    options: StoreOptions, runs: Iterable[QueueRun], missing: frozenset[str], present: frozenset[str]
) -> WithoutQueues:
    """What the log says of topics with `missing` queues, of which none is `present`."""
    first: dict[str, int] = {}
    others: set[str] = set()
    for run in runs:
        if run.units and topic_kind(run.topic) == "messages":
            if run.topic in missing and run.topic not in present:
                first[run.topic] = min(first.get(run.topic, run.phy_offset), run.phy_offset)
            else:
                others.add(run.topic)
    return WithoutQueues(options, first, frozenset(others))


def deleted_topics(looked: WithoutQueues) -> frozenset[str]:
    """Those that were deleted; where nothing proves it, none."""
    options = looked.options
    if options.given(MULTI_DISPATCH) or config_in_rocksdb(options) is not None:
        return frozenset()
    table = read_topic_table(join(options.root, "config"))
    if table is None or not table.topics & looked.others:
        return frozenset()
    gone = {topic: at for topic, at in looked.first.items() if topic not in table.topics}
    with CommitLog.open(options.commitlog) as log:
        return frozenset(topic for topic, at in gone.items() if _was_known(log, topic, at, table))


def _was_known(log: CommitLog, topic: str, phy_offset: int, table: TopicTable) -> bool:
    """Whether the topic had a message of its own when the table was last changed."""
    try:
        message = log.get_message(phy_offset)
    except FormatError:
        return False
    return message.topic == topic and message.store_timestamp < table.changed
