"""Which transactions are open at a log's end: by the newest snapshot of its producers, and the headers behind it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from mqindex.files.paths import size_of
from mqindex.files.places.place import Place
from mqindex.kafka.directories.partition_files import PartitionFiles
from mqindex.kafka.directories.producer_state import OpenTransactions, readable_snapshot
from mqindex.kafka.log.batches import BATCH, is_control, is_transactional
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.partition.transactions import Replay, events_of

_MOST: Final = (1 << 30) + (64 << 20)  # bytes of log: a segment, and a little
_MOST_ELSEWHERE: Final = 1 << 20  # all of which is fetched


class OpenAt(NamedTuple):
    """The transactions that are open at an offset, the oldest first. `offset` None: at the end of the log."""

    offset: int | None
    transactions: OpenTransactions


def newest_state(files: PartitionFiles, log_start: int) -> OpenAt | None:
    """What the newest snapshot that can be read says of its offset; None: there is none above the log's start."""
    for at in sorted((at for at in files.snapshots if at > log_start), reverse=True):
        if (found := readable_snapshot(files.snapshots[at])) is not None:
            return OpenAt(at, _ordered(found))
    return None


def open_at_end(files: PartitionFiles, log_start: int) -> OpenAt | None:
    """What is open at the end of the log; where too much of it is behind the newest snapshot, what that says.

    None: neither is known. Batches are taken as their headers are. Source: Kafka 4.1.0 `ProducerStateManager`.
    """
    state = newest_state(files, log_start)
    at = log_start if state is None or state.offset is None else state.offset
    first = max(bisect_right([each.base_offset for each in files.segments], at) - 1, 0)
    behind = files.segments[first:]
    most = _MOST_ELSEWHERE if isinstance(files.directory, Place) else _MOST
    if sum(size_of(each.log) for each in behind) - _begin(behind, at) > most:
        return state
    replay = Replay(() if state is None else state.transactions)
    for each in behind:
        with LogSegment._of_files(each) as segment:
            parts = segment._batch_arrays(segment._position_of(at), check_crc=False)
            wanted = [rows[(rows["last_offset"] >= at) & (is_transactional(rows) | is_control(rows))] for rows in parts]
            found = np.concatenate([np.empty(0, BATCH), *wanted])
            replay.run(events_of(found, segment._log_of(found[is_control(found)])))
    return OpenAt(None, _ordered(tuple(replay.open.items())))


def _begin(segments: Sequence[SegmentFiles], offset: int) -> int:
    """Where in the first of these it is begun to read."""
    for first in segments[:1]:
        with LogSegment._of_files(first) as segment:
            return segment._position_of(offset)
    return 0


def _ordered(transactions: OpenTransactions) -> OpenTransactions:
    return tuple(sorted(transactions, key=lambda each: each[1]))
