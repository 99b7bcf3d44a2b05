"""A file elsewhere of which single pages are read, as look-ups need them."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.columns.distinct import distinct
from mqindex.errors import ClosedFileError, FileStateError, TruncatedFileError
from mqindex.files.few_threads import of_each
from mqindex.files.fork_lock import new_lock
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat, errors_of
from mqindex.files.reading.mapped_file import MappedFile

PAGE: Final = 4096  # bytes of which it is known whether they were read
AT_ONCE: Final = 16  # requests in flight
_GAP = 16  # pages that are read too, because one request more costs more
_BLOCK = 8 << 20  # bytes of one request
_GROUP = 64 << 20  # bytes that are held beside the file


def read_ranges(place: Place, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
    """The bytes [start, stop) of each range; several are requested at a time.

    `TruncatedFileError`: the file is shorter by now, or its server answers no ranges.
    """
    return of_each(lambda each: _read_range(place, *each), ranges, AT_ONCE)


def _read_range(place: Place, start: int, stop: int) -> memoryview:
    with errors_of(place.url):
        data = memoryview(place.elsewhere.read(place.path, start, stop))
    if len(data) != stop - start:
        raise TruncatedFileError(
            "a range came back with another length", path=place.url, at=start, expected=stop - start, got=len(data),
            hint="the file was replaced meanwhile, or its server answers no ranges",
        )  # fmt: skip
    return data


def _said(found: Stat) -> str:
    return ", ".join((f"{found.size} bytes", *found.version))


class PagedFile(MappedFile):
    """A file elsewhere as a mapping that is filled page by page: what was not asked for is zeros.

    What was read stays in memory until `close`. Safe for use by several threads.
    """

    def __init__(self, place: Place) -> None:
        self._found = place.stat()
        if self._found.directory:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.url)
        size = self._found.size
        if size == 0:
            raise TruncatedFileError("the file is empty", path=place.url, expected="1 byte or more", got=0)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            memory = mmap.mmap(-1, size, flags=flags)
        except (OSError, OverflowError, ValueError) as error:
            raise OSError(errno.ENOMEM, f"no memory for its {plural(size, 'byte')}", place.url) from error
        super().__init__(place.url, memory, False)
        self._memory: mmap.mmap | None = memory
        self._place, self._filled, self._sure = place, 0, 0
        self._lock = new_lock()
        self.present = np.zeros(-(-size // PAGE), np.uint8)  # a byte for each page

    def need(self, pages: npt.ArrayLike, *, before: int = 0) -> None:
        """Read the pages of these numbers, and so many before each, unless they are there already."""
        wanted = distinct(np.asarray(pages, np.int64))
        if before:
            wanted = distinct(np.maximum(wanted[:, None] - np.arange(before + 1), 0))
        missing = wanted[self.present[wanted] == 0]
        if len(missing):
            self._fill(list(self._ranges(missing)))

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop)."""
        self.need(np.arange(start // PAGE, -(-min(stop, self.size) // PAGE)))
        self.require_same()
        return super().read(start, stop)

    def read_again(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop) as they are there now, whatever was read before."""
        return bytes(read_ranges(self._place, [(start, stop)])[0])

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop`; None: all of it."""
        self.need(np.arange(-(-(self.size if stop is None else stop) // PAGE)))
        self.require_same()

    def require_same(self) -> None:
        """`FileStateError` where what was read since the last call may be of another file, put in place of this one."""
        filled = self._filled  # what other threads read from now on, they make sure of
        if filled == self._sure:
            return
        now = self._place.stat()
        if now != self._found:
            raise FileStateError(
                "the file was replaced while it was read", path=self.path, expected=_said(self._found), got=_said(now),
                hint="open it again",
            )  # fmt: skip
        with self._lock:
            self._sure = max(self._sure, filled)

    def require_whole(self) -> None:
        """All of it is read: much of it will be."""
        self.populate()

    def close(self) -> None:
        """Release the memory: now, or at the end of a call that still uses it. May be called twice."""
        super().close()
        self._memory = None

    def _advise(self, advice: int | None, start: int = 0, length: int | None = None) -> None:
        """No disk is behind it."""

    def _ranges(self, missing: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Bytes of runs of these pages, neighbours in one."""
        ends = np.flatnonzero(np.diff(missing) > _GAP)
        firsts, lasts = missing[np.r_[0, ends + 1]], missing[np.r_[ends, len(missing) - 1]]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            stop = min((last + 1) * PAGE, self.size)
            for at in range(first * PAGE, stop, _BLOCK):
                yield at, min(at + _BLOCK, stop)

    def _fill(self, ranges: list[tuple[int, int]]) -> None:
        memory = self._memory
        if memory is None:
            raise ClosedFileError("the file is closed", path=self.path)
        while ranges:
            sizes = np.cumsum([stop - start for start, stop in ranges])
            some = max(int(np.searchsorted(sizes, _GROUP, "right")), 1)
            read = read_ranges(self._place, ranges[:some])
            with self._lock:
                self._filled += 1  # before anybody takes what was read
            for (start, stop), data in zip(ranges[:some], read, strict=True):
                memory[start:stop] = data
                self.present[start // PAGE : -(-stop // PAGE)] = 1
            ranges = ranges[some:]
