"""One index file in memory, as sections 2.1 to 2.9 of the format document tell it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.reference.java import key_hash, trunc_div, wrap

__all__ = ["MAX_TIME", "IndexFile"]

MAX_TIME = (1 << 63) - 1
HEADER = struct.Struct(">qqqqii")
ENTRY = struct.Struct(">iqii")


class IndexFile:
    """`data` is the whole file; the index count is kept beside it too, as the broker does."""

    def __init__(self, hash_slot_num: int, index_num: int, seed_phy_offset: int = 0, seed_timestamp: int = 0) -> None:
        self.hash_slot_num, self.index_num = hash_slot_num, index_num
        self.data = bytearray(40 + 4 * hash_slot_num + 20 * index_num)
        self.index_count = 1
        if seed_phy_offset > 0:
            self.data[16:32] = struct.pack(">qq", seed_phy_offset, seed_phy_offset)
        if seed_timestamp > 0:
            self.data[0:16] = struct.pack(">qq", seed_timestamp, seed_timestamp)

    @classmethod
    def load(cls, data: bytes, hash_slot_num: int, index_num: int) -> IndexFile:
        """A file that is there: seeds change nothing, a count of 0 or less means 1."""
        file = cls(hash_slot_num, index_num)
        if len(data) != len(file.data):
            raise ValueError(f"expected {len(file.data)} bytes, got {len(data)}")
        file.data[:] = data
        file.index_count = max(file.header[5], 1)
        return file

    @property
    def header(self) -> tuple[int, int, int, int, int, int]:
        """(begin and end timestamp, begin and end phy offset, hash slot count, index count) as the bytes say."""
        return HEADER.unpack_from(self.data)

    @property
    def begin_timestamp(self) -> int:
        return self.header[0]

    @property
    def end_timestamp(self) -> int:
        return self.header[1]

    @property
    def end_phy_offset(self) -> int:
        return self.header[3]

    @property
    def full(self) -> bool:
        return self.index_count >= self.index_num

    def flush(self) -> bytes:
        """The header of memory goes to the bytes: a file without puts now says 1."""
        struct.pack_into(">i", self.data, 36, self.index_count)
        return bytes(self.data)

    def slot(self, number: int) -> int:
        return int.from_bytes(self.data[40 + 4 * number : 44 + 4 * number], "big", signed=True)

    def entry(self, number: int) -> tuple[int, int, int, int]:
        """(key hash, phy offset, time diff in seconds, previous entry)."""
        return ENTRY.unpack_from(self.data, 40 + 4 * self.hash_slot_num + 20 * number)

    def put(self, key: str, phy_offset: int, store_timestamp: int) -> bool:
        """False when full."""
        if self.full:
            return False
        hashed = key_hash(key)
        slot = hashed % self.hash_slot_num
        head = self.slot(slot)
        if head <= 0 or head > self.index_count:
            head = 0
        number = self.index_count
        begin, _, begin_phy, _, slot_count, _ = self.header
        seconds = trunc_div(wrap(store_timestamp - begin), 1000)
        seconds = 0 if begin <= 0 else max(0, min(seconds, (1 << 31) - 1))
        ENTRY.pack_into(self.data, 40 + 4 * self.hash_slot_num + 20 * number, hashed, phy_offset, seconds, head)
        struct.pack_into(">i", self.data, 40 + 4 * slot, number)
        if number <= 1:
            begin, begin_phy = store_timestamp, phy_offset
        if head == 0:
            slot_count = wrap(slot_count + 1, 32)
        self.index_count = number + 1
        HEADER.pack_into(self.data, 0, begin, store_timestamp, begin_phy, phy_offset, slot_count, number + 1)
        return True

    def is_time_matched(self, begin: int, end: int) -> bool:
        first, last = self.begin_timestamp, self.end_timestamp
        return (begin < first and end > last) or first <= begin <= last or first <= end <= last

    def select(self, key: str, max_num: int = 64, begin: int = 0, end: int = MAX_TIME) -> list[int]:
        """Newest first. A link to the same or a newer entry, which no intact file has, ends the walk."""
        hashed = key_hash(key)
        current = self.slot(hashed % self.hash_slot_num)
        found: list[int] = []
        if current <= 0 or current > self.index_count or self.index_count <= 1:
            return found
        while len(found) < max_num and current < self.index_num:
            entry_hash, phy_offset, seconds, previous = self.entry(current)
            if seconds < 0:
                break
            time = wrap(self.begin_timestamp + 1000 * seconds)
            if entry_hash == hashed and begin <= time <= end:
                found.append(phy_offset)
            if previous <= 0 or previous > self.index_count or previous >= current or time < begin:
                break
            current = previous
        return found

    def entries(self) -> Iterator[tuple[int, int, int, int]]:
        """Those that were written, oldest first."""
        for number in range(1, min(self.index_count, self.index_num)):
            yield self.entry(number)
