"""The small files beside log, queues and index: can a broker read them, and do they belong to this store?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mqindex._words import plural
from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.regular import reading_text
from mqindex.health import Text
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.catalogue import OffsetKinds
from mqindex.rocketmq.metadata.checkpoint import CHECKPOINT_SIZE, LATEST_TIME, Checkpoint
from mqindex.rocketmq.metadata.config_json import parse_side_json
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets, read_delay_offsets
from mqindex.rocketmq.metadata.topic_configs import read_topic_configs
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC

__all__ = ["CONFIG_FILES", "SideCheck", "check_sides", "checkpoint_is_directory", "content_problem", "json_findings"]

_JSON = (
    "consumerFilter.json",
    "consumerOffset.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
    "lmqConsumerOffset.json",
    "messageRequestMode.json",
    "subscriptionGroup.json",
    "topicQueueMapping.json",
    "topics.json",
)
CONFIG_FILES = (
    "consumerFilter.json",
    "consumerOffset.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
    "subscriptionGroup.json",
    "topicQueueMapping.json",
    "topics.json",
)
"""Files without which a broker does not start: neither the file nor its `.bak`, which exists, can be read."""
_MAX_LISTED = 20  # offsets of one file, each with a finding of its own


@dataclass(frozen=True, slots=True)
class SideCheck:
    """What the side files are compared with: queues by name with (min_offset, max_offset), the end of the log.

    `unsure`: topics of which it is not known how long their queues are; None: all. `max_timestamp`: the latest store
    timestamp, 0: the log holds no message.
    """

    root: str
    queues: Mapping[QueueName, tuple[int, int]]
    unsure: frozenset[str] | None
    end: int
    max_timestamp: int
    unclean: bool


def check_sides(check: SideCheck) -> list[Finding]:
    """All findings; nothing is written."""
    config = os.path.join(check.root, "config")
    return [
        *_checkpoint(check, os.path.join(check.root, "checkpoint")),
        *(finding for name in _JSON for finding in json_findings(os.path.join(config, name))),
        *_readable(read_topic_configs, config, "topics.json"),
        *_consumer_offsets(check, config),
        *_delay_offsets(check, config),
    ]


# ---- checkpoint


def _checkpoint(check: SideCheck, path: str) -> Iterator[Finding]:
    try:
        size = os.path.getsize(path)
        known = Checkpoint.read(path)
    except FileNotFoundError:
        if check.unclean and check.max_timestamp:
            yield catalogue.CHECKPOINT_MISSING.finding(path)
        return
    except IsADirectoryError:
        yield checkpoint_is_directory(path)
        return
    except OSError as error:
        yield catalogue.CHECKPOINT_UNREADABLE.finding(path, error=error)
        return
    if size != CHECKPOINT_SIZE:
        yield catalogue.CHECKPOINT_SIZE.finding(path, expected=CHECKPOINT_SIZE, got=size)
    if known is None:
        return
    times = {"physicMsgTimestamp": known[0], "logicsMsgTimestamp": known[1], "indexMsgTimestamp": known[2]}
    for at, (name, time) in enumerate(times.items()):
        if not 0 <= time < LATEST_TIME:
            yield catalogue.CHECKPOINT_GARBAGE.finding(path, 8 * at, name, "ms since the epoch", time)
        elif check.max_timestamp and time > check.max_timestamp:
            limit = f"at most {check.max_timestamp}, the log's latest"
            yield catalogue.CHECKPOINT_AHEAD.finding(path, 8 * at, name, limit, time)
    first = min(known.physic_msg_timestamp, known.logics_msg_timestamp)
    if check.unclean and 0 <= first < check.max_timestamp:
        yield catalogue.CHECKPOINT_BEHIND.finding(path, expected=check.max_timestamp, got=first)
    offsets = {"confirmPhyOffset": known.confirm_phy_offset, "logicsPhysicalOffset": known.logics_physical_offset}
    for at, (name, offset) in enumerate(offsets.items(), 4):
        if offset > check.end and check.max_timestamp:
            yield catalogue.CHECKPOINT_OFFSET_AHEAD.finding(path, 8 * at, name, f"at most {check.end}", offset)


def checkpoint_is_directory(path: str) -> Finding:
    """A directory is in the checkpoint's place."""
    return catalogue.CHECKPOINT_IS_DIRECTORY.finding(path, expected="a file", got="a directory")


