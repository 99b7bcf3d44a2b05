"""Index entries that a stretch of the log gives, against those of the index files: compared while the log is read.

This finds only whether all entries of a file are the log's, at the speed of comparing arrays, or whether they are as
many. Where they are not, `compare` reads the file's stretch again, to find what exactly differs, and whether an intact
store may show it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from mqindex.errors import MQIndexError
from mqindex.files.closable import Closable
from mqindex.files.places.place import require_answer
from mqindex.rocketmq.index.compare import Place, next_entry
from mqindex.rocketmq.index.index_file import IndexFile

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class EntryStretch:
    """The log's entries from `begin` to `end`, which an index file claims to hold as its entries from `number` on.

    `counted`: they are only counted, and the file is not read.
    """

    path: str
    geometry: tuple[int, int]
    number: int
    begin: Place
    end: Place
    counted: bool = False

    def reaches(self, start: int, stop: int) -> bool:
        """Whether messages at the phy offsets [start, stop) may have entries here."""
        return self.begin.phy_offset < stop and start <= self.end.phy_offset


@dataclass(frozen=True, slots=True)
class EntryRun:
    """The entries [start, stop) of one file were compared; `agrees`: all are those of the log.

    Of entries that are only counted `start` is 0.
    """

    path: str
    start: int
    stop: int
    agrees: bool = True


class EntryCheck(Closable):
    """Compares the entries of the messages that begin in [start, stop) with index files; a context manager."""

    def __init__(self, stretches: Sequence[EntryStretch], start: int, stop: int) -> None:
        self._files: list[_File | _Count] = []
        try:
            for stretch in stretches:
                self._files.append(_Count(stretch, start) if stretch.counted else _File(stretch, start, stop))
        except BaseException:
            self.close()
            raise

    def add(self, entries: Array) -> None:
        """The next entries; all of a message's are in one array."""
        for file in self._files:
            file.add(entries)

    def finish(self) -> list[EntryRun]:
        """What was found."""
        return [file.finish() for file in self._files]

    def close(self) -> None:
        for file in self._files:
            file.close()


class _Within:
    """Which of the entries that are added are in a stretch. `start`: where the first message begins."""

    def __init__(self, stretch: EntryStretch, start: int) -> None:
        self._stretch = stretch
        self._begun = stretch.begin.phy_offset < start

    def __call__(self, entries: Array) -> slice:
        stretch = self._stretch
        phys = entries["phy_offset"]  # a column of records: `searchsorted` would copy all of it each time
        low, high = 0, len(entries)
        if int(phys[-1]) < stretch.begin.phy_offset or int(phys[0]) > stretch.end.phy_offset:
            return slice(0, 0)
        if not self._begun:
            low = bisect_left(phys, stretch.begin.phy_offset) + stretch.begin.ordinal
            self._begun = True
        if stretch.end.phy_offset <= int(phys[-1]):
            high = bisect_left(phys, stretch.end.phy_offset) + stretch.end.ordinal
        return slice(low, max(low, high))


class _Count:
    """How many of the entries are in a stretch."""

    def __init__(self, stretch: EntryStretch, start: int) -> None:
        self._path, self._within, self._count = stretch.path, _Within(stretch, start), 0

    def add(self, entries: Array) -> None:
        self._count += len(entries[self._within(entries)])

    def finish(self) -> EntryRun:
        return EntryRun(self._path, 0, self._count)

    def close(self) -> None:
        pass


class _File:
    """One index file and the place up to which it was compared."""

    def __init__(self, stretch: EntryStretch, start: int, stop: int) -> None:
        self._stretch, self._stop, self._within = stretch, stop, _Within(stretch, start)
        self._index: IndexFile | None = None
        self._first = self._number = stretch.number
        self._agrees = True
        try:
            self._index = IndexFile._open_known(stretch.path, stretch.geometry)
            if stretch.begin.phy_offset < start:
                self._first = self._number = self._first_from(start)
        except (MQIndexError, OSError) as error:
            require_answer(error, stretch.path)
            self._agrees = False

    def add(self, entries: Array) -> None:
        index = self._index
        if not self._agrees or index is None:
            return
        wanted = entries[self._within(entries)]
        if len(wanted):
            self._compare(index, wanted)

    def _compare(self, index: IndexFile, wanted: Array) -> None:
        stop = self._number + len(wanted)
        self._agrees = stop <= next_entry(index) and index._compare_run(self._number, wanted) == len(wanted)
        self._number = stop

    def finish(self) -> EntryRun:
        if self._agrees and self._index is not None and self._number < next_entry(self._index):
            # The next entry must be of a later split, where nothing would show that it is left out here.
            self._agrees = self._phy_offset(self._number) >= self._stop
        return EntryRun(self._stretch.path, self._first, self._number, self._agrees)

    def _first_from(self, start: int) -> int:
        assert self._index is not None
        numbers = range(self._stretch.number, next_entry(self._index))
        return numbers.start + bisect_left(numbers, start, key=self._phy_offset)

    def _phy_offset(self, number: int) -> int:
        assert self._index is not None
        return int(self._index.entries(number, number + 1)["phy_offset"][0])

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
