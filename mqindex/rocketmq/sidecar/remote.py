"""Sidecars of an index file elsewhere: the fence is read whole, the key filter once it costs less than it saves."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt

from mqindex._native.index_file import IndexCore
from mqindex._native.sidecar import ColdSearch
from mqindex.errors import CorruptIndexError, MQIndexError
from mqindex.files.remote import PAGE, RemoteFile, RemotePlace
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import (
    INDEX_ENTRY_SIZE,
    INDEX_HEADER_SIZE,
    INDEX_SLOT_SIZE,
    MAGIC_FENCE,
    MAGIC_FILTER,
    SIDECAR_HEADER_SIZE,
    IndexHeader,
    SidecarHeader,
)
from mqindex.rocketmq.sidecar.binding import misfit
from mqindex.rocketmq.sidecar.names import DIRECTORY, SUFFIXES
from mqindex.rocketmq.sidecar.reading import require_pair, sidecar_header

__all__ = ["RemoteSidecars", "find_remote_sidecars"]

_REQUEST = 1 << 16  # bytes of a file that take about as long as one request more
_OTHER = "the sidecar is of another index file"


class RemoteSidecars:
    """The fence, and when it is of use the key filter, of one optimised index file elsewhere.

    `geometry`: the file's, which the fence knows.
    """

    def __init__(self, index: RemoteFile, fence: RemotePlace, keys: RemotePlace) -> None:
        """`CorruptIndexError`: the fence is damaged, or not of this file, or entries were appended since."""
        file = _whole(fence)
        self._index, self._asked = index, 0
        self._keys: RemotePlace | None = keys  # until it is read
        self._header = sidecar_header(file, MAGIC_FENCE)
        self._fence = memoryview(file.map)[SIDECAR_HEADER_SIZE:]
        self.geometry = self._header.hash_slot_num, self._header.index_num
        if index.size != layout.index_file_size(*self.geometry):
            raise CorruptIndexError(_OTHER, path=fence.url, field="length", got=index.size)
        self._require_bound(self._header, fence)
        self._index_header = index.read(0, INDEX_HEADER_SIZE)
        covered = IndexHeader.from_bytes(self._index_header).index_count - 1
        if covered != self._header.covered:
            raise CorruptIndexError(_OTHER, path=fence.url, field="covered", expected=covered, got=self._header.covered)
        after = self._place_of(covered + 1)
        index.read(after, min(after + INDEX_ENTRY_SIZE, index.size))  # the kernel looks whether it is empty
        self._search = self._searching(None, 0)

    def heads(self, core: IndexCore, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32] | None:
        """Where the chain of each hash begins, int32, 0: nowhere; None: the slots must be read."""
        self._asked += len(hashes)
        keys, bytes_of_filter = self._keys, self._header.covered  # a little more than one for each entry
        if keys is not None and self._asked * _REQUEST >= bytes_of_filter:
            with contextlib.suppress(MQIndexError, OSError):  # without it all keys may be there
                file = _whole(keys)
                header = sidecar_header(file, MAGIC_FILTER)
                require_pair(file, self._header, header)
                self._require_bound(header, keys)
                self._search = self._searching(memoryview(file.map)[SIDECAR_HEADER_SIZE:], header.items)
            self._keys = None
        return self._search.heads(core, hashes)

    def _require_bound(self, header: SidecarHeader, place: RemotePlace) -> None:
        wrong = misfit(header, self._index, self.geometry)
        if wrong is not None:
            raise CorruptIndexError(_OTHER, path=place.url, field=wrong[0], expected=wrong[1], got=wrong[2])

    def _searching(self, keys: memoryview | None, partitions: int) -> ColdSearch:
        first = self._place_of(1) // PAGE
        try:
            return ColdSearch(
                self._fence, keys, covered=self._header.covered, checksum=self._header.content, partitions=partitions,
                hash_slot_num=self.geometry[0], header=self._index_header,
                fetch=lambda pages: self._index.need(first + pages.astype(np.int64)),
            )  # fmt: skip
        except ValueError as error:
            raise CorruptIndexError(str(error)) from None

    def _place_of(self, entry: int) -> int:
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * self.geometry[0] + INDEX_ENTRY_SIZE * entry


def find_remote_sidecars(index: RemoteFile, place: RemotePlace) -> RemoteSidecars | None:
    """The sidecars of the index file at `place`; None: there are none, and look-ups read its slots."""
    directory = place.parent
    root = None if directory is None else directory.parent
    if root is None:
        return None
    fence, keys = (root / DIRECTORY / (place.name + suffix) for suffix in SUFFIXES)
    try:
        return RemoteSidecars(index, fence, keys)
    except (MQIndexError, OSError):  # a place may say anything of a name that it does not have
        return None


def _whole(place: RemotePlace) -> RemoteFile:
    file = RemoteFile(place)
    file.populate()
    return file
