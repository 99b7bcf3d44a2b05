"""The kinds of Kafka's files and directories, in words; `mqindex.kafka.kinds` says which one a path is."""

from __future__ import annotations

from typing import Final

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
DUMPED: Final = (LOG_DIR, PARTITION, *OF_SEGMENT, SNAPSHOT)
FILES: Final = {*OF_SEGMENT, SNAPSHOT}
