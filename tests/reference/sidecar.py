"""Optimised index files and their sidecars, as the drawing in `mqindex.rocketmq.layout` tells them."""

from __future__ import annotations

import struct
from itertools import pairwise

from tests.reference.index_file import ENTRY, IndexFile

__all__ = ["KeyFilter", "fence_of", "optimised"]

PAGE = 4096
MASK = (1 << 64) - 1


def optimised(file: IndexFile) -> IndexFile:
    """The same entries, those of a slot together, oldest first; header and answers stay."""
    made = IndexFile.load(bytes(file.data), file.hash_slot_num, file.index_num)
    made.data[40:] = bytes(len(made.data) - 40)
    last = min(file.index_count, file.index_num)
    order = sorted(range(1, last), key=lambda number: (file.entry(number)[0] % file.hash_slot_num, number))
    for place, number in enumerate(order, 1):
        hashed, phy_offset, seconds, _ = file.entry(number)
        slot = hashed % file.hash_slot_num
        start = 40 + 4 * file.hash_slot_num + 20 * place
        ENTRY.pack_into(made.data, start, hashed, phy_offset, seconds, made.slot(slot))
        struct.pack_into(">i", made.data, 40 + 4 * slot, place)
    return made


def fence_of(file: IndexFile) -> list[int]:
    """The slot of the first entry that begins in each page, from that of entry 1 on."""
    first: dict[int, int] = {}
    for number in range(1, min(file.index_count, file.index_num)):
        page = (40 + 4 * file.hash_slot_num + 20 * number) // PAGE
        first.setdefault(page, file.entry(number)[0] % file.hash_slot_num)
    return list(first.values())


class KeyFilter:
    """The keys of one file in a filter: the filter's bytes, and the file's number."""

    def __init__(self, data: bytes, number: int) -> None:
        self.slots, entries, files = struct.unpack_from(">3i", data, 12)
        self.shift = max([n for n in range(7) if entries << n <= 64 * self.slots], default=0)
        rows = (self.slots - 1 >> self.shift) + 1
        table = 40 + 44 * files
        starts = struct.unpack_from(f">{rows + 1}Q", data, table)
        first = table + 8 * (rows + 1)
        assert first + starts[-1] == len(data)
        self.rows = [data[first + start : first + stop] for start, stop in pairwise(starts)]
        self.files, self.number = files, number

    def bucket(self, row: int) -> list[int]:
        """The numbers of 14 bits in a row, sorted."""
        counts = struct.unpack_from(f">{self.files}H", self.rows[row], 4)
        lengths = [count and count + (count + 71) // 8 for count in counts]
        at = 4 + 2 * self.files + sum(lengths[: self.number])
        lows = self.rows[row][at : at + counts[self.number]]
        bits = self.rows[row][at + len(lows) : at + lengths[self.number]]
        numbers, group = [], 0
        for bit in range(8 * len(bits) if lows else 0):
            if bits[bit // 8] >> bit % 8 & 1:
                numbers.append(group << 8 | lows[len(numbers)])
            else:
                group += 1
        return numbers

    def may_hold(self, hashed: int) -> bool:
        slot = hashed % self.slots
        mixed = (hashed ^ hashed >> 33) * 0xFF51AFD7ED558CCD & MASK
        mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        inside = slot % (1 << self.shift)
        number = inside << 14 - self.shift | mixed >> 32 >> 18 + self.shift
        return number in self.bucket(slot >> self.shift)
