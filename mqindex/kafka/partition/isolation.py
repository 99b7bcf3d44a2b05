"""Which batches of a partition a consumer with an isolation level gets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy.typing as npt

from mqindex.errors import CorruptIndexError
from mqindex.kafka.log.batches import is_control, is_transactional
from mqindex.kafka.partition.partition_log import IsolationLevel, PartitionLog
from mqindex.kafka.partition.transactions import Replay, events_of

_Rows: TypeAlias = npt.NDArray[Any]


@contextmanager
def visible_to(
    level: IsolationLevel | None,
    directory: str,
    lacking: Callable[[CorruptIndexError], None] | None = None,
    *,
    stable: Callable[[int], int] = lambda offset: offset,
) -> Iterator[Callable[[Any, _Rows], _Rows]]:
    """A function that keeps, of a log and neighbouring batches of it, those that such a consumer gets; level None: all.

    "read_uncommitted": without control batches. "read_committed": also without those of aborted transactions, and up to
    the last stable offset of the partition in `directory`. What was aborted is what its indexes say, as for a broker.

    lacking : where all batches are shown, gets of each index the first transaction that the log shows and it has not
    stable : from the last stable offset that which counts
    """
    if level is None:
        yield lambda log, rows: rows
    elif level == "read_uncommitted":
        yield lambda log, rows: rows[~is_control(rows)]
    else:
        with PartitionLog._of(directory) as partition:
            compare = None if lacking is None else _Comparison(partition, lacking)
            end = stable(partition.last_stable_offset)

            def committed(log: Any, rows: _Rows) -> _Rows:
                if compare is not None:
                    compare.with_index(log, rows)
                return rows[partition._are_committed(rows) & (rows["base_offset"] < end)]

            yield committed


class _Comparison:
    """The aborted transactions of a partition, as its batches pass, against those of its indexes."""

    def __init__(self, partition: PartitionLog, lacking: Callable[[CorruptIndexError], None]) -> None:
        self._partition, self._lacking, self._replay = partition, lacking, Replay()
        self._bases = [segment.base_offset for segment in partition.segments]
        self._told: set[int] = set()

    def with_index(self, log: Any, rows: _Rows) -> None:
        """Compare those that end in some batches, neighbours in one segment."""
        some = rows[
            (is_control(rows) | is_transactional(rows)) & (rows["last_offset"] >= self._partition.log_start_offset)
        ]
        number = bisect_right(self._bases, int(rows["base_offset"][0])) - 1 if len(some) else -1
        if number < 0:  # or it was deleted since it was opened
            return
        for producer, first, last, *_ in self._replay.run(events_of(some, log)):
            known = self._partition._aborted.collect(last, last + 1, last)
            if number not in self._told and (producer, last) not in {(each[0], each[2]) for each in known}:
                self._told.add(number)
                self._lacking(
                    CorruptIndexError(
                        "the index lacks aborted transactions, and their records are among the answer",
                        path=f"{self._partition.segments[number].path.removesuffix('.log')}.txnindex",
                        expected=f"that of producer {producer}, offsets {first} to {last}",
                        got="none",
                        hint="`mqindex repair` writes the index",
                    )
                )
