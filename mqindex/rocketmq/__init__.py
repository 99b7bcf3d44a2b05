"""RocketMQ stores: index files, commit logs, and how to verify, rebuild and repair them.

Reference version 4.9.3; the formats of 4.x and 5.x are the same but for the rules that `broker_version` decides.
"""

from __future__ import annotations

from mqindex._keys import hash_slots, key_hash, key_hashes
from mqindex.rocketmq.batch_consume_queue import BatchConsumeQueue
from mqindex.rocketmq.checkpoint import Checkpoint
from mqindex.rocketmq.commit_log import CommitLog
from mqindex.rocketmq.consume_queue import ConsumeQueue, tag_hash
from mqindex.rocketmq.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.consumer_offsets import ConsumerOffsets
from mqindex.rocketmq.follow import FollowReport, follow
from mqindex.rocketmq.get_message import GetMessageResult, GetMessageStatus
from mqindex.rocketmq.index_file import IndexFile, IndexHeader
from mqindex.rocketmq.index_service import IndexService, QueryOffsetResult
from mqindex.rocketmq.message import Message
from mqindex.rocketmq.message_encoder import AppendMessageResult, NewMessage
from mqindex.rocketmq.message_store import MessageStore
from mqindex.rocketmq.query_message import QueryMessageResult
from mqindex.rocketmq.rebuild import rebuild
from mqindex.rocketmq.repair import repair
from mqindex.rocketmq.store_writer import PutMessagesResult
from mqindex.rocketmq.topic_configs import TopicConfig
from mqindex.rocketmq.verify import verify

__all__ = [
    "AppendMessageResult",
    "BatchConsumeQueue",
    "Checkpoint",
    "CommitLog",
    "ConsumeQueue",
    "ConsumeQueueExt",
    "ConsumeQueueTable",
    "ConsumerOffsets",
    "FollowReport",
    "GetMessageResult",
    "GetMessageStatus",
    "IndexFile",
    "IndexHeader",
    "IndexService",
    "Message",
    "MessageStore",
    "NewMessage",
    "PutMessagesResult",
    "QueryMessageResult",
    "QueryOffsetResult",
    "TopicConfig",
    "follow",
    "hash_slots",
    "key_hash",
    "key_hashes",
    "rebuild",
    "repair",
    "tag_hash",
    "verify",
]
