"""Records of a commit log: sections 5.1 to 5.10 of the format document."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.reference.java import decode_utf8, java_split

__all__ = [
    "BLANK",
    "MESSAGE_V1",
    "MESSAGE_V2",
    "ROLLBACK",
    "SCHEDULE_TOPIC",
    "Damage",
    "NotAFrame",
    "Record",
    "body_crc",
    "decode",
    "encode",
    "index_strings",
    "parse_properties",
    "scan_file",
    "scan_log",
]

MESSAGE_V1, MESSAGE_V2, BLANK = -626843481, -626843477, -875286124
BORN_IPV6, STORE_IPV6, ROLLBACK = 0x10, 0x20, 0xC
SCHEDULE_TOPIC = b"SCHEDULE_TOPIC_XXXX"


class NotAFrame(Exception):
    """The bytes at this place are no record that the log may hold."""


@dataclass(frozen=True)
class Record:
    """One record. `blank`: the filler at a file's end, of which only `phy_offset` and `size` count."""

    phy_offset: int
    size: int
    blank: bool = False
    magic: int = MESSAGE_V1
    body_crc: int = 0
    queue_id: int = 0
    flag: int = 0
    queue_offset: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = b"\x7f\0\0\1\0\0\0\0"
    store_timestamp: int = 0
    store_host: bytes = b"\x7f\0\0\1\0\0\0\0"
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body: bytes = b""
    topic: bytes = b""
    properties: bytes = b""

    @property
    def property_map(self) -> dict[str, str]:
        return parse_properties(decode_utf8(self.properties))

    @property
    def offset_id(self) -> str:
        return (self.store_host + struct.pack(">q", self.phy_offset)).hex().upper()


def body_crc(body: bytes) -> int:
    return zlib.crc32(body) & 0x7FFFFFFF


def encode(record: Record) -> bytes:
    """The bytes; the sizes are computed, `record.size` is not looked at."""
    topic_length = ">b" if record.magic == MESSAGE_V1 else ">h"
    rest = b"".join(
        (
            struct.pack(">iiii", record.magic, record.body_crc, record.queue_id, record.flag),
            struct.pack(">qqi", record.queue_offset, record.phy_offset, record.sys_flag),
            struct.pack(">q", record.born_timestamp) + record.born_host,
            struct.pack(">q", record.store_timestamp) + record.store_host,
            struct.pack(">iq", record.reconsume_times, record.prepared_transaction_offset),
            struct.pack(">i", len(record.body)) + record.body,
            struct.pack(topic_length, len(record.topic)) + record.topic,
            struct.pack(">h", len(record.properties)) + record.properties,
        )
    )
    return struct.pack(">i", 4 + len(rest)) + rest


class _Reader:
    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def bytes(self, length: int) -> bytes:
        if length < 0 or self.at + length > self.end:
            raise NotAFrame("a length leads out of the record")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, code: str) -> int:
        value: int = struct.unpack(f">{code}", self.bytes(struct.calcsize(f">{code}")))[0]
        return value


def decode(data: bytes, at: int, file_start: int, *, check_crc: bool = False) -> Record:
    """The record at byte `at` of a file; its own physical offset must say the same place."""
    reader = _Reader(data, at, len(data))
    size, magic = reader.number("i"), reader.number("i")
    if magic == BLANK:
        if at + size != len(data) or size < 8:
            raise NotAFrame("a blank that does not end with the file")
        return Record(file_start + at, size, blank=True)
    if magic not in (MESSAGE_V1, MESSAGE_V2):
        raise NotAFrame("magic")
    if size < 0 or at + size > len(data):
        raise NotAFrame("size")
    reader.end = at + size
    number = reader.number
    crc, queue_id, flag, queue_offset, phy_offset = number("i"), number("i"), number("i"), number("q"), number("q")
    sys_flag, born_timestamp = number("i"), number("q")
    born_host = reader.bytes(20 if sys_flag & BORN_IPV6 else 8)
    store_timestamp = number("q")
    store_host = reader.bytes(20 if sys_flag & STORE_IPV6 else 8)
    reconsume_times, prepared = number("i"), number("q")
    body = reader.bytes(max(number("i"), 0))
    topic = reader.bytes(number("b" if magic == MESSAGE_V1 else "h"))
    properties = reader.bytes(max(number("h"), 0))
    if reader.at != at + size:
        raise NotAFrame("size")
    if phy_offset != file_start + at:
        raise NotAFrame("foreign")
    delay = parse_properties(decode_utf8(properties)).get("DELAY", "0")
    if topic == SCHEDULE_TOPIC and not (re.fullmatch(r"[+-]?[0-9]+", delay) and -(1 << 31) <= int(delay) < 1 << 31):
        raise NotAFrame("delay")
    if check_crc and body and body_crc(body) != crc:
        raise NotAFrame("crc")
    return Record(
        phy_offset, size, False, magic, crc, queue_id, flag, queue_offset, sys_flag, born_timestamp, born_host,
        store_timestamp, store_host, reconsume_times, prepared, body, topic, properties,
    )  # fmt: skip


