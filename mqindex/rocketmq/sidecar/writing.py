"""Writing the sidecars of an index file whose entries are in the order of their slots."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from mqindex._native.crc import crc32c
from mqindex._native.index_file import IndexCore
from mqindex._native.sidecar import build_fence, build_fingerprints, filter_cuts
from mqindex.engines import LocalEngine
from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq.layout import MAGIC_FENCE, MAGIC_FILTER, PARTITION_SIZE, SIDECAR_HEADER_SIZE, Partition
from mqindex.rocketmq.sidecar.binding import bound_header, sealed
from mqindex.rocketmq.sidecar.names import SUFFIXES

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["write_sidecars"]

_AT_ONCE = 16  # partitions in memory


def write_sidecars(index_path: str, out_directory: str, *, geometry: tuple[int, int]) -> list[str]:
    """Write the fence and the filter of a finished, optimised index file; returns their paths, [] for no entries.

    They are on the disk when this returns; the directory, which must exist, is not synced. Their names are that of the
    index file with `.fence` and `.filter`, and must be free. Memory: that of the fence, a thousandth of the file, and
    some MiB.

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
                return []
            ordered, *_ = core.order()
            if ordered != covered:
                raise CorruptIndexError(
                    "the entries are not in the order of their slots", path=index_path, field=f"entry {ordered + 1}",
                    hint="optimize the index first (mqindex optimize)",
                )  # fmt: skip
            name = os.path.basename(index_path)
            fence, keys = (os.path.join(out_directory, name + suffix) for suffix in SUFFIXES)
            _write_fence(fence, file, core, geometry, covered)
            _write_filter(keys, file, core, geometry, covered)
            return [fence, keys]
        finally:
            core.close()


def _write_fence(path: str, file: MappedFile, core: IndexCore, geometry: tuple[int, int], covered: int) -> None:
    slots = build_fence(core, covered)
    length = memoryview(slots).nbytes
    header = bound_header(
        file, geometry, covered, magic=MAGIC_FENCE, items=length // 4, size=SIDECAR_HEADER_SIZE + length,
        content=crc32c(slots),
    )  # fmt: skip
    with disk.new_file(path) as fd:
        disk.write_all(fd, sealed(header))
        disk.write_all(fd, memoryview(slots))
        disk.sync(fd)


def _write_filter(path: str, file: MappedFile, core: IndexCore, geometry: tuple[int, int], covered: int) -> None:
    cuts = filter_cuts(core, covered)
    place = SIDECAR_HEADER_SIZE + PARTITION_SIZE * len(cuts)
    start, table = 0, bytearray()
    with disk.new_file(path) as fd:
        for first_slot, (fingerprints, length, count, seed) in _partitions(core, cuts, covered):
            disk.pwrite_all(fd, memoryview(fingerprints), place + start)
            table += Partition(first_slot, length, count, seed, start, crc32c(fingerprints)).to_bytes()
            start += memoryview(fingerprints).nbytes
        header = bound_header(
            file, geometry, covered, magic=MAGIC_FILTER, items=len(cuts), size=place + start, content=crc32c(table)
        )
        disk.pwrite_all(fd, sealed(header) + bytes(table), 0)
        disk.sync(fd)


def _partitions(
    core: IndexCore, cuts: Sequence[tuple[int, int]], covered: int
) -> Iterator[tuple[int, tuple[Buffer, int, int, int]]]:
    """(first slot, fingerprints) of every partition; a few at a time are made by threads."""
    ranges = list(pairwise([*(entry for entry, _ in cuts), covered + 1]))
    slots = [slot for _, slot in cuts]
    engine = LocalEngine()
    for at in range(0, len(ranges), _AT_ONCE):
        some = ranges[at : at + _AT_ONCE]
        made = engine.map(lambda one: build_fingerprints(core, *one), some, name="build the key filter")
        yield from zip(slots[at : at + _AT_ONCE], made, strict=True)
