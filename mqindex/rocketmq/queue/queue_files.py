"""The files of one queue of any kind: which there are, and their units in one numbering.

A unit's number is its place in the queue: the file that starts at byte `s` begins with unit `s / unit_size`. Missing
files leave a hole in the numbers; other units keep theirs.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mqindex._native.numbers import whole_number
from mqindex.errors import TruncatedFileError
from mqindex.files.entries import leads_to_file
from mqindex.files.paths import join, scan, size_of
from mqindex.files.reading.file_maps import FileMaps
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.kinds import name_at, offset_of, queue_paths
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.log_files import LogFile, Skipped, numbered_files

_FOLLOW_FROM = 3  # the broker looks for a queue's end in its last three files
_NEAR = 1 << 13  # units of the first look; each following one is twice as long


def queue_file_paths(directory: str) -> Iterator[str]:
    """All files of all queues below a directory, `<topic>/<queueId>/<20 digits>`."""
    for queue in queue_paths(directory):
        with scan(queue) as entries:
            for entry in entries:
                if offset_of(entry.name) is not None and leads_to_file(entry):
                    yield entry.path


def list_queue_files(directory: str, unit_size: int = 1) -> tuple[list[LogFile], list[Skipped]]:
    """The files of a queue's directory by their start, and what was skipped and why."""
    files, skipped = numbered_files([directory])
    skipped = [one for one in skipped if not one.at]  # whole files: a queue's file that is too long ends at the next
    odd = [file for file in files if file.start % unit_size]
    if odd:
        skipped += [Skipped(file.path, f"it does not start at a unit of {unit_size} bytes") for file in odd]
        files = _up_to_the_next([file for file in files if file.start % unit_size == 0])
    return files, skipped


def queue_files(directory: str, unit_size: int) -> tuple[list[LogFile], list[Skipped]]:
    """`list_queue_files` of a queue that may have no directory: then there are none."""
    try:
        return list_queue_files(directory, unit_size)
    except (FileNotFoundError, NotADirectoryError):
        return [], []


def _up_to_the_next(files: list[LogFile]) -> list[LogFile]:
    """The files, each with a length that ends at the next one's start at most."""
    ends = [*(file.start for file in files[1:]), 2**63 - 1]
    return [
        LogFile(file.path, file.start, min(size_of(file.path), end - file.start))
        for file, end in zip(files, ends, strict=False)
    ]


def given_file_size(size: int | None) -> int | None:
    """The argument `file_size`: a file holds whole units."""
    if size is None:
        return None
    size = whole_number("file_size", size)
    if size < 1 or size % QUEUE_UNIT_SIZE:
        raise ValueError(f"file_size: expected a multiple of {QUEUE_UNIT_SIZE}, got {size}")
    return size


