"""What a zone map in the cache says of a range of a segment that `kafka_log` plans."""

from __future__ import annotations

from dataclasses import replace

from mqindex.kafka import LogSegment
from mqindex.kafka.partition.segment_zones import SegmentZones
from mqindex.kafka.scanning.record_filter import RecordFilter
from mqindex.spark.sources.kafka_files import SegmentRange
from mqindex.zones.cache import ZoneCache


def narrowed(one: SegmentRange, wanted: RecordFilter, cache: ZoneCache) -> SegmentRange:
    """The range with the stretches that can hold a match, as far as a zone map is there; none is made here."""
    if not wanted.has_bounds:
        return one
    try:
        with LogSegment.open(one.path, base_offset=one.of.base_offset) as segment:
            segment.next_base_offset = one.end_offset if one.end_offset < 2**63 else None
            zones = SegmentZones(segment, cache).known
    except FileNotFoundError:  # a broker has deleted it: who reads it tells
        return one
    if zones.end <= one.start:
        return one
    stop = min(one.stop, zones.end)
    found = [(at, min(end, stop)) for at, end in wanted.zones(zones, one.start, stop)]
    if stop < one.stop:
        found.append((stop, one.stop))
    return replace(one, stretches=tuple(found))
