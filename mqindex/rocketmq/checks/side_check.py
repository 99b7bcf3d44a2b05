"""The small files beside log, queues and index: can a broker read them, and do they belong to this store?"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from mqindex._words import plural
from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.paths import join, size_of
from mqindex.files.places.place import require_answer, without_unread
from mqindex.files.reading.regular import reading
from mqindex.health import Text
from mqindex.report import Finding, Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.brokers import TIMER_OFFSET_CORRECTED, TIMERS
from mqindex.rocketmq.catalogue import OffsetKinds
from mqindex.rocketmq.checks.start.config_files import CONFIG_FILES, config_findings, is_there
from mqindex.rocketmq.checks.start.start_files import is_log_file, listed, message_at, number_of
from mqindex.rocketmq.directories.rocksdb import config_in_rocksdb
from mqindex.rocketmq.layout import CHECKPOINT_SIZE
from mqindex.rocketmq.metadata.checkpoint import LATEST_TIME, Checkpoint
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets, read_delay_offsets
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC
from mqindex.rocketmq.queue.topic_kinds import topic_kind
from mqindex.rocketmq.settings import TIMER_WHEEL

_K = TypeVar("_K")
_V = TypeVar("_V")
_FIRST_WRITE = 10_000  # ms from the start of a broker until it writes its offsets, whatever the intervals are
_TIMER_OFFSETS = struct.Struct(">16x2q")  # of the timer's queue: the broker's, its master's
_MAX_LISTED = 20  # offsets of one file, each with a finding of its own


@dataclass(frozen=True, slots=True)
class SideCheck:
    """What the side files are compared with: queues by name with (min_offset, max_offset), the end of the log.

    `unsure`: topics of which it is not known how long their queues are; None: all. `max_timestamp`: the latest store
    timestamp, 0: the log holds no message.
    """

    options: StoreOptions
    queues: Mapping[QueueName, tuple[int, int]]
    unsure: frozenset[str] | None
    end: int
    max_timestamp: int
    unclean: bool


def check_sides(check: SideCheck) -> list[Finding]:
    """All findings; nothing is written."""
    root = check.options.root
    config = join(root, "config")
    return [
        *_checkpoint(check, join(root, "checkpoint")),
        *_missing(check, config),
        *(finding for name in CONFIG_FILES for finding in config_findings(join(config, name))),
        *_consumer_offsets(check, config),
        *_delay_offsets(check, config),
        *_timer_checkpoint(check, join(config, "timercheck")),
    ]


# ---- checkpoint


def _checkpoint(check: SideCheck, path: str) -> Iterator[Finding]:
    try:
        size = size_of(path)
        known = Checkpoint.read(path)
    except FileNotFoundError:
        if check.unclean and check.max_timestamp:
            yield catalogue.CHECKPOINT_MISSING.finding(path)
        return
    except IsADirectoryError:
        yield checkpoint_is_directory(path)
        return
    except PermissionError:
        raise  # as for the files in config/
    except OSError as error:
        require_answer(error, path)
        yield catalogue.CHECKPOINT_UNREADABLE.finding(path, error=error)
        return
    if size != CHECKPOINT_SIZE:
        yield catalogue.CHECKPOINT_SIZE.finding(path, expected=CHECKPOINT_SIZE, got=size)
    if known is not None:
        yield from _times_and_offsets(check, path, known)


def _times_and_offsets(check: SideCheck, path: str, known: Checkpoint) -> Iterator[Finding]:
    times = {"physicMsgTimestamp": known[0], "logicsMsgTimestamp": known[1], "indexMsgTimestamp": known[2]}
    for at, (name, time) in enumerate(times.items()):
        if not 0 <= time < LATEST_TIME:
            yield catalogue.CHECKPOINT_GARBAGE.finding(path, 8 * at, name, "ms since the epoch", time)
        elif check.max_timestamp and time > check.max_timestamp:
            limit = f"at most {check.max_timestamp}, the log's latest"
            yield catalogue.CHECKPOINT_AHEAD.finding(path, 8 * at, name, limit, time)
    first = min(known.physic_msg_timestamp, known.logics_msg_timestamp)
    if check.unclean and 0 <= first < check.max_timestamp:
        yield catalogue.CHECKPOINT_BEHIND.finding(path, expected=check.max_timestamp, got=first)
    offsets = {"confirmPhyOffset": known.confirm_phy_offset, "logicsPhysicalOffset": known.logics_physical_offset}
    for at, (name, offset) in enumerate(offsets.items(), 4):
        if offset > check.end and check.max_timestamp:
            yield catalogue.CHECKPOINT_OFFSET_AHEAD.finding(path, 8 * at, name, f"at most {check.end}", offset)


def checkpoint_is_directory(path: str) -> Finding:
    """A directory is in the checkpoint's place."""
    return catalogue.CHECKPOINT_IS_DIRECTORY.finding(path, expected="a file", got="a directory")


# ---- files of a broker's configuration that are missing beside others