def parse_properties(text: str) -> dict[str, str]:
    """Names and values must not be empty; a value may hold the name's separator; later ones win."""
    found = {}
    for item in text.split("\x02"):
        name, separator, value = item.partition("\x01")
        if name and separator and value:
            found[name] = value
    return found


def index_strings(record: Record, *, tags: bool) -> list[str] | None:
    """What the record is indexed under, in order (section 3.3); None: not indexed. `tags`: the rule of 5.4 on."""
    if record.sys_flag & ROLLBACK == ROLLBACK:
        return None
    topic, properties = decode_utf8(record.topic), record.property_map
    keys = [properties["UNIQ_KEY"]] if "UNIQ_KEY" in properties else []
    keys += [key for key in java_split(properties.get("KEYS", "")) if key]
    if tags and "TAGS" in properties:
        keys.append(f"T#{properties['TAGS']}")
    return [f"{topic}#{key}" for key in keys]


def scan_file(data: bytes, file_start: int, at: int = 0, *, check_crc: bool = False) -> Iterator[Record]:
    """Records from byte `at` on, the blank too; ends after the blank, or raises `NotAFrame` at the first bad one."""
    while at < len(data):
        record = decode(data, at, file_start, check_crc=check_crc)
        yield record
        at += record.size


@dataclass
class Damage:
    """A stretch of a file that holds no records though good ones follow."""

    start: int
    end: int
    reason: str = field(compare=False, default="")


def scan_log(files: Sequence[tuple[int, bytes]]) -> tuple[list[Record], list[Damage], int]:
    """Messages of (file start, content) in order, damaged stretches, and the end of the log.

    In the last file that holds records the first bad one (CRC included) is the end. In an earlier file it is damage:
    the scan goes on at the next place where a record stands.
    """
    messages: list[Record] = []
    damage: list[Damage] = []
    last = max((i for i, (start, data) in enumerate(files) if _next_record(data, start, 0) is not None), default=-1)
    end = files[0][0] if files else 0
    for number, (start, data) in enumerate(files[: last + 1]):
        at = 0
        while at < len(data):
            try:
                record = decode(data, at, start, check_crc=number == last)
            except NotAFrame as why:
                if number == last:
                    return messages, damage, start + at
                resume = _next_record(data, start, at + 1)
                damage.append(Damage(start + at, start + (len(data) if resume is None else resume), str(why)))
                at = len(data) if resume is None else resume
                continue
            if not record.blank:
                messages.append(record)
            at += record.size
        end = start + at
    return messages, damage, end


def messages_behind(data: bytes, start: int, end: int) -> int:
    """How many messages of a file stand behind the phy offset of its first bad record; bodies are not checked."""
    at = end - start + 1
    count = 0
    while (found := _next_record(data, start, at)) is not None:
        record = decode(data, found, start)
        count += not record.blank
        at = found + record.size
    return count


def _next_record(data: bytes, start: int, at: int) -> int | None:
    """The first byte from `at` on where a record stands; only places with a magic are worth a look."""
    magics = [struct.pack(">i", magic) for magic in (MESSAGE_V1, MESSAGE_V2, BLANK)]
    while True:
        found = [place for magic in magics if (place := data.find(magic, at + 4)) >= 0]
        if not found:
            return None
        at = min(found) - 4
        try:
            decode(data, at, start)
        except NotAFrame:
            at += 1
        else:
            return at
