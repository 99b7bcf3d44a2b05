"""Sidecars of index files elsewhere: the fence is read whole, of the filter the rows that look-ups need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

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
from mqindex.files.places.storage import Stat
from mqindex.rocketmq import layout
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, INDEX_SLOT_SIZE, IndexHeader
from mqindex.rocketmq.sidecar.binding import fence_header, misfit, misfit_of_header, require_slots, sampled
from mqindex.rocketmq.sidecar.key_filter import FilterFile
from mqindex.rocketmq.sidecar.layout import (
    FENCE_HEADER_SIZE,
    FILTER_FILE_SIZE,
    FILTER_HEADER_SIZE,
    FILTER_ROW_START_SIZE,
)
from mqindex.rocketmq.sidecar.names import DIRECTORY, FENCE, FILTER

_FEW = 2  # files, for which a filter saves no request: its row and the place of that are one each
_LONGEST = 20_000  # bytes of a row for each file
_MOST_FIRST = 4 << 20  # bytes of a filter that are read when files are opened, whatever is asked then
_OTHER = "the fence is of another index file"


def pages_of(spans: Iterable[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """The pages that have the bytes [start, stop) of some spans."""
    some = [page for start, stop in spans for page in range(start // PAGE, (stop - 1) // PAGE + 1)]
    return np.asarray(some, np.int64)


class RemoteFilter:
    """The key filter of the index files of a directory elsewhere; what was read of it is there for all of them.

    beginning : bytes of it that are read first, together
    """

    def __init__(self, place: Place, beginning: int = FILTER_HEADER_SIZE) -> None:
        self._place, self._beginning, self._lock = place, beginning, new_lock()
        self._opened: tuple[PagedFile, FilterFile] | None = None
        self._asked = False

    def find(self) -> FilterFile | None:
        """The filter; None: there is none that is of use."""
        with self._lock:
            if not self._asked:
                self._asked = True
                with contextlib.suppress(MQIndexError, OSError):
                    file = PagedFile(self._place)
                    file.populate(min(self._beginning, file.size))
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
            file.need(pages_of((inside + first).tolist()))
            return True
        return False


class RemoteSidecars:
    """The fence of one optimised index file elsewhere, and the filter if it knows the file.

    Making one compares the fence with the header of the file. The entries, of which a look-up reads some anyhow, are
    compared by the first look-up, or by `is_bound`. `geometry`: the file's, which the fence knows.
    """

    def __init__(self, index: PagedFile, fence: PagedFile, keys: RemoteFilter | None) -> None:
        """`CorruptIndexError`: the fence is damaged, or not of this file, or entries were appended since."""
        path = fence.path
        self._index, self._keys = index, keys
        self._header = fence_header(fence.read(0, min(FENCE_HEADER_SIZE, fence.size)), fence.size, path)
        self.geometry = self._header.hash_slot_num, self._header.index_num
        if index.size != layout.index_file_size(*self.geometry):
            raise CorruptIndexError(_OTHER, path=path, field="length", got=index.size)
        self._slots = fence.read(FENCE_HEADER_SIZE, fence.size)
        require_slots(self._slots, self._header, path)
        self._index_header = index.read(0, INDEX_HEADER_SIZE)
        header = IndexHeader.from_bytes(self._index_header)
        if (wrong := misfit_of_header(self._header, header)) is not None:
            raise CorruptIndexError(_OTHER, path=path, field=wrong[0], expected=wrong[1], got=wrong[2])
        covered = header.index_count - 1
        if covered != self._header.covered:
            raise CorruptIndexError(_OTHER, path=path, field="covered", expected=covered, got=self._header.covered)
        after = self._place_of(covered + 1)  # the kernel looks whether it is empty
        spans = [*sampled(self.geometry[0], covered), (after, min(after + INDEX_ENTRY_SIZE, index.size))]
        self._binding = pages_of(spans)
        self._search: ColdSearch | None = None
        self._bound: bool | None = None

    def is_bound(self) -> bool:
        """Whether the entries are those that the fence was made of."""
        if self._bound is None:
            self._index.need(self._binding)
            self._bound = misfit(self._header, self._index) is None
        return self._bound

    def heads(self, core: IndexCore, asked: AskedHashes) -> npt.NDArray[np.int32] | None:
        """Where the chain of each hash begins, int32, 0: nowhere; None: the slots must be read."""
        if self._bound is None:
            self._heads(core, asked)  # reads what the next line compares, and what follows searches
        return self._heads(core, asked) if self.is_bound() else None

    def _heads(self, core: IndexCore, asked: AskedHashes) -> npt.NDArray[np.int32] | None:
        keys = self._keys
        if self._search is None:
            self._search = self._searching(keys)
        if keys is None or keys.need(asked.hashes):
            return self._search.heads(core, asked)
        return self._searching(None).heads(core, asked)

    def _searching(self, keys: RemoteFilter | None) -> ColdSearch:
        found = None if keys is None else keys.find()
        number = None if found is None else found.number_of(self._header)
        return ColdSearch(
            self._slots, None if found is None or number is None else found.rows, file=number or 0,
            covered=self._header.covered, header=self._index_header, fetch=self._fetch,
        )  # fmt: skip

    def _fetch(self, pages: npt.NDArray[np.uint32]) -> None:
        """Read these pages, counted from that of entry 1, and their neighbours, to which entries of a slot go on."""
        named = self._place_of(1) // PAGE + pages.astype(np.int64)
        around = (named[:, None] + np.arange(-1, 2)).reshape(-1)
        inside = around[(around >= 0) & (around < len(self._index.present))]
        self._index.need(inside if self._bound else np.r_[inside, self._binding])

    def _place_of(self, entry: int) -> int:
        return INDEX_HEADER_SIZE + INDEX_SLOT_SIZE * self.geometry[0] + INDEX_ENTRY_SIZE * entry


# ---- where they are -------------------------------------------------------------------------------------------------

Listed = Mapping[str, Stat] | None
"""What is beside an index directory, by its list; None: that is not known, and each name is asked for."""


def listed_sidecars(directory: Place) -> Listed:
    """What is beside the index files of a directory."""
    root = directory.parent
    if root is None:
        return {}
    try:
        return (root / DIRECTORY).entries()
    except FileNotFoundError:
        return {} if root.storage.lists else None
    except OSError:
        return None


def remote_filter(directory: Place, listed: Listed, geometry: tuple[int, int]) -> RemoteFilter | None:
    """The filter of the index files of a directory; nothing of it is read yet.

    geometry : of the files, as far as is known: where the rows are is read with the header, if it is right
    """
    root = directory.parent
    place = None if root is None else _named(root, FILTER, listed)
    files = 0 if listed is None else sum(name.endswith(FENCE) for name in listed)
    if place is None or (listed is not None and files <= _FEW):
        return None
    rows = FILTER_ROW_START_SIZE * (filter_shape(*geometry)[0] + 1)
    beginning = FILTER_HEADER_SIZE + FILTER_FILE_SIZE * files + rows
    return RemoteFilter(place, beginning if files and beginning <= _MOST_FIRST else FILTER_HEADER_SIZE)


def read_fence(index: Place, listed: Listed) -> PagedFile | None:
    """The fence of the index file at `index`, all of it; None: there is none."""
    directory = index.parent
    root = None if directory is None else directory.parent
    place = None if root is None else _named(root, index.name + FENCE, listed)
    if place is None:
        return None
    with contextlib.suppress(MQIndexError, OSError):  # a place may say anything of a name that it does not have
        file = PagedFile(place)
        file.populate()
        return file
    return None


def _named(root: Place, name: str, listed: Listed) -> Place | None:
    place = root / DIRECTORY / name
    if listed is None:
        return place
    return Place(place, root.storage, listed[name]) if name in listed else None


def find_remote_sidecars(index: PagedFile, fence: PagedFile | None, keys: RemoteFilter | None) -> RemoteSidecars | None:
    """The sidecars of an index file; None: there are none, and look-ups read its slots."""
    if fence is None:
        return None
    try:
        return RemoteSidecars(index, fence, keys)
    except (MQIndexError, OSError):
        return None
