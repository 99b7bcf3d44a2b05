"""Kafka's segment files: logs, and their offset, time and transaction indexes; verify, rebuild, repair.

Reference version 4.1.0; the formats are those of every version from 0.11 on.
"""

from __future__ import annotations

from mqindex.kafka.index.offset_index import OffsetIndex, OffsetPosition
from mqindex.kafka.index.time_index import TimeIndex, TimestampOffset
from mqindex.kafka.index.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult
from mqindex.kafka.log.log_segment import BatchFault, LogOffsetPosition, LogSegment
from mqindex.kafka.partition.partition_log import PartitionLog, PartitionOffsetPosition
from mqindex.kafka.rebuild import rebuild
from mqindex.kafka.repair import repair, undo_repair
from mqindex.kafka.verify import verify

__all__ = [
    "AbortedTxn",
    "BatchFault",
    "LogOffsetPosition",
    "LogSegment",
    "OffsetIndex",
    "OffsetPosition",
    "PartitionLog",
    "PartitionOffsetPosition",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
    "TxnIndexSearchResult",
    "rebuild",
    "repair",
    "undo_repair",
    "verify",
]
