"""Entries that `optimize` brought together, against those that the log gives.

The entries of one message keep their order within a slot, but not from slot to slot; the messages themselves are found
by their offsets. So both sides are sorted by (phy_offset, slot), stretch by stretch of the log. Entries that a broker
or this package appended later are in the log's order again, and begin where the moved ones end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Columns
from mqindex.columns.distinct import distinct
from mqindex.rocketmq.index.compare import (
    MAX_DIFFERENCES,
    Comparison,
    Difference,
    Place,
    are_absent,
    first_in_log,
    next_entry,
    places_within,
    time_diffs,
)
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.log.log_entries import LogEntries

Array = npt.NDArray[Any]

_BLOCK = 1 << 20
_STRETCH = 1 << 22  # entries compared together
_SAMPLES = 1 << 16
_ENTRY = np.dtype([("number", "i4"), ("key_hash", "i4"), ("phy_offset", "i8"), ("time_diff", "i4")])


def comparisons(index: IndexFile, log: LogEntries, count: int, *, every: bool) -> tuple[list[Comparison], bool]:
    """An index file against the log: `every` entry, or about `count` at both ends; and whether entries were moved.

    The first comparison begins where the file begins in the log, the last one ends where it ends. There must be an
    entry that the log still has.
    """
    order = index._order()
    if not order.moved:
        found = _as_written(index, log, count, every)
        whole = order.entries == next_entry(index) - 1
        inside = whole and index.header.begin_phy_offset == index.header.end_phy_offset  # as written or as moved
        if order.entries < 2 or (_doubt(found) <= 1 - whole and not inside):
            return found, False
        moved = list(_moved(index, log, order.entries, count, every))
        return (moved, True) if _doubt(moved) < _doubt(found) + inside else (found, False)
    return list(_moved(index, log, order.entries, count, every)), True


def _doubt(found: list[Comparison]) -> int:
    """How unlikely it is that the file was written so: few entries of a message may look as moved or as repeated."""
    return 2 if not all(one.ok for one in found) else 1 if any(one.repeated for one in found) else 0


def entries_absent(index: IndexFile, log: LogEntries) -> int:
    """How many entries are of messages that are in no file of the log, where entries were moved; else: at the begin."""
    if not index._order().moved:
        return first_in_log(index, log) - 1
    return entries_of(index, next_entry(index), lambda phy_offsets: are_absent(phy_offsets, log))


def entries_of(index: IndexFile, stop: int, are_such: Callable[[Array], Array]) -> int:
    """How many of the entries below `stop` have an offset of a kind."""
    return sum(int(np.count_nonzero(are_such(block["phy_offset"]))) for _, block in _blocks(index, stop))


def _as_written(index: IndexFile, log: LogEntries, count: int, every: bool) -> list[Comparison]:
    if every:
        return [Comparison.of_all(index, log)]
    return [Comparison.of_start(index, log, count), Comparison.of_end(index, log, count)]


def _lowest(log: LogEntries) -> int:
    return log.spans[0].file_start if log.spans else 0


def _blocks(index: IndexFile, stop: int) -> Iterator[tuple[int, Columns]]:
    """The entries below `stop`, some at a time, with the number of the first."""
    for start in range(1, stop, _BLOCK):
        yield start, index.entries(start, min(start + _BLOCK, stop))


def _chosen(start: int, columns: Columns, chosen: Array) -> Array:
    """Some entries of a block."""
    at = np.flatnonzero(chosen)
    entries = np.empty(len(at), _ENTRY)
    entries["number"] = start + at
    for name in ("key_hash", "phy_offset", "time_diff"):
        entries[name] = columns[name][at]
    return entries


def _moved(index: IndexFile, log: LogEntries, count: int, some: int, every: bool) -> Iterator[Comparison]:
    """The entries 1 .. `count`, then those after them."""
    part = _MovedPart(index, log, count)
    if part.empty:
        yield from _as_written(index, log, some, every)
        return
    yield from part.all() if every else part.ends(some)
    if count + 1 < next_entry(index):
        yield from _appended(index, log, count + 1, part.end, some, every)


def _appended(
    index: IndexFile, log: LogEntries, first: int, begin: Place, some: int, every: bool
) -> Iterator[Comparison]:
    stop = next_entry(index)
    if every or stop - first <= 2 * some:
        yield Comparison.of_range(index, log, first, stop, begin)
    else:
        yield Comparison.of_range(index, log, first, first + some, begin)
        yield Comparison.of_end(index, log, some)


class _MovedPart:
    """The entries 1 .. `count` of a file, as far as the log still has their messages. `end`: where they end in it."""

    def __init__(self, index: IndexFile, log: LogEntries, count: int) -> None:
        self._index, self._log, self._count = index, log, count
        self._first, self._last, samples = self._range()
        self.empty = len(samples) == 0
        self._samples = np.sort(samples)
        self.end = Place(max(self._last, 0), 0)

    def _range(self) -> tuple[int, int, Array]:
        """The smallest and greatest offset of messages in files of the log, and evenly spaced ones between."""
        step = max(self._count // _SAMPLES, 1)
        first, last, samples = np.iinfo(np.int64).max, -1, []
        for _, block in _blocks(self._index, self._count + 1):
            offsets = block["phy_offset"][~are_absent(block["phy_offset"], self._log)]
            if len(offsets):
                first, last = min(first, int(offsets.min())), max(last, int(offsets.max()))
            samples.append(offsets[::step].copy())
        return first, last, np.concatenate(samples)

    def all(self) -> Iterator[Comparison]:
        """Every entry, a stretch at a time."""
        stretches = max(-(-self._count // _STRETCH), 1)
        cuts = self._samples[np.linspace(0, len(self._samples) - 1, stretches + 1).astype(np.int64)][1:-1]
        borders = distinct([self._first, *cuts.tolist(), self._last + 1])
        for start, stop in pairwise(borders.tolist()):
            result = self._compare(start, stop)
            if stop > self._last:
                result.differences += itertools.islice(self._out_of_turn(), MAX_DIFFERENCES)
            yield result

    def _out_of_turn(self) -> Iterator[Difference]:
        """Entries after one of a later message in their slot, which is wrong because look-ups answer newest first. Only
        those of a message that a restarted broker indexed again may be there, also if another file has its first ones.
        """
        begin = self._index.header.begin_phy_offset
        for start in range(1, self._count, _BLOCK):
            block = self._index.entries(start, min(start + _BLOCK, self._count) + 1)
            slots, offsets = self._slots(block["key_hash"]), block["phy_offset"]
            down = (slots[1:] == slots[:-1]) & (offsets[1:] < offsets[:-1]) & (offsets[1:] >= begin)
            for at in (np.flatnonzero(down) + 1).tolist():
                before = int(offsets[at - 1])
                if not self._is_repeated(start + at, int(slots[at]), start + int(np.searchsorted(slots, slots[at]))):
                    yield Difference("wrong", start + at, int(offsets[at]), 1, "phy_offset", before, int(offsets[at]))

    def _is_repeated(self, number: int, slot: int, first: int) -> bool:
        """Whether its message, which may have a key twice, was indexed before. `first`: of its slot, if known."""
        earlier = self._index.entries(first if first > 1 and self._slot_of(first - 1) != slot else 1, number + 1)
        same = (earlier["key_hash"] == earlier["key_hash"][-1]) & (earlier["phy_offset"] == earlier["phy_offset"][-1])
        hashed, offset = int(earlier["key_hash"][-1]), int(earlier["phy_offset"][-1])
        once = self._log.of(offset)["key_hash"].tolist().count(hashed) if offset >= _lowest(self._log) else 1
        return int(np.count_nonzero(same)) > max(once, 1)

    def _slot_of(self, number: int) -> int:
        return int(self._slots(self._index.entries(number, number + 1)["key_hash"])[0])

    def _slots(self, hashes: Array) -> Array:
        return hashes.view(np.uint32) % np.uint32(self._index.hash_slot_num)

    def ends(self, some: int) -> Iterator[Comparison]:
        """Some entries at the beginning, and at the end."""
        at = min(-(-some * len(self._samples) // self._count), len(self._samples) - 1)
        yield self._compare(self._first, max(int(self._samples[at]), self._first + 1))
        yield self._compare(min(int(self._samples[-1 - at]), self._last), self._last + 1)

    def _compare(self, start: int, stop: int) -> Comparison:
        """The messages at the phy offsets [start, stop)."""
        chunks = list(self._log.forward(start, stop))
        got = self._between(start, stop)
        unreadable = self._log.are_unreadable(got["phy_offset"])
        wanted = np.concatenate(chunks) if chunks else None
        if wanted is None and unreadable.all():
            return Comparison(Place(start, 0), Place(start, 0))
        got = got[~unreadable]
        if wanted is None or not len(got) or int(got["phy_offset"][0]) != int(wanted["phy_offset"][0]):
            place = Place(start, 0)
            what = Difference("foreign", int(got["number"][0]), start) if len(got) else Difference("missing", 1, start)
            return Comparison(place, place, differences=[what])
        result, wanted = self._expected(wanted, got, stop > self._last)
        if stop > self._last:
            self.end = result.end
        wanted = wanted[np.lexsort((self._slots(wanted["key_hash"]), wanted["phy_offset"]))]
        result.entries = len(got)
        result.differences = list(self._differences(wanted, got, result.begin))
        return result

    def _between(self, start: int, stop: int) -> Array:
        blocks = _blocks(self._index, self._count + 1)
        found = [_chosen(at, one, (one["phy_offset"] >= start) & (one["phy_offset"] < stop)) for at, one in blocks]
        got = np.concatenate(found)
        return got[np.argsort(got["phy_offset"], kind="stable")]

    def _expected(self, log: Array, got: Array, last: bool) -> tuple[Comparison, Array]:
        """What the stretch should hold: a file may begin and end inside a message, and repeat messages whole."""
        offsets, starts, sizes = np.unique(log["phy_offset"], return_index=True, return_counts=True)
        have = np.searchsorted(got["phy_offset"], offsets, "right") - np.searchsorted(got["phy_offset"], offsets)
        begin, end = Place(int(offsets[0]), 0), Place(int(offsets[-1]), int(sizes[-1]))
        result, parts, at = Comparison(begin, end), [], 0
        uneven = np.flatnonzero(have != sizes).tolist()
        for which in uneven[:MAX_DIFFERENCES]:
            start, size, n = int(starts[which]), int(sizes[which]), int(have[which])
            message = log[start : start + size]
            parts.append(log[at:start])
            at = start + size
            is_first = which == 0 and begin.phy_offset == self._index.header.begin_phy_offset
            is_last = last and which == len(offsets) - 1
            places = self._places(message, got[-n:]) if is_first and is_last and n else []
            if places:
                (result.begin, result.end), *more = places
                result.places = tuple(more)
                parts.append(np.resize(np.roll(message, -result.begin.ordinal), n))
                result.repeated += (n - 1) // size
            elif is_first and n:
                result.begin = Place(begin.phy_offset, -n % size)
                parts += [message[-n % size :], *[message] * ((n - 1) // size)]
                result.repeated += (n - 1) // size
            elif is_last and n:
                parts += [*[message] * (n // size), message[: n % size]]
                result.repeated += (n - 1) // size
                result.end = Place(end.phy_offset, (n - 1) % size + 1)
            else:
                times = n // size if n % size == 0 and n else 1
                parts += [message] * times
                result.repeated += times - 1
        return result, np.concatenate([*parts, log[at:]]) if parts else log

    def _places(self, message: Array, got: Array) -> list[tuple[Place, Place]]:
        """Where the entries are in the message, of which the file has no others."""

        def arranged(hashes: Array) -> Array:
            return hashes[np.argsort(self._slots(hashes), kind="stable")]

        places = places_within(int(message["phy_offset"][0]), message["key_hash"], got["key_hash"], arranged)
        diffs = time_diffs(message["store_timestamp"][:1], self._index.header.begin_timestamp)
        odd = got["number"][got["time_diff"] != diffs]  # the first one's counts from the end of another file
        return [each for each in places if len(odd) == 0 or self._seeded(each[0], got) in odd] or places

    def _differences(self, wanted: Array, got: Array, begin: Place) -> Iterator[Difference]:
        header = self._index.header
        diffs = time_diffs(wanted["store_timestamp"], header.begin_timestamp)
        offsets = distinct(np.concatenate([wanted["phy_offset"], got["phy_offset"]]))
        w_start, w_stop = (np.searchsorted(wanted["phy_offset"], offsets, side) for side in ("left", "right"))
        g_start, g_stop = (np.searchsorted(got["phy_offset"], offsets, side) for side in ("left", "right"))
        even = w_stop - w_start == g_stop - g_start
        in_wanted, in_got = np.repeat(even, w_stop - w_start), np.repeat(even, g_stop - g_start)
        same = wanted["key_hash"][in_wanted] == got["key_hash"][in_got]
        same &= (diffs[in_wanted] == got["time_diff"][in_got]) | (got["phy_offset"][in_got] == header.begin_phy_offset)
        bad = distinct(np.concatenate([offsets[~even], got["phy_offset"][in_got][~same]]))
        if begin.phy_offset == header.begin_phy_offset and begin.phy_offset not in bad:
            bad = np.insert(bad, 0, begin.phy_offset)  # the first entry's time counts from the end of another file
        for at in np.searchsorted(offsets, bad[:MAX_DIFFERENCES]).tolist():
            here = slice(g_start[at], g_stop[at])
            there = slice(w_start[at], w_stop[at])
            first = self._seeded(begin, got[here]) if int(offsets[at]) == begin.phy_offset else -1
            yield from _of_message(int(offsets[at]), wanted[there], diffs[there], got[here], first)

    def _seeded(self, begin: Place, got: Array) -> int:
        """The number of the entry that was the file's first; -1: the log begins later."""
        if begin.phy_offset != self._index.header.begin_phy_offset:
            return -1
        message = self._log.of(begin.phy_offset)["key_hash"]
        if begin.ordinal >= len(message):
            return -1
        numbers = got["number"][got["key_hash"] == message[begin.ordinal]]
        return int(numbers[0]) if len(numbers) else -1

    def first_diff(self, begin: Place) -> int | None:
        """The time_diff of the entry that was the file's first; None: it is not there any more."""
        got = self._between(begin.phy_offset, begin.phy_offset + 1)
        number = self._seeded(begin, got)
        return int(got["time_diff"][got["number"] == number][0]) if number > 0 else None


def first_time_diff(index: IndexFile, log: LogEntries, begin: Place) -> int | None:
    """The time_diff of the entry that was the file's first before entries were moved, at `begin` in the log."""
    return _MovedPart(index, log, index._order().entries).first_diff(begin)


def _of_message(offset: int, wanted: Array, diffs: Array, got: Array, seeded: int) -> Iterator[Difference]:
    """What differs in the entries of one message; the time_diff of entry `seeded` is not compared."""
    if not len(wanted):
        yield Difference("foreign", int(got["number"][0]), offset)
    elif len(got) < len(wanted):
        number = int(got["number"][0]) if len(got) else 1
        yield Difference("missing", number, offset, len(wanted) - len(got))
    elif len(got) > len(wanted):
        yield Difference("foreign", int(got["number"][-1]), offset)
    else:
        for one, diff, entry in zip(wanted, diffs, got, strict=True):
            number = int(entry["number"])
            if one["key_hash"] != entry["key_hash"]:
                values = int(one["key_hash"]), int(entry["key_hash"])
                yield Difference("wrong", number, offset, 1, "key_hash", *values)
            elif diff != entry["time_diff"] and number != seeded:
                yield Difference("wrong", number, offset, 1, "time_diff", int(diff), int(entry["time_diff"]))
