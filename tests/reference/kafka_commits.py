"""A commit of a group, from one record's key and value: from the broker's message definitions alone, byte by byte."""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["Commit", "commit"]


class Commit(NamedTuple):
    """-1 and None: there is none."""

    kind: str
    group: bytes | None = None
    topic: bytes | None = None
    partition: int = -1
    offset: int = -1
    leader_epoch: int = -1
    metadata: bytes | None = None
    commit_time: int = -1
    expire_time: int = -1


class Short(Exception):
    """The bytes do not suffice."""


def commit(key: bytes | None, value: bytes | None) -> Commit:
    """What the record says."""
    try:
        version, rest = _number(key or b"", 2)
        if version not in (0, 1, 2):
            return Commit("other")
        group, rest = _text(rest)
        if version == 2:
            return Commit("group", group)
        topic, rest = _text(rest)
        partition, rest = _number(rest, 4)
        if value is None:
            return Commit("deleted", group, topic, partition)
        return Commit("commit", group, topic, partition, *_value(value))
    except Short:
        return Commit("unreadable")


def _value(value: bytes) -> tuple[int, int, bytes, int, int]:
    version, rest = _number(value, 2)
    if not 0 <= version <= 4:
        raise Short
    offset, rest = _number(rest, 8)
    leader_epoch, rest = _number(rest, 4) if version >= 3 else (-1, rest)
    metadata, rest = _compact_text(rest) if version == 4 else _text(rest)
    commit_time, rest = _number(rest, 8)
    expire_time, rest = _number(rest, 8) if version == 1 else (-1, rest)
    return offset, leader_epoch, metadata, commit_time, expire_time


def _number(data: bytes, width: int) -> tuple[int, bytes]:
    if len(data) < width:
        raise Short
    return struct.unpack({2: ">h", 4: ">i", 8: ">q"}[width], data[:width])[0], data[width:]


def _text(data: bytes) -> tuple[bytes, bytes]:
    size, rest = _number(data, 2)
    return _taken(rest, size)


def _compact_text(data: bytes) -> tuple[bytes, bytes]:
    size = 0
    for number in range(5):
        if number >= len(data):
            raise Short
        size |= (data[number] & 0x7F) << 7 * number
        if data[number] < 0x80:
            return _taken(data[number + 1 :], (size & 0xFFFFFFFF) - 1)
    raise Short


def _taken(data: bytes, size: int) -> tuple[bytes, bytes]:
    if not 0 <= size <= len(data):
        raise Short
    return data[:size], data[size:]
