"""Consumer groups: how far they are behind the ends of their queues; and delayed messages that are still to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.errors import FileStateError, MQIndexError, reason
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.health import Text
from mqindex.rocketmq.directories.rocksdb import refuse_config_in_rocksdb
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets, read_delay_offsets
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.batch.batch_consume_queue import batch_queue_end
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC

_GROUPS = 200
_QUEUES = 64


@dataclass(frozen=True, slots=True)
class GroupQueue:
    """One queue that a group consumes. `lag`: messages after `offset`; None: the queue's end is not known."""

    queue_id: int
    offset: int
    end: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class GroupHealth:
    """One group and topic.

    Attributes
    ----------
    group, topic : Text
    lag : int, of all queues whose end is known; an offset beyond it counts 0, and outweighs no other queue's lag
    unknown : int, queues whose end is not known
    queues : tuple of GroupQueue, the 64 of most lag; queue_count : int, all of them
    """

    group: Text
    topic: Text
    lag: int
    unknown: int
    queues: tuple[GroupQueue, ...]
    queue_count: int


@dataclass(frozen=True, slots=True)
class DelayLevel:
    """One delay level of `SCHEDULE_TOPIC_XXXX`. `waiting`: messages not yet delivered; None: not known."""

    level: int
    offset: int
    end: int | None
    waiting: int | None


@dataclass(frozen=True, slots=True)
class GroupsHealth:
    """Consumers of a store, by the files in its `config` directory.

    Attributes
    ----------
    lag : int, of all groups
    groups : tuple of GroupHealth, the 200 of most lag; more : int, those that are not listed; more_lag : int, theirs
    delays : tuple of DelayLevel
    error : str or None, why nothing is known
    """

    lag: int = 0
    groups: tuple[GroupHealth, ...] = ()
    more: int = 0
    more_lag: int = 0
    delays: tuple[DelayLevel, ...] = ()
    error: str | None = None


def groups_of(engine: Engine, options: StoreOptions, ends: Mapping[QueueName, int]) -> GroupsHealth:
    """The groups of a store; `ends`: the offset after the last unit of each simple queue, where it is known."""
    offsets, delays, batch_ends, error = run_one(engine, _read, options, "read consumer offsets")
    ends = {**batch_ends, **ends}
    groups = [_group(name, queues, ends) for name, queues in offsets.items()]
    groups.sort(key=lambda one: (-one.lag, one.group.text, one.topic.text))
    return GroupsHealth(
        lag=sum(one.lag for one in groups),
        groups=tuple(groups[:_GROUPS]),
        more=max(len(groups) - _GROUPS, 0),
        more_lag=sum(one.lag for one in groups[_GROUPS:]),
        delays=tuple(_delay(level, offset, ends) for level, offset in sorted(delays.items())),
        error=error,
    )


_Read = tuple[dict[str, dict[int, int]], dict[int, int], dict[QueueName, int], str | None]


def _read(options: StoreOptions) -> _Read:
    """Offsets of groups and of delay levels, and the ends of those queues that are batch queues."""
    directory = join(options.root, "config")
    try:
        refuse_config_in_rocksdb(options)
    except FileStateError as error:  # of a URL too: it says what is there
        return {}, {}, {}, reason(error)
    try:
        offsets = dict(ConsumerOffsets._read(directory, lambda topic, queue_id: 0))
        delays = read_delay_offsets(directory)
    except (MQIndexError, OSError) as error:
        require_answer(error, directory)
        return {}, {}, {}, reason(error)
    queues = {(name.partition("@")[0], queue_id) for name, consumed in offsets.items() for queue_id in consumed}
    ends = {queue: batch_queue_end(options.batch_consume_queue, *queue) for queue in queues}
    return offsets, delays, {queue: end for queue, end in ends.items() if end is not None}, None


def _group(name: str, offsets: Mapping[int, int], ends: Mapping[QueueName, int]) -> GroupHealth:
    topic, _, group = name.partition("@")
    queues = [_queue(queue_id, offset, ends.get((topic, queue_id))) for queue_id, offset in offsets.items()]
    queues.sort(key=lambda one: (one.lag is None, -(one.lag or 0), one.queue_id))
    return GroupHealth(
        group=Text.of(group),
        topic=Text.of(topic),
        lag=sum(max(one.lag, 0) for one in queues if one.lag is not None),
        unknown=sum(one.lag is None for one in queues),
        queues=tuple(queues[:_QUEUES]),
        queue_count=len(queues),
    )


def _queue(queue_id: int, offset: int, end: int | None) -> GroupQueue:
    return GroupQueue(queue_id, offset, end, None if end is None else end - offset)


def _delay(level: int, offset: int, ends: Mapping[QueueName, int]) -> DelayLevel:
    end = ends.get((SCHEDULE_TOPIC, level - 1))
    return DelayLevel(level, offset, end, None if end is None else max(end - offset, 0))
