"""Whether bytes are of an index file of a geometry (hash_slot_num, index_num), and what the default one is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import (
    HASH_SLOT_NUM,
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_NUM,
    INDEX_SLOT_SIZE,
    IndexHeader,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

Geometry = tuple[int, int]

DEFAULT: Final[Geometry] = (HASH_SLOT_NUM, INDEX_NUM)
DEFAULT_SIZE: Final = layout.index_file_size(*DEFAULT)
SMALLEST: Final = layout.index_file_size(1, 1)
NEWEST: Final = 16  # entries checked in a quick look at a file of the default length


def entries_of(file: MappedFile) -> int:
    """How many a file has, by its header."""
    return max(IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)).index_count - 1, 0)


def content_fits(data: Buffer, geometry: Geometry, newest: int | None) -> bool:
    """Whether the used slots head chains of their entries. `newest`: only so many of these are looked at; None: all."""
    from mqindex._native.index_file import IndexCore

    core = IndexCore(data, *geometry, False)
    try:
        return bool(core.fits(newest))
    finally:
        core.close()


def of_length(slots: Iterable[int], size: int) -> list[Geometry]:
    """The geometries with these numbers of slots in a file of this length."""
    return [(int(s), (size - INDEX_HEADER_SIZE - INDEX_SLOT_SIZE * int(s)) // INDEX_ENTRY_SIZE) for s in slots]
