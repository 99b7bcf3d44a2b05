"""Units that only the old files of a batch queue have, and not the log, as `old_queue` has them of consume queues."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.layout import BATCH_UNIT_SIZE
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT, BatchUnits, are_valid
from mqindex.rocketmq.queue.queue_files import queue_files

_AT_ONCE = 1 << 16


class OldBatchQueue:
    """The files of one batch queue; only read, once, from its begin.

    `lost`: the ranges of phy offsets that the log no longer holds. Valid units that lead there are kept, as long as
    their phy offsets ascend. `start`: the byte of the queue at which its first file begins.
    """

    def __init__(self, directory: str, file_size: int, lost: tuple[tuple[int, int], ...]) -> None:
        self._lost = lost
        self._files, _ = queue_files(directory, BATCH_UNIT_SIZE)
        start = self._files[0].start if self._files else 0
        self.start = start - start % file_size
        self._blocks = self._read()
        self._waiting = np.empty(0, BATCH_UNIT)

    def kept_below(self, phy_offset: int) -> Iterator[BatchUnits]:
        """The next kept units whose records are below `phy_offset`, some at a time."""
        while True:
            if not len(self._waiting):
                self._waiting = next(self._blocks, self._waiting)
            stop = int(np.searchsorted(self._waiting["phy_offset"], phy_offset))
            if not stop:
                return
            kept, self._waiting = self._waiting[:stop], self._waiting[stop:]
            yield kept

    def _read(self) -> Iterator[BatchUnits]:
        """All kept units, some at a time."""
        before = -1
        for file in self._files:
            with SparseFile(file.path) as opened:
                end = min(-(-opened.data_end() // BATCH_UNIT_SIZE), min(opened.size, file.size) // BATCH_UNIT_SIZE)
            for at in range(0, end, _AT_ONCE):
                with SparseFile(file.path) as opened:  # not open while others read: many queues are built side by side
                    data = opened.read(at * BATCH_UNIT_SIZE, min(at + _AT_ONCE, end) * BATCH_UNIT_SIZE)
                rows = np.frombuffer(data, BATCH_UNIT)
                rows = rows[self._is_kept(rows)]
                highest = np.maximum.accumulate(np.concatenate([[before], rows["phy_offset"]]))
                rows = rows[rows["phy_offset"] > highest[:-1]]
                before = int(highest[-1])
                if len(rows):
                    yield rows

    def _is_kept(self, rows: BatchUnits) -> npt.NDArray[np.bool_]:
        phys = rows["phy_offset"].astype(np.int64)
        ends = phys + rows["size"]
        lost = np.zeros(len(rows), bool)
        for begin, end in self._lost:
            lost |= (phys >= begin) & (ends <= end)
        return lost & are_valid(rows)
