"""The offsets of RocketMQ's queues at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mqindex.cli.broker import Question
from mqindex.cli.printing.output import Column, Rows, print_json
from mqindex.cli.rocketmq.kinds import STORE
from mqindex.cli.times import milliseconds
from mqindex.cli.trouble import Trouble, say
from mqindex.wording.text import iso

if TYPE_CHECKING:
    from mqindex.rocketmq.options import StoreArguments

_BOUNDARIES: Final[dict[str, Any]] = {"lower": "lower", "upper": "upper", "nearest": None}
_DEFAULT = "offsets of the first message from then on, as RocketMQ 5.1.4 and newer; --boundary has other rules"


def print_offsets(kind: str, path: str, question: Question, options: StoreArguments, *, as_json: bool) -> int:
    """Print a line for each queue and time; returns how many queues have a message there."""
    from mqindex.rocketmq import offsets_for_time

    if kind != STORE:
        raise Trouble(f"{path}: expected a store's root directory, whose queues have offsets")
    if question.keys or question.messages or question.exact:
        raise Trouble("--timestamp takes no KEY: expected --topic T or nothing")
    moments = list(map(_moment, question.timestamps))
    if question.boundary is None:
        say(_DEFAULT)
    rows, there = Rows([Column("queue_id", 8), Column("offset", 20), Column("time", 24), Column("topic")]), 0
    for moment in moments:
        found = offsets_for_time(
            path, moment, topics=None if question.topic is None else [question.topic],
            boundary=_BOUNDARIES[question.boundary or "lower"], **options,
        )  # fmt: skip
        times = [None if np.isnat(one) else int(one.astype(np.int64)) for one in found["store_timestamp"]]
        for topic, queue_id, offset, stored in zip(
            found["topic"].to_pylist(), found["queue_id"].tolist(), found["offset"].tolist(), times, strict=True
        ):
            there += stored is not None
            if as_json:
                said = {"timestamp": moment, "topic": topic, "queue_id": queue_id, "offset": offset}
                print_json("query", {**said, "store_timestamp": stored})
            else:
                rows.write([(queue_id, offset, "" if stored is None else iso(stored), topic)])
    return there


def _moment(text: str) -> int:
    try:
        return milliseconds(text)
    except ValueError as error:
        raise Trouble(f"--timestamp: {error}") from None
