"""Messages of a RocketMQ store, found by an offset or id, and shown whole."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from mqindex._words import plural
from mqindex.cli.printing.output import print_fields, print_line
from mqindex.cli.trouble import Trouble
from mqindex.errors import FileStateError, FormatError
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.wording.text import iso, printable

if TYPE_CHECKING:
    from mqindex.rocketmq import Message, MessageStore

_NUMBER = re.compile(r"[0-9]{1,19}")
_PHY_OFFSET = re.compile(r"[0-9]{1,19}")
MOST_OF_AN_ID = 64  # messages: a retry, a transaction and a dead letter keep the id of their original message
_BEGINNING: Final = 1024  # characters of a body that are shown without --body
_WIDEST_NAME = 27  # of a property, to be aligned with the fields
_WIDE, _NARROW = 16, 8  # bytes in a line of hex


@dataclass(frozen=True, slots=True)
class Body:
    """A body as its producer sent it, and how it is stored. `data` None: it cannot be decompressed, see `problem`.

    `holds`: that it is an inner batch of RocketMQ 5, many messages in one; "" for the body of a single message.
    """

    data: bytes | None
    codec: str | None
    problem: str = ""
    holds: str = ""

    @classmethod
    def of(cls, message: Message) -> Body:
        """The body of a message; an error is a sentence in `problem`."""
        from mqindex.rocketmq.messages.body import codec_of

        codec = None
        try:
            codec = codec_of(message.sys_flag)
            return cls(message.body, codec, holds=_inner_batch(message))
        except (FormatError, ImportError) as error:
            return cls(None, codec, str(error))

    @property
    def text(self) -> str | None:
        """The body as text; None: it is none in UTF-8, or many messages."""
        try:
            return None if self.data is None or self.holds else self.data.decode()
        except UnicodeDecodeError:
            return None


def _inner_batch(message: Message) -> str:
    from mqindex.rocketmq.messages.body import INNER_BATCH

    if not message.sys_flag & INNER_BATCH:
        return ""
    number, base = (message.properties.get(name, "") for name in ("INNER_NUM", "INNER_BASE"))
    many = plural(int(number), "message") if _NUMBER.fullmatch(number) else "an unknown number of messages"
    return f"an inner batch of {many}" + (f" from queue offset {base} on" if _NUMBER.fullmatch(base) else "")


def find_messages(store: MessageStore, name: str, topic: str | None) -> list[Message]:
    """The messages of a phy offset, an offset message id, or a UNIQ_KEY, which several may have; in the log's order.

    `FormatError`: the requested message is damaged. `Trouble`: only an index could find it, and there is none.
    """
    if _PHY_OFFSET.fullmatch(name):
        phy_offset = int(name)
        message = store.look_message_by_offset(phy_offset) if phy_offset < 1 << 63 else None
    else:
        message = store.view_message(name)
    if message is not None or _PHY_OFFSET.fullmatch(name):
        return [] if message is None else [message]
    directory = join(store.root, "index")
    if not disk.is_directory(directory):
        raise Trouble(
            f"the store has no index, which finds such an id: {directory}; "
            "`mqindex repair` builds it, if the log has a message"
        )
    found = {
        message.phy_offset: message
        for each in _topics(store, topic)
        for message in store.query_message(each, name, max_num=MOST_OF_AN_ID + 1, exact=True).messages
        if message.uniq_key == name
    }
    return [found[at] for at in sorted(found)[-MOST_OF_AN_ID - 1 :]]


def _topics(store: MessageStore, topic: str | None) -> list[str]:
    """The topics to look in; `Trouble` where no file shows which there are."""
    if topic is not None:
        return [topic]
    try:
        return sorted({name for name, _ in store.queues})
    except FileStateError as error:
        raise Trouble(f"{error.what}, which mqindex does not read: --topic says in which topic to look") from error


def absence(store: MessageStore, name: str, topic: str | None) -> str:
    """The sentence that there is no such message, and what was searched."""
    log = store.commit_log
    extent = f"the log has {log.min_phy_offset} to {log.max_phy_offset}"
    if _PHY_OFFSET.fullmatch(name):
        return f"no message begins at phy offset {name}: {extent}"
    looked = _topics(store, topic)
    where = f"topic {looked[0]}" if len(looked) == 1 else plural(len(looked), "topic")
    return f"no message was found by the id {name}: {extent}, and the index has none for it in {where}"


def message_fields(message: Message, body: Body, form: str | None) -> dict[str, Any]:
    """All of a message as plain data; a body that is no text in hex, unless `form` says how."""
    form = form or ("hex" if body.text is None else "text")
    data = body.data
    shown = None if data is None else data.hex() if form == "hex" else data.decode(errors="backslashreplace")
    plain = {one.name: getattr(message, one.name) for one in fields(message) if one.name != "stored_body"}
    return {
        **plain,
        "keys": message.keys,
        "tags": message.tags,
        "uniq_key": message.uniq_key,
        "stored_body_size": len(message.stored_body),
        "codec": body.codec,
        "body_size": None if data is None else len(data),
        "body_format": form,
        "body": shown,
    }


_FIRST = ("phy_offset", "msg_id", "topic", "queue_id", "queue_offset", "store_timestamp", "born_timestamp")


def print_message(message: Message, body: Body, form: str | None, *, brief: bool) -> None:
    """Fields, properties, and the body: its beginning, with `form` all of it; with `brief` only if `form` asks."""
    names = [*_FIRST, *(one.name for one in fields(message) if one.name not in (*_FIRST, "stored_body", "properties"))]
    print_fields((field, _value(field, getattr(message, field))) for field in names)
    print_line("properties")
    width = min(max(map(len, message.properties), default=0), _WIDEST_NAME)
    for field, value in message.properties.items():
        print_line(f"  {printable(field):<{width}}  {value}")
    print_line(f"body  {_extent(message, body)}{body.holds and f', {body.holds}'}")
    if body.data and (form or not brief):
        _print_body(body, form)


def _value(field: str, value: object) -> object:
    if field.endswith("_timestamp") and isinstance(value, int):
        return f"{value}  {iso(value)}"
    return f"{value} ({value:#x})" if field == "sys_flag" and value else value


def _extent(message: Message, body: Body) -> str:
    stored = plural(len(message.stored_body), "byte")
    if body.data is None:
        return f"{stored}, not readable"
    return stored if body.codec is None else f"{plural(len(body.data), 'byte')}, stored as {stored} of {body.codec}"


def _print_body(body: Body, form: str | None) -> None:
    assert body.data is not None
    as_hex = form == "hex" or (form is None and body.text is None)
    data = body.data if form else body.data[: _BEGINNING if not as_hex else _BEGINNING // 4]
    if as_hex:
        _print_hex(data)
    else:
        text = data.decode(errors="backslashreplace" if form else "ignore")  # the cut may be inside a character
        for line in text.removesuffix("\n").split("\n"):
            print_line(f"  {line}")
    if left := len(body.data) - len(data):
        print_line(f"  ... and {plural(left, 'byte')} more: --body {'hex' if as_hex else 'text'} prints all")


def _print_hex(data: bytes) -> None:
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < 80
    width = _NARROW if narrow else _WIDE
    for at in range(0, len(data), width):
        part = data[at : at + width]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        print_line(f"  {at:08x}  {part.hex(' '):<{3 * width - 1}}  {text}")
