"""Offset and time indexes: sections 2 and 3 of the format document, as lists of entries."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

__all__ = ["Refused", "append_offset", "floor", "maybe_append_time", "search", "truncate_to"]

Entries = list[tuple[int, int]]


class Refused(Exception):
    """The broker raises."""


def search(keys: Sequence[int], target: int, entry_size: int, *, upper: bool = False) -> int:
    """The number of the greatest key that is not greater (least that is not less); -1: none (section 2.5)."""
    n = len(keys)
    if n == 0:
        return -1
    hot = max(0, n - 1 - 8192 // entry_size)
    if keys[hot] < target:
        low, high = hot, n - 1
    elif keys[0] > target:
        return 0 if upper else -1
    else:
        low, high = 0, hot
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle] > target:
            high = middle - 1
        elif keys[middle] < target:
            low = middle
        else:
            return middle
    if not upper:
        return low
    return -1 if low == n - 1 else low + 1


def floor(entries: Entries, target: int, entry_size: int, none: tuple[int, int]) -> tuple[int, int]:
    at = search([key for key, _ in entries], target, entry_size)
    return entries[at] if at >= 0 else none


def truncate_to(entries: Entries, offset: int, entry_size: int, offset_of: Callable[[tuple[int, int]], int]) -> Entries:
    at = search([offset_of(entry) for entry in entries], offset, entry_size)
    if at < 0:
        return []
    return entries[: at + (offset_of(entries[at]) != offset)]


def append_offset(entries: Entries, room: int, base: int, offset: int, position: int) -> None:
    if len(entries) >= room:
        raise Refused("full")
    if entries and offset <= entries[-1][0]:
        raise Refused("order")
    if not 0 <= offset - base < 1 << 31:
        raise Refused("overflow")
    entries.append((offset, position))


def maybe_append_time(entries: Entries, room: int, base: int, timestamp: int, offset: int, skip: bool) -> None:
    last = entries[-1] if entries else (-1, base)
    if not skip and len(entries) >= room - 1:
        raise Refused("full")
    if entries and (offset < last[1] or timestamp < last[0]):
        raise Refused("order")
    if timestamp > last[0]:
        if len(entries) >= room:
            raise Refused("full")
        if not 0 <= offset - base < 1 << 31:
            raise Refused("overflow")
        entries.append((timestamp, offset))


def offset_bytes(entries: Entries, base: int) -> bytes:
    return b"".join(struct.pack(">ii", offset - base, position) for offset, position in entries)


def time_bytes(entries: Entries, base: int) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, offset - base) for timestamp, offset in entries)
