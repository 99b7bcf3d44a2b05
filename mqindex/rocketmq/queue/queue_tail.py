"""The end of a consume queue that is being written: units are appended as by the broker, and cut off again.

Writes go through the file, not through a mapping: a full disk is an `OSError` and never a signal. A new file is made
under another name beside the queue's directory, at its full length and with the blanks that it may begin with, and then
renamed: a broker that finds a file of another length in a queue's directory does not start.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import encode_units
from mqindex.errors import FileStateError, GeometryError, OffsetOverflowError
from mqindex.files import disk
from mqindex.files.paths import absolute, parent_of
from mqindex.files.results.whole_file import appearing
from mqindex.files.sync_trust import SyncTrust
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.log_files import LogFile, data_end
from mqindex.rocketmq.queue.queue_files import UnitFiles
from mqindex.rocketmq.queue.queue_units import BLANK, all_columns, are_blank, columns_of_file, count_blanks
from mqindex.rocketmq.queue.unit_places import fits_hole, stretches

_ZEROS = bytes(1 << 16)
_BLANKS = 1 << 12  # written at once


class PutUnits(NamedTuple):
    """Counts of units: `written`, `repeated` (there already), `misplaced` (written, but not at their offset)."""

    written: int
    repeated: int
    misplaced: int


class QueueTail:
    """Writes one queue; the caller excludes other threads.

    Attributes
    ----------
    end : int, queue offset of the next unit; blanks that follow the last one are cleared before it is written
    first : int, queue offset of the first unit that is not a blank
    max_phy_offset : int, the end of the last unit's message; -1: there is none
    """

    def __init__(self, units: UnitFiles, file_size: int, end: int) -> None:
        for file in units.files:
            if file.size != file_size or file.start % file_size:
                raise GeometryError(
                    "a queue file of another size", path=file.path, expected=f"{file_size} bytes", got=file.size,
                    hint="pass the file_size= of the store's other queues, or repair the store",
                )  # fmt: skip
        self._units = units
        self._file_size = file_size
        self._clean = False  # whether only zeros follow the end
        self._dirty: set[str] = set()
        self._renamed = False
        self._syncs = SyncTrust()
        self.first = min(units.first + count_blanks(units, units.first, end), end)
        self.end, self.max_phy_offset = _last_unit(units, self.first, end)
        self._blank_end = self.end < end or units.first < self.first == end

    def put(self, units: npt.NDArray[Any], *, fill_holes: bool = False) -> PutUnits:
        """Append units of this queue (`UNIT`), in the log's order; `fill_holes`: blanks where the log lost messages."""
        units = np.ascontiguousarray(units)
        start = self.end
        if self.first >= self.end:  # only blanks: the queue begins at the first unit's own offset
            fresh = self._fresh(units)
            if not len(fresh):
                return PutUnits(0, len(units), 0)
            start = int(units["queue_offset"][fresh[0]])
        self._require_room(start, len(units))
        data, max_phy_offset, repeated, misplaced = encode_units(units, start, self.max_phy_offset)
        if misplaced and fill_holes:
            return self._put_and_fill(units)
        self._append(start, data, max_phy_offset)
        return PutUnits(len(data) // QUEUE_UNIT_SIZE, repeated, misplaced)

    def _put_and_fill(self, units: npt.NDArray[Any]) -> PutUnits:
        """`put` of each stretch without a hole, with the blanks before it."""
        put = PutUnits(0, 0, 0)
        for first, stop in stretches(np.diff(units["queue_offset"]) > 1, len(units)):
            part = units[first:stop]
            start = self._place_of(part)
            self._require_room(start, len(part))
            data, max_phy_offset, repeated, misplaced = encode_units(part, start, self.max_phy_offset)
            self._append(start, data, max_phy_offset)
            counts = len(data) // QUEUE_UNIT_SIZE, repeated, misplaced
            put = PutUnits(*(sum(pair) for pair in zip(put, counts, strict=True)))
        return put

    def _place_of(self, units: npt.NDArray[Any]) -> int:
        """Where the first of these goes that is not there already: to its own queue offset, if that can be."""
        fresh = self._fresh(units)
        if not len(fresh):
            return self.end
        place, phy_offset = (int(units[name][fresh[0]]) for name in ("queue_offset", "phy_offset"))
        if self.first >= self.end:
            return place
        hole = place - self.end
        return place if hole > 0 and fits_hole(hole, phy_offset - self.max_phy_offset) else self.end

    def _fresh(self, units: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.flatnonzero(units["phy_offset"] + units["size"] > self.max_phy_offset)

    def _append(self, start: int, data: npt.NDArray[np.uint8], max_phy_offset: int) -> None:
        """Write encoded units from the place `start` on, and blanks up to it."""
        if not len(data):
            return
        if self.first >= self.end:
            self._begin(start)
            self.end = start
        for place in range(self.end, start, _BLANKS):
            self._write(place * QUEUE_UNIT_SIZE, memoryview(BLANK * min(_BLANKS, start - place)))
        self._write(start * QUEUE_UNIT_SIZE, data.data)
        self.end = start + len(data) // QUEUE_UNIT_SIZE
        self.max_phy_offset = max_phy_offset

    def truncate(self, phy_offset: int) -> None:
        """Cut off units, file by file from the last: in each from the first one on that is at `phy_offset` or later.

        Blanks that are last then go too: a broker that starts takes one for a message that ends at 2147483647, and
        gives the queue none before that (4.9.3: no queue).
        """
        if self.max_phy_offset <= phy_offset and not self._blank_end:
            if self.first >= self.end:
                self.max_phy_offset = phy_offset  # as the broker's, of a queue without units too
            return
        end = self.first
        for file in reversed(self._units.files):
            first = file.start // QUEUE_UNIT_SIZE
            phys, _, _ = columns_of_file(self._units, first, min(self.end, file.stop // QUEUE_UNIT_SIZE))
            later = np.flatnonzero(phys >= phy_offset)
            if keep := int(later[0]) if len(later) else len(phys):
                end = first + keep
                break
        self.end, self.max_phy_offset = _last_unit(self._units, self.first, end)
        if self.first >= self.end:
            self._empty(phy_offset)
        self._clean = self._blank_end = False
        self._clear_after_end()

    def flush(self) -> None:
        """Bring all to the disk, file names included; after a failure every later call fails too."""
        with self._syncs:
            while self._dirty:
                path = next(iter(self._dirty))
                fd = disk.open_to_write(path)
                try:
                    disk.sync_data(fd)
                finally:
                    disk.close(fd)
                self._dirty.discard(path)
            if self._renamed:
                disk.sync_directory(self._units.directory)
                self._renamed = False

    def _require_room(self, start: int, count: int) -> None:
        if start < 0 or (start + count) * QUEUE_UNIT_SIZE + self._file_size >= 2**63:
            raise OffsetOverflowError(
                "the queue offset has no place in a queue", path=self._units.directory, field="queue_offset",
                expected=f"0..{(2**63 - self._file_size) // QUEUE_UNIT_SIZE - count}", got=start,
            )  # fmt: skip

    # ---- before the first write

    def _begin(self, start: int) -> None:
        """Make the first file, blank up to where its first unit will be; the queue had no unit before."""
        self._empty(self.max_phy_offset)
        at = start * QUEUE_UNIT_SIZE
        self._create(at - at % self._file_size, BLANK * (at % self._file_size // QUEUE_UNIT_SIZE))
        self.first = start
        self._clean = True

    def _empty(self, max_phy_offset: int) -> None:
        for file in reversed(self._units.files):
            self._unlink(file)
        self.end = self.first = 0
        self.max_phy_offset = max_phy_offset

    def _clear_after_end(self) -> None:
        """Clear what follows the end: it would be taken for units once those before it are there."""
        if self._clean:
            return
        end = self.end * QUEUE_UNIT_SIZE
        for file in reversed(self._units.files):
            if file.start >= end:
                self._unlink(file)
            elif file.stop > end and (stop := file.start + data_end(file.path)) > end:
                self._write_zeros(file, end, stop)
        self._clean = True

    def _unlink(self, file: LogFile) -> None:
        disk.remove(file.path)
        self._dirty.discard(file.path)
        self._units.maps.forget(file.path)
        self._units.relist()
        self._renamed = True

    # ---- bytes

    def _write(self, at: int, data: memoryview) -> None:
        self._clear_after_end()
        self._clean = False  # until all is written: a full disk may leave a part
        while data:
            file = self._units.files[self._units.index_of(at // QUEUE_UNIT_SIZE)]
            if file.size != self._file_size:
                raise FileStateError(
                    "the length of a queue file changed while the queue was written", path=file.path,
                    expected=self._file_size, got=file.size,
                )  # fmt: skip
            if at >= file.stop:
                self._create(file.stop, b"")
                continue
            piece = data[: file.stop - at]
            self._write_into(file, at, piece)
            at, data = at + len(piece), data[len(piece) :]
        self._clean = True

    def _write_zeros(self, file: LogFile, at: int, stop: int) -> None:
        for place in range(at, stop, len(_ZEROS)):
            self._write_into(file, place, memoryview(_ZEROS)[: stop - place])

    def _write_into(self, file: LogFile, at: int, data: memoryview) -> None:
        fd = disk.open_to_write(file.path)
        try:
            self._dirty.add(file.path)
            disk.pwrite_all(fd, data, at - file.start)
        finally:
            disk.close(fd)

    def _create(self, start: int, head: bytes) -> None:
        home = absolute(self._units.directory)
        like = self._units.files[-1].path if self._units.files else home
        path = self._units.path_of(start)
        with appearing(path, like=like, aside=parent_of(home)) as fd:
            disk.resize(fd, self._file_size)
            disk.pwrite_all(fd, head, 0)
        self._units.maps.forget(path)
        self._units.relist()
        self._dirty.add(path)
        self._renamed = True


def _last_unit(units: UnitFiles, first: int, end: int) -> tuple[int, int]:
    """The place after the last of the units [first, end) that is no blank, and where its message ends; `first`, -1:
    there is none."""
    step = 1
    while end > first:
        start = max(end - step, first)
        offsets, phys, sizes, codes = all_columns(units, start, end)
        found = np.flatnonzero(~are_blank(phys, sizes, codes))
        if len(found):
            last = found[-1]
            return int(offsets[last]) + 1, int(phys[last]) + int(sizes[last])
        end, step = start, min(4 * step, 1 << 16)
    return first, -1
