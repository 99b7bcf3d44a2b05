"""Which of RocketMQ's files and directories a path is."""

from __future__ import annotations

import os
from typing import Final

from mqindex.files.entries import leads_to_directory

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
    INDEX_FILE, COMMIT_LOG_DIR, COMMIT_LOG_FILE, QUEUE, QUEUE_FILE, QUEUES, BATCH_QUEUE, BATCH_QUEUE_FILE,
    EXT, EXT_FILE,
)  # fmt: skip
FILES: Final = {
    INDEX_FILE,
    COMMIT_LOG_FILE,
    QUEUE_FILE,
    EXT_FILE,
    BATCH_QUEUE_FILE,
    CHECKPOINT,
    CONSUMER_OFFSETS,
    CONFIG_FILE,
}
_PARTS = {"commitlog", "index", "consumequeue"}
_QUEUES = {  # the directory of all queues -> the kinds of one queue's directory, and of its files
    "consumequeue": (QUEUE, QUEUE_FILE),
    "consumequeue_ext": (EXT, EXT_FILE),
    "batchconsumequeue": (BATCH_QUEUE, BATCH_QUEUE_FILE),
}
_OFFSETS = {"consumerOffset.json", "lmqConsumerOffset.json"}
_LOG_NAME, _INDEX_NAME, _CHECKPOINT_SIZE = 20, 17, 4096


def kind_of_directory(path: str) -> str | None:
    """The kind of a directory, by its place and what is in it; None: none of ours."""
    with os.scandir(path) as entries:
        below = {entry.name: leads_to_directory(entry) for entry in entries}
    *_, above, topic, place = ("", "", *os.path.abspath(path).split(os.sep))
    of_parts = any(below.get(part) for part in _PARTS) and not (place in _QUEUES and _are_queues(path))
    if of_parts or (below.get("checkpoint") is False and "lock" in below):
        return STORE
    numbers = sorted(name for name, is_dir in below.items() if not is_dir and name.isdecimal())
    if above in _QUEUES and place.isdecimal():
        return _QUEUES[above][0]
    of_topic = "consumequeue_ext" != topic in _QUEUES and _are_queues(os.path.dirname(os.path.abspath(path)))
    if "consumequeue_ext" != place in _QUEUES or of_topic:
        return QUEUES
    if any(len(name) == _LOG_NAME for name in numbers):
        kinds = [kind_of_file(os.path.join(path, name)) for name in numbers if len(name) == _LOG_NAME]
        return COMMIT_LOG_DIR if COMMIT_LOG_FILE in kinds else QUEUE if QUEUE_FILE in kinds else None
    if numbers or (place == "index" and not below):
        return INDEX_DIR if place == "index" or any(len(name) == _INDEX_NAME for name in numbers) else None
    return COMMIT_LOG_DIR if place == "commitlog" and not below else None


def _are_queues(directory: str) -> bool:
    from mqindex.rocketmq.store import are_queues  # here: a command for Kafka does without

    return are_queues(directory)


def kind_of_file(path: str) -> str | None:
    """The kind of a file, by its place, its name and its content; None: none of ours."""
    from mqindex.rocketmq.kinds import beginning_of, is_index_file  # here: a command for Kafka does without

    *_, above, _, place, name = ("", "", "", *os.path.abspath(path).split(os.sep))
    beginning, digits = beginning_of(path), len(name) if name.isdecimal() else 0
    kind = None
    if beginning == "message":
        kind = COMMIT_LOG_FILE
    elif digits == _LOG_NAME and above in _QUEUES:
        kind = _QUEUES[above][1]
    elif digits == _LOG_NAME and (place == "commitlog" or beginning == "zeros"):
        kind = COMMIT_LOG_FILE
    elif digits == _LOG_NAME and beginning == "unit":
        kind = QUEUE_FILE
    elif digits == _INDEX_NAME or (digits not in (0, _LOG_NAME) and place == "index"):
        kind = INDEX_FILE
    elif name == "checkpoint" and os.path.getsize(path) == _CHECKPOINT_SIZE:
        kind = CHECKPOINT
    elif name.removesuffix(".bak") in _OFFSETS:
        kind = CONSUMER_OFFSETS
    elif name.removesuffix(".bak") in CONFIG_TABLES:
        kind = CONFIG_FILE
    return kind or (INDEX_FILE if is_index_file(path) else None)
