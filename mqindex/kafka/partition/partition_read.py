"""The records that a consumer gets next, from the segment that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy.typing as npt

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.kafka.log.batches import is_control
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.records import no_records, records_from, require_columns
from mqindex.kafka.partition.aborted import AbortedTransactions
from mqindex.kafka.partition.served_segment import ServedSegment


def read_partition(
    segments: Sequence[ServedSegment],
    offset: int,
    stop: int,
    *,
    max_bytes: int,
    aborted: AbortedTransactions | None,
    columns: Iterable[str] | None,
) -> Columns:
    """The first records from `offset` on in batches that begin before `stop`, without control batches and aborted ones.

    Raises
    ------
    CorruptIndexError : the next record is, or may have been, in damage, and all before it were returned already. A
        broker's consumer has an error there too. At the end of the log, where a recovery cuts it, reading ends.
    FormatError : it is in a batch that does not decompress, or whose records contradict it.

    Notes
    -----
    Source: Kafka 4.1.0 `LocalLog.read`, and of the consumer `CompletedFetch.nextFetchedRecord`.
    """
    names = require_columns(columns)
    for segment in segments:
        for rows in _fetches(segment, offset, stop, max_bytes):
            kept = (
                rows[~is_control(rows)] if aborted is None else rows[~(is_control(rows) | aborted.flags(rows, offset))]
            )
            if len(kept):
                found = _records(segment.segment, offset, kept, names)
                if found.num_rows:
                    return found
    return no_records(names)


def _records(log: LogSegment, offset: int, rows: npt.NDArray[Any], names: tuple[str, ...]) -> Columns:
    """The records of some batches, up to one that does not decompress or contradicts itself."""
    try:
        return records_from(offset, log.log_of(rows), rows, names, path=log.path)
    except FormatError as error:
        before = rows[rows["position"] < (error.at or 0)]
        if len(before):
            found = records_from(offset, log.log_of(before), before, names, path=log.path)
            if found.num_rows:
                return found
        raise


def _fetches(segment: ServedSegment, offset: int, stop: int, max_bytes: int) -> Iterator[npt.NDArray[Any]]:
    """The batches from that of `offset` on, as many at a time as a fetch gets."""
    next_base = segment.segment.next_base_offset
    end = stop if next_base is None else min(stop, next_base)
    reached = max(offset, segment.base_offset)
    while reached < end or reached == offset:  # an open transaction may have begun below the log's start
        rows = segment.segment.fetch(reached, max_bytes, segment)
        if rows is None:
            return
        reached = int(rows["last_offset"].max()) + 1
        yield rows[rows["base_offset"] < stop]
