"""Reading the sidecars of an optimised index file: opened with it, checked against it, unused when they do not fit."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from mqindex._native.crc import crc32c
from mqindex._native.file_watch import FileWatch
from mqindex._native.sidecar import ColdSearch
from mqindex.errors import CorruptIndexError, MQIndexError
from mqindex.files.mapped_file import MappedFile
from mqindex.files.regular import regular
from mqindex.files.residency import Residency
from mqindex.rocketmq.layout import INDEX_HEADER_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.binding import fence_header, misfit, require_bound
from mqindex.rocketmq.sidecar.key_filter import FilterFile, open_filter
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FenceHeader
from mqindex.rocketmq.sidecar.names import fence_path, filter_path

__all__ = ["Sidecars", "find_sidecars"]


class Sidecars:
    """The fence of one index file, mapped, and the filter if it knows the file. `search` looks keys up in them.

    Opening checks the headers, the lengths and what binds them to the file. The rest is compared with its checksums
    when it is first read. What binds them is compared again where somebody has written to the file since: another may
    have been copied over it. Neither is used any more once somebody has written to it.
    """

    def __init__(self, index: MappedFile, geometry: tuple[int, int]) -> None:
        """`MQIndexError` or `OSError`: the fence is missing, damaged, or not of this file."""
        path = fence_path(index.path)
        with contextlib.ExitStack() as opened:
            residency = opened.enter_context(contextlib.closing(Residency(index.path)))
            fence = regular(path, os.O_RDONLY)
            opened.callback(os.close, fence)
            watches = FileWatch(residency.fileno()), FileWatch(fence)
            self.fence = opened.enter_context(contextlib.closing(MappedFile.open(path)))
            self.header = fence_header(self.fence)
            require_bound(path, self.header, index, geometry)
            self.covered = self.header.covered
            self.filter, self.number = _filter_of(index.path, self.header)
            self.search = ColdSearch(
                memoryview(self.fence.map)[FENCE_HEADER_SIZE:], None if self.filter is None else self.filter.rows,
                file=self.number, covered=self.covered, checksum=self.header.content,
                header=index.map[:INDEX_HEADER_SIZE], index_watch=watches[0], fence_watch=watches[1],
                fits=partial(_fits, self.header, index, geometry), in_memory=residency,
            )  # fmt: skip
            self._opened = opened.pop_all()

    def require_content(self) -> None:
        """Compare the slots now, which are usually compared when they are read; `CorruptIndexError`: they are wrong."""
        checksum = crc32c(memoryview(self.fence.map)[FENCE_HEADER_SIZE:])
        if checksum != self.header.content:
            raise CorruptIndexError(
                "the checksum of the fence is wrong", path=self.fence.path, field="content",
                expected=self.header.content, got=checksum,
            )  # fmt: skip

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._opened.close()


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


def _filter_of(index_path: str, fence: FenceHeader) -> tuple[FilterFile | None, int]:
    """The filter, and which of its files this one is; None: none knows it, and the file may hold everything."""
    with contextlib.suppress(MQIndexError, OSError):
        found = open_filter(filter_path(os.path.dirname(index_path)))
        number = found.number_of(fence)
        if number is not None:
            return found, number
    return None, 0


def _fits(header: FenceHeader, index: MappedFile, geometry: tuple[int, int]) -> bool:
    try:
        return misfit(header, index, geometry) is None
    except (MQIndexError, OSError):  # cut, or closed, meanwhile: the look-up itself says so
        return False
