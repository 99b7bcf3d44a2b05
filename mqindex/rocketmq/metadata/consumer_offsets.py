"""How much was consumed: the offsets that a broker keeps for groups and for its own delayed messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mqindex.errors import FormatError
from mqindex.files.paths import join
from mqindex.rocketmq.metadata.config_json import load_side_json, table_of, whole_number

_SEPARATOR = "@"


class ConsumerOffsets(Mapping[str, dict[int, int]]):
    """`topic@group` -> queue id -> the offset that the group consumes next. Immutable, so safe from several threads.

    Of `config/consumerOffset.json`, and `config/lmqConsumerOffset.json` where there is one, each or its `.bak`.
    `lag` needs the ends of the queues: `max_offset(topic, queue_id)` gives them.
    Source: RocketMQ 4.9.3 `ConsumerOffsetManager`, `LmqConsumerOffsetManager`.

    >>> offsets = ConsumerOffsets({"T@g": {0: 12, 1: 9}}, lambda topic, queue_id: 15)
    >>> offsets["T@g"], offsets.query_offset("g", "T", 1), offsets.query_offset("g", "T", 2), offsets.lag
    ({0: 12, 1: 9}, 9, -1, {'T@g': {0: 3, 1: 6}})
    """

    def __init__(self, offset_table: Mapping[str, dict[int, int]], max_offset: Callable[[str, int], int]) -> None:
        self._table = dict(offset_table)
        self._max_offset = max_offset

    @classmethod
    def _read(cls, directory: str, max_offset: Callable[[str, int], int]) -> ConsumerOffsets:
        """Those of a store's `config` directory; none where it has no such file."""
        plain = load_side_json(join(directory, "consumerOffset.json"), offset_table) or {}
        light = load_side_json(join(directory, "lmqConsumerOffset.json"), lmq_offset_table) or {}
        return cls({**plain, **light}, max_offset)

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The committed offset; -1: none (`ConsumerOffsetManager.queryOffset`)."""
        return self._table.get(f"{topic}{_SEPARATOR}{group}", {}).get(queue_id, -1)

    @property
    def lag(self) -> dict[str, dict[int, int]]:
        """`topic@group` -> queue id -> messages that the group has not consumed: the queue's max offset less its own.

        Negative where a group is ahead of its queue, which no broker does: the queue has lost its end.
        """
        return {name: self._lag(name, offsets) for name, offsets in self._table.items()}

    def _lag(self, name: str, offsets: Mapping[int, int]) -> dict[int, int]:
        topic = name.split(_SEPARATOR, maxsplit=1)[0]
        return {queue_id: self._max_offset(topic, queue_id) - offset for queue_id, offset in offsets.items()}

    def __getitem__(self, name: str) -> dict[int, int]:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"ConsumerOffsets({self._table!r})"


def read_delay_offsets(directory: str) -> dict[int, int]:
    """Delay level (1 first) -> next offset of its queue in `SCHEDULE_TOPIC_XXXX`, of `config/delayOffset.json`.

    Source: RocketMQ 4.9.3 `ScheduleMessageService.decode`.
    """
    return load_side_json(join(directory, "delayOffset.json"), delay_table) or {}


def offset_table(found: Mapping[str, Any]) -> dict[str, dict[int, int]]:
    """`topic@group` -> queue id -> offset, of the content of the file; `FormatError`: a broker cannot take it."""
    table = {} if found.get("offsetTable") is None else table_of(found, "offsetTable")
    return {name: _numbers(table, name) for name in table}


def lmq_offset_table(found: Mapping[str, Any]) -> dict[str, dict[int, int]]:
    """The same of the file for light queues, each of which is queue 0."""
    light = {name: {0: whole_number(value, name)} for name, value in table_of(found, "lmqOffsetTable").items()}
    return {**offset_table(found), **light}


def delay_table(found: Mapping[str, Any]) -> dict[int, int]:
    """Delay level -> offset, of the content of the file; `FormatError`: a broker cannot take it."""
    return _numbers(found, "offsetTable")


def _numbers(found: Mapping[str, Any], name: str) -> dict[int, int]:
    table = table_of(found, name)
    numbers = {whole_number(key, name): whole_number(value, name) for key, value in table.items()}
    if any(key < 0 for key in numbers):
        raise FormatError("a key below 0", field=name, expected="0 or more", got=min(numbers))
    return numbers
