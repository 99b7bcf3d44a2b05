"""The records of one segment that match, from the stretches of it that can hold one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_log import BatchScan
from mqindex.columns.columns import Columns
from mqindex.files.places.place import Place
from mqindex.kafka.log.batch_windows import HEAD
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.partition.isolation import Visible
from mqindex.kafka.partition.segment_zones import SegmentZones
from mqindex.kafka.scanning.matching_records import matching_records
from mqindex.kafka.scanning.record_filter import RecordFilter
from mqindex.zones.cache import ZoneCache

_Rows: TypeAlias = npt.NDArray[Any]
_NONE_BEFORE: Final = np.int64(-(2**63))


class SegmentReader:
    """One open segment, as far as it was written when the scan began.

    segment : LogSegment; its `damage` has what is left out. size : bytes of it that count.
    visible : says of a log and neighbouring batches of it which ones the isolation level shows
    columns : of records, those that are returned
    read : gets the bytes that were walked
    """

    def __init__(
        self,
        segment: LogSegment,
        size: int,
        wanted: RecordFilter,
        columns: tuple[str, ...],
        *,
        visible: Visible,
        check_crc: bool,
        read: Callable[[int], None],
    ) -> None:
        self._segment, self._size = segment, min(size, segment.size)
        self._wanted, self._columns = wanted, columns
        self._visible, self._check_crc, self._read = visible, check_crc, read

    def records(self, cache: ZoneCache) -> Iterator[Columns]:
        """The records with at least the columns, in the log's order."""
        if not self._wanted.has_bounds:
            yield from self._between(0, self._size)
            return
        zones = SegmentZones(self._segment, cache)
        for start, stop in self._wanted.zones(zones.known):
            yield from self._between(start, min(stop, self._size))
        end = zones.known.end
        if end >= self._size:
            return
        if self._wanted.has_period:
            yield from self._gathered(zones, cache)
        else:
            start, likely = self._by_headers(end)
            yield from self._between(start, self._size, likely)

    def _gathered(self, zones: SegmentZones, cache: ZoneCache) -> Iterator[Columns]:
        """Those behind what is known, in a pass that makes more of it known."""
        for log, rows, batches in zones.gather(self._parts(zones.known.end, self._size)):
            yield from self._picked(log, rows, self._wanted.entries(batches))
        if self._check_crc:  # else bad batches may be among them, which others leave out
            cache.store(zones.made())

    def _between(self, start: int, stop: int, likely: int | None = None) -> Iterator[Columns]:
        """Those of the batches that begin at the positions [start, stop); likely: none from there on has an offset that
        is asked for, which is believed only if a good batch before it says so, too.
        """
        begin, end, last = self._wanted.start, self._wanted.stop, _NONE_BEFORE
        for bound in [stop] if likely is None else [likely, stop]:
            for log, rows in self._parts(start, bound):
                reached = _reached(rows)
                before = np.r_[last, reached[:-1]]
                last, start = reached[-1], int(rows["position"][-1] + rows["size"][-1])
                chosen = np.ones(len(rows), np.bool_)
                if begin is not None:
                    chosen &= rows["last_offset"] >= begin
                if end is not None:  # of a compressed batch of magic 0 or 1 the header has the last offset alone
                    chosen &= before < end - 1
                yield from self._picked(log, rows, chosen)
                if end is not None and last >= end - 1:
                    return

    def _parts(self, start: int, stop: int) -> Iterator[tuple[Any, _Rows]]:
        for log, rows in self._segment._batch_parts(start, stop, check_crc=self._check_crc):
            self._read(int(rows["size"].sum(dtype=np.int64)))
            whole = rows[rows["position"] + rows["size"] <= self._size]
            if len(whole):
                yield log, whole

    def _picked(self, log: Any, rows: _Rows, chosen: npt.NDArray[np.bool_]) -> Iterator[Columns]:
        """The records that match of the chosen ones of some batches."""
        return matching_records(
            self._segment, log, rows[chosen & self._visible(log, rows)], self._wanted, self._columns,
            look_first=self._wanted.keys is not None,
        )  # fmt: skip

    def _by_headers(self, at: int) -> tuple[int, int | None]:
        """Where to begin for the first offset asked for, and where the last one is behind, by a walk over headers.

        It begins with the last batch before. Where that is not good, a wrong length of one before has led there: all is
        read then. The indexes are not asked.
        """
        if isinstance(self._segment.path, Place):  # there a walk over headers reads all
            return at, None
        first = -1 if self._wanted.start is None else self._wanted.start
        end, begun, walk = self._wanted.stop, False, self._segment._new_walk(at, self._size)
        start, stop, likely = at, at, None  # of the batch to begin with
        for log, limit in walk:
            scan = BatchScan(log, walk.at, limit, check_crc=False)
            for view in scan:
                rows = batch_rows([view])
                self._read(len(rows) * HEAD)
                before = int(np.argmax(np.r_[rows["last_offset"] >= first, True]))
                if before and not begun:
                    start = int(rows["position"][before - 1])
                    stop = start + int(rows["size"][before - 1])
                begun = begun or before < len(rows)
                behind = rows[_reached(rows) >= end - 1] if end is not None else rows[:0]
                if len(behind):
                    likely = int(behind["position"][0] + 1)
                if likely is not None or (begun and end is None):
                    good = self._segment._reaches(start, stop, check_crc=self._check_crc)
                    return (start, likely) if good else (at, None)
            walk.at = scan.end
        return at, None


def _reached(rows: _Rows) -> npt.NDArray[np.int64]:
    """The offset that a log has reached with each batch. One that a cleaner emptied says nothing: its offset is under
    no checksum, and no record of it shows that it is wrong.
    """
    return np.where(rows["count"] != 0, rows["last_offset"], _NONE_BEFORE)
