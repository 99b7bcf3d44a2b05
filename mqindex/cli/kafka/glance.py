"""What lengths and ends show of a partition or a log dir; it proves nothing: `verify` reads everything."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.errors import MQIndexError
from mqindex.health import a_day

if TYPE_CHECKING:
    from mqindex.kafka.log.segment_files import SegmentFiles
    from mqindex.kafka.partition.partition_files import PartitionFiles

Facts = dict[str, Any]
_INDEXES = ("index", "timeindex")


def unindexed_bytes(segments: Collection[Facts]) -> Counter[str]:
    """By the name of an index: the bytes of the logs beside which it is not there."""
    return Counter({name: sum(row["size"] for row in segments if row.get(name) is None) for name in _INDEXES})


def glance_of_partition(facts: Facts, files: PartitionFiles) -> Facts:
    """What its indexes cover, its open transactions, and how fast it grows."""
    return {
        "unindexed": unindexed_bytes(facts["segments"]),
        "transactions": _transactions(files),
        "retention_timestamp": _retention(files.segments),
        "rates": _rates(facts, files.segments),
    }


def _transactions(files: PartitionFiles) -> Facts | None:
    """The open transactions of the newest snapshot of producers, and where the first one holds the stable offset."""
    from mqindex.kafka.partition.producer_state import read_snapshot

    for _, path in sorted(files.snapshots.items())[-1:]:
        with contextlib.suppress(MQIndexError, OSError):
            begins = [first for _, first in read_snapshot(path)]
            return {"open": len(begins), "first_offset": min(begins, default=None), "snapshot": os.path.basename(path)}
    return None


def _rates(facts: Facts, segments: Sequence[SegmentFiles]) -> Facts | None:
    """Bytes and records a day, between the first time in the first segment and the greatest of the last one."""
    first, last = _first_time(segments), _last_time(segments)
    size = a_day(facts["size"], first, last)
    if size is None:
        return None
    begin, end = segments[0].base_offset, facts["next_offset"]
    return {
        "first_timestamp": first,
        "last_timestamp": last,
        "bytes_a_day": size,
        "records_a_day": None if end is None else a_day(end - begin, first, last),
    }


def _retention(segments: Sequence[SegmentFiles]) -> int | None:
    """By what time the oldest segment is deleted: that of its newest record; without any, that of the file."""
    from mqindex.kafka import LogSegment
    from mqindex.kafka.log.active_segment import greatest_timestamp

    for each in segments[:1]:
        with contextlib.suppress(MQIndexError), LogSegment.open(each.log, base_offset=each.base_offset) as segment:
            return greatest_timestamp(segment)
    return None


def _first_time(segments: Sequence[SegmentFiles]) -> int | None:
    from mqindex.kafka import LogSegment

    for each in segments[:1]:
        with contextlib.suppress(MQIndexError), LogSegment.open(each.log, base_offset=each.base_offset) as segment:
            rows = next(segment.batch_arrays(check_crc=False), None)
            return None if rows is None or not len(rows) else int(rows["max_timestamp"][0])
    return None


def _last_time(segments: Sequence[SegmentFiles]) -> int | None:
    from mqindex.kafka import LogSegment
    from mqindex.kafka.log.active_segment import greatest_timestamp

    for each in [one for one in segments if os.path.getsize(one.log)][-1:]:
        with contextlib.suppress(MQIndexError), LogSegment.open(each.log, base_offset=each.base_offset) as segment:
            return greatest_timestamp(segment) if segment.time_index is not None else None
    return None
