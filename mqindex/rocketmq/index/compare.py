"""An index file's entries against those that the log gives.

The two sequences are equal except for two things that an intact store may show: a file may begin and end inside one
message's keys, and after a restart the broker indexes the last indexed message again, with all its keys. Entries of
messages that cannot be read, as a file of the log is missing or damaged, are neither right nor wrong: it may come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, LogEntries

Array = npt.NDArray[Any]

_BLOCK = 1 << 16
_FIRST_BLOCK = 512
_TIMES = 64  # a message is indexed again at most so often, for all that is known
MAX_DIFFERENCES = 100


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in the sequence of all entries: before entry number `ordinal` (from 0) of the message at `phy_offset`."""

    phy_offset: int
    ordinal: int

    def __str__(self) -> str:
        return f"entry {self.ordinal} of the message at phy offset {self.phy_offset}"


@dataclass(frozen=True, slots=True)
class Difference:
    """`kind`: "missing" (the log has `count` entries more), "foreign" (the file has), "wrong" (`field` differs)."""

    kind: str
    number: int
    phy_offset: int
    count: int = 1
    field: str | None = None
    expected: int | None = None
    got: int | None = None


@dataclass(slots=True)
class Comparison:
    """How entries of a file agree with the log: where they begin and end in it, and what differs.

    `repeated`: messages that a restarted broker indexed again. `places`: other pairs of begin and end that agree as
    well, if the entries are some of one message that has a key twice; the files before and after show which it is.
    """

    begin: Place
    end: Place
    places: tuple[tuple[Place, Place], ...] = ()
    entries: int = 0
    repeated: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.differences

    @classmethod
    def of_start(cls, index: IndexFile, log: LogEntries, count: int) -> Comparison:
        """Compare the first `count` entries that the log still has."""
        first = first_in_log(index, log)
        return _Comparing(index, log, first, min(first + count, next_entry(index))).result

    @classmethod
    def of_end(cls, index: IndexFile, log: LogEntries, count: int) -> Comparison:
        """Compare the last `count` entries or a few more."""
        first, stop = first_in_log(index, log), next_entry(index)
        return _Comparing(index, log, _message_begin(index, max(first, stop - count), first), stop).result

    @classmethod
    def of_range(cls, index: IndexFile, log: LogEntries, first: int, stop: int, begin: Place) -> Comparison:
        """Compare the entries [first, stop), which must continue at `begin` in the log."""
        return _Comparing(index, log, first, stop, begin).result

    @classmethod
    def of_all(cls, index: IndexFile, log: LogEntries) -> Comparison:
        """Compare every entry that the log still has."""
        return _Comparing(index, log, first_in_log(index, log), next_entry(index)).result


def next_entry(index: IndexFile) -> int:
    """The number of the next entry to write, within the capacity."""
    return min(max(index.header.index_count, 1), index.index_num)


def places_within(
    phy_offset: int, message: Array, hashes: Array, arranged: Callable[[Array], Array] = lambda hashes: hashes
) -> list[tuple[Place, Place]]:
    """Where entries of one message alone may begin and end in it, in one piece, or again from its begin on, as they
    are `arranged` in the file; first the place where they end with the message, then those in one piece.
    """
    size, n = len(message), len(hashes)
    fitting = [at for at in range(size) if np.array_equal(hashes, arranged(np.resize(np.roll(message, -at), n)))]
    fitting.sort(key=lambda at: ((at + n) % size != 0, at + n > size))
    return [(Place(phy_offset, at), Place(phy_offset, (at + n - 1) % size + 1)) for at in fitting]


def are_expired(phy_offsets: Array, log: LogEntries) -> Array:
    """Which of them the log no longer has; it never had a negative one."""
    low = log.spans[0].file_start if log.spans else 0
    return (phy_offsets >= 0) & (phy_offsets < low)


def are_absent(phy_offsets: Array, log: LogEntries) -> Array:
    """Which of them have expired, or are in a missing file of the log."""
    return are_expired(phy_offsets, log) | log.are_in_holes(phy_offsets)


