"""Where TAGS give index entries, as far as the entries show: a store may have seen brokers before and since 5.4.

Entries follow the rule of the broker that wrote them, and stay as they are after an upgrade or a downgrade. In what a
log still holds the rule is taken to change once at most: at a phy offset that is looked for here. It may change again
after the last entry, where the broker's version is given. Where files then differ from the log, it may have changed
more often: so these are looked at entry by entry.
"""

from __future__ import annotations

import errno
import operator
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from mqindex.errors import MQIndexError, was_cut
from mqindex.files.places.place import require_answer
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.index.geometry_fit import Geometry
from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.index.shown_tags import Shown, shown_at_ends, shown_before, shown_between
from mqindex.rocketmq.log.expiry import was_deleted
from mqindex.rocketmq.log.log_entries import ALL_TAGS, NO_TAGS, LogSpan, Tags

_SAMPLES: Final = (1000, 1 << 17)  # entries at each end of a file; many only at the ends of all: few may have TAGS
_FIRST, _LAST = 0, -1  # of the messages that show a rule
_NEVER: Final = 2**63 - 1
_LEADS_NOWHERE: Final = (errno.ENOENT, errno.ELOOP)  # a link, now and later
_RULES: Final = {False: NO_TAGS, True: ALL_TAGS}
Answer = TypeVar("Answer")


class _Vote(NamedTuple):
    """A message that shows a rule, and the number of the file of its entries."""

    rule: bool
    phy_offset: int
    number: int


