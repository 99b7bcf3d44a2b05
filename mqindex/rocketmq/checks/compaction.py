"""The logs and queues of compacted topics (cleanup.policy=COMPACTION, since 5.1): what a broker's start needs of them.

    <store>/compaction/compactionLog/<topic>/<queueId>/<20 digits>      and the same below compactionCq

They are not read. Source: RocketMQ 5.1.0 to 5.5.0 `CompactionStore.load`, `CompactionLog.TopicPartitionLog`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from mqindex.errors import FormatError
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.start_files import listed
from mqindex.rocketmq.metadata.topic_configs import read_topic_configs
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.queue_files import subdirectories

__all__ = ["COMPACTION_SINCE", "CompactionFault", "compaction_faults", "compaction_is_on", "compaction_not_compared"]

COMPACTION_SINCE: Final = (5, 1, 0)
_LOG, _QUEUES = "compactionLog", "compactionCq"
_QUEUE_ID: Final = re.compile(r"[+-]?\d+")


class CompactionFault(NamedTuple):
    """`certain`: no such broker starts; else it depends on what is in the files."""

    path: str
    reason: str
    certain: bool
    finding: Finding


def compaction_is_on(options: StoreOptions) -> bool:
    """Whether a broker of 5.1 or later loads these files."""
    return options.is_on("enableCompaction", "true")


def compaction_not_compared(options: StoreOptions) -> Finding | None:
    """That there is something which is not read; None: there is no compacted topic."""
    home = os.path.join(options.root, "compaction")
    if any(subdirectories(os.path.join(home, name)) for name in (_LOG, _QUEUES)) or _is_configured(options):
        return catalogue.COMPACTION_NOT_COMPARED.finding(home)
    return None


def compaction_faults(options: StoreOptions) -> Iterator[CompactionFault]:
    """What keeps such a broker from starting, or may."""
    home = os.path.join(options.root, "compaction")
    for topic in sorted(subdirectories(os.path.join(home, _LOG))):
        for path in sorted(subdirectories(topic)):
            number = _queue_id(os.path.basename(path))
            if number is None:
                expected, got = "the number of a queue", os.path.basename(path)
                stray = catalogue.COMPACTION_STRAY.finding(path, expected=expected, got=got)
                yield CompactionFault(path, "a directory not named by a queue's number", True, stray)
                continue
            queue = os.path.join(home, _QUEUES, os.path.basename(topic), str(number))
            if os.path.isdir(queue) and _files(queue) != _files(path):
                unlike = catalogue.COMPACTION_UNLIKE.finding(
                    path, expected=f"the names of files in {queue}", got="others"
                )
                yield CompactionFault(path, f"its files are not named as those of {_QUEUES}", False, unlike)


def _queue_id(name: str) -> int | None:
    """As `Integer.parseInt` takes it."""
    number = int(name) if _QUEUE_ID.fullmatch(name) and len(name) < 1000 else 2**31
    return number if -(2**31) <= number < 2**31 else None


def _files(directory: str) -> set[str]:
    return {one.name for one in listed([directory]) if not one.directory and one.size}


def _is_configured(options: StoreOptions) -> bool:
    try:
        configured = read_topic_configs(os.path.join(options.root, "config"))
    except (FormatError, OSError):  # that is told by itself
        return False
    return any(config.attributes.get("cleanup.policy") == "COMPACTION" for config in configured.values())
