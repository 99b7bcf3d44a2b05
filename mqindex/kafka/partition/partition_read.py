"""The records that a consumer gets next, from the segment that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.kafka.log.batches import is_control
from mqindex.kafka.log.log_segment import BatchFault, LogSegment
from mqindex.kafka.log.records import no_records, records_from, require_columns
from mqindex.kafka.partition.aborted import AbortedTransactions
from mqindex.kafka.partition.served_segment import ServedSegment

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
    """The first records from `offset` on in batches that begin before `stop`, without control batches and aborted ones.

    Raises
    ------
    FormatError : the next record is in a corrupt batch, and all before it were returned already. A
        broker's consumer has an error there too. At the end of the log, where a recovery cuts it, reading ends.

    Notes
    -----
    Source: Kafka 4.1.0 `LocalLog.read`, and of the consumer `CompletedFetch.nextFetchedRecord`.
    """
    names = require_columns(columns)
    for segment, following in zip_longest(segments, segments[1:]):
        for rows in _fetches(segment, offset, stop, max_bytes, None if following is None else following.base_offset):
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
        return records_from(offset, log.log_bytes(), rows, names, path=log.path)
    except FormatError as error:
        before = rows[rows["position"] < (error.at or 0)]
        if len(before):
            found = records_from(offset, log.log_bytes(), before, names, path=log.path)
            if found.num_rows:
                return found
        raise


def _fetches(
    segment: ServedSegment, offset: int, stop: int, max_bytes: int, next_base: int | None
) -> Iterator[npt.NDArray[Any]]:
    """The batches from that of `offset` on, as many at a time as a fetch gets. `next_base`: of the next segment."""
    if segment.base_offset >= stop:
        return
    found = segment.translate_offset(offset)
    start = segment.position_of(offset) if found is None else found.position
    reached = max(offset, segment.base_offset)
    while found is not None and start < segment.size:
        end = min(start + max(max_bytes, 1), segment.size)
        parts = list(segment.segment.batch_arrays(start, end, check_crc=True))
        if not parts:
            break
        rows = np.concatenate(parts)
        ends = rows["position"] + rows["size"]
        rows = rows[ends <= max(end, int(ends[0]))]
        start, reached = int(ends[len(rows) - 1]), int(rows["last_offset"][-1]) + 1
        if len(rows := rows[rows["base_offset"] < stop]) == 0:
            return
        yield rows
    if reached < (stop if next_base is None else min(stop, next_base)):
        _require_end(segment, start, reached, next_base)


def _require_end(segment: ServedSegment, position: int, reached: int, next_base: int | None) -> None:
    """Raise unless the batches from a position on go to the segment's end: compaction leaves offsets out, too.

    Where a recovery cuts the last segment the log ends; where it would cut another, offsets are lost.
    """
    log, recovered = segment.segment, segment.recovered
    for rows in log.batch_arrays(position, segment.size, check_crc=True):
        position = int(rows["position"][-1] + rows["size"][-1])
    if position >= (segment.size if next_base is None else log.size):
        return
    faults = log.damage if recovered is None or recovered.fault is None else [BatchFault(*recovered.fault)]
    why = next((fault for fault in faults if fault.at == position), None)
    where = "a later offset" if next_base is None else f"offset {next_base}, where the next segment begins"
    raise FormatError(
        f"a corrupt batch before the log's end, where offset {reached} is looked for", path=log.path, at=position,
        field=None if why is None else why.field,
        expected="a whole batch" if why is None else why.expected,
        got=f"none in the {plural(log.size - position, 'byte')} from there on" if why is None else why.got,
        hint=f"`mqindex verify --deep` shows more; read on from {where}",
    )  # fmt: skip
