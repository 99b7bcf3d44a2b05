"""Kafka's segment files: logs, and their offset, time and transaction indexes; verify, rebuild, repair.

Reference version 4.4.0; the formats are those of every version from 0.11 on. `rebuild` writes the files that the
broker's own recovery writes. The topic's `index.interval.bytes` is in no file of a partition: where it is not given,
the cluster's metadata log in the same log dir says how it is set, or intact indexes show about what it is.

The examples are of a partition without its time indexes. The broker makes empty ones, says nothing, and then finds no
record by time; after `repair` it finds them again.

>>> from mqindex import kafka
>>> report = kafka.verify("orders-0", index_interval_bytes=1000)
>>> report.ok, [finding.kind for finding in report.findings]
(False, ['time-index-missing', 'time-index-missing', 'time-index-missing'])
>>> report = kafka.repair("orders-0", index_interval_bytes=1000)
>>> report.ok, report.files, report.segments, report.batches
(True, 3, 3, 160)
>>> with kafka.PartitionLog.open("orders-0") as log:
...     log.offset_for_timestamp(1_700_000_015_000), log.offset_for_timestamp(-3)
...     timestamps, offsets = log.offsets_for_timestamps([1_700_000_015_000, 1_700_000_000_000, 9_999_999_999_999])
...     records = log.read(628, columns=["offset", "timestamp", "value"])
(TimestampOffset(timestamp=1700000015023, offset=628), TimestampOffset(timestamp=1700000024901, offset=1047))
>>> offsets.tolist(), records["offset"][:3].tolist(), records["value"][0][:15]
([628, 0, -1], [628, 629, 630], b'leader8 replica')
>>> with kafka.TimeIndex.open("orders-0/00000000000000000483.timeindex") as index:
...     len(index), index.last_entry, [column.tolist() for column in index.lookup_many([0, 1_700_000_015_000])]
(45, TimestampOffset(timestamp=1700000023173, offset=970), [[-1, 1700000014884], [483, 620]])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex._room import open_room

if TYPE_CHECKING:
    from mqindex.kafka.health.log_dir_health import LogDirHealth
    from mqindex.kafka.index.offset_index import OffsetIndex, OffsetPosition
    from mqindex.kafka.index.time_index import TimeIndex, TimestampOffset
    from mqindex.kafka.index.transaction_index import AbortedTxn, TransactionIndex, TxnIndexSearchResult
    from mqindex.kafka.internal.commits import decode_commits
    from mqindex.kafka.internal.markers import decode_markers
    from mqindex.kafka.internal.metadata import decode_metadata
    from mqindex.kafka.internal.transaction_states import decode_transactions
    from mqindex.kafka.log.damage import BatchFault
    from mqindex.kafka.log.log_segment import LogSegment
    from mqindex.kafka.log.segment_search import LogOffsetPosition
    from mqindex.kafka.partition.offsets_for_time import offsets_for_time
    from mqindex.kafka.partition.partition_log import PartitionLog, PartitionOffsetPosition
    from mqindex.kafka.rebuild import rebuild
    from mqindex.kafka.repair import repair, undo_repair
    from mqindex.kafka.report import report
    from mqindex.kafka.scanning.scan import Scan, ScanDamage, scan
    from mqindex.kafka.verify import verify

_HOME = {
    "AbortedTxn": "mqindex.kafka.index.transaction_index",
    "BatchFault": "mqindex.kafka.log.damage",
    "LogDirHealth": "mqindex.kafka.health.log_dir_health",
    "LogOffsetPosition": "mqindex.kafka.log.segment_search",
    "LogSegment": "mqindex.kafka.log.log_segment",
    "OffsetIndex": "mqindex.kafka.index.offset_index",
    "OffsetPosition": "mqindex.kafka.index.offset_index",
    "PartitionLog": "mqindex.kafka.partition.partition_log",
    "PartitionOffsetPosition": "mqindex.kafka.partition.partition_log",
    "Scan": "mqindex.kafka.scanning.scan",
    "ScanDamage": "mqindex.kafka.scanning.scan",
    "TimeIndex": "mqindex.kafka.index.time_index",
    "TimestampOffset": "mqindex.kafka.index.time_index",
    "TransactionIndex": "mqindex.kafka.index.transaction_index",
    "TxnIndexSearchResult": "mqindex.kafka.index.transaction_index",
    "decode_commits": "mqindex.kafka.internal.commits",
    "decode_markers": "mqindex.kafka.internal.markers",
    "decode_metadata": "mqindex.kafka.internal.metadata",
    "decode_transactions": "mqindex.kafka.internal.transaction_states",
    "offsets_for_time": "mqindex.kafka.partition.offsets_for_time",
    "rebuild": "mqindex.kafka.rebuild",
    "repair": "mqindex.kafka.repair",
    "report": "mqindex.kafka.report",
    "scan": "mqindex.kafka.scanning.scan",
    "undo_repair": "mqindex.kafka.repair",
    "verify": "mqindex.kafka.verify",
}

__all__ = [
    "AbortedTxn",
    "BatchFault",
    "LogDirHealth",
    "LogOffsetPosition",
    "LogSegment",
    "OffsetIndex",
    "OffsetPosition",
    "PartitionLog",
    "PartitionOffsetPosition",
    "Scan",
    "ScanDamage",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
    "TxnIndexSearchResult",
    "decode_commits",
    "decode_markers",
    "decode_metadata",
    "decode_transactions",
    "offsets_for_time",
    "rebuild",
    "repair",
    "report",
    "scan",
    "undo_repair",
    "verify",
]

open_room(__name__, _HOME)
