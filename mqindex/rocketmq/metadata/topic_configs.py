"""`config/topics.json`: the topics that a broker knows, and how many queues each has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mqindex.errors import FormatError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.rocketmq.metadata.config_json import (
    in_json,
    load_side_json,
    parse_side_json,
    saved,
    table_of,
    tables_of,
    whole_number,
)


class TopicConfig(NamedTuple):
    """One topic. `perm` bits: 4 read, 2 write, 1 inherit; `attributes` only from 5.0 on.

    Source: RocketMQ 4.9.3 `TopicConfig`.

    >>> TopicConfig("orders", read_queue_nums=4).perm
    6
    """

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = {}


def read_topic_configs(directory: str) -> dict[str, TopicConfig]:
    """Topic -> its configuration, of a store's `config` directory; none where it has no such file."""
    return load_side_json(join(directory, "topics.json"), topic_configs) or {}


class TopicTable(NamedTuple):
    """The topics of the file itself, never of its `.bak`; `changed`: when one was made, changed or deleted, ms."""

    topics: frozenset[str]
    changed: int


def read_topic_table(directory: str) -> TopicTable | None:
    """The topics that the broker saved last; None: there is no such file, or none that can be read."""
    try:
        found = parse_side_json(saved(join(directory, "topics.json")).decode())
        changed = whole_number(table_of(found, "dataVersion").get("timestamp"), "timestamp")
        return TopicTable(frozenset(topic_configs(found)), changed)
    except (OSError, ValueError) as error:
        require_answer(error, directory)
        return None


def topic_configs(found: Mapping[str, Any]) -> dict[str, TopicConfig]:
    """Those of the file's content; `FormatError`: a broker cannot take it."""
    return {topic: _topic_config(topic, said) for topic, said in tables_of(found, "topicConfigTable").items()}


def _topic_config(topic: str, said: Mapping[str, Any]) -> TopicConfig:
    said = {name: value for name, value in said.items() if value is not None}

    def number(name: str, default: int) -> int:
        return whole_number(said.get(name, default), f"{topic}.{name}")

    order = said.get("order", False)
    if not isinstance(order, (bool, int)):
        raise FormatError("not a truth value", field=f"{topic}.order", expected="true or false", got=in_json(order))
    return TopicConfig(
        topic_name=str(said.get("topicName", topic)),
        read_queue_nums=number("readQueueNums", 16),
        write_queue_nums=number("writeQueueNums", 16),
        perm=number("perm", 6),
        topic_filter_type=str(said.get("topicFilterType", "SINGLE_TAG")),
        topic_sys_flag=number("topicSysFlag", 0),
        order=bool(order),
        attributes={name: str(value) for name, value in table_of(said, "attributes").items()},
    )
