"""The entries of an offset or time index file as arrays: those in order, and what follows them in the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mqindex.files.paths import size_of
from mqindex.files.reading.regular import reading
from mqindex.files.reading.sparse import SparseFile
from mqindex.kafka.layout import IndexKind

_BLOCK = 1 << 20

Tail = Literal["none", "zeros", "stale"]


@dataclass(frozen=True, slots=True)
class Entries:
    """`first` and `second`: the columns of the entries in order, offsets relative, int64.

    `tail`: what follows them. `fragment`: bytes that are no whole entry. `places`: the file's length in entries,
    `zeros`: how many of them at the end are zeros. `at`: the byte at which the order ends, or the file.
    """

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    places: int
    zeros: int
    fragment: int
    tail: Tail
    at: int

    def __len__(self) -> int:
        return len(self.first)

    def up_to(self, relative_offset: int, kind: IndexKind) -> Entries:
        """The entries for this offset or less, where the log was written since it was read."""
        offsets = self.first if kind is IndexKind.OFFSET else self.second
        kept = int(np.searchsorted(offsets, relative_offset, "right"))
        return replace(self, first=self.first[:kept], second=self.second[:kept])


def entries_before_zeros(path: str | os.PathLike[str], kind: IndexKind) -> int:
    """How many places of an index file are left when its tail of zeros, and part of an entry, are cut.

    The index of an active segment is as long as the broker allows, and zeros follow its entries. Whether the places
    before them are entries that agree with the log is another question: `mqindex.kafka.verify` answers it.

    Notes
    -----
    Source: Kafka 4.1.0 `DumpLogSegments`, which ends at the first entry of the base offset that follows another.
    """
    with SparseFile(path) as file:
        whole = file.size // kind.entry_size * kind.entry_size
        for start, stop in reversed(list(file.stretches())):
            end = min(stop, whole)
            while end > start:
                at = max(end - _BLOCK, start)
                block = file.read(at, end).rstrip(b"\0")
                if block:
                    return -(-(at + len(block)) // kind.entry_size)
                end = at
    return 0


def places_with_data(path: str | os.PathLike[str], kind: IndexKind) -> Iterator[range]:
    """The places before the tail of zeros, without those in holes, which are zeros as well and may be terabytes."""
    used, size = entries_before_zeros(path, kind), kind.entry_size
    with SparseFile(path) as file:
        for start, stop in file.stretches():
            if start // size < used:
                yield range(start // size, min(-(-stop // size), used))


def read_entries(path: str, kind: IndexKind, most: int) -> Entries:
    """The entries of a file whose log has `most` at most: more are not looked at."""
    size = kind.entry_size
    places, fragment = divmod(size_of(path), size)
    none = np.empty(0, np.int64)
    if places == 0:
        return Entries(none, none, 0, 0, fragment, "none", 0)
    used = entries_before_zeros(path, kind)
    # Not mapped: a broker may trim the file at any time.
    with reading(path) as file:
        data = file.read(min(used, most + 1) * size)
    raw = np.frombuffer(data[: len(data) - len(data) % size], kind.entry)
    first, second = (raw[name].astype(np.int64) for name in kind.entry.names or ())
    kept = _in_order(first, second, times=kind is IndexKind.TIME)
    tail: Tail = "none" if kept == places else "zeros" if kept == used else "stale"
    return Entries(first[:kept], second[:kept], places, places - used, fragment, tail, kept * size)


def _in_order(first: npt.NDArray[Any], second: npt.NDArray[Any], *, times: bool) -> int:
    """How many entries from the first on could be a broker's.

    Source: Kafka 4.1.0 `OffsetIndex.append` (offsets and positions increase), `TimeIndex.maybeAppend` (timestamps
    increase, offsets do not decrease).
    """
    good = (first >= 0) & (second >= 0)
    good[1:] &= first[1:] > first[:-1]
    good[1:] &= second[1:] >= second[:-1] if times else second[1:] > second[:-1]
    wrong = np.flatnonzero(~good)
    return int(wrong[0]) if len(wrong) else len(first)
