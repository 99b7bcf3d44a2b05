"""Which batches of a partition a consumer with an isolation level gets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex.errors import CorruptIndexError, MQIndexError
from mqindex.files.places.place import Place
from mqindex.kafka.log.batches import is_control, is_transactional
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.partition.partition_log import IsolationLevel, PartitionLog
from mqindex.kafka.partition.transactions import Replay, events_of

_Rows: TypeAlias = npt.NDArray[Any]
Visible: TypeAlias = Callable[[Any, _Rows], npt.NDArray[np.bool_]]


@contextmanager
def visible_to(
    level: IsolationLevel | None,
    directory: str,
    lacking: Callable[[CorruptIndexError], None],
    *,
    stable: Callable[[int], int] = lambda offset: offset,
) -> Iterator[Visible]:
    """A function that says, of a log and neighbouring batches of it, which ones such a consumer gets; level None: all.

    "read_uncommitted": without control batches. "read_committed": also without those of aborted transactions, and up to
    the last stable offset of the partition in `directory`. What was aborted is what its indexes say, as for a broker.

    lacking : gets of each index the first transaction that it has not, of those that these batches are in
    stable : from the last stable offset that which counts
    """
    if level is None:
        yield lambda log, rows: np.ones(len(rows), np.bool_)
    elif level == "read_uncommitted":
        yield lambda log, rows: ~is_control(rows)
    else:
        with PartitionLog._of(directory) as partition:
            end = stable(partition.last_stable_offset)
            compare = _Comparison(partition, end, lacking)

            def committed(log: Any, rows: _Rows) -> npt.NDArray[np.bool_]:
                compare.with_index(log, rows)
                return partition._are_committed(rows) & (rows["base_offset"] < end)

            yield committed
            compare.settle()


class _Comparison:
    """The aborted transactions of a partition, as its batches pass, against those of its indexes.

    What is open where the batches leave a gap, or end, is followed to its end in the log.
    """

    def __init__(self, partition: PartitionLog, end: int, lacking: Callable[[CorruptIndexError], None]) -> None:
        self._partition, self._end, self._lacking, self._replay = partition, end, lacking, Replay()
        self._bases = [segment.base_offset for segment in partition.segments]
        self._told: set[int] = set()
        self._number, self._position, self._offset = 0, 0, -1  # where the batches that passed end

    def with_index(self, log: Any, rows: _Rows) -> None:
        """Compare those that end in some batches, neighbours in one segment."""
        number = bisect_right(self._bases, int(rows["base_offset"][0])) - 1 if len(rows) else -1
        if number < 0:  # or it was deleted since it was opened
            return
        start, last = int(rows["position"][0]), rows[-1]
        if (number, start) not in ((self._number, self._position), (self._number + 1, 0)):
            self.settle()
        self._number, self._position = number, int(last["position"] + last["size"])
        self._offset = int(last["last_offset"])
        self._run(number, log, rows[is_control(rows) | (rows["base_offset"] < self._end)])

    def settle(self) -> None:
        """Follow what is open; then nothing is."""
        left = {producer for producer, first in self._replay.open.items() if first < self._end}
        if left and not isinstance(self._partition.directory, Place):  # elsewhere it would be brought again
            for number in range(self._number, len(self._bases)):
                segment = self._partition.segments[number]
                for log, rows in segment._batch_parts(_position_of(segment, self._offset + 1)):
                    self._run(number, log, rows[rows["base_offset"] > self._offset])
                    if left.isdisjoint(self._replay.open):
                        break
                else:
                    continue
                break
        self._replay = Replay()

    def _run(self, number: int, log: Any, rows: _Rows) -> None:
        some = rows[
            (is_control(rows) | is_transactional(rows)) & (rows["last_offset"] >= self._partition.log_start_offset)
        ]
        for producer, first, last, *_ in self._replay.run(events_of(some, log)):
            wrong = number if not self._is_known(producer, last, last) else bisect_right(self._bases, first) - 1
            if wrong not in self._told and not self._is_known(producer, first, last):
                self._told.add(wrong)
                self._lacking(
                    CorruptIndexError(
                        "the index lacks aborted transactions, and their records are among the answer",
                        path=f"{self._partition.segments[wrong].path.removesuffix('.log')}.txnindex",
                        expected=f"that of producer {producer}, offsets {first} to {last}",
                        got="none",
                        hint="`mqindex repair` writes the index",
                    )
                )

    def _is_known(self, producer: int, start: int, last: int) -> bool:
        """Whether the indexes tell an aborted transaction to who reads from `start` on: an entry may end the search."""
        known = self._partition._aborted.collect(start, start + 1, last)
        return (producer, last) in {(each[0], each[2]) for each in known}


def _position_of(segment: LogSegment, offset: int) -> int:
    try:
        return segment._position_of(offset)
    except MQIndexError:  # the offset index is damaged
        return 0
