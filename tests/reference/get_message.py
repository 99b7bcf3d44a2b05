"""The broker's answer to a pull request, in the steps of its source: `DefaultMessageStore.getMessage` of 4.9.3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Answer", "Queue", "get_message"]

Unit = tuple[int, int, int]


@dataclass(frozen=True)
class Queue:
    """`units[n]` is that of queue offset `first + n`; a file holds `units_a_file`."""

    first: int
    units: Sequence[Unit]
    units_a_file: int


@dataclass(frozen=True)
class Answer:
    status: str
    next_begin_offset: int
    phy_offsets: list[int]


def get_message(
    queue: Queue, log_end: int, log_file_size: int, offset: int, most: int, hashes: set[int] | None, log_begin: int = 0
) -> Answer:
    """`hashes`: of the subscription's tags; None: all."""
    low, high = queue.first, queue.first + len(queue.units)
    if high == 0:
        return Answer("NO_MESSAGE_IN_QUEUE", 0, [])
    if offset < low:
        return Answer("OFFSET_TOO_SMALL", low, [])
    if offset == high:
        return Answer("OFFSET_OVERFLOW_ONE", offset, [])
    if offset > high:
        return Answer("OFFSET_OVERFLOW_BADLY", low if low == 0 else high, [])
    file_end = offset - offset % queue.units_a_file + queue.units_a_file
    status, chosen, skip_below, i = "NO_MATCHED_MESSAGE", list[int](), None, 0
    readable = queue.units[offset - low : min(file_end, high) - low]
    while i < len(readable) * 20 and i < max(16000, most * 20):
        phy, size, code = readable[i // 20]
        i += 20
        if skip_below is not None and phy < skip_below:
            continue
        if chosen and most <= len(chosen):
            i -= 20
            break
        if hashes is not None and low_bits(code) not in hashes and code > -2147483649:
            if not chosen:
                status = "NO_MATCHED_MESSAGE"
            continue
        file_stop = min(phy - phy % log_file_size + log_file_size, log_end)
        if phy < log_begin or phy + size > file_stop:
            if not chosen:
                status = "MESSAGE_WAS_REMOVING"
            skip_below = phy - phy % log_file_size + log_file_size
            continue
        chosen.append(phy)
        status, skip_below = "FOUND", None
    return Answer(status, offset + i // 20, chosen)


def low_bits(code: int) -> int:
    return (code & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
