"""What a log says at given positions and times, from one pass over its batch headers, a few thousand at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.kafka.log.batches import codec_of

_LEAST = -(2**63)
Int64s = npt.NDArray[np.int64]


class AtPositions:
    """For each position, increasing: the batch there, and the greatest offset and timestamp before.

    Attributes
    ----------
    found : whether a batch begins there. base_offset, last_offset : its own, or where a compressed one of magic 0 or 1
        has only the last, the least that may be. offset_before, timestamp_before : greatest of all batches
        that begin before.
    """

    def __init__(self, positions: Int64s) -> None:
        self.positions = positions
        self.found = np.zeros(len(positions), np.bool_)
        self.base_offset, self.last_offset, self.offset_before, self.timestamp_before = (
            np.full(len(positions), _LEAST, np.int64) for _ in range(4)
        )

    def rows_of(self, positions: Int64s) -> npt.NDArray[np.intp]:
        """The index in `positions` of each of these."""
        return np.searchsorted(self.positions, positions)


class AtTimes:
    """For each timestamp, increasing: the first batch whose timestamp is not less.

    Attributes
    ----------
    max_timestamp, base_offset, last_offset : of that batch; where there is none, the least number.
    """

    def __init__(self, timestamps: Int64s) -> None:
        self.timestamps = timestamps
        self.max_timestamp, self.base_offset, self.last_offset = (
            np.full(len(timestamps), _LEAST, np.int64) for _ in range(3)
        )


class LogFacts:
    """See `AtPositions` and `AtTimes`. `last_offset`, `max_timestamp`: the greatest of all batches."""

    def __init__(self, chunks: Iterable[npt.NDArray[Any]], positions: Int64s, timestamps: Int64s) -> None:
        self.positions, self.times = AtPositions(positions), AtTimes(timestamps)
        self.last_offset = self.max_timestamp = _LEAST
        self._position = self._time = 0
        for rows in chunks:
            if len(rows):
                self._add(rows)
        beyond = slice(self._position, None)
        self.positions.offset_before[beyond] = self.last_offset
        self.positions.timestamp_before[beyond] = self.max_timestamp

    def _add(self, rows: npt.NDArray[Any]) -> None:
        offsets = _running(self.last_offset, rows["last_offset"])
        times = _running(self.max_timestamp, rows["max_timestamp"])
        wrapped = (rows["magic"] < 2) & (codec_of(rows) != 0)
        firsts = np.where(wrapped, offsets[:-1] + 1, rows["base_offset"])
        self._add_positions(rows, firsts, offsets, times)
        self._add_times(rows, firsts, times)
        self.last_offset, self.max_timestamp = int(offsets[-1]), int(times[-1])

    def _add_positions(self, rows: npt.NDArray[Any], firsts: Int64s, offsets: Int64s, times: Int64s) -> None:
        """`firsts`: each batch's; `offsets`, `times`: the greatest before each batch, and after the last."""
        at = self.positions
        starts = np.ascontiguousarray(rows["position"])
        stop = int(np.searchsorted(at.positions, int(starts[-1]), "right"))
        here = slice(self._position, max(stop, self._position))
        row = np.searchsorted(starts, at.positions[here])
        at.found[here] = starts[row] == at.positions[here]
        at.base_offset[here], at.last_offset[here] = firsts[row], rows["last_offset"][row]
        at.offset_before[here], at.timestamp_before[here] = offsets[row], times[row]
        self._position = here.stop

    def _add_times(self, rows: npt.NDArray[Any], firsts: Int64s, times: Int64s) -> None:
        at = self.times
        stop = int(np.searchsorted(at.timestamps, int(times[-1]), "right"))
        here = slice(self._time, max(stop, self._time))
        row = np.searchsorted(times[1:], at.timestamps[here])
        at.max_timestamp[here] = rows["max_timestamp"][row]
        at.base_offset[here], at.last_offset[here] = firsts[row], rows["last_offset"][row]
        self._time = here.stop


def _running(before: int, column: npt.NDArray[Any]) -> Int64s:
    """The greatest so far, before each row and after the last."""
    greatest: Int64s = np.maximum.accumulate(np.concatenate([[before], column]).astype(np.int64))
    return greatest
