"""Which records a scan is asked for: what is compared, of batches by their headers and of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.columns import Columns
from mqindex.columns.limits import several
from mqindex.columns.numbers import Time
from mqindex.columns.texts import TextSet
from mqindex.kafka.partition.segment_zones import has_time
from mqindex.zones.zone_map import Entries, ZoneMap


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """What is compared with every record; None: all match.

    Attributes
    ----------
    begin, end : ms since the epoch; `end` is exclusive, and a record without a timestamp is in no period
    start, stop : offsets; `stop` is exclusive
    keys : TextSet, the record's key is one of them
    """

    begin: int | None
    end: int | None
    start: int | None
    stop: int | None
    keys: TextSet | None

    @classmethod
    def of(
        cls, begin: Time | None, end: Time | None, start_offset: int | None, end_offset: int | None, keys: Any
    ) -> RecordFilter:
        """The filter of a caller's arguments; TypeError and ValueError name the one that is wrong."""
        return cls(
            None if begin is None else milliseconds("begin", begin),
            None if end is None else milliseconds("end", end),
            None if start_offset is None else whole_number("start_offset", start_offset),
            None if end_offset is None else whole_number("end_offset", end_offset),
            _keys(keys),
        )

    @property
    def has_period(self) -> bool:
        """Whether times are compared."""
        return self.begin is not None or self.end is not None

    @property
    def has_bounds(self) -> bool:
        """Whether times or offsets are."""
        return self.has_period or self.start is not None or self.stop is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of records that are compared."""
        offsets = ("offset",) if self.start is not None or self.stop is not None else ()
        times = ("timestamp",) if self.has_period else ()
        return (*offsets, *times, *(("key",) if self.keys is not None else ()))

    def skips(self, base_offset: int, next_base_offset: int | None) -> bool:
        """Whether a segment with these offsets has none that is asked for."""
        before = self.start is not None and next_base_offset is not None and next_base_offset <= self.start
        return before or (self.stop is not None and base_offset >= self.stop)

    def zones(self, zones: ZoneMap, start: int = 0, stop: int = 2**63 - 1) -> list[tuple[int, int]]:
        """The stretches of a segment that can hold a match in the positions [start, stop)."""
        chosen = zones.in_period(self.begin, self.end) & zones.among_offsets(self.start, self.stop)
        return zones.stretches(chosen & zones.between(start, stop))

    def entries(self, of: Entries) -> npt.NDArray[np.bool_]:
        """Which batches can hold one, by what their records say."""
        chosen: npt.NDArray[np.bool_] = of.rows > 0
        if self.begin is not None:
            chosen &= of.greatest >= self.begin
        if self.end is not None:
            chosen &= of.least < self.end
        if self.start is not None:
            chosen &= of.last >= self.start
        if self.stop is not None:
            chosen &= of.first < self.stop
        return chosen

    def matching(self, records: Columns) -> npt.NDArray[np.bool_] | None:
        """Which records of some with `columns` match: bool[n]; None: nothing is compared."""
        if not self.columns:
            return None
        chosen = np.ones(len(records), np.bool_)
        if self.start is not None:
            chosen &= records["offset"] >= self.start
        if self.stop is not None:
            chosen &= records["offset"] < self.stop
        if self.has_period:
            chosen &= has_time(records["timestamp"])
        if self.begin is not None:
            chosen &= records["timestamp"] >= self.begin
        if self.end is not None:
            chosen &= records["timestamp"] < self.end
        if self.keys is not None and chosen.any():
            chosen &= self.keys.equal(records["key"])
        return chosen


def _keys(given: Any) -> TextSet | None:
    if given is None:
        return None
    for as_list in ("to_pylist", "to_list", "tolist"):  # Arrow's, of polars and pandas, NumPy's
        if hasattr(given, as_list):
            given = getattr(given, as_list)()
            break
    keys = [given] if isinstance(given, (str, bytes)) else several("keys", given, "bytes or str, or several of them")
    for key in keys:
        if not isinstance(key, (str, bytes)):
            raise TypeError(f"keys: expected bytes or str, or several of them, got {key!r:.80} among them")
    return TextSet(key.encode(errors="surrogatepass") if isinstance(key, str) else bytes(key) for key in keys)
