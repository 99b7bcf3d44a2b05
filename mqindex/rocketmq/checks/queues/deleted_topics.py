"""Topics that were deleted (`mqadmin deleteTopic`): their messages stay in the log until they expire, in no queue.

A queue may also be lost. A topic counts as deleted only where `config/topics.json` proves it: the file was changed
after the topic had messages, lists other topics of the log, and not this one. An older file, a `.bak`, or one that a
broker wrote after its own was lost, proves nothing. Nor is a topic ever listed that only the multi-dispatch of other
topics fills. Source: RocketMQ 4.9.3 and 5.5.0 `AdminBrokerProcessor.deleteTopic`, `TopicConfigManager`,
`DefaultMessageStore.cleanUnusedTopic`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqindex.errors import FormatError
from mqindex.rocketmq.checks.queues.unit_check import QueueRun
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.metadata.topic_configs import TopicTable, read_topic_table
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.topic_kinds import topic_kind
from mqindex.rocketmq.rocksdb import config_in_rocksdb


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
    if options.multi_dispatch or config_in_rocksdb(options) is not None:
        return frozenset()
    table = read_topic_table(os.path.join(options.root, "config"))
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
