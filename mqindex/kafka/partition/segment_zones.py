"""The zone map of a segment: what a cache has of it, what a pass over its records adds, and what is kept again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import check_whole
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.zones.cache import MARK_BYTES, FileIdentity, FileZones, ZoneCache, identity_of, mark_of
from mqindex.zones.zone_map import NO_TIME, Entries, ZoneGatherer, ZoneMap

NO_TIMESTAMP: Final = -1
_LATEST: Final = 2**63 - 1


class SegmentZones:
    """The zones of one open segment. They tell what its records say: no header of a batch has their least time.

    A log of which the cache has this very version has all that the map tells of it. Of a partition's last segment,
    which a broker appends to, an older version counts up to its end, if the bytes before that are still the same. What
    lies behind the map's end is not in it.

    Attributes
    ----------
    known : ZoneMap, from the cache; without one, as for a pass over all of the log, nothing is known
    """

    def __init__(self, segment: LogSegment, cache: ZoneCache | None = None) -> None:
        self._segment, self._identity = segment, _identity(segment)
        self.known = ZoneMap.empty(0) if cache is None else self._load(cache)
        self._gatherer = ZoneGatherer(self.known, base=0)
        self._end = self.known.end

    def gather(self, parts: Iterable[tuple[Any, npt.NDArray[Any]]]) -> Iterator[tuple[Any, npt.NDArray[Any], Entries]]:
        """The batches that follow what is known, part by part, each with what its records say; the map gets them."""
        for log, rows in parts:
            batches = _entries_of(self._segment, log, rows)
            if len(rows):
                self._gatherer.add(batches)
                self._end = int(batches.stops[-1])
            yield log, rows, batches

    def made(self) -> FileZones | None:
        """What a cache keeps of all that was gathered. None of a log with damage: each scan says what is left out."""
        if self._identity is None or self._end <= self.known.end or self._segment.damage:
            return None
        return FileZones(self._identity, 0, self._gatherer.map(self._end), _mark(self._segment, self._end))

    def _load(self, cache: ZoneCache) -> ZoneMap:
        kept = None if self._identity is None else cache.load(self._identity, 0)
        if kept is None:
            return ZoneMap.empty(0)
        zones, same, mark = kept
        may_grow = self._segment.next_base_offset is None
        if zones.end > self._segment.size or not (same or (may_grow and mark == _mark(self._segment, zones.end))):
            return ZoneMap.empty(0)
        return zones


def has_time(timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of these are a time; the least int64 has no place among the datetime64."""
    there: npt.NDArray[np.bool_] = (timestamps != NO_TIMESTAMP) & (timestamps != NO_TIME)
    return there


def _identity(segment: LogSegment) -> FileIdentity | None:
    """Of the file that is open; None: its name has gone, or leads to another one by now."""
    try:
        found = identity_of(segment.path)
    except FileNotFoundError:
        return None
    return None if segment.is_deleted else found


def _mark(segment: LogSegment, end: int) -> bytes:
    start = max(end - MARK_BYTES, 0)
    log = segment._log_bytes(start, end)
    mark = mark_of(log[start:end])
    check_whole(log)
    return mark


def _entries_of(segment: LogSegment, log: Any, rows: npt.NDArray[Any]) -> Entries:
    """What the records of batches say; one whose records cannot be read has none, and is in `segment.damage`."""
    number = len(rows)
    starts, count = rows["position"].astype(np.int64), np.zeros(number, np.int64)
    least, first = np.full((2, number), _LATEST, np.int64)
    greatest, last = np.full((2, number), NO_TIME, np.int64)
    for records in segment._records_of([(log, rows)], ("position", "offset", "timestamp")):
        positions, offsets, times = records["position"], records["offset"], records["timestamp"]
        cuts = np.flatnonzero(np.r_[True, positions[1:] != positions[:-1]])
        batch = np.searchsorted(starts, positions[cuts])
        there = has_time(times)
        count[batch] += np.diff(np.r_[cuts, len(positions)])
        for kept, smaller, values in (
            (least, True, np.where(there, times, _LATEST)),
            (greatest, False, np.where(there, times, NO_TIME)),
            (first, True, offsets),
            (last, False, offsets),
        ):
            pick = np.minimum if smaller else np.maximum
            kept[batch] = pick(kept[batch], pick.reduceat(values, cuts))
    return Entries(starts, starts + rows["size"], count, least, greatest, first, last)
