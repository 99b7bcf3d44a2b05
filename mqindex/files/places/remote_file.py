"""A file elsewhere in memory: what a window asked for is there, and everything else is an error."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import Mapping
from mqindex.errors import TruncatedFileError
from mqindex.files.few_threads import for_each
from mqindex.files.fork_lock import new_lock
from mqindex.files.places.ahead import Ahead
from mqindex.files.places.huge_pages import advise_huge
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat
from mqindex.files.reading.mapped_file import MappedFile

AT_ONCE: Final = 16  # requests in flight
_BLOCK: Final = 128 << 10  # bytes that are read or not: a map has room for 65 530 changes between the two
REQUEST: Final = 8 << 20  # bytes of one request, about


class RemoteFile(MappedFile):
    """A file of a `Place`. Safe for use by several threads, but for `release`.

    Its address range is that of a file without bytes; a window puts memory there, with what was read.
    """

    step = 32 << 20

    def __init__(self, place: Place, found: Stat | None = None) -> None:
        found = found or require_file(place)
        super().__init__(place, found.size, False)
        self._place, self._found = place, found
        self._there = np.zeros(-(-found.size // _BLOCK), np.bool_)
        self._lock = new_lock()
        self._ahead: Ahead | None = None
        self._misused: list[bool] = []  # of copies that are gone: where bytes were used that no window had read
        self._copies: weakref.WeakSet[RemoteFile] = weakref.WeakSet()

    def window(self, start: int, stop: int) -> memoryview:
        """See `MappedFile.window`. It ends where the readable bytes end."""
        first, last = max(start, 0) // _BLOCK, -(-min(stop, self.size) // _BLOCK)
        mapped = self._have(np.arange(first, last))
        absent = np.flatnonzero(~self._there[last:])
        end = last + int(absent[0]) if len(absent) else len(self._there)
        return memoryview(mapped)[: min(end * _BLOCK, self.size)]

    def windows(self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> memoryview:
        """See `MappedFile.windows`."""
        wanted = np.zeros(len(self._there) + 1, np.int64)  # +1 where a stretch begins, -1 where it ends
        last = np.minimum(stops, self.size)
        np.add.at(wanted, np.clip(starts // _BLOCK, 0, len(self._there)), 1)
        np.add.at(wanted, np.clip(-(-last // _BLOCK), 0, len(self._there)), -1)
        mapped = self._have(np.flatnonzero(np.cumsum(wanted[:-1]) > 0))
        return memoryview(mapped)[: int(last.max(initial=0))]

    def _have(self, blocks: npt.NDArray[np.intp]) -> Mapping:
        mapped = self.map
        with self._lock:
            missing = blocks[~self._there[blocks]]
            if len(missing) and self._ahead is not None:
                self._take(self._ahead, mapped, missing)
                missing = blocks[~self._there[blocks]]
            if len(missing):
                self._fill(mapped, missing)
        return mapped

    def ahead(self, start: int, stop: int) -> None:
        """See `MappedFile.ahead`."""
        with self._lock:
            self._end_ahead()
            ranges = _in_blocks(max(start, 0), min(stop, self.size), self.size)
            self._ahead = Ahead(lambda at, end: self._place.read(at, end, self._found), ranges)
            self.step = min(self.step, REQUEST)

    def _take(self, ahead: Ahead, mapped: Mapping, missing: npt.NDArray[np.intp]) -> None:
        """Put what was asked for ahead into its place, up to the last block that is missing."""
        first, stop = int(missing[0]) * _BLOCK, (int(missing[-1]) + 1) * _BLOCK
        taken: list[tuple[int, int]] = []
        with self._taken_back(mapped, taken):
            while ahead.at is not None and ahead.at < stop:
                start, data = ahead.take()
                if start + len(data) > first:  # else it was jumped over
                    self._put(mapped, start, np.frombuffer(data, np.uint8), taken)
            if taken:
                self._place.require_same(self._found)
        for start, end in taken:
            self._there[start // _BLOCK : -(-end // _BLOCK)] = True

    def _put(self, mapped: Mapping, start: int, data: npt.NDArray[np.uint8], taken: list[tuple[int, int]]) -> None:
        """Put bytes of whole blocks into their place, but where there are some; `taken` gets these stretches."""
        first, last = start // _BLOCK, -(-(start + len(data)) // _BLOCK)
        for one in _stretches(first + np.flatnonzero(~self._there[first:last]), start + len(data)):
            taken.append(one)
            memory = mapped.fill(*one)
            advise_huge(memory)
            np.copyto(
                np.frombuffer(memory, np.uint8), data[one[0] - start : one[1] - start]
            )  # without the interpreter's lock

    @contextlib.contextmanager
    def _taken_back(self, mapped: Mapping, stretches: list[tuple[int, int]]) -> Iterator[None]:
        """After an error these are hidden again: they are zeros, or of another file."""
        try:
            yield
        except BaseException:
            for start, stop in stretches:
                mapped.hide(start, stop)
            raise

    def _end_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def close(self) -> None:
        """See `MappedFile.close`. `AssertionError`: see `require_asked_for`."""
        self._end_ahead()
        try:
            self.require_asked_for()
        finally:
            super().close()

    def require_asked_for(self) -> None:
        """See `MappedFile.require_asked_for`."""
        if self._misused or any(one._map is not None and one._map.cut for one in (self, *self._copies)):
            raise AssertionError(f"bytes of {self.path} were used that had not been read")

    def _fill(self, mapped: Mapping, missing: npt.NDArray[np.intp]) -> None:
        stretches = _stretches(missing, self.size)
        ranges: list[tuple[int, memoryview]] = []
        for start, stop in stretches:
            memory = mapped.fill(start, stop)
            advise_huge(memory)
            size = _even(stop - start)
            ranges += [(at, memory[at - start : at - start + size]) for at in range(start, stop, size)]

        def read(one: tuple[int, memoryview]) -> None:
            at, target = one
            target[:] = self._place.read(at, at + len(target), self._found)

        with self._taken_back(mapped, stretches):
            for_each(read, ranges, AT_ONCE)
            self._place.require_same(self._found)
        self._there[missing] = True

    def again(self) -> RemoteFile:
        """See `MappedFile.again`. It is the same version."""
        copy = RemoteFile(self._place, self._found)
        copy._misused = self._misused
        self._copies.add(copy)
        return copy

    def __del__(self) -> None:
        """Nobody closes what `again` gave: the file that it is of says what was wrong with it."""
        if (mapped := getattr(self, "_map", None)) is not None and mapped.cut:
            self._misused.append(True)

    def release(self, stop: int) -> None:
        """See `MappedFile.release`."""
        mapped, blocks = self.map, min(stop, self.size) // _BLOCK
        with self._lock:
            there = np.flatnonzero(self._there[:blocks])
            if len(there):
                self._there[:blocks] = False
                mapped.hide(int(there[0]) * _BLOCK, blocks * _BLOCK)

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop)."""
        return bytes(self.window(start, stop)[start:stop])

    def require_whole(self) -> None:
        """What was read is known to be of one file; see `window`."""

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop`; None: all of it."""
        self.window(0, self.size if stop is None else stop)

    def _advise(self, advice: int | None, start: int = 0, length: int | None = None) -> None:
        """No disk is behind it."""


def _even(length: int) -> int:
    """The bytes of each request for so many: about `REQUEST`, and no small one at the end.

    >>> _even(4 * REQUEST + 100), _even(1000)
    (8388633, 1000)
    """
    return -(-length // max(round(length / REQUEST), 1))


def _stretches(blocks: npt.NDArray[np.intp], size: int) -> list[tuple[int, int]]:
    """The bytes of sorted blocks of a file of `size` bytes, neighbours together."""
    return [(first * _BLOCK, min((last + 1) * _BLOCK, size)) for first, last in runs(blocks, 1)] if len(blocks) else []


def _in_blocks(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    """Ranges of about `REQUEST` bytes, of whole blocks, that hold the bytes [start, stop) of a file of `size` bytes.

    >>> _in_blocks(5, 2 * REQUEST, 1 << 40) == [(0, REQUEST), (REQUEST, 2 * REQUEST)]
    True
    """
    first, last = start // _BLOCK, -(-stop // _BLOCK)
    edges = np.linspace(first, last, max(round((last - first) * _BLOCK / REQUEST), 1) + 1).astype(np.int64) * _BLOCK
    return [(at, min(end, size)) for at, end in itertools.pairwise(edges.tolist()) if at < end]


def runs(numbers: npt.NDArray[np.integer[Any]], gap: int) -> Iterator[tuple[int, int]]:
    """The first and the last of neighbours among sorted numbers, which differ by `gap` at most.

    >>> list(runs(np.array([1, 2, 5, 9]), 3))
    [(1, 5), (9, 9)]
    """
    ends = np.flatnonzero(np.diff(numbers) > gap)
    firsts, lasts = numbers[np.r_[0, ends + 1]], numbers[np.r_[ends, len(numbers) - 1]]
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)


def require_file(place: Place) -> Stat:
    """What is known of a file; one that is empty is refused, as a mapping of it would be."""
    found = place.pinned()
    if found.size == 0:
        raise TruncatedFileError("the file is empty", path=place, expected="1 byte or more", got=0)
    return found