def first_in_log(index: IndexFile, log: LogEntries) -> int:
    """The number of the first entry of a message that is in a file of the log: most are below its minimum offset."""
    start, count, stop = 1, _FIRST_BLOCK, next_entry(index)  # as a rule it is the first, and the file may be cold
    while start < stop:
        block = index.entries(start, min(start + count, stop))
        at = np.flatnonzero(~are_absent(block["phy_offset"], log))
        if len(at):
            return start + int(at[0])
        start, count = start + count, _BLOCK
    return stop


def _message_begin(index: IndexFile, number: int, first: int) -> int:
    """The number of its message's first entry, not below `first`: of its first copy, where it was indexed again.

    Of entries from the middle on it may not be seen which of the message's they are: it may have a key twice.
    """
    phy_offset = index.entries(number, number + 1)["phy_offset"][0]
    while number > first:
        before = index.entries(max(number - _FIRST_BLOCK, first), number)["phy_offset"]
        others = np.flatnonzero(before != phy_offset)
        if len(others):
            return number - len(before) + int(others[-1]) + 1
        number -= len(before)
    return number


class _Expected:
    """The log's entries as one sequence with numbers from 0, of which only the neighbourhood in use is kept."""

    def __init__(self, blocks: Iterator[Array]) -> None:
        self._blocks = blocks
        self._base = 0
        self._kept = np.empty(0, RUN_ENTRY)

    def window(self, at: int, count: int) -> Array:
        """Entries [at, at + count), fewer where the log ends."""
        while self._base + len(self._kept) < at + count:
            block = next(self._blocks, None)
            if block is None:
                break
            keep = self.message_start(at - 1) if self._base < at <= self._base + len(self._kept) else self._base
            self._kept = np.concatenate([self._kept[keep - self._base :], block])
            self._base = keep
        return self._kept[at - self._base : at - self._base + count]

    def message_start(self, at: int) -> int:
        """The number of the first entry of the message that entry `at` belongs to."""
        offsets = self._kept["phy_offset"][: at - self._base + 1]
        return self._base + int(np.searchsorted(offsets, offsets[-1], "left")) if len(offsets) else at

    def place(self, at: int) -> Place:
        """The place before entry `at`, given as the one after the entry before it."""
        start = self.message_start(at - 1)
        return Place(int(self._kept["phy_offset"][start - self._base]), at - start)


