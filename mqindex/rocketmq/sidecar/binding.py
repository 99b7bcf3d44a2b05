"""What binds a sidecar to its index file: the header's ends, and a sample of the entries."""

from __future__ import annotations

from mqindex._native.crc import crc32c
from mqindex.errors import CorruptIndexError
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_SLOT_SIZE,
    SIDECAR_SAMPLE,
    IndexHeader,
    SidecarHeader,
)

__all__ = ["bound_header", "misfit", "sealed", "unsealed"]

_CHECKSUM = 4  # bytes


def bound_header(
    file: MappedFile, geometry: tuple[int, int], covered: int, *, magic: bytes, items: int, size: int, content: int
) -> SidecarHeader:
    """The header of a sidecar of this index file."""
    sample = _sample(file, geometry[0], covered)
    ends = _ends(IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)))
    return SidecarHeader(magic, layout.SIDECAR_VERSION, *geometry, covered, *ends, sample, items, size, content)


def sealed(header: SidecarHeader) -> bytes:
    """The 80 bytes of a sidecar's header."""
    data = header.to_bytes()
    return data + crc32c(data).to_bytes(_CHECKSUM, "big")


def unsealed(data: bytes, path: str, magic: bytes, size: int) -> SidecarHeader:
    """The header of a sidecar of so many bytes; `CorruptIndexError` where it is none, or was damaged."""
    if len(data) < layout.SIDECAR_HEADER_SIZE:
        raise CorruptIndexError(
            "the sidecar is too short", path=path, expected=f"{layout.SIDECAR_HEADER_SIZE} bytes", got=len(data)
        )
    header, checksum = SidecarHeader.from_bytes(data), crc32c(data[: layout.SIDECAR_HEADER_SIZE - _CHECKSUM])
    known = magic, layout.SIDECAR_VERSION, size
    if (header.magic, header.version, header.size) != known:
        got = f"{header.magic!r}, version {header.version}, {header.size} bytes"
        expected = f"{magic!r}, version {layout.SIDECAR_VERSION}, {size} bytes"
        raise CorruptIndexError("not a sidecar of this kind and length", path=path, expected=expected, got=got)
    stored = int.from_bytes(data[layout.SIDECAR_HEADER_SIZE - _CHECKSUM : layout.SIDECAR_HEADER_SIZE], "big")
    if stored != checksum:
        raise CorruptIndexError(
            "the checksum of the sidecar's header is wrong",
            path=path,
            field="checksum",
            expected=checksum,
            got=stored,
        )
    return header


def misfit(header: SidecarHeader, file: MappedFile, geometry: tuple[int, int]) -> tuple[str, object, object] | None:
    """The first field that is not its index file's: (field, expected, got); None: the sidecar is bound to it."""
    expected: tuple[tuple[str, object], ...] = (("hash_slot_num", geometry[0]), ("index_num", geometry[1]))
    for field, value in expected:
        if getattr(header, field) != value:
            return field, value, getattr(header, field)
    index = IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE))
    if not 1 <= header.covered < min(max(index.index_count, 1), geometry[1]):
        return "covered", f"1 .. {index.index_count - 1}", header.covered
    sample = _sample(file, geometry[0], header.covered)
    known = len(_ENDS) if index.index_count == header.covered + 1 else _KEPT
    for field, value in (*zip(_ENDS[:known], _ends(index), strict=False), ("sample", sample)):
        if getattr(header, field) != value:
            return field, value, getattr(header, field)
    return None


_ENDS = ("begin_timestamp", "begin_phy_offset", "end_timestamp", "end_phy_offset")
_KEPT = 2  # of them, in a file that grows


def _ends(index: IndexHeader) -> tuple[int, int, int, int]:
    return index.begin_timestamp, index.begin_phy_offset, index.end_timestamp, index.end_phy_offset


def _sample(file: MappedFile, hash_slot_num: int, covered: int) -> int:
    """CRC-32C of the entries at the beginning, in the middle, and at the end of those that are covered."""
    checksum, last = 0, covered + 1
    for first in (1, (covered + 1) // 2, max(last - SIDECAR_SAMPLE, 1)):
        start, stop = (
            INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num + INDEX_ENTRY_SIZE * number
            for number in (first, min(first + SIDECAR_SAMPLE, last))
        )
        checksum = crc32c(file.read(start, stop), checksum)
    return checksum
