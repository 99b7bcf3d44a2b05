"""Which rule for TAGS the entries of messages show: one by one, whatever the order of a file's entries is.

A message with TAGS has one entry more by the rule of 5.4. The entry of its TAGS shows that rule, also where some of
the others are in another file. All of its other entries, without that one, show the rule before 5.4; but not of a
file's last message, of which the file may hold a part, nor where damage may have led that one astray. Where TAGS and a
key are one string, only the number shows it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.distinct import distinct
from mqindex.rocketmq.index.compare import are_absent, first_in_log, next_entry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.log.log_entries import ALL_TAGS, NO_TAGS, RUN_ENTRY, LogEntries, LogSpan, Tags

Array = npt.NDArray[Any]

_BLOCK = 1 << 20
_SAMPLES = 1 << 16
_DAMAGED = 64  # entries in a row whose offset may be damaged
_GOT = np.dtype([("key_hash", "i4"), ("phy_offset", "i8"), ("time_diff", "i4")])


@dataclass(frozen=True, slots=True)
class Shown:
    """Messages that show a rule, in the log's order; `rules`: whether their TAGS gave entries.

    `astray`: entries that were seen where no rule gives them, so that they may be those that messages lack.
    """

    phy_offsets: Array
    rules: Array
    astray: int = 0

    @classmethod
    def of(cls, parts: Sequence[Shown]) -> Shown:
        """Together, from several files."""
        phy_offsets = np.concatenate([np.empty(0, np.int64), *(one.phy_offsets for one in parts)])
        rules = np.concatenate([np.empty(0, np.bool_), *(one.rules for one in parts)])
        order = np.argsort(phy_offsets, kind="stable")
        return cls(phy_offsets[order], rules[order], sum(one.astray for one in parts))

    def __len__(self) -> int:
        return len(self.rules)

    def certain(self) -> Shown:
        """Without the messages that lack an entry of TAGS, unless more do in a row than entries are astray."""
        runs = list(pairwise([0, *(np.flatnonzero(np.diff(self.rules)) + 1).tolist(), len(self)]))
        sure = [bool(self.rules[start:stop].all()) or stop - start > self.astray for start, stop in runs]
        kept = np.repeat(sure, [stop - start for start, stop in runs])
        return Shown(self.phy_offsets[kept], self.rules[kept])

    def change(self, newest: bool) -> int:
        """How many of the first ones are taken to be by the other rule: so that it is wrong of the fewest."""
        return int(np.argmin(np.cumsum(np.append(0, np.where(self.rules == newest, 1, -1)))))

    def border(self, newest: bool) -> int:
        """The phy offset from which on the newest rule is taken to hold; there must be a message that shows each.

        An entry of TAGS bounds it: messages beside it that have none may show nothing, as a file's last one.
        """
        at = self.change(newest)
        return int(self.phy_offsets[min(at, len(self) - 1)]) if newest else int(self.phy_offsets[max(at, 1) - 1]) + 1

    def mended(self, tags: Tags) -> Tags:
        """The same, but with the other rule where messages refute it. As above, an entry of TAGS bounds it: the last
        one before messages that have none, and the first one after them.
        """
        said = np.searchsorted(np.array(tags.changes, np.int64), self.phy_offsets, "right") % 2 == 1
        edges = np.flatnonzero(np.diff(self.rules + 2 * said)) + 1
        return tags.flipped(
            self._bounds(start, stop)
            for start, stop in pairwise([0, *edges.tolist(), len(self)])
            if stop > start and self.rules[start] != said[start]
        )

    def _bounds(self, start: int, stop: int) -> tuple[int, int]:
        """The phy offsets [begin, end) of these messages of one rule, with those beside them that show nothing."""
        begin, end = int(self.phy_offsets[start]), int(self.phy_offsets[stop - 1]) + 1
        if self.rules[start]:
            return begin, end
        if start and self.rules[start - 1]:
            begin = int(self.phy_offsets[start - 1]) + 1
        if stop < len(self) and self.rules[stop]:
            end = int(self.phy_offsets[stop])
        return begin, end

    def refutes(self, newest: bool, border: int) -> bool:
        """Whether a message shows another rule than that which is newest from the border on."""
        return bool(np.any((self.rules == newest) != (self.phy_offsets >= border)))


_NOTHING: Final = Shown.of([])


def shown_at_ends(index: IndexFile, spans: Sequence[LogSpan], counts: Sequence[int]) -> Shown:
    """What the entries at both ends of a file show, of those that the log still has. At each end about as many are
    looked at as the first of these counts; if they show nothing, as the next.
    """
    with LogEntries(spans, tags=NO_TAGS) as log, LogEntries(spans, tags=ALL_TAGS) as with_tags:
        looks = ((_shown(index, log, with_tags, *ends).certain() for ends in end) for end in _ends(index, log, counts))
        return Shown.of([next(filter(len, end), _NOTHING) for end in looks])


def shown_between(index: IndexFile, spans: Sequence[LogSpan], start: int, stop: int) -> Shown:
    """What a file shows of the messages at the phy offsets [start, stop)."""
    begin, end = max(index.header.begin_phy_offset, start), min(stop, index.header.end_phy_offset + 1)
    begin = next((max(begin, span.file_start) for span in spans if begin < span.stop), end)  # some may have expired
    if begin >= end:
        return _NOTHING
    with LogEntries(spans, tags=NO_TAGS) as log, LogEntries(spans, tags=ALL_TAGS) as with_tags:
        borders = [*_cuts(index, log, begin, end), end]
        return Shown.of([_shown(index, log, with_tags, *ends) for ends in pairwise(borders)]).certain()


def shown_before(index: IndexFile, spans: Sequence[LogSpan]) -> Shown:
    """What the first file shows of the messages before it. Where only TAGS would give them entries, either the rule
    before 5.4 gave them none, or a file is lost: then the time of the first entry here counts from the end of that.
    """
    start, stop = spans[0].file_start if spans else 0, index.header.begin_phy_offset
    with LogEntries(spans, tags=NO_TAGS) as log, LogEntries(spans, tags=ALL_TAGS) as with_tags:
        tagged = with_tags.first(start, 1, stop)
        only_tags = len(tagged) > 0 and not len(log.first(start, 1, stop))
    if not only_tags or _entries(index, stop, stop + 1)[0]["time_diff"].any():
        return _NOTHING
    return Shown(tagged["phy_offset"][:1], np.zeros(1, np.bool_))


def _ends(index: IndexFile, log: LogEntries, counts: Sequence[int]) -> list[list[tuple[int, int]]]:
    """The ranges of phy offsets of so many entries at the begin, and at the end."""
    if index._order().moved:
        step = max(next_entry(index) // _SAMPLES, 1)
        offsets, some = _in_log(index, log, step), [-(-count // step) for count in counts]
        ends = [[offsets[: few + 1] for few in some], [offsets[-few - 1 :] for few in some]]
    else:
        first, stop = first_in_log(index, log), next_entry(index)
        begins = [(first, min(first + count, stop)) for count in counts]
        numbers = [begins, [(max(first, stop - count), stop) for count in counts]]
        ends = [[_of_log(index, log, index.entries(*one)["phy_offset"]) for one in end] for end in numbers]
    return [[(int(one[0]), int(one[-1]) + 1) for one in end if len(one)] for end in ends]


def _of_log(index: IndexFile, log: LogEntries, phy_offsets: Array) -> Array:
    """Those that are in files of the log, and that the file may have by its header: others are damaged."""
    begin, end = index.header.begin_phy_offset, index.header.end_phy_offset
    return phy_offsets[(phy_offsets >= begin) & (phy_offsets <= end) & ~are_absent(phy_offsets, log)]


def _in_log(index: IndexFile, log: LogEntries, step: int) -> Array:
    """Of the offsets of all entries in files of the log each `step`th, between the smallest and the greatest."""
    ends, chosen = [], [np.empty(0, np.int64)]
    for block in _blocks(index, 1, next_entry(index)):
        offsets = _of_log(index, log, block["phy_offset"])
        if len(offsets):
            ends += [offsets.min(), offsets.max()]
            chosen.append(offsets[::step].copy())
    every = np.sort(np.concatenate(chosen))
    return np.concatenate([[min(ends)], every, [max(ends)]]) if ends else every


def _blocks(index: IndexFile, first: int, stop: int) -> Iterator[Any]:
    for at in range(first, stop, _BLOCK):
        yield index.entries(at, min(at + _BLOCK, stop))


def _numbers(index: IndexFile, start: int, stop: int) -> range:
    """Of an unmoved file: the entries of the messages at the phy offsets [start, stop)."""

    numbers, header = range(1, next_entry(index)), index.header

    def phy_offset(number: int) -> int:  # of one that is damaged, that of the next one: it must not hide all after it
        some = index.entries(number, number + _DAMAGED)["phy_offset"]
        inside = some[(some >= header.begin_phy_offset) & (some <= header.end_phy_offset)]
        return int(inside[0]) if len(inside) else header.end_phy_offset

    low, high = (1 + bisect_left(numbers, at, key=phy_offset) for at in (start, stop))
    return range(low, max(low, high))


def _cuts(index: IndexFile, log: LogEntries, start: int, stop: int) -> list[int]:
    """`start`, and messages after it so far apart that what is between fits into memory."""
    if index._order().moved:
        offsets = _in_log(index, log, _BLOCK)
    else:
        numbers = _numbers(index, start, stop)[_BLOCK::_BLOCK]
        found = [index.entries(at, at + 1)["phy_offset"][0] for at in numbers]
        offsets = _of_log(index, log, np.array(found, np.int64))
    return [start, *distinct(offsets[(offsets > start) & (offsets < stop)]).tolist()]


def _entries(index: IndexFile, start: int, stop: int) -> tuple[Array, Array]:
    """Those of the messages at the phy offsets [start, stop); and other offsets that are where these should be."""
    moved, header = index._order().moved, index.header
    numbers = range(1, next_entry(index)) if moved else _numbers(index, start, stop)
    found, others = [np.empty(0, _GOT)], [np.empty(0, np.int64)]
    for block in _blocks(index, numbers.start, numbers.stop):
        phys = block["phy_offset"]
        inside = (phys >= start) & (phys < stop)
        at = np.flatnonzero(inside)
        one = np.empty(len(at), _GOT)
        for name in _GOT.names or ():
            one[name] = block[name][at]
        found.append(one)
        wrong = (phys < header.begin_phy_offset) | (phys > header.end_phy_offset) if moved else ~inside
        others.append(phys[wrong])
    return np.concatenate(found), np.concatenate(others)


class _Sums:
    """Of each message how many entries it has, and the sum of their hashes. `strangers`: offsets of no message."""

    def __init__(self, phy_offsets: Array, entries: Array) -> None:
        places = np.searchsorted(phy_offsets, entries["phy_offset"])
        known = places < len(phy_offsets)
        known[known] = phy_offsets[places[known]] == entries["phy_offset"][known]
        self._places, self._hashes, self._messages = places[known], entries["key_hash"][known], len(phy_offsets)
        self.strangers = entries["phy_offset"][~known]
        self.count = np.bincount(self._places, minlength=self._messages)
        self.hashes = np.bincount(self._places, self._hashes, self._messages).astype(np.int64)

    def have(self, hashes: Array) -> Array:
        """Which messages have an entry of a hash, one for each."""
        with_it = self._places[self._hashes == hashes[self._places]]
        return np.bincount(with_it, minlength=self._messages) > 0

    def are_copies_of(self, whole: _Sums) -> Array:
        """Which messages have the entries of `whole`, once or more times."""
        count = np.maximum(whole.count, 1)
        found: Array = (self.count > 0) == (whole.count > 0)
        found &= (self.count % count == 0) & (self.hashes == whole.hashes * (self.count // count))
        return found


def _lacks_after_its_begin(phy_offset: int, entries: Array, without: Array, all_of_it: Array) -> bool:
    """Whether the message of a file's begin shows the rule before 5.4 by its last entries alone: the file before has
    the others.
    """
    got, old, new = (one["key_hash"][one["phy_offset"] == phy_offset] for one in (entries, without, all_of_it))
    if not 0 < len(got) < len(old):
        return False
    lasts = [sorted(one[-len(got) :].tolist()) for one in (got, old, new)]
    return lasts[0] == lasts[1] != lasts[2]


def _shown(index: IndexFile, log: LogEntries, with_tags: LogEntries, start: int, stop: int) -> Shown:
    wanted = [np.concatenate([np.empty(0, RUN_ENTRY), *one.forward(start, stop)]) for one in (log, with_tags)]
    phy_offsets = distinct(wanted[1]["phy_offset"])
    without, all_of_it = (_Sums(phy_offsets, one) for one in wanted)
    entries, others = _entries(index, start, stop)
    got = _Sums(phy_offsets, entries)
    hashes = all_of_it.hashes - without.hashes
    header = index.header
    inside = (phy_offsets >= header.begin_phy_offset) & (phy_offsets < header.end_phy_offset)
    lack, have = got.are_copies_of(without), got.are_copies_of(all_of_it)
    old = lack & ~have & inside
    old |= (phy_offsets == header.begin_phy_offset) & _lacks_after_its_begin(header.begin_phy_offset, entries, *wanted)
    new = (have | (got.have(hashes) & ~without.have(hashes))) & ~lack
    decided = (all_of_it.count > without.count) & (old | new)
    strangers = np.concatenate([others, got.strangers])
    outside = (strangers < header.begin_phy_offset) | (strangers > header.end_phy_offset)
    astray = np.count_nonzero(outside | ~are_absent(strangers, log)) + np.count_nonzero(got.count > all_of_it.count)
    return Shown(phy_offsets[decided], new[decided], int(astray))
