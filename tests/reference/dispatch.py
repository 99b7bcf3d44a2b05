"""What dispatch writes to consume queues for one record: sections 7.2, 7.8 and 8 of the format document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.reference.commit_log import ROLLBACK, SCHEDULE_TOPIC, Record
from tests.reference.java import decode_utf8, java_hash, java_split, wrap

__all__ = ["Rules", "Unit", "units"]

PREPARED = 0x4


@dataclass(frozen=True)
class Rules:
    """The broker's settings: delays in ms, level 1 first. system_topics: the sum of what `system_topic` gives."""

    delay_levels: Sequence[int]
    multi_dispatch: bool = True
    lmq: bool = True
    system_topics: int = 7


@dataclass(frozen=True)
class Unit:
    """A unit and its place."""

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size: int
    tags_code: int
    store_timestamp: int


def units(record: Record, rules: Rules) -> list[Unit]:
    """The record's own queue first, then those that it names."""
    if record.sys_flag & ROLLBACK in (PREPARED, ROLLBACK):
        return []
    topic, code = decode_utf8(record.topic), tags_code(record, rules.delay_levels)
    places = [(topic, record.queue_id, record.queue_offset), *multi_dispatch(record, topic, rules)]
    return [Unit(*place, record.phy_offset, record.size, code, record.store_timestamp) for place in places]


def tags_code(record: Record, delay_levels: Sequence[int]) -> int:
    """The hash of TAGS, or when a delayed message is due."""
    properties = record.property_map
    code = java_hash(properties["TAGS"]) if "TAGS" in properties else 0
    if record.topic == SCHEDULE_TOPIC and "DELAY" in properties:
        level = min(int(properties["DELAY"]), len(delay_levels))
        if level > 0:
            code = wrap(record.store_timestamp + delay_levels[level - 1])
    return code


def system_topic(topic: str) -> int:
    """1, 2 or 4 of a topic of which brokers from 5.1.1, 5.1.3 or 5.2.0 on do not dispatch to further queues, else 0."""
    if topic in (decode_utf8(SCHEDULE_TOPIC), "rmq_sys_wheel_timer"):
        return 2
    return 1 if topic.startswith("%RETRY%") else 4 if topic.startswith("rmq_sys_") else 0


def multi_dispatch(record: Record, topic: str, rules: Rules) -> Iterator[tuple[str, int, int]]:
    """Topic, queue and queue offset of the further units."""
    properties = record.property_map
    if not {"INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"} <= properties.keys():
        return
    names = java_split(properties["INNER_MULTI_DISPATCH"], ",")
    offsets = java_split(properties["INNER_MULTI_QUEUE_OFFSET"], ",")
    system = system_topic(topic)
    if not rules.multi_dispatch or len(names) != len(offsets) or rules.system_topics & system != system:
        return
    for name, offset in zip(names, offsets, strict=True):
        if re.fullmatch(r"[+-]?[0-9]+", offset) and -(1 << 63) <= int(offset) < 1 << 63:
            yield name, 0 if rules.lmq and name.startswith("%LMQ%") else record.queue_id, int(offset)
