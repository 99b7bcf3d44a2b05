"""One message of a commit log, decoded."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from mqindex._native.log_message import MessageMaker
from mqindex.errors import BadMagicError, FormatError, TruncatedFileError
from mqindex.rocketmq.messages.body import decompress

Fault = tuple[int, str, str | None, str, str]

_PHY_OFFSET = slice(28, 36)
_ERRORS: dict[str, tuple[type[FormatError], str]] = {
    "bad-magic": (BadMagicError, "no frame begins here"),
    "truncated": (TruncatedFileError, "the frame is cut short"),
    "foreign": (FormatError, "the frame has another offset than its own"),
    "bad-crc": (FormatError, "the body does not have the checksum of its frame"),
    "bad-size": (FormatError, "the frame's size is not the sum of its parts"),
    "bad-delay": (FormatError, "a delayed message's level is no number"),
    "bad-length": (FormatError, "a part of the frame is longer than the frame"),
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `stored_body` is as on disk, `body` as its producer sent it; keys, tags, uniq_key None: absent.

    Hosts are `address:port`, IPv6 as `[address]:port`. Times: ms since the epoch.
    Source: RocketMQ 4.9.3 `MessageExt`, `MessageDecoder.decode`; version-2 records as in 5.1 and later.

    >>> import struct
    >>> host = bytes([10, 0, 0, 2]) + struct.pack(">i", 10911)
    >>> frame = struct.pack(">iiiiiqqiq", 98, -626843481, 0, 3, 0, 7, 1024, 0, 1700000000000) + host
    >>> frame += struct.pack(">q", 1700000000005) + host + struct.pack(">iqi", 0, 0, 0)
    >>> frame += b"\\x01T" + struct.pack(">h", 6) + b"KEYS\\x01k"
    >>> message = Message.decode(frame)
    >>> message.topic, message.queue_offset, message.keys, message.store_host
    ('T', 7, 'k', '10.0.0.2:10911')
    """

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size: int
    stored_body: bytes = field(repr=False)
    body_crc: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    properties: dict[str, str]
    msg_id: str

    @property
    def body(self) -> bytes:
        """The body, decompressed. LZ4 and ZSTD need the extra `codecs`."""
        return decompress(self.stored_body, self.sys_flag)

    @property
    def keys(self) -> str | None:
        """The KEYS, separated by single spaces."""
        return self.properties.get("KEYS")

    @property
    def tags(self) -> str | None:
        """The TAGS."""
        return self.properties.get("TAGS")

    @property
    def uniq_key(self) -> str | None:
        """The message id that the producer made."""
        return self.properties.get("UNIQ_KEY")

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Message:
        """The message in `data`, a whole frame as a broker stores it and sends it to consumers.

        Raises
        ------
        FormatError : it is no frame, or its body does not have its checksum
        """
        view = memoryview(data).cast("B")
        start = max(int.from_bytes(view[_PHY_OFFSET], "big", signed=True), 0) if len(view) >= 36 else 0
        return read_message(view, min(start, 2**63 - 1 - len(view)), start)


_message_at = MessageMaker(Message).message_at


def read_message(buf: Any, file_start: int, phy_offset: int, path: str | os.PathLike[str] | None = None) -> Message:
    """The message at a phy offset of one file's bytes; anything else there is a `FormatError`."""
    message = _message_at(buf, file_start, phy_offset)
    if isinstance(message, Message):
        return message
    fault, blank = message
    raise fault_error(fault or _no_message(blank, phy_offset), file_start, path)


def _no_message(blank: int, phy_offset: int) -> Fault:
    got = "the blank that fills the file" if blank >= 0 else "the end of the file"
    return phy_offset, "bad-magic", "magic_code", "a message", got


def fault_error(fault: Fault, file_start: int, path: str | os.PathLike[str] | None = None) -> FormatError:
    """The error for what a kernel found wrong with a frame."""
    at, kind, name, expected, got = fault
    error, what = _ERRORS[kind]
    hint = f"phy offset {at}: take offsets from the index, a consume queue or a scan"
    return error(what, path=path, at=at - file_start, field=name, expected=expected, got=got, hint=hint)
