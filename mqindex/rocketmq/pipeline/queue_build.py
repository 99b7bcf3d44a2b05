"""The files of one consume queue, written from its units in the log's order.

Every unit stands at its message's own queue offset. For what an uninterrupted broker dispatches, that is what the
broker writes (RocketMQ 4.9.3 `ConsumeQueue.putMessagePositionInfo`). Where the log lost messages, a broker writes the
units that follow at the next place, and from there on a queue offset leads to another message; here the hole is filled
with the blank units that a broker writes before the first unit of a queue.

```
queue offset = next place        written there
behind it                        blanks up to it, then there. More blanks than the log between the two messages could
                                 have held messages: at the next place, as the broker does
0, and the queue is not empty    the topic was deleted and created again: what came before counts no more
before it                        into a blank, where one is; else a repeated build, not written
below 0, or beyond 64 bits       not written
```
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import encode_units
from mqindex.files import disk
from mqindex.rocketmq import layout
from mqindex.rocketmq.queue.old_queue import BLANK_UNIT, OldQueue
from mqindex.rocketmq.queue.queue_rules import QueueRules

__all__ = ["EXT_UNIT", "NO_EXT", "Oddities", "QueueBuilder", "fits_hole"]

Units = npt.NDArray[Any]

EXT_UNIT = np.dtype([("size", ">i2"), ("tags_code", ">i8"), ("store_timestamp", ">i8"), ("bitmap_size", ">i2")])

NO_EXT = -(2**63)
"""As a unit's store_timestamp: it never has an extension unit (the units of multi-dispatch)."""

_ADDRESS = -(2**63)  # added to an extension unit's offset, it is the third field of the unit
_EXT_END = (-1).to_bytes(2, "big", signed=True)
_SMALLEST_FRAME = 91
_BURNT = 1024  # offsets that a broker may have given away without storing a message
_AT_ONCE = 1 << 16
_HOLES = 64  # the newest, that late units may still fill


@dataclass(frozen=True, slots=True)
class Oddities:
    """Units of one queue that an uninterrupted broker would not have met.

    `blanks` in holes, `misplaced` units behind a hole too large to fill, `repeated` units that were left out, `early`
    units of an earlier life of the topic, `twice`: how many such lives had the queue offset 0 too, `impossible` queue
    offsets. `at`: phy offset of the first such unit.
    """

    blanks: int = 0
    misplaced: int = 0
    repeated: int = 0
    early: int = 0
    twice: int = 0
    impossible: int = 0
    at: int = -1


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
        return os.path.join(self.directory, f"{start:020d}")

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


def fits_hole(hole: int, between: int) -> bool:
    """Whether so many queue offsets can have belonged to messages in so many bytes of log, or to none at all."""
    return hole <= between // _SMALLEST_FRAME + _BURNT


def ext_units_in_file(file_size: int) -> int:
    """Units without a bitmap that an extension file takes before its end mark.

    >>> ext_units_in_file(840)
    41
    """
    return (file_size - 4) // EXT_UNIT.itemsize


class ExtWriter:
    """The extension units of one queue (`ConsumeQueueExt.put`), none with a bitmap."""

    def __init__(self, directory: str, file_size: int) -> None:
        self._files = PlacedFile(directory, file_size)
        self._file_size = file_size
        self._in_file = ext_units_in_file(file_size)
        self._count = 0

    def put(self, units: Units) -> npt.NDArray[np.int64]:
        """Append a unit for each; their addresses."""
        number = np.arange(self._count, self._count + len(units), dtype=np.int64)
        stored = np.empty(len(units), EXT_UNIT)
        stored["size"], stored["bitmap_size"] = EXT_UNIT.itemsize, 0
        stored["tags_code"], stored["store_timestamp"] = units["tags_code"], units["store_timestamp"]
        self._count += len(units)
        offsets = number // self._in_file * self._file_size + number % self._in_file * EXT_UNIT.itemsize
        for first, stop in _stretches(np.flatnonzero(np.diff(offsets) != EXT_UNIT.itemsize) + 1, len(units)):
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


