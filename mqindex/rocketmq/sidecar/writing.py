"""Writing the sidecars of index files whose entries are in the order of their slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mqindex._native.crc import crc32c
from mqindex._native.index_file import IndexCore
from mqindex._native.key_filter import build_rows, filter_shape
from mqindex._native.sidecar import build_fence
from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.files.paths import base_name, join
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE
from mqindex.rocketmq.sidecar.binding import bound_header, sealed
from mqindex.rocketmq.sidecar.layout import (
    FILTER_HEADER_SIZE,
    FILTER_ROW_START_SIZE,
    FILTER_VERSION,
    MAGIC_FILTER,
    FilterHeader,
)
from mqindex.rocketmq.sidecar.names import FENCE

if TYPE_CHECKING:
    from typing_extensions import Buffer

KEYS = ".keys"  # after the name of the index file: a filter of it alone
_PART = 4096  # rows of one file in memory
_PAGE, _SLOT = 4096, 4  # of a fence: of a page one slot
_AT_ONCE = 16  # parts
_ROW = 23  # bytes at most beside its numbers: its start, checksum, count, and the ends of the groups
_NUMBER_BITS = 9
_HEADERS = 256


def sidecar_space(geometry: tuple[int, int]) -> int:
    """Bytes that the sidecars of a full index file take: the fence, a filter of it alone, its part of that of all."""
    rows, _ = filter_shape(*geometry)
    fence = _SLOT * (geometry[1] * INDEX_ENTRY_SIZE // _PAGE + 2)
    return fence + 2 * (rows * _ROW + geometry[1] * _NUMBER_BITS // 8 + _HEADERS)


def write_sidecars(index_path: str, out_directory: str, *, geometry: tuple[int, int]) -> tuple[str, str] | None:
    """Write the fence of a finished, optimised index file, and a filter of it alone, for `weave`.

    Returns their paths, None for no entries. The fence is on the disk when this returns; the directory, which must
    exist, is not synced. Their names are that of the index file with `.fence` and `.keys`, and must be free. Memory:
    that of the fence, a thousandth of the file, and some MiB.

    Raises
    ------
    CorruptIndexError : the entries are not in the order of their slots
    FileExistsError : there is such a sidecar
    """
    with MappedFile.open(index_path) as file:
        core = IndexCore(file.map, *geometry, False, index_path)
        try:
            covered = max(core.header()[5], 1) - 1
            if covered < 1:
                return None
            fence, keys = (join(out_directory, base_name(index_path) + one) for one in (FENCE, KEYS))
            known = _write_fence(fence, file, core, geometry, covered)
            if not _write_keys(keys, core, geometry, covered, known):
                raise CorruptIndexError(
                    "the entries are not in the order of their slots", path=index_path,
                    hint="optimize the index first (mqindex optimize)",
                )  # fmt: skip
            return fence, keys
        finally:
            core.close()


def _write_fence(path: str, file: MappedFile, core: IndexCore, geometry: tuple[int, int], covered: int) -> bytes:
    """What a filter knows the file by."""
    slots = build_fence(core, covered)
    pages = memoryview(slots).nbytes // _SLOT
    header = bound_header(file, geometry, covered, pages=pages, content=crc32c(slots))
    with disk.new_file(path) as fd:
        disk.write_all(fd, sealed(header.to_bytes()))
        disk.write_all(fd, memoryview(slots))
        disk.sync(fd)
    return header.of_filter()


def _write_keys(path: str, core: IndexCore, geometry: tuple[int, int], covered: int, known: bytes) -> bool:
    """Write the filter of one file; False: its entries are not in the order of their slots."""
    shift, entries = filter_shape(*geometry)[1], []

    def rows_of(first: int, stop: int, seed: int) -> tuple[Buffer, memoryview]:
        rows, lengths, some = build_rows(core, covered, shift, first, stop, seed)
        entries.append(some)
        return rows, lengths

    try:
        write_filter(path, geometry, [known], rows_of)
    except ValueError:
        return False
    return sum(entries) == covered


_Rows = Callable[[int, int, int], tuple["Buffer", memoryview]]


def write_filter(path: str, geometry: tuple[int, int], known: Sequence[bytes], rows_of: _Rows) -> None:
    """Write a filter for files that are known by these bytes; `rows_of(first, stop, seed)`: rows and their lengths.

    It is not synced.
    """
    n, _ = filter_shape(*geometry)
    files = b"".join(known)
    seed = crc32c(files)
    place = FILTER_HEADER_SIZE + len(files) + FILTER_ROW_START_SIZE * (n + 1)
    ends, at = [np.zeros(1, np.uint64)], 0
    with disk.new_file(path) as fd:
        for rows, lengths in _parts(n, max(_PART // len(known), 1), lambda one: rows_of(*one, seed)):
            disk.pwrite_all(fd, memoryview(rows), place + at)
            ends.append(np.cumsum(np.asarray(lengths), dtype=np.uint64) + np.uint64(at))
            at = int(ends[-1][-1])
        header = FilterHeader(MAGIC_FILTER, FILTER_VERSION, *geometry, len(known), place + at, seed)
        starts = np.concatenate(ends).astype(">u8")
        disk.pwrite_all(fd, sealed(header.to_bytes()) + files + starts.tobytes(), 0)


def _parts(
    n: int, size: int, made_of: Callable[[tuple[int, int]], tuple[Buffer, memoryview]]
) -> Iterator[tuple[Buffer, memoryview]]:
    """So many rows after another; a few parts at a time are made by threads."""
    ranges = [(first, min(first + size, n)) for first in range(0, n, size)]
    engine = LocalEngine()
    for at in range(0, len(ranges), _AT_ONCE):
        yield from engine.map(made_of, ranges[at : at + _AT_ONCE], name="build the key filter")
