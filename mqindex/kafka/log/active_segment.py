"""The active segment, whose indexes no broker has trimmed yet: the zeros that follow their entries are no entries."""

from __future__ import annotations

from mqindex.kafka.index.index_entries import entries_before_zeros
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.log_segment import LogSegment


def greatest_timestamp(segment: LogSegment) -> int:
    """What `LogSegment.largest_timestamp` will be when the segment is closed, ms since the epoch.

    Where zeros follow the entries of the time index (`TimeIndex` takes the last of them for a time of 0), it is the
    greatest time of the entries and of the batches from the offset index's last entry but one on, as a broker may be
    killed before the last one's own time is entered; where none of them has a time, that of the log's last change.
    """
    times, offsets = segment.time_index, segment.offset_index
    if times is None or (known := entries_before_zeros(times.path, IndexKind.TIME)) == len(times):
        return segment.largest_timestamp
    greatest, position = times.entry(known - 1).timestamp if known else -1, 0
    if offsets is not None and (entries := entries_before_zeros(offsets.path, IndexKind.OFFSET)) > 1:
        position = offsets.entry(entries - 2).position
    start = position if 0 <= position < segment.size else 0
    greatest = max(
        [greatest, *(int(rows["max_timestamp"].max()) for rows in segment._batch_arrays(start, check_crc=False))]
    )
    return greatest if greatest >= 0 else segment.modified
