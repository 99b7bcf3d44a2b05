"""Writing the sidecars of index files whose entries are in the order of their slots."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mqindex._native.crc import crc32c
from mqindex._native.index_file import IndexCore
from mqindex._native.key_filter import build_rows, filter_shape, weave_rows
from mqindex._native.sidecar import build_fence
from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import FILTER_FILE_SIZE, FILTER_HEADER_SIZE, FILTER_ROW_START_SIZE, FilterHeader
from mqindex.rocketmq.sidecar.binding import bound_header, sealed
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.names import FENCE

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["KEYS", "weave_filter", "write_sidecars"]

KEYS = ".keys"  # after the name of the index file: a filter of it alone
_PART = 4096  # rows of one file in memory
_AT_ONCE = 16  # parts


def write_sidecars(index_path: str, out_directory: str, *, geometry: tuple[int, int]) -> tuple[str, str] | None:
    """Write the fence of a finished, optimised index file, and a filter of it alone, for `weave_filter`.

    Returns their paths, None for no entries. The fence is on the disk when this returns; the directory, which must
    exist, is not synced. Their names are that of the index file with `.fence` and `.keys`, and must be free. Memory: that of
    the fence, a thousandth of the file, and some MiB.

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
            ordered, *_ = core.order()
            if ordered != covered:
                raise CorruptIndexError(
                    "the entries are not in the order of their slots", path=index_path, field=f"entry {ordered + 1}",
                    hint="optimize the index first (mqindex optimize)",
                )  # fmt: skip
            fence, keys = (os.path.join(out_directory, os.path.basename(index_path) + one) for one in (FENCE, KEYS))
            known = _write_fence(fence, file, core, geometry, covered)
            shift = filter_shape(*geometry)[1]
            _write_filter(
                keys, geometry, [known], lambda first, stop, seed: build_rows(core, covered, shift, first, stop, seed)
            )
            return fence, keys
        finally:
            core.close()


def weave_filter(path: str, parts: Sequence[tuple[FilterFile, bytes]], *, geometry: tuple[int, int]) -> None:
    """Write one filter for files that others know: of each that other, and what it knows the file by.

    It is on the disk when this returns. `ValueError`: one of the others was damaged meanwhile.
    """
    columns = [(other.rows, other.numbers[known]) for other, known in parts]
    known = [one for _, one in parts]
    _write_filter(path, geometry, known, lambda first, stop, seed: weave_rows(columns, first, stop, seed))
    disk.sync_file(path)


def _write_fence(path: str, file: MappedFile, core: IndexCore, geometry: tuple[int, int], covered: int) -> bytes:
    """What a filter knows the file by."""
    slots = build_fence(core, covered)
    pages = memoryview(slots).nbytes // 4
    header = bound_header(file, geometry, covered, pages=pages, content=crc32c(slots))
    with disk.new_file(path) as fd:
        disk.write_all(fd, sealed(header.to_bytes()))
        disk.write_all(fd, memoryview(slots))
        disk.sync(fd)
    return header.of_filter()


_Rows = Callable[[int, int, int], tuple["Buffer", memoryview]]


def _write_filter(path: str, geometry: tuple[int, int], known: Sequence[bytes], rows_of: _Rows) -> None:
    """`rows_of(first, stop, seed)`: rows and their lengths, for files that are known by these bytes."""
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
        header = FilterHeader(layout.MAGIC_FILTER, layout.FILTER_VERSION, *geometry, len(known), place + at, seed)
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
