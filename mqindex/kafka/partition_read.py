"""The records that a consumer gets next, of whichever segment holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._results import Columns
from mqindex.kafka.aborted import AbortedTransactions
from mqindex.kafka.batches import is_control
from mqindex.kafka.records import no_records, records_from, require_columns
from mqindex.kafka.served_segment import ServedSegment

__all__ = ["read_partition"]


def read_partition(
    segments: Sequence[ServedSegment],
    offset: int,
    stop: int,
    *,
    max_bytes: int,
    aborted: AbortedTransactions | None,
    columns: Iterable[str] | None,
) -> Columns:
    """The first records from `offset` on in batches that begin before `stop`; control batches, and aborted ones, not.

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
                found = records_from(offset, segment.segment.log_bytes(), kept, names, path=segment.segment.path)
                if found.num_rows:
                    return found
    return no_records(names)


def _fetches(segment: ServedSegment, offset: int, stop: int, max_bytes: int) -> Iterator[npt.NDArray[Any]]:
    """The batches from that of `offset` on, as many at once as a fetch gets."""
    found = segment.translate_offset(offset) if segment.base_offset < stop else None
    start = segment.size if found is None else found[0]
    while start < segment.size:
        end = min(start + max(max_bytes, 1), segment.size)
        parts = list(segment.segment.batch_arrays(start, end))
        if not parts:
            return
        rows = np.concatenate(parts)
        ends = rows["position"] + rows["size"]
        rows = rows[ends <= max(end, int(ends[0]))]
        start = int(ends[len(rows) - 1])
        if len(rows := rows[rows["base_offset"] < stop]) == 0:
            return
        yield rows
