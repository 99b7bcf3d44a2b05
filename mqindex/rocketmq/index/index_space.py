"""The disk space of one index file: what of a sparse file is reserved, and what is worth reading ahead."""

from __future__ import annotations

from mqindex._native.index_file import IndexCore
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import layout

_RESERVED_AHEAD = 1 << 20  # bytes of a sparse file that single puts reserve at a time


class IndexSpace:
    """Where the slots and entries of a mapped index file are. sparse : only its header has disk space yet."""

    def __init__(self, file: MappedFile, core: IndexCore, hash_slot_num: int, index_num: int, *, sparse: bool) -> None:
        self._file, self._core = file, core
        self._slots_end = layout.INDEX_HEADER_SIZE + layout.INDEX_SLOT_SIZE * hash_slot_num
        self._index_num = index_num
        self._reserved = 0 if sparse else file.size  # bytes that have disk space

    def populate(self) -> None:
        """Read the part in use ahead; after it a sparse file would get pages of zeros."""
        if not self._core.closed:
            self._file.populate(self._used())

    def reserve(self, n: int) -> None:
        """Give the slots and the next n entries of a sparse file their disk space: a full disk is an OSError now."""
        if self._reserved >= self._file.size or self._core.closed:
            return
        start = max(self._reserved, self._slots_end if self._reserved else 0)
        needed = self._used() + layout.INDEX_ENTRY_SIZE * n
        if needed > self._reserved:
            stop = min(max(needed, self._reserved + _RESERVED_AHEAD), self._file.size)
            self._file.reserve_range(start, stop)
            self._reserved = stop

    def _used(self) -> int:
        """Where the existing entries end, at most at the end of the file."""
        index_count = self._core.header()[5]
        return self._slots_end + layout.INDEX_ENTRY_SIZE * min(max(index_count, 1), self._index_num)