def _missing(check: SideCheck, config: str) -> Iterator[Finding]:
    """A store whose log and queues were copied alone has none of these files, or only what its store keeps there."""
    there = {name for name in CONFIG_FILES if is_there(config, name)}
    if not there - {"delayOffset.json"} or config_in_rocksdb(check.options) is not None:
        return
    topics = {topic for (topic, _), (_, high) in check.queues.items() if high and topic_kind(topic) == "messages"}
    delays = {queue for queue, (_, high) in check.queues.items() if high and queue[0] == SCHEDULE_TOPIC}
    if topics and "topics.json" not in there:
        yield _no_file(catalogue.TOPICS_MISSING, config, "topics.json", plural(len(topics), "topic"))
    if _is_young(check):
        return
    if topics and not there & {"consumerOffset.json", "lmqConsumerOffset.json"}:
        yield _no_file(catalogue.CONSUMER_OFFSETS_MISSING, config, "consumerOffset.json", "offsets of groups")
    if delays and "delayOffset.json" not in there:
        yield _no_file(catalogue.DELAY_OFFSETS_MISSING, config, "delayOffset.json", plural(len(delays), "delay level"))


def _is_young(check: SideCheck) -> bool:
    """Whether the broker that made the log may have been gone, or be new, before it first wrote its offsets."""
    first = next((one for one in listed(check.options.commitlog) if is_log_file(one) and one.size), None)
    head = None if first is None or number_of(first) else message_at(first.path)
    return head is not None and check.max_timestamp - head.store_timestamp < _FIRST_WRITE


def _no_file(kind: Kind, config: str, name: str, expected: str) -> Finding:
    return kind.finding(join(config, name), expected=expected, got="no file")


# ---- offsets


def _consumer_offsets(check: SideCheck, config: str) -> list[Finding]:
    table = _read(config, lambda: ConsumerOffsets._read(config, lambda topic, queue_id: 0))
    offsets = [
        (name, (name.split("@", maxsplit=1)[0], queue_id), offset)
        for name, of_queues in table.items()
        for queue_id, offset in of_queues.items()
    ]
    return _ranges(check, join(config, "consumerOffset.json"), catalogue.CONSUMER_OFFSET, offsets)


def _delay_offsets(check: SideCheck, config: str) -> list[Finding]:
    levels = _read(config, lambda: read_delay_offsets(config))
    offsets = [(f"level {level}", (SCHEDULE_TOPIC, level - 1), offset) for level, offset in levels.items()]
    return _ranges(check, join(config, "delayOffset.json"), catalogue.DELAY_OFFSET, offsets)


def _timer_checkpoint(check: SideCheck, path: str) -> Iterator[Finding]:
    """Its offset of the timer's queue: the smaller one of the broker's own and of its master's.

    Source: RocketMQ 5.1.4 and 5.3.2 `TimerCheckpoint`, `TimerMessageStore.recover`.
    """
    broker, queue = check.options.broker, ("rmq_sys_wheel_timer", 0)
    if not check.options.value(TIMER_WHEEL) or broker.does(TIMER_OFFSET_CORRECTED):
        return
    if broker.does(TIMERS) is False or check.unsure is None or queue[0] in check.unsure or not disk.is_file(path):
        return
    with reading(path) as file:
        data = file.read(_TIMER_OFFSETS.size)
    if len(data) == _TIMER_OFFSETS.size:
        offset, (_, high) = min(_TIMER_OFFSETS.unpack(data)), check.queues.get(queue, (0, 0))
        if offset > high:
            yield catalogue.TIMER_CHECKPOINT_AHEAD.finding(path, 16, "lastTimerQueueOffset", f"at most {high}", offset)


def _read(config: str, read: Callable[[], Mapping[_K, _V]]) -> Mapping[_K, _V]:
    """Nothing where a file cannot be read, which is found already."""
    with without_unread(config, FormatError):
        return read()
    return {}


def _ranges(
    check: SideCheck, path: str, kinds: OffsetKinds, offsets: list[tuple[str, QueueName, int]]
) -> list[Finding]:
    found = [finding for one in offsets for finding in _range(check, path, kinds, *one)]
    if len(found) - _MAX_LISTED > 1:
        worst = [one for one in found if one.severity != "info"][:_MAX_LISTED] or found[:_MAX_LISTED]
        return [*worst, kinds.more.finding(path, got=len(found), offsets=plural(len(found), "offset"))]
    return found


def _range(
    check: SideCheck, path: str, kinds: OffsetKinds, name: str, queue: QueueName, offset: int
) -> Iterator[Finding]:
    field = f"{Text.of(name)} queue {queue[1]}" if kinds is catalogue.CONSUMER_OFFSET else name
    if check.unsure is None or queue[0] in check.unsure:
        return
    if queue not in check.queues:
        if offset > 0:
            yield kinds.without_queue.finding(path, None, field, 0, offset)
        return
    low, high = check.queues[queue]
    if offset > high or offset < 0:
        yield kinds.beyond_queue.finding(path, None, field, f"0..{high}", offset)
    elif offset < low:
        gone = plural(low - offset, "message is", "messages are")
        yield kinds.expired.finding(path, None, field, f"{low}..{high}", offset, messages=gone)
