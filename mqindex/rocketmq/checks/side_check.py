"""The small files beside log, queues and index: can a broker read them, and do they speak of this store?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqindex._words import plural
from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.report import Finding
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
"""Those of which a broker does not start when neither the file nor its `.bak` can be read, and the latter is there."""
_TOLD = 20  # offsets of one file that are told one by one


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
            hint = "after its unclean exit the broker reads the whole log again"
            yield Finding("info", "checkpoint-missing", path, hint=hint)
        return
    except IsADirectoryError:
        yield checkpoint_is_directory(path)
        return
    except OSError as error:
        yield Finding("error", "checkpoint-unreadable", path, hint=str(error))
        return
    if size != CHECKPOINT_SIZE:
        hint = "the broker makes it as long as it should be, with zeros"
        yield Finding("warning", "checkpoint-size", path, expected=CHECKPOINT_SIZE, got=size, hint=hint)
    if known is None:
        return
    times = {"physicMsgTimestamp": known[0], "logicsMsgTimestamp": known[1], "indexMsgTimestamp": known[2]}
    for at, (name, time) in enumerate(times.items()):
        if not 0 <= time < LATEST_TIME:
            hint = "no time; remove the file: after an unclean exit the broker then reads the whole log"
            yield Finding("error", "checkpoint-garbage", path, 8 * at, name, "ms since the epoch", time, hint)
        elif check.max_timestamp and time > check.max_timestamp:
            limit = f"at most {check.max_timestamp}, the log's latest"
            hint = "the log lost its end, or this is another store's; after an unclean exit messages would be left out"
            yield Finding("warning", "checkpoint-ahead", path, 8 * at, name, limit, time, hint)
    first = min(known.physic_msg_timestamp, known.logics_msg_timestamp)
    if check.unclean and 0 <= first < check.max_timestamp:
        hint = "where the broker begins to read its log again after its unclean exit"
        yield Finding("info", "checkpoint-behind", path, expected=check.max_timestamp, got=first, hint=hint)
    offsets = {"confirmPhyOffset": known.confirm_phy_offset, "logicsPhysicalOffset": known.logics_physical_offset}
    for at, (name, offset) in enumerate(offsets.items(), 4):
        if offset > check.end and check.max_timestamp:
            limit, hint = f"at most {check.end}", "the log ends earlier"
            yield Finding("warning", "checkpoint-ahead", path, 8 * at, name, limit, offset, hint)


def checkpoint_is_directory(path: str) -> Finding:
    """What is said where a directory stands in the checkpoint's place."""
    hint = "no broker starts with it; without a checkpoint it does"
    return Finding("error", "checkpoint-unreadable", path, expected="a file", got="a directory", hint=hint)


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
        hint = f"the broker takes {os.path.basename(path)}.bak, which is one save older"
        yield Finding("warning", "side-file-invalid", path, expected="JSON", got=problem, hint=hint)
    else:
        hint = "there is no .bak to take: the broker starts without, or not at all; restore the file"
        if backup != "missing":
            hint = f"the .bak is no better ({backup}): the broker starts without, or not at all; restore the file"
        yield Finding("error", "side-file-invalid", path, expected="JSON", got=problem, hint=hint)


def content_problem(path: str) -> str | None:
    """Why a broker cannot take a file of `config`: "missing", "nothing" in it, or what is no JSON; None: it can."""
    try:
        text = Path(path).read_bytes().decode(errors="replace")
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
    """JSON, but not what the file should hold."""
    try:
        read(config)
    except FormatError as error:
        if error.what.startswith("no JSON"):
            return []  # told already
        path = error.path or os.path.join(config, name)
        return [
            Finding("error", "side-file-invalid", path, error.at, error.field, error.expected, error.got, error.hint)
        ]
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
    return found + _ranges(check, os.path.join(config, "consumerOffset.json"), "consumer-offset", offsets)


def _delay_offsets(check: SideCheck, config: str) -> list[Finding]:
    offsets: list[tuple[str, QueueName, int]] = []

    def read(directory: str) -> None:
        levels = read_delay_offsets(directory)
        offsets.extend((f"level {level}", (SCHEDULE_TOPIC, level - 1), offset) for level, offset in levels.items())

    found = _readable(read, config, "delayOffset.json")
    return found + _ranges(check, os.path.join(config, "delayOffset.json"), "delay-offset", offsets)


def _ranges(check: SideCheck, path: str, kind: str, offsets: list[tuple[str, QueueName, int]]) -> list[Finding]:
    found = [finding for one in offsets for finding in _range(check, path, kind, *one)]
    more = len(found) - _TOLD
    if more > 1:
        worst = [one for one in found if one.severity != "info"][:_TOLD] or found[:_TOLD]
        hint = f"{plural(len(found), 'offset')} of this file out of range; the first are told"
        return [*worst, Finding("info", f"{kind}-more", path, got=len(found), hint=hint)]
    return found


def _range(check: SideCheck, path: str, kind: str, name: str, queue: QueueName, offset: int) -> Iterator[Finding]:
    field = f"{name} queue {queue[1]}" if kind == "consumer-offset" else name
    if check.unsure is None or queue[0] in check.unsure:
        return
    if queue not in check.queues:
        if offset > 0:
            hint = "the store has no such queue any more"
            yield Finding("info", f"{kind}-without-queue", path, None, field, 0, offset, hint)
        return
    low, high = check.queues[queue]
    if offset > high or offset < 0:
        hint = "the queue lost its end, or this is another store's; messages up to there would be left out"
        yield Finding("warning", f"{kind}-beyond-queue", path, None, field, f"0..{high}", offset, hint)
    elif offset < low:
        gone = plural(low - offset, "message is", "messages are")
        hint = f"{gone} gone unread; the consumer goes on at the queue's min offset"
        yield Finding("info", f"{kind}-expired", path, None, field, f"{low}..{high}", offset, hint)
