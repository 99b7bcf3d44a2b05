"""The files of one consume queue, written from its units in the log's order; `UnitPlaces` says where each one goes."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import encode_units
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.rocketmq import layout
from mqindex.rocketmq.kinds import name_at
from mqindex.rocketmq.queue.consume_queue_ext import EXT_UNIT
from mqindex.rocketmq.queue.old_queue import BLANK_UNIT, OldQueue
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.queue.unit_places import UnitPlaces, fits_hole, stretches

Units = npt.NDArray[Any]

FILE_BLOCK: Final = 4096
"""What a file system takes at least for a file: its last block is not full."""

NO_EXT = -(2**63)
"""As a unit's store_timestamp: it never has an extension unit (the units of multi-dispatch)."""

_ADDRESS = -(2**63)  # added to an extension unit's offset, it is the third field of the unit
_EXT_END = (-1).to_bytes(2, "big", signed=True)
_AT_ONCE = 1 << 16
_HOLES = 64  # the newest ones, which late units may still fill


class PlacedFile:
    """Files of one fixed size that hold one line of bytes, sparse; written in any order."""

    def __init__(self, directory: str, file_size: int) -> None:
        self.directory, self.file_size = directory, file_size
        self.starts: set[int] = set()
        self._open: tuple[int, int] | None = None  # (start, descriptor)

    def write(self, at: int, data: memoryview) -> None:
        """Put bytes at byte `at` of the line."""
        while data:
            start = at - at % self.file_size
            piece = data[: start + self.file_size - at]
            disk.pwrite_all(self._file(start), piece, at - start)
            at, data = at + len(piece), data[len(piece) :]

    def _file(self, start: int) -> int:
        if self._open is not None and self._open[0] == start:
            return self._open[1]
        self.close()
        new = start not in self.starts
        fd = (disk.create if new else disk.open_to_write)(self._path(start))
        self._open = start, fd
        if new:
            self.starts.add(start)
            disk.resize(fd, self.file_size)
        return fd

    def _path(self, start: int) -> str:
        return join(self.directory, name_at(start))

    def space(self, count: int, unit: int) -> int:
        """Bytes that so many units more, of `unit` bytes, will take on the disk; files are sparse after their units."""
        return count * unit + -(-count // (self.file_size // unit)) * FILE_BLOCK

    def reset(self) -> None:
        """Forget everything written."""
        self.close()
        for start in self.starts:
            disk.remove(self._path(start))
        self.starts.clear()

    def paths(self) -> list[str]:
        """The files, in order."""
        return [self._path(start) for start in sorted(self.starts)]

    def close(self) -> None:
        """Close the file that is open; a later write opens it again."""
        if self._open is not None:
            disk.close(self._open[1])
            self._open = None


def ext_units_in_file(file_size: int) -> int:
    """Units without a bitmap that an extension file takes before its end mark.

    >>> ext_units_in_file(840)
    41
    """
    return (file_size - 4) // EXT_UNIT.itemsize


class ExtWriter:
    """Writes the extension units of one queue (`ConsumeQueueExt.put`), without bitmaps."""

    def __init__(self, directory: str, file_size: int) -> None:
        self._files = PlacedFile(directory, file_size)
        self._file_size = file_size
        self._in_file = ext_units_in_file(file_size)
        self._count = 0

    def put(self, units: Units) -> npt.NDArray[np.int64]:
        """Append an extension unit for each unit; returns their addresses."""
        number = np.arange(self._count, self._count + len(units), dtype=np.int64)
        stored = np.empty(len(units), EXT_UNIT)
        stored["size"], stored["bitmap_size"] = EXT_UNIT.itemsize, 0
        stored["tags_code"], stored["store_timestamp"] = units["tags_code"], units["store_timestamp"]
        self._count += len(units)
        offsets = number // self._in_file * self._file_size + number % self._in_file * EXT_UNIT.itemsize
        for first, stop in stretches(np.diff(offsets) != EXT_UNIT.itemsize, len(units)):
            at = int(offsets[first])
            if at and at % self._file_size == 0:  # the broker marks a file as full when the next unit does not fit
                self._files.write(at - self._file_size + self._in_file * EXT_UNIT.itemsize, memoryview(_EXT_END))
            self._files.write(at, _bytes_of(stored[first:stop]))
        return offsets + _ADDRESS

    def reset(self) -> None:
        self._files.reset()
        self._count = 0

    def close(self) -> list[str]:
        self._files.close()
        return self._files.paths()


class QueueBuilder(UnitPlaces):
    """Writes one queue into `directory`, and its extension files into `ext_directory`; both exist and are empty.

    `kept`: how many units of the old files.
    `old`: the queue's files so far; units of messages that the log no longer holds are taken from them.
    """

    def __init__(
        self, directory: str, ext_directory: str | None, rules: QueueRules, old: OldQueue | None = None
    ) -> None:
        super().__init__(rules.file_size)
        self._old = old
        self._files = PlacedFile(directory, rules.file_size)
        self._in_file = rules.file_size // layout.QUEUE_UNIT_SIZE
        self._ext = None
        if rules.ext_file_size is not None and ext_directory is not None:
            self._ext = ExtWriter(ext_directory, rules.ext_file_size)
        self._blanks: deque[tuple[int, int]] = deque(maxlen=_HOLES)
        self.kept = 0

    def space(self, units: Units, log_bytes: int) -> int:
        """Bytes on the disk for the units that follow and the blanks between them; `log_bytes`: of the whole log."""
        count, first = len(units), int(units["queue_offset"][0])
        before = self.next if self.next >= 0 else first - first % self._in_file
        holes = first - before, int(units["queue_offset"][-1]) + 1 - first - count
        blanks = sum(hole for hole in holes if hole > 0 and fits_hole(hole, log_bytes))
        ext = count * EXT_UNIT.itemsize if self._ext is not None else 0
        return ext + self._files.space(count + blanks, layout.QUEUE_UNIT_SIZE)

    def _begin(self, place: int, phy_offset: int) -> None:
        start = place - place % self._in_file
        if self._old is not None:
            start = self._old.first_place(start)
        self._fill(start, place, -1, phy_offset)

    def _begin_again(self, phy_offset: int) -> None:
        self._files.reset()
        if self._ext is not None:
            self._ext.reset()
        self.kept = 0
        self._blanks.clear()

    def _fill(self, first: int, stop: int, low: int, high: int) -> None:
        """Places without a message: old units of messages in the phy offsets [low, high), else blanks."""
        if self._old is None:
            self._blank(first, stop)
            return
        for at in range(first, stop, _AT_ONCE):
            units, kept = self._old.keep(at, min(at + _AT_ONCE, stop), low, high)
            if self._ext is not None:
                self._move_ext(self._old, self._ext, units)
            self._files.write(at * layout.QUEUE_UNIT_SIZE, _bytes_of(units))
            self.kept += int(np.count_nonzero(kept))

    def _move_ext(self, old: OldQueue, ext: ExtWriter, units: Units) -> None:
        """Give old units new addresses: the extension files begin anew."""
        found, codes, times = old.plain(units)
        extended = np.zeros(int(np.count_nonzero(found)), [("tags_code", "=i8"), ("store_timestamp", "=i8")])
        extended["tags_code"], extended["store_timestamp"] = codes[found], times[found]
        codes[found] = ext.put(extended)
        units["tags_code"] = codes

    def _blank(self, first: int, stop: int) -> None:
        if first == stop:
            return
        self._blanks.append((first, stop))
        piece = np.repeat(BLANK_UNIT, min(stop - first, _AT_ONCE))
        for at in range(first, stop, _AT_ONCE):
            self._files.write(at * layout.QUEUE_UNIT_SIZE, _bytes_of(piece[: stop - at]))

    def _put_late(self, units: Units) -> int:
        first = int(units["queue_offset"][0])
        stop, written = first + len(units), 0
        left: deque[tuple[int, int]] = deque(maxlen=_HOLES)
        for begin, end in self._blanks:
            low, high = max(begin, first), min(end, stop)
            if low >= high:
                left.append((begin, end))
                continue
            self._put_at(low, units[low - first : high - first])
            written += high - low
            left.extend(part for part in ((begin, low), (high, end)) if part[0] < part[1])
        self._blanks = left
        return len(units) - written

    def _write(self, units: Units) -> None:
        place = int(units["queue_offset"][0])
        if self._ext is not None:
            units = self._with_addresses(units, self._ext)
        data, _, _, _ = encode_units(np.ascontiguousarray(units), place, -1)
        self._files.write(place * layout.QUEUE_UNIT_SIZE, data.data)

    def _with_addresses(self, units: Units, ext: ExtWriter) -> Units:
        own = units["store_timestamp"] != NO_EXT
        addressed = units.copy()
        addressed["tags_code"][own] = ext.put(units[own])
        return addressed

    def finish(self) -> None:
        """Add old units, of lost messages, after the log's last unit; where the log has none, all such units."""
        if self._old is None:
            return
        if self.next < 0:
            first, stop = self._old.last_stretch()
            self._fill(first, stop, -1, 2**63 - 1)
            return
        stop = self._old.kept_until(self.next, self.last_end)
        self._fill(self.next, stop, self.last_end, 2**63 - 1)
        self.next = stop

    def close(self) -> list[str]:
        """All files written, those of the queue first; not yet synced."""
        self._files.close()
        return self._files.paths() + (self._ext.close() if self._ext is not None else [])


def _bytes_of(array: Units) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data
