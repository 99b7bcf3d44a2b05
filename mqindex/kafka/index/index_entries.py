"""The entries of an offset or time index file as arrays: those in order, and what stands behind them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mqindex.files import disk
from mqindex.files.regular import regular
from mqindex.kafka.index.zero_tail import entries_before_zeros
from mqindex.kafka.layout import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE

__all__ = ["Entries", "Tail", "read_entries"]

_OFFSETS = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIMES = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])

Tail = Literal["none", "zeros", "stale"]


@dataclass(frozen=True, slots=True)
class Entries:
    """`first` and `second`: the columns of the entries in order, offsets relative, int64.

    `tail`: what stands behind them. `fragment`: bytes that are no whole entry. `places`: how many entries the file is
    long, `zeros`: how many of them at the end are zeros. `at`: the byte at which the order ends, or the file.
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


def read_entries(path: str, ending: str, most: int) -> Entries:
    """The entries of a file whose log bears out `most` at most: more are not looked at."""
    kind, size = (_OFFSETS, OFFSET_ENTRY_SIZE) if ending == "index" else (_TIMES, TIME_ENTRY_SIZE)
    length = os.path.getsize(path)
    places, fragment = divmod(length, size)
    none = np.empty(0, np.int64)
    if places == 0:
        return Entries(none, none, 0, 0, fragment, "none", 0)
    used = entries_before_zeros(path, size)
    # Not mapped: a broker trims the file when it likes.
    with disk.named(path), open(path, "rb", opener=regular) as file:
        data = file.read(min(used, most + 1) * size)
    raw = np.frombuffer(data[: len(data) - len(data) % size], kind)
    first, second = (raw[name].astype(np.int64) for name in kind.names or ())
    kept = _in_order(first, second, times=kind is _TIMES)
    tail: Tail = "none" if kept == places else "zeros" if kept == used else "stale"
    return Entries(first[:kept], second[:kept], places, places - used, fragment, tail, kept * size)


def _in_order(first: npt.NDArray[Any], second: npt.NDArray[Any], *, times: bool) -> int:
    """How many entries from the first on could be a broker's: sections 2.8 and 3.6 of what is known of the format."""
    good = (first >= 0) & (second >= 0)
    good[1:] &= first[1:] > first[:-1]
    good[1:] &= second[1:] >= second[:-1] if times else second[1:] > second[:-1]
    wrong = np.flatnonzero(~good)
    return int(wrong[0]) if len(wrong) else len(first)