class QueueBuilder:
    """Writes one queue into `directory`, and its extension files into `ext_directory`; both exist and are empty.

    `units`: of the log, `kept`: of the old files.
    `old`: the queue's files so far; what the log does not hold any more is taken from them.
    """

    def __init__(
        self, directory: str, ext_directory: str | None, rules: QueueRules, old: OldQueue | None = None
    ) -> None:
        self._old = old
        self._files = PlacedFile(directory, rules.file_size)
        self._in_file = rules.file_size // layout.QUEUE_UNIT_SIZE
        self._ext = None
        if rules.ext_file_size is not None and ext_directory is not None:
            self._ext = ExtWriter(ext_directory, rules.ext_file_size)
        self._highest = (2**63 - 1 - rules.file_size) // layout.QUEUE_UNIT_SIZE
        self._first: int | None = None
        self._next = 0
        self._end = -1  # phy offset behind the last message
        self._last_end = 0
        self._blanks: deque[tuple[int, int]] = deque(maxlen=_HOLES)
        self.units = self.kept = 0
        self.oddities = Oddities()

    def put(self, units: Units) -> None:
        """The units that follow, in the log's order."""
        units = self._possible(units)
        if not len(units):
            return
        jumps = np.flatnonzero(np.diff(units["queue_offset"]) != 1) + 1
        for first, stop in _stretches(jumps, len(units)):
            self._put_line(units[first:stop])

    def _possible(self, units: Units) -> Units:
        """Without what one message gave twice, and without queue offsets that have no place."""
        phy_offset, queue_offset = units["phy_offset"], units["queue_offset"]
        if not len(units):
            return units
        keep = np.diff(phy_offset, prepend=self._end - 1) > 0
        impossible = (queue_offset < 0) | (queue_offset > self._highest)
        if impossible.any():
            self._note(units[impossible], impossible=int(np.count_nonzero(impossible & keep)))
            keep &= ~impossible
        self._end = max(self._end, int(phy_offset[-1]) + 1)
        return units if keep.all() else units[keep]

    def _put_line(self, units: Units) -> None:
        """Units with consecutive queue offsets."""
        place = int(units["queue_offset"][0])
        if self._first is None:
            self._begin(place, int(units["phy_offset"][0]))
        elif place == 0 and self._next > 0:
            self._note(units, early=self.units, twice=int(self._first == 0))
            self._reset()
            self._begin(0, 0)
        if place < self._next:
            early = min(self._next - place, len(units))
            self._fill_blanks(units[:early])
            units, place = units[early:], place + early
            if not len(units):
                return
        if place > self._next:
            place = self._open_hole(place, units)
        self._write(place, units)
        self._next = place + len(units)

    def _begin(self, place: int, phy_offset: int) -> None:
        self._first = self._next = place
        start = place - place % self._in_file
        if self._old is not None:
            start = self._old.first_place(start)
        self._fill(start, place, -1, phy_offset)

    def _reset(self) -> None:
        self._files.reset()
        if self._ext is not None:
            self._ext.reset()
        self.units = self.kept = 0
        self._blanks.clear()

    def _open_hole(self, place: int, units: Units) -> int:
        hole, phy_offset = place - self._next, int(units["phy_offset"][0])
        if not fits_hole(hole, phy_offset - self._last_end):
            self._note(units, misplaced=len(units))
            return self._next
        self._note(units, blanks=hole)
        self._fill(self._next, place, self._last_end, phy_offset)
        return place

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

    def _fill_blanks(self, units: Units) -> None:
        """Units before the next place: into blanks where they meet one."""
        first = int(units["queue_offset"][0])
        stop, written = first + len(units), 0
        left: deque[tuple[int, int]] = deque(maxlen=_HOLES)
        for begin, end in self._blanks:
            low, high = max(begin, first), min(end, stop)
            if low >= high:
                left.append((begin, end))
                continue
            self._write(low, units[low - first : high - first])
            written += high - low
            left.extend(part for part in ((begin, low), (high, end)) if part[0] < part[1])
        self._blanks = left
        if written < len(units):
            self._note(units, repeated=len(units) - written)

    def _write(self, place: int, units: Units) -> None:
        self.units += len(units)
        self._last_end = int(units["phy_offset"][-1]) + int(units["size"][-1])
        if self._ext is not None:
            units = self._with_addresses(units, self._ext)
        if int(units["queue_offset"][0]) != place:
            units = units.copy()
            units["queue_offset"] = np.arange(place, place + len(units))
        data, _, _, _ = encode_units(np.ascontiguousarray(units), place, -1)
        self._files.write(place * layout.QUEUE_UNIT_SIZE, data.data)

    def _with_addresses(self, units: Units, ext: ExtWriter) -> Units:
        own = units["store_timestamp"] != NO_EXT
        addressed = units.copy()
        addressed["tags_code"][own] = ext.put(units[own])
        return addressed

    def _note(self, units: Units, **counts: int) -> None:
        known = self.oddities
        at = known.at if known.at >= 0 else int(units["phy_offset"][0])
        counted = {name: getattr(known, name) + count for name, count in counts.items()}
        self.oddities = replace(known, at=at, **counted)

    def finish(self) -> None:
        """Behind the log's last unit: old ones whose messages were lost. Where the log has none, all such."""
        if self._old is None:
            return
        if self._first is None:
            first, stop = self._old.last_stretch()
            self._fill(first, stop, -1, 2**63 - 1)
            return
        while True:
            _, kept = self._old.keep(self._next, self._next + _AT_ONCE, self._last_end, 2**63 - 1)
            stop = self._next + (len(kept) if kept.all() else int(kept.argmin()))
            self._fill(self._next, stop, self._last_end, 2**63 - 1)
            self._next = stop
            if not kept.all():
                return

    def close(self) -> list[str]:
        """All files written, those of the queue first; not yet synced."""
        self._files.close()
        return self._files.paths() + (self._ext.close() if self._ext is not None else [])


def _stretches(borders: Iterable[Any], stop: int) -> Iterator[tuple[int, int]]:
    first = 0
    for border in borders:
        yield first, int(border)
        first = int(border)
    if first < stop:
        yield first, stop


def _bytes_of(array: Units) -> memoryview:
    return np.ascontiguousarray(array).view(np.uint8).data
