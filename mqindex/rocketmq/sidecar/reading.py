"""Reading the sidecars of an optimised index file: opened with it, checked against it, unused when they do not fit."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from mqindex._native.file_watch import FileWatch
from mqindex._native.index_file import IndexCore
from mqindex._native.sidecar import ColdSearch
from mqindex.errors import MQIndexError
from mqindex.files.paths import parent_of
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.regular import reading
from mqindex.files.reading.residency import Residency
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.binding import fence_header, misfit, require_bound, require_geometry, require_slots
from mqindex.rocketmq.sidecar.key_filter import FilterFile, open_filter
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FenceHeader
from mqindex.rocketmq.sidecar.names import fence_path, filter_path


class Sidecars:
    """The fence of one index file, read whole, and the filter if it knows the file. `search` looks keys up in them.

    Opening checks the fence and what binds it to the file, and of the filter what is not its rows, which are compared
    with their checksums when they are first read. What binds the fence is compared again where somebody has written to
    the file since: another may have been copied over it. A filter is not used any more once somebody has written to it.
    """

    def __init__(self, index: MappedFile, geometry: tuple[int, int]) -> None:
        """`MQIndexError` or `OSError`: the fence is missing, damaged, or not of this file."""
        self.fence = fence_path(index.path)
        self.header, slots = read_fence(self.fence, geometry)
        self.covered = self.header.covered
        with contextlib.ExitStack() as opened:
            here = not isinstance(index.path, Place)  # what is elsewhere is of one version, or an error
            residency = opened.enter_context(contextlib.closing(Residency(index.path))) if here else None
            watch = FileWatch(residency.fileno()) if residency is not None else None
            require_bound(self.fence, self.header, index)
            self.filter, self.number = _filter_of(index.path, self.header)
            self.search = ColdSearch(
                slots, None if self.filter is None else self.filter.rows, file=self.number, covered=self.covered,
                header=index.read(0, INDEX_HEADER_SIZE), watch=watch, fits=partial(_fits, self.header, index),
                in_memory=residency, fetch=None if here else _nothing,
            )  # fmt: skip
            self._opened = opened.pop_all()

    def lead_to_all(self, core: IndexCore, *, filtered: bool) -> bool:
        """Whether the fence leads to every entry, and the filter if it is `filtered`, which it is not otherwise.

        What binds them to the file is a sample.
        """
        keys = self.filter
        if filtered != (keys is not None) or self.search.wrong_page(core) is not None:
            return False
        return keys is None or keys.rows.missing_entry(self.number, core, self.covered) is None

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._opened.close()


def _nothing(pages: object) -> None:
    """Of a file elsewhere all pages were read before."""


def find_sidecars(index: MappedFile, geometry: tuple[int, int]) -> Sidecars | None:
    """The sidecars that cover a whole index file; None: there are none, and look-ups read its slots."""
    try:
        found = Sidecars(index, geometry)
    except (MQIndexError, OSError):
        return None
    if IndexHeader.from_bytes(index.map[:INDEX_HEADER_SIZE]).index_count == found.covered + 1:
        return found
    found.close()
    return None


def read_fence(path: str, geometry: tuple[int, int]) -> tuple[FenceHeader, bytes]:
    """The header and the slots of a fence; `CorruptIndexError`: it is damaged, or of another geometry."""
    with reading(path) as file:
        data = file.read()
    header, slots = fence_header(data[:FENCE_HEADER_SIZE], len(data), path), data[FENCE_HEADER_SIZE:]
    require_geometry(path, header, geometry)
    require_slots(slots, header, path)
    return header, slots


def read_fence_header(path: str) -> FenceHeader:
    """The header of a fence; `CorruptIndexError`: it is damaged."""
    with reading(path) as file:
        return fence_header(file.read(FENCE_HEADER_SIZE), file.seek(0, os.SEEK_END), path)


def _filter_of(index_path: str, fence: FenceHeader) -> tuple[FilterFile | None, int]:
    """The filter, and which of its files this one is; None: none knows it, and the file may hold everything."""
    with contextlib.suppress(MQIndexError, OSError):
        found = open_filter(filter_path(parent_of(index_path)))
        number = found.number_of(fence)
        if number is not None:
            return found, number
    return None, 0


def _fits(header: FenceHeader, index: MappedFile) -> bool:
    try:
        return misfit(header, index) is None
    except (MQIndexError, OSError):  # cut, or closed, meanwhile: the look-up itself says so
        return False
