"""Units that only a queue's old files have, and not the log: of expired messages, and of damaged stretches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.errors import MQIndexError
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.layout import BLANK_UNIT_SIZE, MAX_EXT_ADDRESS, QUEUE_UNIT_SIZE
from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt
from mqindex.rocketmq.queue.queue_files import queue_files

Units = npt.NDArray[Any]

STORED_UNIT = np.dtype([("phy_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
BLANK_UNIT = np.array([(0, BLANK_UNIT_SIZE, 0)], STORED_UNIT)
_AT_ONCE = 1 << 16
_AT_FIRST = 64  # most queues have few units behind the log's
_NO_LIMIT = 2**63 - 1


class OldQueue:
    """The files of one queue that have the right length; only read.

    `lost`: the ranges of phy offsets that the log no longer holds. Units that lead there are kept.
    """

    def __init__(self, directory: str, ext_directory: str, file_size: int, lost: tuple[tuple[int, int], ...]) -> None:
        self._ext_directory = ext_directory
        self._lost = lost
        self._in_file = file_size // QUEUE_UNIT_SIZE
        files, _ = queue_files(directory, QUEUE_UNIT_SIZE)
        right = [file for file in files if file.size == file_size and file.start % file_size == 0]
        self._paths = {file.start // QUEUE_UNIT_SIZE: file.path for file in right}

    def first_place(self, place: int) -> int:
        """Where the old files begin that are without a hole up to `place`, the start of a file."""
        while place - self._in_file in self._paths:
            place -= self._in_file
        return place

    def last_stretch(self) -> tuple[int, int]:
        """The places from the last hole between files, to after the last unit that is kept."""
        last = max(self._paths, default=0)
        first, stop = self.first_place(last), 0
        for start in range(first, last + self._in_file, self._in_file):
            end = start + self._written(start)
            for at in range(start, end, _AT_ONCE):
                _, kept = self.keep(at, min(at + _AT_ONCE, end), -1, _NO_LIMIT)
                if kept.any():
                    stop = at + int(np.flatnonzero(kept)[-1]) + 1
        return first, max(first, stop)

    def kept_until(self, place: int, low: int) -> int:
        """The first place from `place` on whose unit is not kept; `low`: as in `keep`."""
        step = _AT_FIRST
        while True:
            _, kept = self.keep(place, place + step, low, _NO_LIMIT)
            if not kept.all():
                return place + int(kept.argmin())
            place, step = place + step, min(4 * step, _AT_ONCE)

    def keep(self, first: int, stop: int, low: int, high: int) -> tuple[Units, npt.NDArray[np.bool_]]:
        """The places [first, stop): old units whose messages are in the phy offsets [low, high), else blank ones."""
        units = self._read(first, stop)
        phy_offset, size = units["phy_offset"].astype(np.int64), units["size"].astype(np.int64)
        kept = np.zeros(len(units), bool)
        for begin, end in self._lost:
            kept |= (phy_offset >= max(begin, low)) & (phy_offset + size <= min(end, high))
        kept &= (phy_offset >= 0) & (size > 0) & (size < BLANK_UNIT_SIZE)
        units[~kept] = BLANK_UNIT[0]
        return units, kept

    def plain(self, units: Units) -> tuple[npt.NDArray[np.bool_], Units, Units]:
        """For units that hold an address: which have an extension unit, and its tags codes and store timestamps."""
        codes = units["tags_code"].astype(np.int64)
        found = codes <= MAX_EXT_ADDRESS
        times = np.zeros(len(units), np.int64)
        if found.any():
            try:
                with ConsumeQueueExt.open(self._ext_directory) as ext:
                    for i in np.flatnonzero(found).tolist():
                        unit = ext.get(int(codes[i]))
                        found[i] = unit is not None
                        codes[i], times[i] = (unit.tags_code, unit.store_timestamp) if unit is not None else (0, 0)
            except (FileNotFoundError, NotADirectoryError, MQIndexError):
                codes[codes <= MAX_EXT_ADDRESS] = 0
                found[:] = False
        return found, codes, times

    def _written(self, start: int) -> int:
        """How many places of the file that begins at `start` come before its hole."""
        path = self._paths.get(start)
        if path is None:
            return 0
        with SparseFile(path) as file:
            return min(-(-file.data_end() // QUEUE_UNIT_SIZE), self._in_file)

    def _read(self, first: int, stop: int) -> Units:
        units = np.zeros(stop - first, STORED_UNIT)
        for start in range(first - first % self._in_file, stop, self._in_file):
            path = self._paths.get(start)
            low, high = max(first, start), min(stop, start + self._in_file)
            if path is not None:
                at = (low - start) * QUEUE_UNIT_SIZE
                read = np.fromfile(path, STORED_UNIT, high - low, offset=at)
                units[low - first : low - first + len(read)] = read
        return units
