"""`OffsetIndex`: from an offset to a position in the segment's log."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import whole_number
from mqindex.columns.numbers import int64s
from mqindex.errors import OffsetOverflowError, OutOfOrderError
from mqindex.kafka.index.abstract_index import AbstractIndex
from mqindex.kafka.layout import IndexKind


class OffsetPosition(NamedTuple):
    """An entry of an `OffsetIndex`: an offset, and the byte of the log at which its batch begins.

    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.OffsetPosition`.
    """

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """An `.index` file. `lookup` gives an `OffsetPosition`, below the first entry (base_offset, 0).

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.OffsetIndex`.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/00000000000000000100.index"
    >>> with OffsetIndex.create(path, 100, max_index_size=80) as index:
    ...     index.append_many([105, 120], [4096, 9000])
    ...     index.lookup(119), index.lookup(100)
    ...     index.trim_to_valid_size()  # places of zeros would be taken as entries
    (OffsetPosition(offset=105, position=4096), OffsetPosition(offset=100, position=0))
    >>> with OffsetIndex.open(path) as index:
    ...     len(index), [column.tolist() for column in index.lookup_many([130, 99])]
    (2, [[120, 100], [9000, 0]])
    """

    kind = IndexKind.OFFSET
    entry_size = kind.entry_size
    _entry = OffsetPosition

    @property
    def last_offset(self) -> int:
        """The offset of the last entry; the base offset where there is none."""
        return int(self._core.entry(len(self) - 1)[0])

    @property
    def is_full(self) -> bool:
        """True when there is no room for another entry."""
        return len(self) >= self.max_entries

    def append(self, offset: int, position: int) -> None:
        """Append one entry; see `append_many`."""
        self.append_many([whole_number("offset", offset)], [whole_number("position", position)])

    def append_many(self, offsets: npt.ArrayLike, positions: npt.ArrayLike) -> None:
        """Append entries with the broker's checks, one after the other.

        Parameters
        ----------
        offsets : int64[n], each greater than the one before
        positions : int32[n], bytes in the log, not checked

        Raises
        ------
        IndexFullError, OutOfOrderError, OffsetOverflowError
            The entries before the one that is refused were appended.
        """
        wanted, places = int64s("offsets", offsets), self._positions(positions)
        if len(wanted) != len(places):
            raise ValueError(f"positions: expected {len(wanted)}, as many as offsets, got {len(places)}")
        with self._lock:
            self._require_writable()
            done, why = self._core.append_offsets(wanted, places, self.last_offset)
        if why == "order":
            raise OutOfOrderError(
                "the offset is not greater than the last entry's", path=self.path, field="offset",
                expected=f"more than {self.last_offset}", got=int(wanted[done]),
            )  # fmt: skip
        self._refuse(why, wanted[done:])

    def _positions(self, positions: npt.ArrayLike) -> npt.NDArray[np.int32]:
        if isinstance(positions, np.ndarray) and positions.dtype == np.int32 and positions.ndim == 1:
            return np.ascontiguousarray(positions, np.int32)
        places = int64s("positions", positions)
        if len(places) and not -(2**31) <= int(places.min()) <= int(places.max()) < 2**31:
            raise OffsetOverflowError("a position does not fit 32 bits", path=self.path, field="position")
        return places.astype(np.int32)

    def fetch_upper_bound_offset(self, fetch: OffsetPosition, fetch_size: int) -> OffsetPosition | None:
        """The first entry at or after `fetch.position + fetch_size`; None: there is none.

        Only bounds a search for aborted transactions. The sum is of 32 bits, as in the broker.
        """
        position, size = whole_number("position", fetch.position), whole_number("fetch_size", fetch_size)
        target = (position + size + 2**31) % 2**32 - 2**31
        at = self._core.search(1, target, True)
        entry: OffsetPosition | None = self._core.entry(at) if at >= 0 else None
        return entry

    def sanity_check(self) -> None:
        """Raise `CorruptIndexError` where the broker would: zeros after the entries are not found this way."""
        if len(self) and self.last_offset < self.base_offset:
            raise self._corrupt("last offset", f"{self.base_offset} or more", self.last_offset)
        self._check_length()
