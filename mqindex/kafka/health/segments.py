"""Segments of a partition: what each is, from what was found and counted of it."""

from __future__ import annotations

import numpy as np

from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.health.partition_health import IndexHealth, SegmentHealth
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.log_tally import STRETCH


def known(timestamp: int) -> int | None:
    """A timestamp of the log, None for -1: there is none."""
    return None if timestamp < 0 else timestamp


def segment_of(one: CheckedSegment) -> SegmentHealth:
    """The health of one segment."""
    counted = one.counted
    stretches = np.empty(0, STRETCH) if counted is None else counted.tally.stretches
    least = [at for at in stretches["min_timestamp"].tolist() if at >= 0]
    time_index = _index_of(one, IndexKind.TIME)
    greatest = None if counted is None else known(counted.max_timestamp)
    modified = None if counted is None else counted.modified
    return SegmentHealth(
        base_offset=one.files.base_offset,
        last_offset=one.log.last_offset,
        bytes=0 if counted is None else counted.log_bytes,
        batches=one.log.batches,
        records=int(stretches["records"].sum()),
        min_timestamp=min(least, default=None),
        max_timestamp=greatest,
        retention_timestamp=greatest if time_index.entries else modified,
        modified=modified,
        cut=one.log.cut,
        refusal=one.log.refusal,
        offset_index=_index_of(one, IndexKind.OFFSET),
        time_index=time_index,
        transaction_index=_index_of(one, IndexKind.TRANSACTION),
    )


def lost_its_times(one: SegmentHealth) -> bool:
    """Whether its time index has nothing of records that have timestamps."""
    return one.time_index.state in ("missing", "wrong") and not one.time_index.entries and one.max_timestamp is not None


def _index_of(one: CheckedSegment, kind: IndexKind) -> IndexHealth:
    if one.counted is None:
        return IndexHealth("unknown", None, None)
    size = one.counted.index_bytes.get(kind)
    entries = None if size is None else one.counted.entries.get(kind)
    if kind in one.fate.wrong:
        return IndexHealth("wrong" if size is not None else "missing", size, entries)
    place = one.files.place_of(kind)
    if any(finding.path == place and finding.severity == "error" for finding in one.findings):
        return IndexHealth("wrong" if size is not None else "missing", size, entries)
    if size is None:
        return IndexHealth("none", None, None)
    return IndexHealth("differs" if kind in one.differing else "good", size, entries)
