"""The messages that `mqindex query --messages` finds: a row each in a pipe, some lines each on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mqindex.cli.broker import Question
from mqindex.cli.printing.output import Aligned, print_paragraph
from mqindex.cli.rocketmq.kinds import STORE
from mqindex.cli.rocketmq.messages import Body
from mqindex.cli.trouble import Trouble, say
from mqindex.errors import FormatError
from mqindex.wording.text import iso

if TYPE_CHECKING:
    from mqindex.rocketmq import CommitLog, Message
    from mqindex.rocketmq.options import StoreArguments

_BEGINNING = 60  # characters of a body
_TITLES = ("store_timestamp", "topic", "queue_id", "queue_offset", "phy_offset", "tags", "keys", "uniq_key", "body")


@contextmanager
def open_log(kind: str, path: str, question: Question, options: StoreArguments) -> Iterator[CommitLog | None]:
    """The log of a store, if messages are requested; None: they are not."""
    from mqindex.rocketmq import CommitLog
    from mqindex.rocketmq.log.dledger import refuse_dledger
    from mqindex.rocketmq.options import store_options

    if not (question.messages or question.exact):
        yield None
        return
    if kind != STORE:
        raise Trouble(f"{path} is no store: expected its root directory; --messages and --exact read the commit log")
    chosen = store_options(path, **options)
    refuse_dledger(chosen)
    with CommitLog._as_set(chosen) as log:
        yield log


def hit_fields(log: CommitLog, phy_offset: int) -> dict[str, Any]:
    """A message as plain data, with the beginning of its body; only its place if the log no longer has it."""
    message = _read(log, phy_offset)
    if message is None:
        return {"phy_offset": phy_offset, "store_timestamp": None}
    names = ("store_timestamp", "topic", "queue_id", "queue_offset", "tags", "keys", "uniq_key", "msg_id")
    fields = {name: getattr(message, name) for name in names}
    return {"phy_offset": phy_offset, **fields, "body_beginning": _beginning(message)}


class MessageRows:
    """Prints messages, batch by batch."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._rows = Aligned(_TITLES)

    def __call__(self, keys: list[str], answers: list[list[int]], more: list[bool]) -> None:
        messages = ((at, _read(self._log, at)) for offsets in answers for at in offsets)
        if not sys.stdout.isatty():
            self._rows.write([_row(self._log, at, message) for at, message in messages])
            return
        for at, message in messages:
            _print_lines(self._log, at, message)


def _read(log: CommitLog, phy_offset: int) -> Message | None:
    from mqindex.rocketmq.serving.query_message import look_message

    try:
        return look_message(log, phy_offset)
    except FormatError as error:
        say(str(error))
        return None


def _absence(log: CommitLog, phy_offset: int) -> str:
    """Why a place that the index knows has no message."""
    begin = log.min_phy_offset
    return f"expired: the log begins at {begin}" if phy_offset < begin else "not in the log"


def _row(log: CommitLog, phy_offset: int, message: Message | None) -> list[object]:
    if message is None:
        return [None, None, None, None, phy_offset, None, None, None, f"({_absence(log, phy_offset)})"]
    place = [iso(message.store_timestamp), message.topic, message.queue_id, message.queue_offset, phy_offset]
    return [*place, message.tags, message.keys, message.uniq_key or message.msg_id, _beginning(message)]


def _print_lines(log: CommitLog, phy_offset: int, message: Message | None) -> None:
    if message is None:
        print_paragraph(f"phy_offset {phy_offset}: {_absence(log, phy_offset)}")
        return
    where = f"{message.topic}, queue {message.queue_id}, offset {message.queue_offset}, phy_offset {phy_offset}"
    print_paragraph(f"{iso(message.store_timestamp)}  {where}")
    names = {"tags": message.tags, "keys": message.keys, "uniq_key": message.uniq_key or message.msg_id}
    print_paragraph("  ".join(f"{name}: {value}" for name, value in names.items() if value), indent=2)
    if beginning := _beginning(message):
        print_paragraph(beginning, indent=2)


def _beginning(message: Message) -> str:
    body = Body.of(message)
    if body.data is None:
        return f"({body.codec}, not readable)"
    if body.holds:
        return f"({body.holds})"
    text = body.data.hex(" ") if body.text is None else body.text
    return text if len(text) <= _BEGINNING else f"{text[:_BEGINNING]}..."