@dataclass(frozen=True, slots=True)
class IndexedTags:
    """The index files of a store, and its log. `unread` gets the errors of files that could not be read."""

    index_files: Sequence[str]
    spans: Sequence[LogSpan]
    pair: Geometry
    unread: list[OSError] = field(default_factory=list)
    _ends: dict[int, Shown] = field(default_factory=dict)
    _sound: dict[int, bool] = field(default_factory=dict)

    def newest(self) -> tuple[bool, str] | None:
        """Whether the newest entries that show it are by the rule of 5.4, and their file; None: none shows it."""
        vote = self._first(reversed(range(len(self.index_files))), _LAST, None)
        return None if vote is None else (vote.rule, self.index_files[vote.number])

    def all(self, following: bool) -> Tags:
        """Where TAGS give entries. `following`: whether they do in messages that come after all entries."""
        numbers = range(len(self.index_files))
        newest = self._first(reversed(numbers), _LAST, following)
        if newest is None:
            return _RULES[following]
        oldest = self._first(numbers, _FIRST, newest.rule)
        within = _RULES[newest.rule] if oldest is None else self._within(oldest, newest)
        return within if newest.rule == following else Tags((*within.changes, self._after(newest)))

    def again(self, tags: Tags, doubtful: Set[int]) -> Tags:
        """The same as `tags`, but for what files of these numbers show, which differ from the log by that."""
        numbers = range(max(min(doubtful) - 1, 0), min(max(doubtful) + 2, len(self.index_files)))
        shown = _together(self._all_of(at, tags) if at in doubtful else self._at_ends(at) for at in numbers)
        return shown.mended(tags)

    def refuting(self, tags: Tags) -> set[int]:
        """The numbers of sound files whose ends show another rule than `tags` somewhere."""
        ends = {number: self._at_ends(number) for number in range(len(self.index_files))}
        wrong = {at for at, one in ends.items() if any(map(operator.ne, map(tags.at, one.phy_offsets), one.rules))}
        return {number for number in wrong if self._is_sound(number)}

    def _all_of(self, number: int, tags: Tags) -> Shown | None:
        """What a sound file shows: at its ends, if all of these refute `tags`; else all of its entries."""
        if not self._is_sound(number):
            return None
        ends = self._at_ends(number)
        if len(ends) and all(tags.at(at) != rule for at, rule in zip(ends.phy_offsets, ends.rules, strict=True)):
            return ends
        return self._between([number], 0, _NEVER)

    def _first(self, numbers: Iterable[int], which: int, expected: bool | None) -> _Vote | None:
        """The first (0) or the last (-1) message that shows a rule, in the first of these files that has one.

        A file shows another rule than is `expected` only if it is sound, which takes reading all of it.
        """
        for number in numbers:
            shown = self._at_ends(number)
            if len(shown):
                vote = _Vote(bool(shown.rules[which]), int(shown.phy_offsets[which]), number)
                if vote.rule == expected or self._is_sound(number):
                    return vote
        return None

    def _within(self, oldest: _Vote, newest: _Vote) -> Tags:
        """Where TAGS give the entries that are there: what the ends of files show leads to where it changes."""
        if oldest.rule == newest.rule:
            return _RULES[newest.rule]
        numbers = range(oldest.number, newest.number + 1)
        coarse = self._coarse(numbers, newest.rule)
        at = coarse.change(newest.rule)
        if not 0 < at < len(coarse):
            return _RULES[newest.rule]
        start, stop = coarse.phy_offsets[at - 1 : at + 1].tolist()
        border = Shown.of([coarse, self._between(numbers, start, stop + 1)]).border(newest.rule)
        return Tags((*_RULES[not newest.rule].changes, border))

    def _coarse(self, numbers: Sequence[int], newest: bool) -> Shown:
        """What the ends of files show, without those that are not sound, which are looked for where some disagree."""
        shown = {at: self._at_ends(at) for at in numbers}
        while True:
            coarse = Shown.of(list(shown.values()))
            border = coarse.border(newest)
            wrong = [at for at, one in shown.items() if one.refutes(newest, border) and not self._is_sound(at)]
            if not wrong:
                return coarse
            for at in wrong:
                del shown[at]

    def _after(self, newest: _Vote) -> int:
        """Where the rule changes to that of the broker that is there now."""
        numbers = range(newest.number, len(self.index_files))
        shown = self._between(numbers, newest.phy_offset, _NEVER)
        if (not newest.rule) in shown.rules:
            return shown.border(not newest.rule)
        if newest.rule:
            return max(newest.phy_offset, *map(int, shown.phy_offsets[-1:])) + 1
        ends = [self._ask(at, lambda index: index.header.end_phy_offset) or 0 for at in numbers if self._is_sound(at)]
        return max(newest.phy_offset, *ends) + 1

    def _between(self, numbers: Sequence[int], start: int, stop: int) -> Shown:
        """What all entries of messages at the phy offsets [start, stop) show."""
        question = partial(shown_between, spans=self.spans, start=start, stop=stop)
        shown = {at: self._ask(at, question) for at in numbers}
        return _together([one for at, one in shown.items() if one and self._is_sound(at)])

    def _at_ends(self, number: int) -> Shown:
        if number not in self._ends:
            counts = _SAMPLES if number in (0, len(self.index_files) - 1) else _SAMPLES[:1]
            ends = self._ask(number, partial(shown_at_ends, spans=self.spans, counts=counts))
            before = self._ask(number, partial(shown_before, spans=self.spans)) if number == 0 else None
            self._ends[number] = _together([before, ends])
        return self._ends[number]

    def _is_sound(self, number: int) -> bool:
        """Whether a file has no fault by itself: one that lost entries lacks those of TAGS too."""
        if number not in self._sound:
            self._sound[number] = self._ask(number, _has_no_error) or False
        return self._sound[number]

    def _ask(self, number: int, question: Callable[[IndexFile], Answer]) -> Answer | None:
        """The answer of a file that can be read; else None."""
        try:
            with IndexFile._open_known(self.index_files[number], self.pair) as index:
                return question(index)
        except MQIndexError as error:
            if was_cut(error) and error.path != self.index_files[number]:
                raise  # of the log: it says nothing about the index file
            require_answer(error, error.path)
            return None
        except OSError as error:
            if was_deleted(error):
                raise  # by a broker; the survey begins again
            require_answer(error, self.index_files[number])
            if error.errno not in _LEADS_NOWHERE:
                self.unread.append(error)
            return None


def _together(found: Iterable[Shown | None]) -> Shown:
    return Shown.of([one for one in found if one is not None])


def _has_no_error(index: IndexFile) -> bool:
    return all(catalogue.INDEX_FAULTS[kind].severity != "error" for kind, *_ in index._check())
