"""Which of Kafka's files and directories a path is."""

from __future__ import annotations

import os
import re
import zlib
from typing import Final

from mqindex.files.regular import regular

__all__ = [
    "DUMPED",
    "FILES",
    "KINDS",
    "LOG_DIR",
    "OFFSET_INDEX",
    "OF_SEGMENT",
    "PARTITION",
    "SEGMENT",
    "SNAPSHOT",
    "TIME_INDEX",
    "TRANSACTION_INDEX",
    "kind_of_directory",
    "kind_of_file",
]

LOG_DIR: Final = "log-dir"
PARTITION: Final = "partition"
SEGMENT: Final = "segment"
OFFSET_INDEX: Final = "offset-index"
TIME_INDEX: Final = "time-index"
TRANSACTION_INDEX: Final = "transaction-index"
SNAPSHOT: Final = "producer-snapshot"

KINDS: Final = {
    LOG_DIR: "a Kafka log dir",
    PARTITION: "a Kafka partition's directory",
    SEGMENT: "a Kafka segment's log",
    OFFSET_INDEX: "a Kafka offset index",
    TIME_INDEX: "a Kafka time index",
    TRANSACTION_INDEX: "a Kafka transaction index",
    SNAPSHOT: "a snapshot of Kafka producers",
}
OF_SEGMENT: Final = (SEGMENT, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)
DUMPED: Final = (PARTITION, *OF_SEGMENT, SNAPSHOT)
FILES: Final = {*OF_SEGMENT, SNAPSHOT}

_EXTENSIONS = {
    "log": SEGMENT,
    "index": OFFSET_INDEX,
    "timeindex": TIME_INDEX,
    "txnindex": TRANSACTION_INDEX,
    "snapshot": SNAPSHOT,
}
_NAME = re.compile(r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)(\.(deleted|cleaned|swap))?")
_OF_LOG_DIR = (
    ".kafka_cleanshutdown",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
_LEAST = {0: 26, 1: 34, 2: 61}  # bytes of a batch, by its magic
_LONGEST = 64 << 20  # the broker's default limit is 1 MiB


def kind_of_directory(path: str) -> str | None:
    """The kind of a directory, by what is in it; None: none of ours."""
    from mqindex.kafka.partition.partition_files import is_partition, list_partitions

    if is_partition(path):
        return PARTITION
    if any(os.path.isfile(os.path.join(path, name)) for name in _OF_LOG_DIR):
        return LOG_DIR
    return LOG_DIR if any(is_partition(named.path) for named in list_partitions(path)) else None


def kind_of_file(path: str) -> str | None:
    """The kind of a file: by a segment's name, or by a whole batch at its beginning; None: none of ours."""
    name = os.path.basename(path)
    if _NAME.fullmatch(name):
        with open(path, "rb", opener=regular):  # or the error that says why not
            return _EXTENSIONS[name.split(".")[1]]
    return SEGMENT if _begins_with_a_batch(path) else None


def _begins_with_a_batch(path: str) -> bool:
    with open(path, "rb", opener=regular) as file:
        head = file.read(17)
        least = _LEAST.get(head[16]) if len(head) == 17 else None
        if least is None:
            return False
        length = int.from_bytes(head[8:12], "big", signed=True) + 12
        if not least <= length <= min(os.fstat(file.fileno()).st_size, _LONGEST):
            return False
        batch = head + file.read(length - len(head))
    # A file of units of a RocketMQ queue looks like messages of magic 0, were it not for the checksum.
    return head[16] == 2 or zlib.crc32(batch[16:]) == int.from_bytes(batch[12:16], "big")
