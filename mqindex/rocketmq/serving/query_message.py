"""Messages by key: the index gives their places by hash, the log gives the messages."""

from __future__ import annotations

from typing import NamedTuple

from mqindex.errors import BadMagicError, FormatError, TruncatedFileError, was_cut
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.messages.message import Message

_TRIES = 3
_NO_FRAME = (BadMagicError, TruncatedFileError)
_TAGS_PREFIX = "T#"  # a 5.4 broker indexes TAGS as topic#T#TAGS


class QueryMessageResult(NamedTuple):
    """What `MessageStore.query_message` answers.

    Attributes
    ----------
    messages : list of `Message`, oldest first
    index_last_update_timestamp, index_last_update_phy_offset : int
        How far the newest index file reaches, the time in ms since the epoch; 0 and 0: the index gave nothing.

    Notes
    -----
    Source: RocketMQ 4.9.3 `store/QueryMessageResult`.
    """

    messages: list[Message]
    index_last_update_timestamp: int
    index_last_update_phy_offset: int


def require_names(topic: str, key: str) -> None:
    """TypeError: one of them is no str; `None` would be searched as the text "None"."""
    for name, text in (("topic", topic), ("key", key)):
        if not isinstance(text, str):
            raise TypeError(f"{name}: expected str, got {type(text).__name__}")


def query_message(
    index: IndexService, log: CommitLog, topic: str, key: str, max_num: int, begin: int, end: int
) -> QueryMessageResult:
    """As a broker answers: oldest first, all that have the hash, a message as often as the index has it.

    Where no place in the index's answer still holds a message, it repeats the query for older ones, twice at most.
    Source: RocketMQ 4.9.3 `DefaultMessageStore.queryMessage`.
    """
    messages: list[Message] = []
    reach, last = (0, 0), end
    for _ in range(_TRIES):
        places, *update = index._answer_of(topic, key, max_num, begin, last)
        if len(places) == 0:
            break
        reach = (update[0], update[1])
        for number, phy_offset in enumerate(sorted(places.tolist())):
            message = readable(log, phy_offset)
            if message is not None:
                messages.append(message)
                last = message.store_timestamp if number == 0 else last
        if messages or last < begin:
            break
    return QueryMessageResult(messages, *reach)


def query_exact(
    index: IndexService, log: CommitLog, topic: str, key: str, max_num: int, begin: int, end: int
) -> QueryMessageResult:
    """The newest `max_num` messages that really have this topic and key; oldest first, each once."""
    asked = max_num
    found: dict[int, Message | None] = {}
    while True:
        places, *update = index._answer_of(topic, key, asked, begin, end)
        for phy_offset in places.tolist():
            if phy_offset not in found:
                message = readable(log, phy_offset)
                found[phy_offset] = message if message is not None and has_key(message, topic, key) else None
        kept = [message for message in found.values() if message is not None][:max_num]
        if len(places) < asked or len(kept) >= max_num:
            break
        asked *= 4
    reach = update if len(places) else [0, 0]
    return QueryMessageResult(sorted(kept, key=lambda message: message.phy_offset), *reach)


def has_key(message: Message, topic: str, key: str) -> bool:
    """Whether a broker indexes this message by `topic#key`, and not just by another string with the same hash."""
    if message.topic != topic or not key:
        return False
    if key == message.uniq_key or key in (message.keys or "").split(" "):
        return True
    return key.startswith(_TAGS_PREFIX) and key.removeprefix(_TAGS_PREFIX) == message.tags


def look_message(log: CommitLog, phy_offset: int) -> Message | None:
    """The message at a phy offset; None where the log has none: outside of it, or between two frames."""
    try:
        return log.get_message(phy_offset)
    except FormatError as error:
        if not log._reaches(phy_offset + 1):
            return None  # what is written there at this moment is no damage
        if was_cut(error) or not (isinstance(error, _NO_FRAME) or error.at is None or error.field == "phy_offset"):
            raise
        return None


def parse_msg_id(msg_id: str) -> int | None:
    """The phy offset in an offset id (address, port, phy offset in hex digits); None: this is no such id.

    >>> parse_msg_id("0A00000200002A9F0000000000000400"), parse_msg_id("order-17")
    (1024, None)
    """
    if not isinstance(msg_id, str):
        raise TypeError(f"msg_id: expected str, got {type(msg_id).__name__}")
    if len(msg_id) not in (32, 56):
        return None
    try:
        phy_offset = int.from_bytes(bytes.fromhex(msg_id)[-8:], "big", signed=True)
    except ValueError:
        return None
    return phy_offset if phy_offset >= 0 else None


def readable(log: CommitLog, phy_offset: int) -> Message | None:
    """The same; None too where it is damaged."""
    # The broker logs what it cannot read and continues; `verify` reports damage.
    try:
        return look_message(log, phy_offset)
    except FormatError as error:
        if was_cut(error):
            raise
        return None
