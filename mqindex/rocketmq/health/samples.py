"""The text of keys and tags of which only the hash was counted: read from one message that has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mqindex._native.keys import key_hash
from mqindex.errors import MQIndexError
from mqindex.files.places.place import require_answer
from mqindex.health import Text
from mqindex.rocketmq.log.frame_windows import frame_window
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.messages.message import Message, read_message


@dataclass(frozen=True, slots=True)
class Wanted:
    """The messages at these phy offsets, of a log with these files."""

    spans: tuple[LogSpan, ...]
    phy_offsets: tuple[int, ...]
    tags: bool


@dataclass(frozen=True, slots=True)
class Named:
    """What a message has: its tags, and its keys by their hash: (topic, key, the property it is in)."""

    tags: Text | None
    keys: dict[int, tuple[Text, Text, str]]


def name_samples(wanted: Wanted) -> dict[int, Named]:
    """The messages' names by phy offset; those that cannot be read any more are left out."""
    found = {}
    for phy_offset in wanted.phy_offsets:
        span = next((one for one in wanted.spans if one.file_start <= phy_offset < one.stop), None)
        message = None if span is None else _read(span, phy_offset)
        if message is not None:
            found[phy_offset] = Named(_text(message.tags), dict(_keys(message, tags=wanted.tags)))
    return found


def _read(span: LogSpan, phy_offset: int) -> Message | None:
    try:
        with span.open() as file:
            return read_message(frame_window(file, span.file_start, phy_offset), span.file_start, phy_offset, span.path)
    except (MQIndexError, OSError) as error:
        require_answer(error, span.path)
        return None


def _text(text: str | None) -> Text | None:
    return None if text is None else Text.of(text)


def _keys(message: Message, *, tags: bool) -> Iterable[tuple[int, tuple[Text, Text, str]]]:
    """All that a broker may have indexed of it."""
    given = [("UNIQ_KEY", "", [message.uniq_key or ""]), ("KEYS", "", (message.keys or "").split(" "))]
    if tags:
        given.append(("TAGS", "T#", [message.tags or ""]))
    topic = Text.of(message.topic)
    for name, prefix, keys in given:
        for key in filter(None, keys):
            yield key_hash(f"{message.topic}#{prefix}{key}"), (topic, Text.of(key), name)
