"""The settings of a broker, one row each, and what it makes of their texts in its broker.conf.

It says nothing of a text that it cannot read.

Source: RocketMQ 4.0.0 to 5.5.0 `MixAll.properties2Object`, which drops every exception, so that the default stays;
`MessageStoreConfig`, `BrokerConfig`; `BrokerStartup` for the port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mqindex.report import Value
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import TEXTS_TRIMMED


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a broker.

    Attributes
    ----------
    name : str, the broker's
    default : int, bool or str, the broker's; its type is the setting's. Sizes are bytes, intervals ms
    decides : str, what follows from it
    field : str or None, the field of `StoreOptions` that has its value; None: asked for by its name
    least : int, of a number in a field
    """

    name: str
    default: int | bool | str
    decides: str
    field: str | None = None
    least: int = 1


MESSAGE_DELAY_LEVEL: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_ROWS: Final = (
    Setting("maxHashSlotNum", layout.HASH_SLOT_NUM, "the slots of an index file", "hash_slot_num"),
    Setting("maxIndexNum", layout.INDEX_NUM, "the entries of an index file", "index_num"),
    Setting("mappedFileSizeCommitLog", layout.COMMIT_LOG_FILE_SIZE, "the length of log files", "mapped_file_size"),
    Setting("mappedFileSizeConsumeQueue", layout.QUEUE_FILE_SIZE, "the length of the queues' files",
            "consume_queue_file_size"),
    Setting("mappedFileSizeConsumeQueueExt", layout.EXT_FILE_SIZE, "the length of the queues' extension files",
            "consume_queue_ext_file_size", layout.SMALLEST_EXT_FILE_SIZE),
    Setting("mapperFileSizeBatchConsumeQueue", layout.BATCH_FILE_SIZE, "the length of the batch queues' files",
            "batch_queue_file_size"),  # so brokers spell it
    Setting("mappedFileSizeTimerLog", 100 << 20, "the length of the timer's log files", "timer_log_file_size"),
    Setting("enableConsumeQueueExt", False, "whether queues have extension files", "consume_queue_ext"),
    Setting("enableDLegerCommitLog", False, "whether DLedger keeps the log", "dledger"),
    Setting("enableMultiDispatch", False, "whether a message is in several queues", "multi_dispatch"),
    Setting("enableLmq", False, "whether there are light message queues", "lmq"),
    Setting("messageDelayLevel", MESSAGE_DELAY_LEVEL, "the delays of delay levels", "delay_levels"),
    Setting("mapedFileSizeCommitLog", layout.COMMIT_LOG_FILE_SIZE, "the same as mappedFileSizeCommitLog, once"),
    Setting("mapedFileSizeConsumeQueue", layout.QUEUE_FILE_SIZE, "the same as mappedFileSizeConsumeQueue, once"),
    Setting("autoMessageVersionOnTopicLen", True, "whether a topic may have more than 127 bytes"),
    Setting("brokerIP1", "127.0.0.1", "the store host of new messages"),
    Setting("checkCRCOnRecover", True, "whether a start looks at bodies"),
    Setting("commitLogRecoverMaxNum", 10, "how many log files a start reads"),
    Setting("configManagerVersion", "v1", "whether tables are in RocksDB"),
    Setting("duplicationEnable", False, "whether dispatch waits for a confirmed offset"),
    Setting("enableAcceleratedRecovery", False, "where a recovery begins"),
    Setting("enableCompaction", True, "whether topics are compacted"),
    Setting("enableControllerMode", False, "whether a controller confirms offsets"),
    Setting("enabledAppendPropCRC", False, "whether new messages have a checksum of all of it"),
    Setting("flushCommitLogLeastPages", 4, "when the log is flushed"),
    Setting("flushCommitLogThoroughInterval", 10_000, "when the log is flushed"),
    Setting("flushDiskType", "ASYNC_FLUSH", "whether an append waits for the disk"),
    Setting("flushIntervalCommitLog", 500, "when the log is flushed"),
    Setting("indexFileWriteEnable", True, "whether there are index files, from 5.4 on"),
    Setting("indexRocksDBEnable", False, "whether there is an index in RocksDB too"),
    Setting("listenPort", 10911, "the store host of new messages"),
    Setting("maxMessageSize", 4 << 20, "which messages are refused"),
    Setting("maxTransferBytesOnMessageInMemory", 256 << 10, "how much one request is given"),
    Setting("maxTransferCountOnMessageInMemory", 32, "how much one request is given"),
    Setting("messageIndexEnable", True, "whether there are index files"),
    Setting("messageIndexSafe", False, "where a recovery begins"),
    Setting("readOnlyCommitLogStorePaths", "", "where the log is too"),
    Setting("recheckReputOffsetFromCq", False, "where dispatch begins"),
    Setting("rocksdbCQDoubleWriteEnable", False, "whether queues are in RocksDB too"),
    Setting("storePathCommitLog", "", "where the log is"),
    Setting("storeType", "default", "whether queues are in RocksDB"),
    Setting("timerWheelEnable", True, "whether the timer's files are loaded"),
    Setting("timerWheelSnapshotFlush", False, "which timer wheel is loaded"),
    Setting("transRocksDBEnable", False, "whether transactions are in RocksDB"),
)  # fmt: skip
SETTINGS: Final = {row.name: row for row in _ROWS}
"""Every setting that is read anywhere; a broker has hundreds more."""
FIELDS: Final = {row.field: row for row in _ROWS if row.field is not None}
"""Those that have a field of `StoreOptions`."""


