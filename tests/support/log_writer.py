"""Commit-log files from the format document (sections 1, 5.1 to 5.7) with struct alone: a third opinion.

Shares no code with the package nor with the twin. It also writes what no broker would: torn records, foreign ones,
bodies that imitate records.
"""

from __future__ import annotations

import ipaddress
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["FIRST_TIME", "LogMessage", "LogWriter", "frame", "frame_size", "properties_block"]

FIRST_TIME = 1_700_000_000_000
VERSION_1, VERSION_2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194


@dataclass(frozen=True)
class LogMessage:
    """What a producer and its broker put into one record.

    properties : pairs in the order of the file, or the block's bytes; None: KEYS, TAGS and UNIQ_KEY, those given.
    separator : the block ends with one (brokers up to 4.9.0 and from 5.2.0 on).
    version : 2 has two bytes for the topic's length. crc : None for the right one.
    """

    topic: str = "TopicTest"
    keys: str | None = None
    tags: str | None = None
    uniq_key: str | None = None
    body: bytes = b"body"
    store_timestamp: int = FIRST_TIME
    born_timestamp: int = FIRST_TIME - 5
    born_host: tuple[str, int] = ("192.168.0.1", 54321)
    store_host: tuple[str, int] = ("10.0.0.2", 10911)
    queue_id: int = 0
    queue_offset: int = 0
    flag: int = 0
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    properties: Sequence[tuple[str, str]] | bytes | None = None
    separator: bool = False
    version: int = 1
    crc: int | None = None


def properties_block(message: LogMessage) -> bytes:
    """Name, 01, value, 02, name, …

    >>> properties_block(LogMessage(keys="a b", tags="t"))
    b'KEYS\\x01a b\\x02TAGS\\x01t'
    """
    if isinstance(message.properties, bytes):
        return message.properties
    pairs = message.properties
    if pairs is None:
        named = (("KEYS", message.keys), ("TAGS", message.tags), ("UNIQ_KEY", message.uniq_key))
        pairs = [(name, value) for name, value in named if value is not None]
    block = "\x02".join(f"{name}\x01{value}" for name, value in pairs)
    return (block + "\x02" * (message.separator and bool(pairs))).encode()


def frame(message: LogMessage, phy_offset: int) -> bytes:
    """The record's bytes, as at that offset of the log."""
    born, born_bit = _host(message.born_host, 0x10)
    store, store_bit = _host(message.store_host, 0x20)
    crc = zlib.crc32(message.body) & 0x7FFFFFFF if message.crc is None else message.crc
    topic, properties = message.topic.encode(), properties_block(message)
    sys_flag = message.sys_flag | born_bit | store_bit
    head = struct.pack(
        ">IIiiqqiq", VERSION_1 if message.version == 1 else VERSION_2, crc, message.queue_id, message.flag,
        message.queue_offset, phy_offset, sys_flag, message.born_timestamp,
    )  # fmt: skip
    middle = struct.pack(">iqi", message.reconsume_times, message.prepared_transaction_offset, len(message.body))
    topic_length = struct.pack(">b" if message.version == 1 else ">h", len(topic))
    tail = message.body + topic_length + topic + struct.pack(">h", len(properties)) + properties
    content = head + born + struct.pack(">q", message.store_timestamp) + store + middle + tail
    return struct.pack(">i", 4 + len(content)) + content


def frame_size(message: LogMessage) -> int:
    return len(frame(message, 0))


def _host(host: tuple[str, int], ipv6_bit: int) -> tuple[bytes, int]:
    address = ipaddress.ip_address(host[0])
    return address.packed + struct.pack(">i", host[1]), ipv6_bit if address.version == 6 else 0


class LogWriter:
    """Appends to a log as a broker does: files of full length, a blank where a record does not fit.

    directories : where the files go, in turn; taken in the order of their names.
    start : the first offset of the log, a multiple of the file size.
    """

    def __init__(self, *directories: Path, mapped_file_size: int = 65536, start: int = 0) -> None:
        self.directories = sorted(directories, key=str)
        self.mapped_file_size = mapped_file_size
        self.position = start
        self.frames: list[tuple[int, int]] = []
        for directory in directories:
            directory.mkdir(parents=True, exist_ok=True)

    def path(self, phy_offset: int) -> Path:
        """The file that holds, or would hold, that offset."""
        number = phy_offset // self.mapped_file_size
        return self.directories[number % len(self.directories)] / f"{number * self.mapped_file_size:020d}"

    def write(self, *messages: LogMessage) -> list[int]:
        """One record each; their offsets."""
        return [self.write_batch([message])[0] for message in messages]

    def write_batch(self, messages: Sequence[LogMessage]) -> list[int]:
        """One send of many: where they do not all fit, all go to the next file."""
        self._make_room(sum(map(frame_size, messages)))
        offsets = []
        for message in messages:
            data = frame(message, self.position)
            offsets.append(self.position)
            self.frames.append((self.position, len(data)))
            self.write_bytes(data)
        return offsets

    def write_imitation(self, message: LogMessage, inner: Sequence[LogMessage], *, after: bytes = b"") -> list[int]:
        """One record whose body is the bytes of perfect records that say the place where they stand, then `after`.

        The outer record's offset, then those of the imitations.
        """
        size = frame_size(replace(message, body=b"".join(frame(each, 0) for each in inner) + after))
        self._make_room(size)
        at = self.position + frame(replace(message, body=b"\0MARK\0"), 0).index(b"\0MARK\0")
        body, offsets = b"", []
        for each in inner:
            offsets.append(at + len(body))
            body += frame(each, at + len(body))
        return self.write(replace(message, body=body + after)) + offsets

    def write_blank(self) -> None:
        """Ends the file here."""
        free = self.mapped_file_size - self.position % self.mapped_file_size
        self.write_bytes(struct.pack(">iI", free, BLANK))
        self.position += free - 8

    def write_bytes(self, data: bytes) -> None:
        """These bytes at the end of the log, whatever they are."""
        path = self.create_file(self.position)
        with path.open("r+b") as file:
            file.seek(self.position % self.mapped_file_size)
            file.write(data)
        self.position += len(data)

    def create_file(self, phy_offset: int) -> Path:
        """The file of that offset at full length: zeros, sparse. The brokers make the next file early this way."""
        path = self.path(phy_offset)
        if not path.exists():
            with path.open("wb") as file:
                os.truncate(file.fileno(), self.mapped_file_size)
        return path

    def create_next_file(self) -> Path:
        return self.create_file((self.position // self.mapped_file_size + 1) * self.mapped_file_size)

    def tear(self, keep: int) -> None:
        """Of the last record only the first `keep` bytes got to the disk."""
        phy_offset, size = self.frames.pop()
        self.overwrite(phy_offset + keep, bytes(size - keep))

    def overwrite(self, phy_offset: int, data: bytes) -> None:
        """Damage: other bytes at that place of the log."""
        with self.path(phy_offset).open("r+b") as file:
            file.seek(phy_offset % self.mapped_file_size)
            file.write(data)

    def _make_room(self, size: int) -> None:
        if size + 8 > self.mapped_file_size:
            raise ValueError(f"{size} bytes do not fit in a file of {self.mapped_file_size}")
        if size + 8 > self.mapped_file_size - self.position % self.mapped_file_size:
            self.write_blank()
