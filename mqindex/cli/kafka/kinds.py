"""Which of Kafka's files and directories a path is."""

from __future__ import annotations

import os
import re
from typing import Final

from mqindex.files.reading.regular import reading

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
OF_LOG_DIR: Final = {
    ".kafka_cleanshutdown",
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
}


def kind_of_directory(path: str) -> str | None:
    """The kind of a directory, by what is in it; None: none of ours."""
    from mqindex.kafka.partition.log_dir import is_partition, list_partitions

    if is_partition(path):
        return PARTITION
    if any(os.path.isfile(os.path.join(path, name)) for name in OF_LOG_DIR):
        return LOG_DIR
    return LOG_DIR if any(is_partition(named.path) for named in list_partitions(path)) else None


def kind_of_name(path: str) -> str | None:
    """The kind of a file that has the name of a segment's; None: its name does not show it."""
    name = os.path.basename(path)
    if not _NAME.fullmatch(name):
        return None
    with reading(path):  # raises if it cannot be read
        return _EXTENSIONS[name.split(".")[1]]


def kind_of_content(path: str) -> str | None:
    """The kind of a file that begins with a whole batch; None: none of ours."""
    from mqindex.kafka.kinds import begins_with_batch  # here: a command for RocketMQ does without

    return SEGMENT if begins_with_batch(path) else None