def default_number(name: str) -> int:
    """A broker's default of a number."""
    return int(SETTINGS[name].default)


FLUSH_DISK_TYPES: Final = {"ASYNC_FLUSH": "async", "SYNC_FLUSH": "sync"}  # the default first

_MAX_INT = 2**31 - 1
_NUMBER = re.compile(r"[+-]?0*\d{1,10}")  # in the digits of every script, as `Character.digit` has it
_TRIMMED = "".join(map(chr, range(0x21)))  # what `String.trim` removes
_DEFAULT = "the broker's default, as it ignores {said!r:.60} of {file}"


def as_taken(
    values: Mapping[str, str], file: str, *, trims: bool | None
) -> tuple[dict[str, str], list[tuple[str, Value]]]:
    """The settings that a broker has of a broker.conf, and those among them that are not what is written there.

    What is ignored is left out. `trims`: of brokers.TEXTS_TRIMMED; None: it is not known.

    >>> as_taken({"maxIndexNum": "4M", "maxHashSlotNum": "+7"}, "broker.conf", trims=None)[0]
    {'maxHashSlotNum': '+7'}
    """
    found, other = dict(values), list[tuple[str, Value]]()
    for name, said in values.items():
        default = SETTINGS[name].default if name in SETTINGS else None
        if isinstance(default, bool):
            found[name] = str(said.lower() == "true").lower()
            if said.lower() not in ("true", "false"):
                other.append((name, Value("false", f"as the broker takes {said!r:.60} of {file}")))
        elif isinstance(default, str):
            found[name] = _trimmed(name, said, trims)
        elif default is not None and not _is_int(said):
            del found[name]
            other.append((name, Value(default, _DEFAULT.format(said=said, file=file))))
    kind = found.get("flushDiskType")
    if kind is not None and kind not in FLUSH_DISK_TYPES:
        del found["flushDiskType"]
        other.append(("flushDiskType", Value(next(iter(FLUSH_DISK_TYPES)), _DEFAULT.format(said=kind, file=file))))
    return found, other


def _is_int(said: str) -> bool:
    return _NUMBER.fullmatch(said) is not None and -_MAX_INT - 1 <= int(said) <= _MAX_INT


def _trimmed(name: str, said: str, trims: bool | None) -> str:
    plain = said.strip(_TRIMMED)
    if trims is None and said != plain:
        raise ValueError(
            f"{name}: a broker before {TEXTS_TRIMMED.since} keeps the blank before or after {said!r:.60}, later ones "
            "remove it; broker_version= (--broker-version) says which it is"
        )
    return plain if trims else said
