"""Optimised index files and their sidecars, as the drawing in `mqindex.rocketmq.layout` tells them."""

from __future__ import annotations

import struct

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
    """A filter's bytes after the header."""

    def __init__(self, data: bytes, partitions: int, hash_slot_num: int) -> None:
        self.hash_slot_num = hash_slot_num
        self.partitions = [struct.unpack_from(">4IQI", data, 32 * i) for i in range(partitions)]
        self.fingerprints = data[32 * partitions :]

    def may_hold(self, hashed: int) -> bool:
        slot = hashed % self.hash_slot_num
        _, length, count, seed, start, _ = [one for one in self.partitions if one[0] <= slot][-1]
        if length == 0:
            return True
        mixed = seed << 32 | hashed
        mixed = (mixed ^ mixed >> 33) * 0xFF51AFD7ED558CCD & MASK
        mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        mixed ^= mixed >> 33
        first = (mixed >> 32) * count * length >> 32
        second = (first + length) ^ (mixed >> 18 & (length - 1))
        third = (first + 2 * length) ^ (mixed & (length - 1))
        places = [self.fingerprints[start + place] for place in (first, second, third)]
        return places[0] ^ places[1] ^ places[2] == (mixed ^ mixed >> 32) & 0xFF