# ---- JSON


def json_findings(path: str) -> Iterator[Finding]:
    """Whether the file is JSON; where it is not, whether its `.bak` is."""
    problem = content_problem(path)
    if problem is None:
        return
    backup = content_problem(f"{path}.bak") if disk.is_there(f"{path}.bak") else "missing"
    if problem == "missing" and backup == "missing":
        return
    if backup is None:
        kind, backup = catalogue.SIDE_FILE_HAS_BACKUP, f"{os.path.basename(path)}.bak"
    else:
        kind = catalogue.SIDE_FILE_INVALID if backup == "missing" else catalogue.SIDE_FILES_INVALID
    yield kind.finding(path, expected="JSON", got=problem, backup=backup)


def content_problem(path: str) -> str | None:
    """Why a broker cannot take a file of `config`: "missing", "nothing" in it, or what is no JSON; None: it can."""
    try:
        with reading_text(path, errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return "missing"
    except OSError as error:
        return str(error.strerror or error)
    if not text.strip("\0 \t\r\n"):
        return "nothing"
    try:
        parse_side_json(text)
    except FormatError as error:
        return f"{error.what}, {error.got}"
    return None


def _readable(read: Callable[[str], Any], config: str, name: str) -> list[Finding]:
    """Findings of a file that is JSON, but not what the file should hold."""
    try:
        read(config)
    except FormatError as error:
        if error.what.startswith("no JSON"):
            return []  # found already
        path, kind = error.path or os.path.join(config, name), catalogue.SIDE_FILE_CONTENT
        field = None if error.field is None else str(Text.of(error.field))
        return [kind.finding(path, error.at, field, error.expected, error.got, what=error.what)]
    except OSError:
        return []
    return []


# ---- offsets


def _consumer_offsets(check: SideCheck, config: str) -> list[Finding]:
    offsets: list[tuple[str, QueueName, int]] = []

    def read(directory: str) -> None:
        for name, table in ConsumerOffsets.read(directory, lambda topic, queue_id: 0).items():
            topic = name.split("@", maxsplit=1)[0]
            offsets.extend((name, (topic, queue_id), offset) for queue_id, offset in table.items())

    found = _readable(read, config, "consumerOffset.json")
    return found + _ranges(check, os.path.join(config, "consumerOffset.json"), catalogue.CONSUMER_OFFSET, offsets)


def _delay_offsets(check: SideCheck, config: str) -> list[Finding]:
    offsets: list[tuple[str, QueueName, int]] = []

    def read(directory: str) -> None:
        levels = read_delay_offsets(directory)
        offsets.extend((f"level {level}", (SCHEDULE_TOPIC, level - 1), offset) for level, offset in levels.items())

    found = _readable(read, config, "delayOffset.json")
    return found + _ranges(check, os.path.join(config, "delayOffset.json"), catalogue.DELAY_OFFSET, offsets)


def _ranges(
    check: SideCheck, path: str, kinds: OffsetKinds, offsets: list[tuple[str, QueueName, int]]
) -> list[Finding]:
    found = [finding for one in offsets for finding in _range(check, path, kinds, *one)]
    if len(found) - _MAX_LISTED > 1:
        worst = [one for one in found if one.severity != "info"][:_MAX_LISTED] or found[:_MAX_LISTED]
        return [*worst, kinds.more.finding(path, got=len(found), offsets=plural(len(found), "offset"))]
    return found


def _range(
    check: SideCheck, path: str, kinds: OffsetKinds, name: str, queue: QueueName, offset: int
) -> Iterator[Finding]:
    field = f"{Text.of(name)} queue {queue[1]}" if kinds is catalogue.CONSUMER_OFFSET else name
    if check.unsure is None or queue[0] in check.unsure:
        return
    if queue not in check.queues:
        if offset > 0:
            yield kinds.without_queue.finding(path, None, field, 0, offset)
        return
    low, high = check.queues[queue]
    if offset > high or offset < 0:
        yield kinds.beyond_queue.finding(path, None, field, f"0..{high}", offset)
    elif offset < low:
        gone = plural(low - offset, "message is", "messages are")
        yield kinds.expired.finding(path, None, field, f"{low}..{high}", offset, messages=gone)
