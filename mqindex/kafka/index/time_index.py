"""`TimeIndex`: from a timestamp to an offset of the segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy.typing as npt

from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.numbers import Time, Times, int64s, times
from mqindex.errors import OutOfOrderError
from mqindex.kafka.index.abstract_index import AbstractIndex
from mqindex.kafka.layout import IndexKind


class TimestampOffset(NamedTuple):
    """An entry of a `TimeIndex`: the greatest timestamp up to and including an offset, ms since the epoch.

    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.TimestampOffset`.
    """

    timestamp: int
    offset: int


class TimeIndex(AbstractIndex):
    """A `.timeindex` file. `lookup` gives a `TimestampOffset`, below the first entry (-1, base_offset).

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.TimeIndex`.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/00000000000000000100.timeindex"
    >>> with TimeIndex.create(path, 100, max_index_size=120) as index:
    ...     index.maybe_append_many([1000, 1000, 2000], [105, 110, 120])
    ...     len(index), index.lookup(1999), index.lookup(1)
    (2, TimestampOffset(timestamp=1000, offset=105), TimestampOffset(timestamp=-1, offset=100))
    """

    kind = IndexKind.TIME
    entry_size = kind.entry_size
    _entry = TimestampOffset

    @property
    def last_entry(self) -> TimestampOffset:
        """The last entry; (-1, base_offset) where there is none."""
        entry: TimestampOffset = self._core.entry(len(self) - 1)
        return entry

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset where there is none."""
        return self.last_entry.offset

    @property
    def is_full(self) -> bool:
        """True when only the place of the closing entry is left."""
        return len(self) >= self.max_entries - 1

    def maybe_append(self, timestamp: Time, offset: int, skip_full_check: bool = False) -> None:
        """Append one entry; see `maybe_append_many`. `skip_full_check`: the closing entry may take the last place."""
        ms, whole = milliseconds("timestamp", timestamp), whole_number("offset", offset)
        self.maybe_append_many([ms], [whole], skip_full_check=skip_full_check)

    def maybe_append_many(self, timestamps: Times, offsets: npt.ArrayLike, *, skip_full_check: bool = False) -> None:
        """Append entries with the broker's checks, one after the other; one with the last timestamp is passed over.

        Parameters
        ----------
        timestamps : int64[n], ms since the epoch, or datetime64[n], aware datetimes, Arrow timestamps
        offsets : int64[n]
        skip_full_check : bool; True: the last entry may take the last place, as the closing entry of a segment does

        Raises
        ------
        IndexFullError, OutOfOrderError, OffsetOverflowError
            The entries before the one that is refused were appended. (The broker leaves half an entry where an
            offset is too far from the base offset; here nothing is written of it.)
        """
        keys, wanted = times("timestamps", timestamps), int64s("offsets", offsets)
        if len(keys) != len(wanted):
            raise ValueError(f"offsets: expected {len(keys)}, as many as timestamps, got {len(wanted)}")
        with self._lock:
            self._require_writable()
            done, why = self._core.append_times(keys, wanted, *self.last_entry, skip_full_check)
        if why == "order":
            raise OutOfOrderError(
                "the entry is before the last one", path=self.path, expected=f"{tuple(self.last_entry)} or later",
                got=(int(keys[done]), int(wanted[done])),
            )  # fmt: skip
        self._refuse(why, wanted[done:])

    append = maybe_append
    append_many = maybe_append_many

    def sanity_check(self) -> None:
        """Raise `CorruptIndexError` where the broker would."""
        if len(self):
            first, last = self._core.entry(0), self.last_entry
            if last.timestamp < first.timestamp:
                raise self._corrupt("last timestamp", f"{first.timestamp} or later", last.timestamp)
            if last.offset < self.base_offset:
                raise self._corrupt("last offset", f"{self.base_offset} or more", last.offset)
        self._check_length()
