"""Which queues can have a directory: names from a log are not trusted as path components.

Source: RocketMQ 4.9.3 `ConsumeQueue` (`<store>/consumequeue/<topic>/<queueId>/`), `TopicValidator`.
"""

from __future__ import annotations

from typing import Any

from mqindex._native.numbers import whole_number
from mqindex.columns.keys import text_of
from mqindex.columns.limits import INT_MAX

QueueName = tuple[str, int]
"""(topic, queue_id)."""

_MAX_BYTES = 255


def given_queue(topic: Any, queue_id: Any) -> QueueName:
    """The queue that a caller names; `TypeError`, naming the argument: no text, or no whole number."""
    return text_of("topic", topic), whole_number("queue_id", queue_id)


def name_problem(topic: str, queue_id: int) -> str | None:
    """Why this queue cannot have a directory of its own; None: it can.

    >>> name_problem("%LMQ%alpha", 0), name_problem("../lock", 0), name_problem("T", -1)
    (None, 'a topic with a path separator', 'a negative queue id')
    """
    if queue_id < 0:
        return "a negative queue id"
    if queue_id > INT_MAX:
        return f"a queue id above {INT_MAX}"
    if "/" in topic:
        return "a topic with a path separator"
    if topic in ("", ".", "..") or "\0" in topic:
        return "a topic that is no file name"
    try:
        size = len(topic.encode())
    except UnicodeEncodeError:
        return "a topic that is no UTF-8 text"
    return f"a topic of more than {_MAX_BYTES} bytes" if size > _MAX_BYTES else None
