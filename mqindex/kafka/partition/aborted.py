"""The aborted transactions of a partition: from its indexes, and from its log where an index has to be recovered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.files.fork_lock import new_lock
from mqindex.kafka.directories.producer_state import OpenTransactions, readable_snapshot
from mqindex.kafka.index.transaction_index import AbortedTxn, TxnIndexSearchResult, search_aborted
from mqindex.kafka.log.batches import is_control, is_transactional
from mqindex.kafka.partition.served_segment import ServedSegment
from mqindex.kafka.partition.transactions import Replay, events_of


class AbortedTransactions:
    """Which transactions of a partition's segments were aborted. Safe from several threads.

    Source: Kafka 4.1.0 `LocalLog.collectAbortedTransactions`, `ProducerStateManager`.
    """

    def __init__(self, segments: Sequence[ServedSegment], snapshots: Mapping[int, str], log_start: int) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._snapshots = snapshots
        self._log_start = log_start
        self._lock = new_lock()
        self._replayed: dict[int, list[AbortedTxn]] = {}  # of recovered segments, by number

    def collect(self, start: int, upper: int, least: int) -> list[AbortedTxn]:
        """Those that end at `least` or after it and begin before `upper`, from the segment of `start` on."""
        number = bisect_right(self._bases, start) - 1
        found: list[AbortedTxn] = []
        while 0 <= number < len(self._segments):
            some = self._search(number, least, upper)
            found += some.aborted_transactions
            if some.is_complete:
                break
            number += 1
        return found

    def flags(self, rows: npt.NDArray[Any], offset: int) -> npt.NDArray[np.bool_]:
        """Which batches belong to an aborted transaction, for a reader that begins at `offset`."""
        aborted = np.zeros(len(rows), np.bool_)
        data = np.flatnonzero(is_transactional(rows) & ~is_control(rows))
        if len(data):
            known = self.collect(offset, int(rows["last_offset"][-1]) + 1, offset)
            if known:
                aborted[data] = _within(rows["producer_id"][data], rows["base_offset"][data], known)
        return aborted

    def open_at(self, offset: int) -> tuple[int, ...]:
        """The first offsets of the transactions that are open at `offset`."""
        return tuple(self._replay_to(offset).open.values())

    def _search(self, number: int, least: int, upper: int) -> TxnIndexSearchResult:
        segment = self._segments[number]
        if not segment.is_to_recover:
            index = segment.segment.transaction_index
            found = TxnIndexSearchResult([], False) if index is None else index.collect_aborted_txns(least, upper)
            if not segment.segment.is_deleted:  # else the index may have been deleted before; the log is still mapped
                return found
        return search_aborted(self._recovered(number), least, upper)

    def _recovered(self, number: int) -> list[AbortedTxn]:
        """What recovery writes into the segment's `.txnindex`."""
        with self._lock:
            if number not in self._replayed:
                replay = self._replay_to(self._bases[number])
                self._replayed[number] = replay.run(_events(self._segments[number]))
            return self._replayed[number]

    def _replay_to(self, offset: int) -> Replay:
        """The producers' state at an offset: by the newest snapshot that can be read, and the log from there on."""
        start, begun = self._newest_snapshot(offset)
        replay = Replay(begun)
        first = max(bisect_right(self._bases, start) - 1, 0)
        for segment in self._segments[first : bisect_left(self._bases, offset)]:
            replay.run(_events(segment, start, offset))
        return replay

    def _newest_snapshot(self, offset: int) -> tuple[int, OpenTransactions]:
        for at in sorted((at for at in self._snapshots if self._log_start < at <= offset), reverse=True):
            if (found := readable_snapshot(self._snapshots[at])) is not None:
                return at, found
        return self._log_start, ()


def _within(
    producers: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], known: Sequence[AbortedTxn]
) -> npt.NDArray[np.bool_]:
    """Whether an offset is in one of its producer's transactions: in the last one that does not begin after it."""
    fields = np.array([txn[:3] for txn in known], np.int64)
    order = np.lexsort(
        (
            np.repeat([0, 1], [len(fields), len(offsets)]),
            np.concatenate([fields[:, 1], offsets]),
            np.concatenate([fields[:, 0], producers]),
        )
    )
    begun = np.maximum.accumulate(np.where(order < len(fields), np.arange(len(order)), -1))
    last = np.empty(len(order), np.int64)
    last[order] = np.where(begun < 0, -1, order[begun])
    txns = last[len(fields) :]
    within: npt.NDArray[np.bool_] = (txns >= 0) & (fields[txns, 0] == producers) & (offsets <= fields[txns, 2])
    return within


def _events(segment: ServedSegment, start: int = 0, stop: int = 2**63 - 1) -> npt.NDArray[Any]:
    """The begins and ends of transactions in the batches from that of the offset `start` to `stop`."""
    rows = segment.transactional_rows()
    rows = rows[(rows["last_offset"] >= start) & (rows["base_offset"] < stop)]
    return events_of(rows, segment.segment._log_of(rows[is_control(rows)]))
