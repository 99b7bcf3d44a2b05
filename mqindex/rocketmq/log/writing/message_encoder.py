"""A message on its way into a commit log, and the frame that a broker makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mqindex._native.log_writer import RefusedError, encode_frame
from mqindex._native.numbers import int64, milliseconds, whole_number
from mqindex.columns.keys import text_of
from mqindex.errors import CapacityError, MQIndexError
from mqindex.rocketmq.brokers import LONG_TOPICS
from mqindex.rocketmq.log.writing.write_rules import WriteRules, host_bytes

PUT_OK: Final = "PUT_OK"
_TRANSIENT = "__RMQ.TRANSIENT."  # names that begin so are never stored
_CRC = "__CRC32#"
_TEXTS = ("topic", "tags", "keys", "uniq_key", "born_host", "store_host")
_WHOLE = ("queue_id", "flag", "sys_flag", "reconsume_times", "prepared_transaction_offset")
_TIMES = ("born_timestamp", "store_timestamp")


class AppendMessageResult(NamedTuple):
    """Where `CommitLog.append_message` or `MessageStore.put_message` has put a message.

    Attributes
    ----------
    phy_offset, size : int, bytes: where its frame begins, and how long it is
    msg_id : str, the broker's offset id, 32 or 56 hex digits
    store_timestamp : int, ms since the epoch
    queue_offset : int
    status : str, as the broker names it

    Notes
    -----
    Source: RocketMQ 4.9.3 `AppendMessageResult`.

    Examples
    --------
    >>> AppendMessageResult(0, 98, "0A00000200002A9F0000000000000000", 1_700_000_000_000, 7).status
    'PUT_OK'
    """

    phy_offset: int
    size: int
    msg_id: str
    store_timestamp: int
    queue_offset: int
    status: str = PUT_OK


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to append.

    Parameters
    ----------
    properties : mapping of names to values (None: left out), in the order of the file; or a block as stored. KEYS, TAGS
        and UNIQ_KEY follow from `keys`, `tags`, `uniq_key` where it has none.
    body : bytes as they are stored; `sys_flag` says whether they are compressed
    born_timestamp, store_timestamp : int, ms since the epoch, or an aware datetime or a datetime64, which becomes that;
        None: the time of the append
    born_host, store_host : `address:port`, IPv6 as `[address]:port`; None: the store's own. The bits of `sys_flag`
        for the kind of address are set by them.

    Notes
    -----
    Source: RocketMQ 4.9.3 `MessageExtBrokerInner`.

    >>> NewMessage("TopicTest", b"hello", tags="TagA", keys="order-1").tags
    'TagA'
    """

    topic: str
    body: bytes = field(default=b"", repr=False)
    queue_id: int = 0
    tags: str | None = None
    keys: str | None = None
    uniq_key: str | None = None
    properties: Mapping[str, str | None] | bytes | None = None
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int | None = None
    born_host: str | None = None
    store_timestamp: int | None = None
    store_host: str | None = None
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0

    def __post_init__(self) -> None:
        for name in _TEXTS:
            text = getattr(self, name)
            if type(text) is not str and (text is not None or name == "topic"):
                object.__setattr__(self, name, text_of(name, text))
        for name in _WHOLE:
            given = getattr(self, name)
            if type(given) is not int:
                object.__setattr__(self, name, whole_number(name, given))
        for name in _TIMES:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, int64(name, milliseconds(name, given)))
        if not _are_bytes(self.body):
            raise TypeError(f"body: expected bytes, got {type(self.body).__name__}")
        if not (self.properties is None or isinstance(self.properties, Mapping) or _are_bytes(self.properties)):
            raise TypeError(f"properties: expected a mapping or a block of bytes, got {type(self.properties).__name__}")


def _are_bytes(given: Any) -> bool:
    """Whether it is a row of bytes: of a number `bytes` makes as many zeros, of an array of objects their addresses."""
    if isinstance(given, (bytes, bytearray)):
        return True
    try:
        view = memoryview(given)
    except (TypeError, ValueError):  # no buffer, or one of a type without a code
        return False
    return view.ndim == 1 and view.itemsize == 1


def require_message(message: Any) -> None:
    """`TypeError`, naming the argument: no `NewMessage`."""
    if not isinstance(message, NewMessage):
        raise TypeError(f"message: expected a NewMessage, got {message!r:.80}")


_host = lru_cache(maxsize=1024)(host_bytes)


def encode_message(
    message: NewMessage, rules: WriteRules, *, queue_offset: int, phy_offset: int, now: int
) -> tuple[bytes, int, bytes]:
    """The frame, its store timestamp, its store host. `CapacityError`, `ValueError`: no broker takes the message."""
    stamp = now if message.store_timestamp is None else message.store_timestamp
    born_stamp = now if message.born_timestamp is None else message.born_timestamp
    store = rules.store_host if message.store_host is None else _host("store_host", message.store_host)
    born = store if message.born_host is None else _host("born_host", message.born_host)
    block = None if message.properties is None else _block(message.properties, rules)
    try:
        frame = encode_frame(message, block, born, store, queue_offset, born_stamp, stamp, phy_offset, rules)
    except RefusedError as refusal:
        raise refused(refusal, rules) from None
    return frame, stamp, store


def refused(refusal: RefusedError, rules: WriteRules, where: str = "the message") -> MQIndexError | ValueError:
    """The error for a message that no broker takes."""
    _, kind, column, limit, got = refusal.args
    if kind == "empty":
        return ValueError(f"{column}: expected 1 byte or more, got none in {where}")
    if kind == "separator":
        return ValueError(f"{column}: expected no character U+0002, which ends a property, in {where}")
    if kind == "otherwise":
        return ValueError(f"{column}: expected what the properties say, got another value in {where}")
    if kind == "delay":
        return ValueError(f"properties: expected a number as DELAY of a message in SCHEDULE_TOPIC_XXXX, in {where}")
    hint = None
    if column == "topic" and not rules.long_topics:
        hint = f"brokers {LONG_TOPICS.brokers} take longer ones: give broker_version"
    elif column in ("body", None):
        hint = "the limit is maxMessageSize of the broker"
    return CapacityError(
        f"{where} is larger than a broker takes", field=column, expected=f"{limit} bytes or less", got=got, hint=hint
    )


def _block(properties: Mapping[str, str | None] | bytes, rules: WriteRules) -> bytes:
    return properties_block(properties, rules) if isinstance(properties, Mapping) else bytes(properties)


def properties_block(properties: Mapping[str, str | None], rules: WriteRules) -> bytes:
    """Names and values as stored; those with the value None, and names that the broker never stores, are left out.

    >>> properties_block({"KEYS": "a b", "TAGS": "t", "X": None}, WriteRules())
    b'KEYS\\x01a b\\x02TAGS\\x01t'
    """
    pairs = [
        (text_of("properties", name), text_of("properties", value))
        for name, value in properties.items()
        if value is not None
    ]
    pairs = [(name, value) for name, value in pairs if not _is_left_out(name, rules)]
    for name, value in pairs:
        if not name or "\x01" in name or "\x02" in name or "\x02" in value:
            raise ValueError(f"properties: expected names and values without U+0001 and U+0002, got {name!r}")
    block = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    return (block + "\x02" * (rules.separator and bool(pairs))).encode(errors="replace")


def _is_left_out(name: str, rules: WriteRules) -> bool:
    return name.startswith(_TRANSIENT) or (rules.append_crc and name == _CRC)
