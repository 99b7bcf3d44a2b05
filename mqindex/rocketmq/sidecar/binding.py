"""What binds a fence to its index file: the header's ends, and a sample of the entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex._native.crc import crc32c
from mqindex.errors import CorruptIndexError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FENCE_SAMPLE, FENCE_VERSION, MAGIC_FENCE, FenceHeader

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CHECKSUM = 4  # bytes
_SLOT, _PAGE = 4, 4096  # bytes of a page's first slot, and of the page


def bound_header(file: MappedFile, geometry: tuple[int, int], covered: int, *, pages: int, content: int) -> FenceHeader:
    """The header of the fence of this index file."""
    sample = _sample(file, geometry[0], covered)
    ends = _ends(IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE)))
    known = MAGIC_FENCE, FENCE_VERSION
    return FenceHeader(*known, *geometry, covered, *ends, sample, pages, FENCE_HEADER_SIZE + _SLOT * pages, content)


def sealed(header: bytes) -> bytes:
    """A header with its checksum."""
    return header + crc32c(header).to_bytes(_CHECKSUM, "big")


def require_sealed(data: bytes, path: str, what: str) -> None:
    """`CorruptIndexError` where a header and its checksum do not agree."""
    stored, checksum = int.from_bytes(data[-_CHECKSUM:], "big"), crc32c(data[:-_CHECKSUM])
    if stored != checksum:
        raise CorruptIndexError(
            f"the checksum of the {what}'s header is wrong", path=path, field="checksum", expected=checksum, got=stored
        )


def fence_header(data: bytes, size: int, path: str) -> FenceHeader:
    """The header at the beginning of a fence of so many bytes; `CorruptIndexError` where it is none, or damaged."""
    if len(data) < FENCE_HEADER_SIZE:
        raise CorruptIndexError("the fence is too short", path=path, expected=f"{FENCE_HEADER_SIZE} bytes", got=size)
    header = FenceHeader.from_bytes(data)
    known = MAGIC_FENCE, FENCE_VERSION, size
    if (header.magic, header.version, header.size) != known:
        raise CorruptIndexError(
            "not a fence of this length", path=path,
            expected=f"{known[0]!r}, version {known[1]}, {known[2]} bytes",
            got=f"{header.magic!r}, version {header.version}, {header.size} bytes",
        )  # fmt: skip
    require_sealed(data[:FENCE_HEADER_SIZE], path, "fence")
    length = FENCE_HEADER_SIZE + _SLOT * _pages(header)
    if header.covered < 1 or length != size or header.pages != _pages(header):
        raise CorruptIndexError("the fence has another length", path=path, expected=f"{length} bytes", got=size)
    return header


def _pages(header: FenceHeader) -> int:
    """In how many pages of the file entries begin."""
    first, last = (
        (INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * header.hash_slot_num + INDEX_ENTRY_SIZE * number) // _PAGE
        for number in (1, header.covered)
    )
    return last - first + 1


def require_slots(slots: Buffer, header: FenceHeader, path: str) -> None:
    """`CorruptIndexError` where the slots after a fence's header are damaged."""
    checksum = crc32c(slots)
    if checksum != header.content:
        raise CorruptIndexError(
            "the checksum of the fence is wrong", path=path, field="content", expected=header.content, got=checksum
        )


def require_geometry(path: str, header: FenceHeader, geometry: tuple[int, int]) -> None:
    """`CorruptIndexError` where a fence is for files of another geometry."""
    for field, value in (("hash_slot_num", geometry[0]), ("index_num", geometry[1])):
        if getattr(header, field) != value:
            got = getattr(header, field)
            raise CorruptIndexError(
                "the fence is of another index file", path=path, field=field, expected=value, got=got
            )


def require_bound(path: str, header: FenceHeader, index: MappedFile) -> None:
    """`CorruptIndexError` where a fence of this geometry is not its index file's."""
    wrong = misfit(header, index)
    if wrong is not None:
        field, expected, got = wrong
        raise CorruptIndexError(
            "the fence is of another index file", path=path, field=field, expected=expected, got=got
        )


def misfit(header: FenceHeader, file: MappedFile) -> tuple[str, object, object] | None:
    """The first field that is not its index file's: (field, expected, got); None: the fence is bound to it."""
    index = IndexHeader.from_bytes(file.read(0, INDEX_HEADER_SIZE))
    wrong = misfit_of_header(header, index)
    if wrong is not None:
        return wrong
    sample = _sample(file, header.hash_slot_num, header.covered)
    return None if sample == header.sample else ("sample", sample, header.sample)


def misfit_of_header(header: FenceHeader, index: IndexHeader) -> tuple[str, object, object] | None:
    """The same of what only the header of the index file shows."""
    if not 1 <= header.covered < min(max(index.index_count, 1), header.index_num):
        return "covered", f"1 .. {index.index_count - 1}", header.covered
    known = len(_ENDS) if index.index_count == header.covered + 1 else _KEPT
    for field, value in zip(_ENDS[:known], _ends(index), strict=False):
        if getattr(header, field) != value:
            return field, value, getattr(header, field)
    return None


_ENDS = ("begin_timestamp", "begin_phy_offset", "end_timestamp", "end_phy_offset")
_KEPT = 2  # of them, in a file that grows


def _ends(index: IndexHeader) -> tuple[int, int, int, int]:
    return index.begin_timestamp, index.begin_phy_offset, index.end_timestamp, index.end_phy_offset


def _sample(file: MappedFile, hash_slot_num: int, covered: int) -> int:
    """CRC-32C of the entries at the beginning, in the middle, and at the end of those that are covered."""
    checksum = 0
    for start, stop in sampled(hash_slot_num, covered):
        checksum = crc32c(file.read(start, stop), checksum)
    return checksum


def sampled(hash_slot_num: int, covered: int) -> list[tuple[int, int]]:
    """Where those entries are in the file: from byte `start` to `stop`."""
    before, last = INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * hash_slot_num, covered + 1
    firsts = 1, (covered + 1) // 2, max(last - FENCE_SAMPLE, 1)
    numbers = [(first, min(first + FENCE_SAMPLE, last)) for first in firsts]
    return [(before + INDEX_ENTRY_SIZE * first, before + INDEX_ENTRY_SIZE * stop) for first, stop in numbers]
