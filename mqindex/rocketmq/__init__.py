"""RocketMQ stores: index files, consume queues, commit logs, and how to verify, rebuild and repair them.

Reference version 4.9.3; the formats of 4.x and 5.x are the same but for the rules that `broker_version` decides.

The examples are of a store that a broker left without its first index file. `rebuild` writes index and consume queues
elsewhere, `repair` in place; `verify` says what is wrong with a store, and what the broker's next start would do.

>>> from mqindex import rocketmq
>>> report = rocketmq.verify("store")
>>> report.ok, [finding.kind for finding in report.findings]
(False, ['missing-entries'])
>>> rocketmq.rebuild("store", "anew").entries
1466
>>> rocketmq.repair("store").entries, rocketmq.verify("store", deep=True).ok
(1258, True)

An index directory is queried in bulk, newest file first, as the broker does. It holds only hashes of keys: a hit may be
the message of another key, so compare the message's own keys.

>>> with rocketmq.IndexService.open("anew/index") as service:
...     hits = service.query_offsets("LostTopic", ["ORD59361344", "no-such-key"])
>>> hits.to_pylist()
[[666], []]
>>> with rocketmq.CommitLog.open("store/commitlog") as log:
...     message = log.get_message(666)
...     batches = [batch["phy_offset"] for batch in log.scan(columns=["phy_offset"])]
>>> message.topic, message.keys, message.store_timestamp, sum(map(len, batches))
('LostTopic', 'ORD59361344', 1680170238552, 610)

One index file, without any store:

>>> with rocketmq.IndexFile.create("orders.index", hash_slot_num=1000, index_num=4000) as index:
...     stored = index.put_keys(["o-1", "o-2"], [0, 512], [1_700_000_000_000, 1_700_000_000_250], topic="Orders")
...     print(stored, index.select_phy_offsets(["o-2", "o-3"], topic="Orders").to_pylist())
2 [[512], []]

A whole store, read as its consumers and the broker's tools read it. A tag filter compares hashes first and then the
strings; `exact=True` leaves out messages that only share a key's hash, which the broker never does. The bulk calls give
columns.

>>> store = rocketmq.MessageStore.open("store")
>>> result = store.get_message("LostTopic", 0, 0, max_msg_nums=32, tags="TagA || pay-success")
>>> result.status.name, result.next_begin_offset, [message.queue_offset for message in result.messages]
('FOUND', 50, [12, 13, 14, 18, 20, 22, 26, 30, 34, 43, 44, 45])
>>> bulk = store.get_messages("LostTopic", 0, 0, max_msg_nums=1_000_000, tags="TagA", columns=["tags", "phy_offset"])
>>> len(bulk.messages["phy_offset"]), set(bulk.messages["tags"].to_pylist())
(12, {'TagA'})
>>> [message.phy_offset for message in store.query_message("LostTopic", "user-3", exact=True, max_num=2).messages]
[124833, 125657]
>>> queue = store.consume_queue("LostTopic", 0)
>>> queue.max_offset_in_queue, queue.units(0, 2)["phy_offset"].tolist(), queue.select(["TagA"], 0, 30).tolist()
(160, [666, 1296], [12, 20, 26])
>>> queue.get_offset_in_queue_by_time(1_680_170_240_000, store.commit_log, boundary="lower")  # 4.x: None
2
>>> store.close()

And written: a broker that is started on the directory goes on from there. A store whose lock another process holds is
refused. With `flushDiskType=SYNC_FLUSH` a put returns once the message is on the disk; threads share one sync.

>>> import os
>>> os.mkdir("mine")
>>> config = {"maxHashSlotNum": 1000, "maxIndexNum": 4000, "mappedFileSizeCommitLog": 1 << 20}
>>> with rocketmq.MessageStore.open("mine", writable=True, config=config) as mine:
...     one = mine.put_message(rocketmq.NewMessage("Orders", b"first", keys="o-1", tags="new"))
...     many = mine.put_messages({"topic": "Orders", "body": [b"second", b"third"], "keys": ["o-2", "o-3"]})
...     print(one.status, many.queue_offsets.tolist(), mine.query_message("Orders", "o-3").messages[0].body)
PUT_OK [1, 2] b'third'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex._room import open_room

if TYPE_CHECKING:
    from mqindex._native.keys import key_hash
    from mqindex.columns.keys import hash_slots, key_hashes
    from mqindex.rocketmq.dispatch.follow import FollowReport, follow
    from mqindex.rocketmq.health.store_health import StoreHealth
    from mqindex.rocketmq.index.index_file import IndexFile
    from mqindex.rocketmq.index.index_service import IndexService, QueryOffsetResult
    from mqindex.rocketmq.layout import IndexHeader
    from mqindex.rocketmq.log.commit_log import CommitLog
    from mqindex.rocketmq.log.writing.message_encoder import AppendMessageResult, NewMessage
    from mqindex.rocketmq.messages.message import Message
    from mqindex.rocketmq.metadata.checkpoint import Checkpoint
    from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets
    from mqindex.rocketmq.metadata.topic_configs import TopicConfig
    from mqindex.rocketmq.optimize import optimize
    from mqindex.rocketmq.queue.batch.batch_consume_queue import BatchConsumeQueue
    from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
    from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
    from mqindex.rocketmq.queue.queue_units import tag_hash
    from mqindex.rocketmq.rebuild import rebuild
    from mqindex.rocketmq.repair import repair, undo_repair
    from mqindex.rocketmq.report import report
    from mqindex.rocketmq.scanning.scan import Scan, scan
    from mqindex.rocketmq.serving.get_message import GetMessageResult, GetMessageStatus
    from mqindex.rocketmq.serving.message_store import MessageStore
    from mqindex.rocketmq.serving.offsets_for_time import offsets_for_time
    from mqindex.rocketmq.serving.query_message import QueryMessageResult
    from mqindex.rocketmq.serving.store_writer import PutMessagesResult
    from mqindex.rocketmq.verify import verify

_HOME = {
    "AppendMessageResult": "mqindex.rocketmq.log.writing.message_encoder",
    "BatchConsumeQueue": "mqindex.rocketmq.queue.batch.batch_consume_queue",
    "Checkpoint": "mqindex.rocketmq.metadata.checkpoint",
    "CommitLog": "mqindex.rocketmq.log.commit_log",
    "ConsumeQueue": "mqindex.rocketmq.queue.consume_queue",
    "ConsumeQueueExt": "mqindex.rocketmq.queue.consume_queue_ext",
    "ConsumeQueueTable": "mqindex.rocketmq.queue.consume_queue_table",
    "ConsumerOffsets": "mqindex.rocketmq.metadata.consumer_offsets",
    "FollowReport": "mqindex.rocketmq.dispatch.follow",
    "GetMessageResult": "mqindex.rocketmq.serving.get_message",
    "GetMessageStatus": "mqindex.rocketmq.serving.get_message",
    "IndexFile": "mqindex.rocketmq.index.index_file",
    "IndexHeader": "mqindex.rocketmq.layout",
    "IndexService": "mqindex.rocketmq.index.index_service",
    "Message": "mqindex.rocketmq.messages.message",
    "MessageStore": "mqindex.rocketmq.serving.message_store",
    "NewMessage": "mqindex.rocketmq.log.writing.message_encoder",
    "PutMessagesResult": "mqindex.rocketmq.serving.store_writer",
    "QueryMessageResult": "mqindex.rocketmq.serving.query_message",
    "QueryOffsetResult": "mqindex.rocketmq.index.index_service",
    "Scan": "mqindex.rocketmq.scanning.scan",
    "StoreHealth": "mqindex.rocketmq.health.store_health",
    "TopicConfig": "mqindex.rocketmq.metadata.topic_configs",
    "follow": "mqindex.rocketmq.dispatch.follow",
    "hash_slots": "mqindex.columns.keys",
    "key_hash": "mqindex._native.keys",
    "key_hashes": "mqindex.columns.keys",
    "offsets_for_time": "mqindex.rocketmq.serving.offsets_for_time",
    "optimize": "mqindex.rocketmq.optimize",
    "rebuild": "mqindex.rocketmq.rebuild",
    "repair": "mqindex.rocketmq.repair",
    "report": "mqindex.rocketmq.report",
    "scan": "mqindex.rocketmq.scanning.scan",
    "tag_hash": "mqindex.rocketmq.queue.queue_units",
    "undo_repair": "mqindex.rocketmq.repair",
    "verify": "mqindex.rocketmq.verify",
}

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
    "Scan",
    "StoreHealth",
    "TopicConfig",
    "follow",
    "hash_slots",
    "key_hash",
    "key_hashes",
    "offsets_for_time",
    "optimize",
    "rebuild",
    "repair",
    "report",
    "scan",
    "tag_hash",
    "undo_repair",
    "verify",
]

open_room(__name__, _HOME)