class _Comparing:
    """One pass over entries [first, stop) of a file and over the log."""

    def __init__(self, index: IndexFile, log: LogEntries, first: int, stop: int, begin: Place | None = None) -> None:
        self._index, self._log = index, log
        self._number, self._stop = first, stop
        self._begin_timestamp = index.header.begin_timestamp
        places: list[tuple[Place, Place]] = []
        if begin is None:
            start = self._phy_offset(first)
            places = self._places(start)
            begin = places[0][0]
        last = self._phy_offset(stop - 1)
        self._at = begin.ordinal
        self._expected = _Expected(log.forward(begin.phy_offset, max(begin.phy_offset, last) + 1))
        self.result = Comparison(begin, begin, tuple(places[1:]))
        while self._number < self._stop and len(self.result.differences) < MAX_DIFFERENCES:
            self._block()
        if self.result.ok and self._at > 0:
            self.result.end = self._expected.place(self._at)

    def _places(self, phy_offset: int) -> list[tuple[Place, Place]]:
        """Where the first entry is in its message, which may have begun in the file before, and where its last one."""
        message = self._log.of(phy_offset)["key_hash"]
        at = Place(phy_offset, 0)
        if len(message) == 0 or (self._number > 1 and self._phy_offset(self._number - 1) != phy_offset):
            return [(at, at)]
        stop = min(self._number + _TIMES * len(message) + 1, next_entry(self._index))
        run = self._index.entries(self._number, stop)
        hashes = run["key_hash"][: int(np.argmax(np.append(run["phy_offset"] != phy_offset, True)))]
        places = places_within(phy_offset, message, hashes)
        if self._number + len(hashes) < next_entry(self._index):  # so they end with the message
            places = [each for each in places if each[1].ordinal == len(message)]
        if places:
            return places
        hashes = hashes[: len(message)]
        starts: list[int] = np.flatnonzero(message == hashes[0]).tolist()
        fitting = [at for at in starts if np.array_equal(message[at : at + len(hashes)], hashes[: len(message) - at])]
        return [(Place(phy_offset, (fitting or [0])[0]), at)]

    def _phy_offset(self, number: int) -> int:
        return int(self._index.entries(number, number + 1)["phy_offset"][0])

    def _block(self) -> None:
        count = min(_BLOCK, self._stop - self._number)
        expected = self._expected.window(self._at, count)
        got = self._index.entries(self._number, self._number + count)
        n = len(expected)
        same = (got["phy_offset"][:n] == expected["phy_offset"]) & (got["key_hash"][:n] == expected["key_hash"])
        equal = n if same.all() else int(same.argmin())
        self._check_times(got["time_diff"][:equal], expected["store_timestamp"][:equal])
        self._advance(equal, equal)
        if equal < count and not self._pass_over(got["phy_offset"][equal:], expected[equal:]):
            self._resolve({name: int(column[equal]) for name, column in got.items()}, expected[equal:])

    def _advance(self, entries: int, expected: int) -> None:
        self._number += entries
        self._at += expected
        self.result.entries += entries

    def _pass_over(self, phy_offsets: Array, expected: Array) -> int:
        """Pass over the next entries, as many as are of messages that cannot be read; returns how many."""
        unreadable = self._log.are_unreadable(phy_offsets)
        if len(expected):
            unreadable &= phy_offsets < expected[0]["phy_offset"]
        count = len(unreadable) if unreadable.all() else int(unreadable.argmin())
        self._advance(count, 0)
        return count

    def _resolve(self, got: dict[str, int], expected: Array) -> None:
        """The next entry is not the next of the log."""
        if self._at and self._repeats(got):
            self.result.repeated += 1
        elif len(expected) == 0 or got["phy_offset"] < expected[0]["phy_offset"]:
            self._differs("foreign", got["phy_offset"])
            self._advance(1, 0)
        elif got["phy_offset"] == expected[0]["phy_offset"]:
            wanted = int(expected[0]["key_hash"])
            self._differs("wrong", got["phy_offset"], field="key_hash", expected=wanted, got=got["key_hash"])
            self._advance(1, 1)
        else:
            skipped = int(np.searchsorted(expected["phy_offset"], got["phy_offset"], "left"))
            self._misses(int(expected[0]["phy_offset"]), skipped)
            self._advance(0, skipped)

    def _repeats(self, got: dict[str, int]) -> bool:
        start = self._expected.message_start(self._at - 1)
        again = self._expected.window(start, 1)
        if len(again) and (got["phy_offset"], got["key_hash"]) == (again[0]["phy_offset"], again[0]["key_hash"]):
            self._at = start
            return True
        return False

    def _check_times(self, diffs: Array, timestamps: Array) -> None:
        # The first entry of a rolled file counts from the end of the file before it, which is not known here.
        wrong = np.flatnonzero(diffs != time_diffs(timestamps, self._begin_timestamp))
        for at in wrong[:MAX_DIFFERENCES].tolist():
            if self._number + at > 1:
                wanted = int(time_diffs(timestamps[at : at + 1], self._begin_timestamp)[0])
                offset = int(self._expected.window(self._at + at, 1)["phy_offset"][0])
                self._differs("wrong", offset, ahead=at, field="time_diff", expected=wanted, got=int(diffs[at]))

    def _misses(self, phy_offset: int, count: int) -> None:
        """Entries of the log are missing here: one difference, though they are seen some at a time."""
        found = self.result.differences
        if found and (found[-1].kind, found[-1].number) == ("missing", self._number):
            found[-1] = replace(found[-1], count=found[-1].count + count)
        else:
            self._differs("missing", phy_offset, count=count)

    def _differs(self, kind: str, phy_offset: int, *, ahead: int = 0, count: int = 1, **details: Any) -> None:
        self.result.differences.append(Difference(kind, self._number + ahead, phy_offset, count, **details))


def time_diffs(store_timestamps: Array, begin_timestamp: int) -> Array:
    """Seconds since the file's begin as `putKey` computes them: towards zero, from 0 to 2**31 - 1.

    >>> time_diffs(np.array([5999, 900]), 1000).tolist()
    [4, 0]
    """
    if begin_timestamp <= 0:
        return np.zeros(len(store_timestamps), np.int32)
    elapsed = store_timestamps.astype(np.int64) - begin_timestamp
    return (np.clip(elapsed, 0, None) // 1000).clip(max=2**31 - 1).astype(np.int32)
