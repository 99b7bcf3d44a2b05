"""Sidecars of index files elsewhere: the fence is read whole, of the filter the rows that look-ups need."""

from __future__ import annotations

import contextlib

import numpy as np
import numpy.typing as npt

from mqindex._native.index_file import IndexCore
from mqindex._native.key_filter import AskedHashes, filter_shape
from mqindex._native.sidecar import ColdSearch
from mqindex.columns.distinct import distinct
from mqindex.errors import CorruptIndexError, MQIndexError
from mqindex.files.fork_lock import new_lock
from mqindex.files.places.page_cache import PAGE
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.binding import fence_header, require_bound, require_slots
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FILTER_ROW_START_SIZE
from mqindex.rocketmq.sidecar.names import DIRECTORY, FENCE, FILTER

_FEW = 2  # files, for which a filter saves no request: its row and the place of that are one each
_LONGEST = 20_000  # bytes of a row for each file
_OTHER = "the fence is of another index file"


class RemoteFilter:
    """The key filter of the index files of a directory elsewhere; what was read of it is there for all of them."""

    def __init__(self, place: Place) -> None:
        self._place, self._lock = place, new_lock()
        self._opened: tuple[PagedFile, FilterFile] | None = None
        self._asked = False

    def find(self) -> FilterFile | None:
        """The filter; None: there is none that is of use."""
        with self._lock:
            if not self._asked:
                self._asked = True
                with contextlib.suppress(MQIndexError, OSError):
                    file = PagedFile(self._place)
                    found = FilterFile(file)
                    self._opened = (file, found) if found.header.files > _FEW else None
        return None if self._opened is None else self._opened[1]

    def need(self, hashes: npt.NDArray[np.int32]) -> bool:
        """Read the rows of these hashes; False: one cannot be read, so the filter answers nothing about them."""
        if self._opened is None:
            return True
        file, found = self._opened
        n, shift = filter_shape(found.header.hash_slot_num, found.header.index_num)
        rows = distinct(hashes.astype(np.int64) % found.header.hash_slot_num >> shift)
        starts = found.start + FILTER_ROW_START_SIZE * rows
        places = np.r_[starts, starts + 2 * FILTER_ROW_START_SIZE - 1] // PAGE
        first = found.start + FILTER_ROW_START_SIZE * (n + 1)
        with self._lock, contextlib.suppress(MQIndexError, OSError):  # once for all files
            file.need(places)
            table = np.frombuffer(memoryview(file.lent(places)), ">u8", n + 1, found.start)
            spans = np.stack([table[rows], table[rows + 1]], axis=1)
            inside = spans[(spans[:, 0] < spans[:, 1]) & (spans[:, 1] <= file.size - first)].astype(np.int64)
            if np.any(inside[:, 1] - inside[:, 0] > _LONGEST * found.header.files):
                return False
            file.need([page for start, stop in (inside + first).tolist()
                       for page in range(start // PAGE, (stop - 1) // PAGE + 1)])  # fmt: skip
            return True
        return False


class RemoteSidecars:
    """The fence of one optimised index file elsewhere, and the filter if it knows the file.

    `geometry`: the file's, which the fence knows.
    """

    def __init__(self, index: PagedFile, fence: Place, keys: RemoteFilter | None) -> None:
        """`CorruptIndexError`: the fence is damaged, or not of this file, or entries were appended since."""
        file = PagedFile(fence)
        self._index, self._keys = index, keys
        self._header = fence_header(file.read(0, FENCE_HEADER_SIZE), file.size, fence)
        self.geometry = self._header.hash_slot_num, self._header.index_num
        if index.size != layout.index_file_size(*self.geometry):
            raise CorruptIndexError(_OTHER, path=fence, field="length", got=index.size)
        self._slots = file.read(FENCE_HEADER_SIZE, file.size)
        require_slots(self._slots, self._header, fence)
        require_bound(fence, self._header, index)
        self._index_header = index.read(0, INDEX_HEADER_SIZE)
        covered = IndexHeader.from_bytes(self._index_header).index_count - 1
        if covered != self._header.covered:
            raise CorruptIndexError(_OTHER, path=fence, field="covered", expected=covered, got=self._header.covered)
        after = self._place_of(covered + 1)
        index.read(after, min(after + INDEX_ENTRY_SIZE, index.size))  # the kernel looks whether it is empty
        self._search: ColdSearch | None = None

    def heads(self, core: IndexCore, asked: AskedHashes) -> npt.NDArray[np.int32] | None:
        """Where the chain of each hash begins, int32, 0: nowhere; None: the slots must be read."""
        keys = self._keys
        if self._search is None:
            self._search = self._searching(keys)
        if keys is None or keys.need(asked.hashes):
            return self._search.heads(core, asked)
        return self._searching(None).heads(core, asked)

    def _searching(self, keys: RemoteFilter | None) -> ColdSearch:
        found = None if keys is None else keys.find()
        number = None if found is None else found.number_of(self._header)
        first = self._place_of(1) // PAGE
        return ColdSearch(
            self._slots, None if found is None or number is None else found.rows, file=number or 0,
            covered=self._header.covered, header=self._index_header,
            fetch=lambda pages: self._index.need(first + pages.astype(np.int64)),
        )  # fmt: skip

    def _place_of(self, entry: int) -> int:
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * self.geometry[0] + INDEX_ENTRY_SIZE * entry


def remote_filter(directory: Place) -> RemoteFilter | None:
    """The filter of the index files of a directory; nothing of it is read yet."""
    root = directory.parent
    return None if root is None else RemoteFilter(root / DIRECTORY / FILTER)


def find_remote_sidecars(index: PagedFile, place: Place, keys: RemoteFilter | None) -> RemoteSidecars | None:
    """The sidecars of the index file at `place`; None: there are none, and look-ups read its slots."""
    directory = place.parent
    root = None if directory is None else directory.parent
    if root is None:
        return None
    try:
        return RemoteSidecars(index, root / DIRECTORY / (place.name + FENCE), keys)
    except (MQIndexError, OSError):  # a place may say anything of a name that it does not have
        return None
