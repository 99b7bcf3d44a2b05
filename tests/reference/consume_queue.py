"""One consume queue in memory, as sections 7.3 to 7.5 of the format document tell it, a unit at a time.

Blank units count as no units, and an empty queue begins where its next unit says, even if a file of it is there: there
a broker that was killed would write at the wrong place.
"""

from __future__ import annotations

import struct

from tests.reference.java import wrap

__all__ = ["BLANK", "UNIT", "ConsumeQueue", "taken", "valid_units"]

UNIT = struct.Struct(">qiq")
BLANK = UNIT.pack(0, 2**31 - 1, 0)


class ConsumeQueue:
    """`files`: start -> bytes. `end`, `first`: queue offsets. `times`: store_timestamp by phy_offset, for questions."""

    def __init__(self, file_size: int) -> None:
        self.file_size = file_size
        self.files: dict[int, bytearray] = {}
        self.end = self.first = 0
        self.max_phy_offset = -1

    def put(self, phy_offset: int, size: int, tags_code: int, queue_offset: int) -> str:
        """What became of it: "written", "misplaced" or "repeated"."""
        if wrap(phy_offset + size, 64) <= self.max_phy_offset:
            return "repeated"
        if self.first >= self.end:
            self.files.clear()
            self.first = self.end = queue_offset
            start = 20 * queue_offset - 20 * queue_offset % self.file_size
            self.files[start] = bytearray(self.file_size)
            for at in range(0, 20 * queue_offset - start, 20):
                self.files[start][at : at + 20] = BLANK
        elif queue_offset != 0 and queue_offset < self.end:
            return "repeated"
        at = 20 * self.end
        start = max(self.files)
        if at == start + self.file_size:
            start = at
            self.files[start] = bytearray(self.file_size)
        self.files[start][at - start : at - start + 20] = UNIT.pack(phy_offset, size, tags_code)
        self.max_phy_offset = wrap(phy_offset + size, 64)
        self.end += 1
        return "written" if queue_offset in (0, self.end - 1) else "misplaced"

    def units(self, start: int = 0, stop: int = 2**62) -> list[tuple[int, int, int, int]]:
        """(queue_offset, phy_offset, size, tags_code)."""
        return [(q, *self.unit(q)) for q in range(max(start, self.first), min(stop, self.end))]

    def unit(self, queue_offset: int) -> tuple[int, int, int]:
        at = 20 * queue_offset
        start = max(start for start in self.files if start <= at)
        phy_offset, size, tags_code = UNIT.unpack_from(self.files[start], at - start)
        return phy_offset, size, tags_code

    def truncate(self, phy_offset: int) -> None:
        """File by file from the last one: the units of a file that has none before `phy_offset` go, or those from the
        first one on that lies there."""
        for start in sorted(self.files, reverse=True):
            begin = max(start // 20, min(self.end, start // 20))
            stop = min((start + self.file_size) // 20, self.end)
            keep = begin
            while keep < stop and self.unit(keep)[0] < phy_offset:
                keep += 1
            if keep > begin:
                self.end = keep
                break
            del self.files[start]
        if self.files and self.end > self.first:
            phy, size, _ = self.unit(self.end - 1)
            self.max_phy_offset = phy + size
            last = max(self.files)
            self.files[last][20 * self.end - last :] = bytes(last + self.file_size - 20 * self.end)
        else:
            self.files.clear()
            self.end = self.first = 0
            self.max_phy_offset = phy_offset

    def min_offset(self, min_phy_offset: int) -> int:
        """The first unit that leads into a log which begins there; the end if there is none."""
        files: dict[int, list[int]] = {}
        for queue_offset, *_ in self.units():
            files.setdefault(20 * queue_offset // self.file_size, []).append(queue_offset)
        for offsets in files.values():
            if self.unit(offsets[-1])[0] >= min_phy_offset:
                return next(q for q in offsets if self.unit(q)[0] >= min_phy_offset)
        return self.end


def taken(
    data: bytes, start: int, hashes: set[int] | None, log: list[tuple[int, int]], room: int
) -> tuple[list[tuple[int, int, int, int]], int]:
    """The first `room` units (number, phy_offset, size, tags_code) from position `start` on that a consumer's broker
    would send, and the position behind the last that it looked at. `hashes`: unsigned, None: no filter. `log`: [begin,
    end) of what each of its files holds. The size is 0 where none of them has the whole message."""
    units, at = list[tuple[int, int, int, int]](), start
    while at < len(data) // 20 and len(units) < room:
        phy_offset, size, tags_code = UNIT.unpack_from(data, 20 * at)
        there = size > 0 and any(begin <= phy_offset and phy_offset + size <= end for begin, end in log)
        if hashes is None or tags_code & 0xFFFFFFFF in hashes or tags_code < -(2**31):
            units.append((at, phy_offset, size if there else 0, tags_code))
        at += 1
    return units, at


def valid_units(data: bytes) -> int:
    """How many units stand at the start of a file before the first that is not valid."""
    for number in range(len(data) // 20):
        phy_offset, size, _ = UNIT.unpack_from(data, 20 * number)
        if phy_offset < 0 or size <= 0:
            return number
    return len(data) // 20
