"""How a broker changes a message before it goes to the log: its queue offsets, and where a delayed one waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._java_text import JAVA
from mqindex._native.log_message import parse_properties
from mqindex._native.pieces import Pieces
from mqindex.columns.distinct import distinct
from mqindex.rocketmq.log.writing.message_columns import MessageBatches
from mqindex.rocketmq.log.writing.message_encoder import NewMessage
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC, QueueRules

_TRANSACTION, _COMMIT = 0xC, 0x8
_LMQ = "%LMQ%"
_TREATED = (b"DELAY\x01", b"INNER_MULTI_DISPATCH\x01")  # properties that change a message before it is stored


class NumberedMessages(NamedTuple):
    """Messages as they are stored, the queue offset of each, and the next offsets of their queues after that."""

    messages: Any
    queue_offsets: npt.NDArray[np.int64]
    following: Mapping[QueueName, int]


class QueueNumbers:
    """The next offset of each queue. The caller excludes other threads, and calls `take` when a message is stored.

    multi_dispatch : messages that name further queues (INNER_MULTI_DISPATCH) get their offsets there.
    Source: RocketMQ 4.9.3 `CommitLog.asyncPutMessage`, `DefaultAppendMessageCallback`, `MultiDispatch`.
    """

    def __init__(
        self,
        queues: ConsumeQueueTable,
        rules: QueueRules,
        *,
        multi_dispatch: bool,
        batch_topics: frozenset[str],
        compacted_topics: frozenset[str],
    ) -> None:
        self._queues = queues
        self._rules = rules
        self._table = rules.table()
        self._multi_dispatch = multi_dispatch
        self._batch_topics, self._compacted_topics = batch_topics, compacted_topics
        self._next: dict[QueueName, int] = {}

    def number(self, messages: Sequence[NewMessage]) -> NumberedMessages:
        """Number messages one by one: delayed ones, and those with further queues, are changed as by the broker."""
        following: dict[QueueName, int] = {}
        stored, offsets = [], np.zeros(len(messages), np.int64)
        for row, given in enumerate(messages):
            message = self._delayed(given)
            queue = message.topic, message.queue_id
            offset = self._next_of(queue, following)
            named = self._further_queues(message)
            if named:
                message = _with_offsets(message, [self._next_of(name, following) for name in named])
            if message.sys_flag & _TRANSACTION in (0, _COMMIT):
                offsets[row] = offset
                following.update({name: self._next_of(name, following) + 1 for name in {queue, *named}})
            stored.append(message)
        return NumberedMessages(stored, offsets, following)

    def number_columns(self, batches: MessageBatches) -> NumberedMessages:
        """Number messages in columns; if one of them must be changed, all are handled as single messages."""
        if any(_is_treated(columns) for _, columns in batches):
            return self.number([message for rows, columns in batches for message in messages_of(rows, columns)])
        following: dict[QueueName, int] = {}
        parts = [self._number_batch(rows, columns, following) for rows, columns in batches]
        return NumberedMessages(batches, np.concatenate(parts) if parts else np.empty(0, np.int64), following)

    def take(self, numbered: NumberedMessages) -> None:
        """The messages are stored: their offsets are used."""
        self._next.update(numbered.following)

    def _number_batch(
        self, rows: int, columns: Mapping[str, Any], following: dict[QueueName, int]
    ) -> npt.NDArray[np.int64]:
        topics, topic_of = _topics(rows, columns.get("topic"))
        queue_ids = np.broadcast_to(columns.get("queue_id", np.zeros(1, np.int64)), rows)
        flags = np.broadcast_to(columns.get("sys_flag", np.zeros(1, np.int64)), rows) & _TRANSACTION
        counted = (flags == 0) | (flags == _COMMIT)
        offsets = np.zeros(rows, np.int64)
        for number, topic in enumerate(topics):
            of_topic = topic_of == number
            for queue_id in distinct(queue_ids[of_topic]).tolist():
                chosen = np.flatnonzero(of_topic & (queue_ids == queue_id) & counted)
                first = self._next_of((topic, queue_id), following)
                offsets[chosen] = np.arange(first, first + len(chosen))
                following[topic, queue_id] = first + len(chosen)
        return offsets

    def _next_of(self, queue: QueueName, following: Mapping[QueueName, int]) -> int:
        offset = following.get(queue, self._next.get(queue))
        if offset is None:
            if (problem := name_problem(*queue)) is not None:
                raise ValueError(f"topic: expected the name of a queue, got {queue[0][:80]!r} {queue[1]}: {problem}")
            if queue[0] in self._batch_topics:
                raise ValueError(f"topic: expected one with simple queues, got {queue[0]}, whose queues are batched")
            if queue[0] in self._compacted_topics:
                raise ValueError(
                    f"topic: expected one that is not compacted, got {queue[0]}: only its broker adds to it"
                )
            there = self._queues.get(*queue)
            offset = 0 if there is None else there.max_offset_in_queue
            self._next[queue] = offset
        return offset

    def _delayed(self, message: NewMessage) -> NewMessage:
        """A message with a delay level goes to a queue of that level, where it waits for a broker to deliver it."""
        properties = _properties(message, _TREATED[0])
        level = _whole(properties["DELAY"]) if "DELAY" in properties else 0
        if level <= 0 or message.sys_flag & _TRANSACTION not in (0, _COMMIT):
            return message
        level = min(level, len(self._rules.delay_levels))
        properties.update(DELAY=str(level), REAL_TOPIC=message.topic, REAL_QID=str(message.queue_id))
        return replace(message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)

    def _further_queues(self, message: NewMessage) -> list[QueueName]:
        if not self._multi_dispatch or not self._table.allows_multi_dispatch(message.topic):
            return []
        names = _properties(message, _TREATED[1]).get("INNER_MULTI_DISPATCH", "")
        if not names.strip():
            return []
        return [(name, self._further_id(name, message)) for name in names.rstrip(",").split(",")]

    def _further_id(self, name: str, message: NewMessage) -> int:
        return 0 if self._rules.lmq and name.startswith(_LMQ) else message.queue_id


def messages_of(rows: int, columns: Mapping[str, Any]) -> list[NewMessage]:
    """The rows of a batch, one by one."""
    return [NewMessage(**{name: _value(name, column, row) for name, column in columns.items() if name in _FIELDS})
            for row in range(rows)]  # fmt: skip


_FIELDS = frozenset(NewMessage.__dataclass_fields__)
_BYTES = ("body", "properties")


def _value(name: str, column: Any, row: int) -> Any:
    if isinstance(column, Pieces):
        data = column.to_bytes(0 if column.constant else row)
        if name in _BYTES:
            return data
        return data.decode(errors=JAVA) or None  # an empty cell is an absent one
    return int(column[row if len(column) > 1 else 0])


def _topics(rows: int, column: Any) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct topics, and which each row has."""
    if not isinstance(column, Pieces):
        raise ValueError("messages: expected a column topic, got none")
    if column.constant:
        return [column.to_bytes(0).decode(errors=JAVA)], np.zeros(rows, np.int64)
    numbers: dict[bytes, int] = {}
    of_rows = [numbers.setdefault(column.to_bytes(row), len(numbers)) for row in range(rows)]
    return [topic.decode(errors=JAVA) for topic in numbers], np.array(of_rows, np.int64)


def _is_treated(columns: Mapping[str, Any]) -> bool:
    blocks = columns.get("properties")
    if not isinstance(blocks, Pieces):
        return False
    rows = 1 if blocks.constant else len(blocks)
    return any(name in blocks.to_bytes(row) for row in range(rows) for name in _TREATED)


def _properties(message: NewMessage, name: bytes) -> dict[str, str]:
    """The properties, if they contain the one of that name; else none."""
    found = message.properties
    if isinstance(found, Mapping):
        if name[:-1].decode() not in found:
            return {}
        return {key: value for key, value in found.items() if value is not None}
    return parse_properties(bytes(found)) if found is not None and name in found else {}


def _with_offsets(message: NewMessage, offsets: Sequence[int]) -> NewMessage:
    properties = _properties(message, _TREATED[1])
    properties.pop("WAIT", None)
    properties["INNER_MULTI_QUEUE_OFFSET"] = ",".join(map(str, offsets))
    return replace(message, properties=properties)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"DELAY: expected a whole number, got {text!r}") from None
