"""What a broker makes of the texts of its broker.conf. It says nothing of one that it cannot read.

Source: RocketMQ 4.0.0 to 5.5.0 `MixAll.properties2Object`, which drops every exception, so that the default stays;
`MessageStoreConfig`, `BrokerConfig`; `BrokerStartup` for the port.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mqindex.report import Value
from mqindex.rocketmq import layout
from mqindex.rocketmq.brokers import TEXTS_TRIMMED

NUMBERS: Final = {  # and a broker's defaults
    "commitLogRecoverMaxNum": 10,
    "flushCommitLogLeastPages": 4,
    "flushCommitLogThoroughInterval": 10_000,
    "flushIntervalCommitLog": 500,
    "listenPort": 10911,
    "mapedFileSizeCommitLog": layout.COMMIT_LOG_FILE_SIZE,
    "mapedFileSizeConsumeQueue": layout.QUEUE_FILE_SIZE,
    "mappedFileSizeCommitLog": layout.COMMIT_LOG_FILE_SIZE,
    "mappedFileSizeConsumeQueue": layout.QUEUE_FILE_SIZE,
    "mappedFileSizeConsumeQueueExt": layout.EXT_FILE_SIZE,
    "mappedFileSizeTimerLog": 100 << 20,
    "mapperFileSizeBatchConsumeQueue": layout.BATCH_FILE_SIZE,
    "maxHashSlotNum": layout.HASH_SLOT_NUM,
    "maxIndexNum": layout.INDEX_NUM,
    "maxMessageSize": 4 << 20,
    "maxTransferBytesOnMessageInMemory": 256 << 10,
    "maxTransferCountOnMessageInMemory": 32,
}
FLUSH_DISK_TYPES: Final = {"ASYNC_FLUSH": "async", "SYNC_FLUSH": "sync"}  # the default first
_SWITCHES: Final = frozenset((
    "autoMessageVersionOnTopicLen", "checkCRCOnRecover", "duplicationEnable", "enableAcceleratedRecovery",
    "enableCompaction", "enableConsumeQueueExt", "enableControllerMode", "enabledAppendPropCRC",
    "enableDLegerCommitLog", "enableLmq", "enableMultiDispatch", "indexFileWriteEnable", "indexRocksDBEnable",
    "messageIndexEnable", "messageIndexSafe", "recheckReputOffsetFromCq", "rocksdbCQDoubleWriteEnable",
    "timerWheelEnable", "timerWheelSnapshotFlush", "transRocksDBEnable",
))  # fmt: skip
_TEXTS: Final = frozenset((
    "brokerIP1", "configManagerVersion", "flushDiskType", "messageDelayLevel", "readOnlyCommitLogStorePaths",
    "storePathCommitLog", "storeType",
))  # fmt: skip
SETTINGS: Final = frozenset(NUMBERS) | _SWITCHES | _TEXTS
"""Every name that is read anywhere; a broker has hundreds more."""

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
        if name in NUMBERS and not _is_int(said):
            del found[name]
            other.append((name, Value(NUMBERS[name], _DEFAULT.format(said=said, file=file))))
        elif name in _SWITCHES:
            found[name] = str(said.lower() == "true").lower()
            if said.lower() not in ("true", "false"):
                other.append((name, Value("false", f"as the broker takes {said!r:.60} of {file}")))
        elif name in _TEXTS:
            found[name] = _trimmed(name, said, trims)
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
