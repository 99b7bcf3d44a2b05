"""A file elsewhere of which single pages are read, as look-ups need them."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import Mapping
from mqindex._words import plural
from mqindex.columns.distinct import distinct
from mqindex.errors import ClosedFileError
from mqindex.files.few_threads import of_each
from mqindex.files.fork_lock import new_lock
from mqindex.files.places.page_cache import PAGE
from mqindex.files.places.place import Place
from mqindex.files.places.remote_file import AT_ONCE, REQUEST, require_file, runs
from mqindex.files.reading.mapped_file import MappedFile

_GAP = 16  # pages that are read too, because one request more costs more
_GROUP = 64 << 20  # bytes that are held beside the file
_MUCH = 3  # once more than this part of a file that is kept was asked for, the whole of it is read


class PagedFile(MappedFile):
    """A file elsewhere as a mapping that is filled page by page.

    A page that was not read is zeros in memory, so `lent` is the only way to it for a kernel: it asks for the pages
    that the kernel will use, and `AssertionError` is its answer where one was not read. What was read stays in memory
    until `close`; where its storage has a cache of pages, it is there, and what other processes read too. Safe for use
    by several threads.
    """

    def __init__(self, place: Place) -> None:
        self._found = require_file(place)
        cache = place.storage.pages
        self._kept = None if cache is None else cache.open(place.storage.full_name(place.path), self._found)
        memory = self._kept.memory if self._kept is not None else _no_memory(place, self._found.size)
        super().__init__(place, memory, False)
        self._memory: mmap.mmap | None = memory
        self._place, self._filled, self._sure = place, 0, 0
        self._lock = new_lock()
        count = -(-self._found.size // PAGE)
        self.present = np.zeros(count, np.uint8) if self._kept is None else self._kept.there().copy()  # of each page

    @property
    def whole(self) -> bool:
        """Whether all of it is there, and known to be of one version."""
        return (self._kept is not None or bool(self._found.etag)) and bool(self.present.all())

    @property
    def map(self) -> Mapping:
        """All of it, which was read before."""
        return self.lent(slice(None))

    def lent(self, pages: npt.ArrayLike | slice) -> Mapping:
        """The mapping, for who uses no pages but these; `AssertionError` where one of them was not read."""
        used = pages if isinstance(pages, slice) else np.asarray(pages, np.int64)
        if not self.present[used].all():
            raise AssertionError(f"pages of {self.path} were asked for that had not been read")
        return super().map

    def window(self, start: int, stop: int) -> Mapping:
        """See `MappedFile.window`. Of the rest nothing may be used."""
        pages = np.arange(start // PAGE, -(-min(stop, self.size) // PAGE))
        self.need(pages)
        self.require_same()
        return self.lent(pages)

    def windows(self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Mapping:
        """See `MappedFile.windows`."""
        return self.window(int(starts.min(initial=self.size)), int(stops.max(initial=0)))

    def need(self, pages: npt.ArrayLike, *, before: int = 0) -> None:
        """Read the pages of these numbers, and so many before each, unless they are there already."""
        wanted = distinct(np.asarray(pages, np.int64))
        if before:
            wanted = distinct(np.maximum(wanted[:, None] - np.arange(before + 1), 0))
        missing = self._missing(wanted)
        if self._kept is not None and len(missing):
            there = np.count_nonzero(self.present) + len(missing)
            if _MUCH * there > len(self.present):
                missing = self._missing(np.arange(len(self.present)))
        if len(missing):
            self._fill(list(self._ranges(missing)))

    def _missing(self, pages: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        missing: npt.NDArray[np.int64] = pages[self.present[pages] == 0]
        if self._kept is not None and len(missing):
            there = self._kept.there()[missing] != 0  # by other processes
            self.present[missing[there]] = 1
            missing = missing[~there]
        return missing

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop)."""
        return self.window(start, stop)[start:stop]

    def read_again(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop) as they are there now, whatever was read before."""
        return bytes(self._place.read(start, stop))

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop`; None: all of it."""
        self.window(0, self.size if stop is None else stop)

    def require_same(self) -> None:
        """`FileStateError` where what was read since the last call may be of another file, put in place of this one."""
        filled = self._filled  # what other threads read from now on, they make sure of
        if filled == self._sure:
            return
        self._place.require_same(self._found)
        with self._lock:
            self._sure = max(self._sure, filled)

    def require_whole(self) -> None:
        """What was read is known to be of one file; see `window`."""

    def __exit__(self, *_: object) -> None:
        """Close it: it cannot be cut, as a file of this machine."""
        self.close()

    def close(self) -> None:
        """Release the memory: now, or at the end of a call that still uses it. May be called twice."""
        super().close()
        self._memory = self._kept = None

    def _advise(self, advice: int | None, start: int = 0, length: int | None = None) -> None:
        """No disk is behind it."""

    def _ranges(self, missing: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Bytes of runs of these pages, neighbours in one."""
        for first, last in runs(missing, _GAP):
            stop = min((last + 1) * PAGE, self.size)
            for at in range(first * PAGE, stop, REQUEST):
                yield at, min(at + REQUEST, stop)

    def _fill(self, ranges: list[tuple[int, int]]) -> None:
        memory, kept = self._memory, self._kept
        if memory is None:
            raise ClosedFileError("the file is closed", path=self.path)
        while ranges:
            sizes = np.cumsum([stop - start for start, stop in ranges])
            some = max(int(np.searchsorted(sizes, _GROUP, "right")), 1)
            read = of_each(lambda one: self._place.read(*one, self._found), ranges[:some], AT_ONCE)
            with self._lock:
                self._filled += 1  # before anybody takes what was read
            if kept is not None:
                self._place.require_same(self._found)  # before others take it for this version
            for (start, stop), data in zip(ranges[:some], read, strict=True):
                if kept is None or not kept.keep(start, data):
                    memory[start:stop] = data
                self.present[start // PAGE : -(-stop // PAGE)] = 1
            ranges = ranges[some:]


def _no_memory(place: Place, size: int) -> mmap.mmap:
    """Memory of which none is used yet."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        return mmap.mmap(-1, size, flags=flags)
    except (OSError, OverflowError, ValueError) as error:
        raise OSError(errno.ENOMEM, f"no memory for its {plural(size, 'byte')}", place) from error
