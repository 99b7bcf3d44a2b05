"""RocketMQ stores: index files, commit logs, and how to verify, rebuild and repair them.

Reference version 4.9.3; the formats of 4.x and 5.x are the same but for the rules that `broker_version` decides.
"""

from __future__ import annotations

from mqindex.columns.keys import hash_slots, key_hash, key_hashes
from mqindex.rocketmq.dispatch.follow import FollowReport, follow
from mqindex.rocketmq.index.index_file import IndexFile, IndexHeader
from mqindex.rocketmq.index.index_service import IndexService, QueryOffsetResult
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.message import Message
from mqindex.rocketmq.log.message_encoder import AppendMessageResult, NewMessage
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets
from mqindex.rocketmq.metadata.topic_configs import TopicConfig
from mqindex.rocketmq.queue.batch_consume_queue import BatchConsumeQueue
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue, tag_hash
from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.rebuild import rebuild
from mqindex.rocketmq.repair import repair, undo_repair
from mqindex.rocketmq.serving.get_message import GetMessageResult, GetMessageStatus
from mqindex.rocketmq.serving.message_store import MessageStore
from mqindex.rocketmq.serving.query_message import QueryMessageResult
from mqindex.rocketmq.serving.store_writer import PutMessagesResult
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
    "undo_repair",
    "verify",
]
