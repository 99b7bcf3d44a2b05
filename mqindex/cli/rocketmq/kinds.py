"""The kinds of RocketMQ's files and directories, in words; `mqindex.rocketmq.kinds` says which one a path is."""

from __future__ import annotations

from typing import Final

INDEX_FILE: Final = "index-file"
INDEX_DIR: Final = "index-dir"
COMMIT_LOG_FILE: Final = "commitlog-file"
COMMIT_LOG_DIR: Final = "commitlog-dir"
STORE: Final = "store"
CHECKPOINT: Final = "checkpoint"
QUEUES: Final = "consumequeues"
QUEUE: Final = "consumequeue"
QUEUE_FILE: Final = "consumequeue-file"
EXT: Final = "consumequeue-ext"
EXT_FILE: Final = "consumequeue-ext-file"
BATCH_QUEUE: Final = "batchconsumequeue"
BATCH_QUEUE_FILE: Final = "batchconsumequeue-file"
CONSUMER_OFFSETS: Final = "consumer-offsets"
CONFIG_FILE: Final = "config-file"

KINDS: Final = {
    STORE: "a store's root directory",
    INDEX_DIR: "a directory of index files",
    INDEX_FILE: "an index file",
    COMMIT_LOG_DIR: "a commit-log directory",
    COMMIT_LOG_FILE: "a commit-log file",
    QUEUES: "a directory of consume queues",
    QUEUE: "a consume queue",
    QUEUE_FILE: "a file of a consume queue",
    EXT: "the extension of a consume queue",
    EXT_FILE: "an extension file of a consume queue",
    BATCH_QUEUE: "a batch queue",
    BATCH_QUEUE_FILE: "a file of a batch queue",
    CHECKPOINT: "a checkpoint",
    CONSUMER_OFFSETS: "the offsets of consumers",
    CONFIG_FILE: "a table of a broker's configuration",
}

CONFIG_TABLES: Final = {  # a file of config/ -> what it is, its table, and what that has one item for
    "consumerFilter.json": ("what groups of consumers filter messages by", "filterDataByTopic", "topics"),
    "delayOffset.json": ("how far delayed messages were delivered", "offsetTable", "delay levels"),
    "subscriptionGroup.json": ("the groups of consumers", "subscriptionGroupTable", "groups"),
    "topics.json": ("the topics", "topicConfigTable", "topics"),
}

DUMPED: Final = (
    INDEX_FILE, INDEX_DIR, COMMIT_LOG_DIR, COMMIT_LOG_FILE, QUEUE, QUEUE_FILE, QUEUES, BATCH_QUEUE, BATCH_QUEUE_FILE,
    EXT, EXT_FILE,
)  # fmt: skip
FILES: Final = {kind for kind in KINDS if kind.endswith("-file")} | {CHECKPOINT, CONSUMER_OFFSETS}
