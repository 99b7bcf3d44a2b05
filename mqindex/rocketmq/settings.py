"""The settings of a broker that are read here: each is one row, and everything that depends on it asks the row.

A broker has hundreds more. Source: RocketMQ 4.0.0 to 5.5.1 `MessageStoreConfig`, `BrokerConfig`, `NettyServerConfig`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from mqindex._settings import Setting
from mqindex.columns.limits import no_whole_number, whole_number_from
from mqindex.rocketmq import layout

FLUSH_DISK_TYPES: Final = {"ASYNC_FLUSH": "async", "SYNC_FLUSH": "sync"}
_DELAY = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def whole(name: str, value: Any, least: int = -(2**31)) -> int:
    """A number that a broker's int can be, also as text.

    >>> whole("maxIndexNum", "9" * 12, 1)
    Traceback (most recent call last):
    ValueError: maxIndexNum: expected a whole number from 1 to 2147483647, got '999999999999'
    """
    try:
        return whole_number_from(least, name, int(value) if isinstance(value, str) and "_" not in value else value)
    except (TypeError, ValueError):
        raise ValueError(no_whole_number(least, name, value)) from None


def switch(name: str, value: Any) -> bool:
    """True or False, also as text."""
    said = str(value).strip().lower()
    if said not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {value!r:.60}")
    return said == "true"


def text(name: str, value: Any) -> str:
    """Anything, as text."""
    return str(value)


def flush_disk_type(name: str, value: Any) -> str:
    """One of two words."""
    if value not in FLUSH_DISK_TYPES:
        raise ValueError(f"{name}: expected SYNC_FLUSH or ASYNC_FLUSH, got {value!r:.60}")
    return str(value)


def delay_levels(name: str, value: Any) -> tuple[int, ...]:
    """Delays in ms, level 1 first. Source: RocketMQ 4.9.3 `ScheduleMessageService.parseDelayLevel`.

    >>> delay_levels("messageDelayLevel", "1s 2m 1h")
    (1000, 120000, 3600000)
    """
    levels = [re.match(r"^(\d{1,15})([smhd])$", level) for level in str(value).split(" ")]
    if None in levels:
        raise ValueError(f"{name}: expected delays like '1s 5m 2h', got {value!r:.60}")
    return tuple(int(level[1]) * _DELAY[level[2]] for level in levels if level is not None)


MAX_HASH_SLOT_NUM: Final = Setting(
    "maxHashSlotNum", whole, layout.HASH_SLOT_NUM, "slots", "the geometry of the index files", 1,
    argument="hash_slot_num", shown="as the index files show it",
)  # fmt: skip
MAX_INDEX_NUM: Final = Setting(
    "maxIndexNum", whole, layout.INDEX_NUM, "entries", "the geometry of the index files", 1,
    argument="index_num", shown="as the index files show it",
)  # fmt: skip
LOG_FILE_SIZE: Final = Setting(
    "mappedFileSizeCommitLog", whole, layout.COMMIT_LOG_FILE_SIZE, "bytes", "the length of the log's files", 1,
    former="mapedFileSizeCommitLog",
)  # fmt: skip
QUEUE_FILE_SIZE: Final = Setting(
    "mappedFileSizeConsumeQueue", whole, layout.QUEUE_FILE_SIZE, "bytes", "the length of the queues' files", 1,
    layout.QUEUE_UNIT_SIZE, reported="consume_queue_file_size", former="mapedFileSizeConsumeQueue",
)  # fmt: skip
EXT_FILE_SIZE: Final = Setting(
    "mappedFileSizeConsumeQueueExt", whole, layout.EXT_FILE_SIZE, "bytes",
    "the length of the queues' extension files", layout.SMALLEST_EXT_FILE_SIZE, reported="consume_queue_ext_file_size",
)  # fmt: skip
BATCH_FILE_SIZE: Final = Setting(  # so brokers spell it
    "mapperFileSizeBatchConsumeQueue", whole, layout.BATCH_FILE_SIZE, "bytes", "the length of the batch queues' files",
    1, reported="batch_queue_file_size",
)  # fmt: skip
TIMER_LOG_FILE_SIZE: Final = Setting(
    "mappedFileSizeTimerLog", whole, 100 << 20, "bytes", "the length of the timer log's files", 1
)
CONSUME_QUEUE_EXT: Final = Setting("enableConsumeQueueExt", switch, False, "", "whether queues have extension files")
DLEDGER: Final = Setting("enableDLegerCommitLog", switch, False, "", "whether DLedger keeps the log")
MESSAGE_DELAY_LEVEL: Final = Setting(
    "messageDelayLevel", delay_levels, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h", "",
    "the units of delayed messages", reported="message_delay_level",
)  # fmt: skip
MULTI_DISPATCH: Final = Setting("enableMultiDispatch", switch, False, "", "whether messages have units in more queues")
LMQ: Final = Setting("enableLmq", switch, False, "", "whether queues of %LMQ% are numbered 0")
MESSAGE_INDEX: Final = Setting("messageIndexEnable", switch, True, "", "whether there are index files")
INDEX_FILE_WRITE: Final = Setting(
    "indexFileWriteEnable", switch, True, "", "whether there are index files, from 5.4 on"
)
INDEX_SAFE: Final = Setting("messageIndexSafe", switch, False, "", "whether a start reads what the index may lack")
STORE_TYPE: Final = Setting("storeType", text, "default", "", "whether the queues are in RocksDB")
CONFIG_MANAGER: Final = Setting("configManagerVersion", text, "v1", "", "where topics and groups are in RocksDB")
LOG_DIRECTORY: Final = Setting(
    "storePathCommitLog", text, "", "", "the directories of the log", argument="commitlog", shown="STORE/commitlog"
)
LOG_FOR_READING: Final = Setting("readOnlyCommitLogStorePaths", text, "", "", "where the log gets no new files")

MAX_MESSAGE_SIZE: Final = Setting("maxMessageSize", whole, 4 << 20, "bytes", "which messages are refused", 0)
PROPERTIES_CRC: Final = Setting("enabledAppendPropCRC", switch, False, "", "whether frames have a second checksum")
LONG_TOPIC_FRAMES: Final = Setting("autoMessageVersionOnTopicLen", switch, True, "", "whether topics may be long")
BROKER_ADDRESS: Final = Setting("brokerIP1", text, "127.0.0.1", "", "the store host of new messages")
BROKER_NAME: Final = Setting("brokerName", text, "", "", "the name in a report")
BROKER_PORT: Final = Setting("listenPort", whole, 10911, "", "the store host of new messages", 0)
FLUSH_DISK_TYPE: Final = Setting("flushDiskType", flush_disk_type, "ASYNC_FLUSH", "", "when new messages are durable")
FLUSH_INTERVAL: Final = Setting("flushIntervalCommitLog", whole, 500, "ms", "when new messages are durable", 0)
FLUSH_LEAST_PAGES: Final = Setting("flushCommitLogLeastPages", whole, 4, "pages", "when new messages are durable", 0)
FLUSH_THOROUGH_INTERVAL: Final = Setting(
    "flushCommitLogThoroughInterval", whole, 10_000, "ms", "when new messages are durable", 0
)
MAX_TRANSFER_COUNT: Final = Setting(
    "maxTransferCountOnMessageInMemory", whole, 32, "messages", "how much one answer of a queue holds", 0
)
MAX_TRANSFER_BYTES: Final = Setting(
    "maxTransferBytesOnMessageInMemory", whole, 256 << 10, "bytes", "how much one answer of a queue holds", 0
)

CHECK_CRC: Final = Setting("checkCRCOnRecover", switch, True, "", "whether a start compares checksums")
RECOVERED_MOST: Final = Setting("commitLogRecoverMaxNum", whole, 10, "files", "how much of the log a start reads")
ACCELERATED_RECOVERY: Final = Setting("enableAcceleratedRecovery", switch, False, "", "where a start begins to read")
CONTROLLER_MODE: Final = Setting("enableControllerMode", switch, False, "", "where a start begins to read")
DUPLICATION: Final = Setting("duplicationEnable", switch, False, "", "whether the log has to be confirmed")
RECHECK_REPUT: Final = Setting("recheckReputOffsetFromCq", switch, False, "", "whether a start waits for dispatch")
INDEX_ROCKSDB: Final = Setting("indexRocksDBEnable", switch, False, "", "whether RocksDB holds an index too")
QUEUES_TWICE: Final = Setting("rocksdbCQDoubleWriteEnable", switch, False, "", "whether RocksDB holds queues too")
TRANSACTIONS_ROCKSDB: Final = Setting("transRocksDBEnable", switch, False, "", "whether RocksDB holds transactions")
COMPACTION: Final = Setting("enableCompaction", switch, True, "", "whether a start loads compacted topics")
TIMER_WHEEL: Final = Setting("timerWheelEnable", switch, True, "", "whether a start loads the timer's files")
TIMER_SNAPSHOTS: Final = Setting("timerWheelSnapshotFlush", switch, False, "", "which timer wheel a start loads")

SETTINGS: Final[dict[str, Setting[Any]]] = {
    one.name: one for one in list(globals().values()) if isinstance(one, Setting)
}
"""All of them, by name."""