def file_size_of(files: list[LogFile], unit_size: int) -> int | None:
    """The size that most files of a queue have, the largest in a tie, in whole units; None: there are no files.

    >>> file_size_of([LogFile("0", 0, 1000), LogFile("1", 1000, 1000), LogFile("2", 2000, 17)], 20)
    1000
    """
    if not files:
        return None
    sizes = Counter(file.size for file in files)
    size = max(sizes, key=lambda size: (sizes[size], size))
    return -(-size // unit_size) * unit_size


class FileUnits(NamedTuple):
    """Units of one file: positions [start, stop) of its bytes `buf`, whose first unit has the number `first`."""

    buf: Any
    first: int
    start: int
    stop: int


class End(NamedTuple):
    """Where a queue ends: the number after its last valid unit, and the bytes of the file in which that was found and
    the number of its first unit."""

    number: int
    buf: Any
    first: int


class UnitFiles:
    """The units in the files of one directory. `files`, `skipped`: as they were when last listed."""

    def __init__(self, directory: str, unit_size: int, maps: FileMaps) -> None:
        self.directory = directory
        self.unit_size = unit_size
        self.maps = maps
        self.relist()

    def relist(self) -> bool:
        """List the files anew; False: they are the same as before."""
        before: list[LogFile] = getattr(self, "files", [])
        self.files, self.skipped = list_queue_files(self.directory, self.unit_size)
        self._firsts = [file.start // self.unit_size for file in self.files]
        return self.files != before

    @property
    def first(self) -> int:
        """The number of the first unit of the first file; 0: there are no files."""
        return self._firsts[0] if self._firsts else 0

    def file_of(self, unit: int) -> LogFile | None:
        """The file that has a place for `unit`; None: there is none."""
        n = self.index_of(unit)
        return self.files[n] if n >= 0 and unit * self.unit_size < self.files[n].stop else None

    def index_of(self, unit: int) -> int:
        """The index of the last file that begins with `unit` or before it; -1: none."""
        return bisect_right(self._firsts, unit) - 1

    def stretches(self, start: int, stop: int) -> Iterator[FileUnits]:
        """The units [start, stop) file by file; those that no file holds are left out."""
        for n in range(max(self.index_of(start), 0), len(self.files)):
            first = self._firsts[n]
            if first >= stop:
                return
            mapped, places = self._open(self.files[n])
            low, high = max(start - first, 0), min(stop - first, places)
            if mapped is not None and low < high:
                yield FileUnits(mapped.window(low * self.unit_size, high * self.unit_size), first, low, high)

    def end(self, valid: Callable[[Any, int, int], int], known: int | None = None) -> End:
        """The end by the broker's rule of recovery.

        `valid(buf, start, stop)` gives the first position in [start, stop) that is not valid, or stop. The walk begins
        at the third-last file, or where `known`, the result of an earlier call, ended. It ends at the first place in a
        file that has no valid unit.
        """
        if known is None:
            n = max(len(self.files) - _FOLLOW_FROM, 0)
            end = self._firsts[n] if self.files else 0
        else:
            n, end = max(self.index_of(known - 1), 0), known
        buf: Any = b""
        first = end
        for file, first in zip(self.files[n:], self._firsts[n:], strict=True):
            at = max(end - first, 0)
            buf, places, good = self._first_look(file, valid) if known is None else self._look(file, at, valid)
            if good > at:
                end = first + good
            if good < places:
                break
        return End(end, buf, first)

    def _first_look(self, file: LogFile, valid: Callable[[Any, int, int], int]) -> tuple[Any, int, int]:
        """`_look` from the file's begin. Its first page is read alone: as a rule the rest is a hole, which a map would
        read ahead, and of 128 KiB of zeros for each queue."""
        try:
            with SparseFile(file.path) as opened:
                head = opened.read(0, min(mmap.PAGESIZE, opened.size))
        except FileNotFoundError:  # a broker has just deleted it
            return b"", 0, 0
        places = min(opened.size, file.size) // self.unit_size
        near = min(len(head) // self.unit_size, places)
        good = valid(head, 0, near)
        return (head, places, good) if good < near or near == places else self._look(file, 0, valid)

    def _look(self, file: LogFile, at: int, valid: Callable[[Any, int, int], int]) -> tuple[Any, int, int]:
        """The bytes of a file, how many whole units it has, and the first place from `at` on that is not valid."""
        mapped, places = self._open(file)
        if mapped is None:
            return b"", places, places
        before = max(at - 1, 0)  # whoever asks for the end reads the unit before it
        while True:
            stop = min(2 * at + _NEAR, places)
            buf = mapped.window(before * self.unit_size, stop * self.unit_size)
            good = valid(buf, at, stop) if at < stop else stop
            if good < stop or stop == places:
                return buf, places, good
            at = stop

    def is_full(self, end: int) -> bool:
        """Whether a unit at `end` would need a file that is not among `files`."""
        return not self.files or end * self.unit_size >= self.files[-1].stop

    def _open(self, file: LogFile) -> tuple[MappedFile | None, int]:
        """A file and how many whole units it has; None and 0 where a broker has just deleted it."""
        try:
            mapped = self.maps.get(file.path)
        except (FileNotFoundError, TruncatedFileError):
            return None, 0
        return mapped, min(mapped.size, file.size) // self.unit_size

    def path_of(self, start: int) -> str:
        """The path of the file that starts at byte `start` of the queue."""
        return join(self.directory, name_at(start))
