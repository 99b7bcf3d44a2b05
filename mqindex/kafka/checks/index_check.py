"""Offset and time index of one segment against its log: what misleads a broker, what merely differs from a rebuild.

An entry is right when no search that begins at it misses its target. Entries that differ from a rebuild's are no error:
followers, the cleaner and older brokers write others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.columns.distinct import distinct
from mqindex.kafka import catalogue
from mqindex.kafka.index.index_entries import Entries
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_damage import UNKNOWN
from mqindex.kafka.log.log_facts import LogFacts
from mqindex.report import Finding, Kind

_ENDLESS: Final = 2**63 - 1
_Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # relative offsets and positions


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the log of a segment requires of its two indexes.

    `open`: the segment's indexes may be longer than their entries, and end before the log does: it is the last one, and
    nobody closed it; `trimmed`: who closes it cuts them. `entries`: how many a rebuild writes. `damage`: of the log;
    entries that lead there are for batches of which nothing is known.
    """

    base_offset: int
    valid_bytes: int
    last_offset: int
    max_timestamp: int
    entries: dict[IndexKind, int]
    open: bool
    trimmed: bool
    damage: tuple[BatchFault, ...] = ()

    def lost(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which offsets are of batches that are damaged."""
        firsts, lasts = [one.first_offset for one in self.damage], [one.last_offset for one in self.damage]
        return _within(offsets, [one or 0 for one in firsts], [_ENDLESS if one is None else one for one in lasts])

    def unread(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which positions are in damage of which no batch's begin is known."""
        bad = [one for one in self.damage if not one.passed]
        return _within(positions, [one.at for one in bad], [one.end - 1 for one in bad])

    def closed(self) -> Expectation:
        """The same for a closed segment."""
        return replace(self, open=False)

    def of_a_longer_interval(self) -> Expectation:
        """The same where the offset index need not have an entry yet."""
        return replace(self, entries={**self.entries, IndexKind.OFFSET: 0})


def _within(values: npt.NDArray[np.int64], firsts: list[int], lasts: list[int]) -> npt.NDArray[np.bool_]:
    """Which values are in one of the ranges, which are in order."""
    ends = np.array([UNKNOWN, *lasts], np.int64)
    within: npt.NDArray[np.bool_] = values <= ends[np.searchsorted(np.array(firsts, np.int64), values, "right")]
    return within


# ---- one file by itself


def check_shape(path: str, kind: IndexKind, entries: Entries, *, may_be_longer: bool, trimmed: bool) -> list[Finding]:
    """Length and order: what a file shows without its log. `may_be_longer`: than its entries, as an open index."""
    kinds, findings = catalogue.INDEXES[kind], []
    if entries.fragment:
        size = kind.entry_size
        got = entries.places * size + entries.fragment
        findings.append(kinds.length.finding(path, expected=f"a multiple of {size} bytes", got=got))
    following = entries.places - len(entries)
    if entries.tail == "zeros" and (trimmed or not may_be_longer):
        unwritten = kinds.unwritten_while_open if may_be_longer else kinds.unwritten
        zeros = f"{plural(following, 'place')} of zeros"
        findings.append(unwritten.finding(path, entries.at, expected="nothing", got=zeros))
    elif entries.tail == "stale":
        order = kinds.order_while_open if may_be_longer else kinds.order
        strange = plural(following, "place that does not follow", "places that do not follow")
        findings.append(order.finding(path, entries.at, expected="entries in order", got=strange))
    return findings


# ---- both against the log


def check_entries(
    chunks: Iterable[npt.NDArray[Any]],
    offsets: tuple[str, Entries] | None,
    times: tuple[str, Entries] | None,
    rebuilt: _Pairs,
    expectation: Expectation,
    *,
    replaced: bool,
) -> tuple[list[Finding], list[Finding]]:
    """Findings of the offset and of the time index; None: a file that is not checked.

    A search by time continues in the offset index: the one that exists; `rebuilt`, relative offsets and positions as
    a rebuild writes them, where that one is missing, or wrong, or to be `replaced`.
    """
    none = np.empty(0, np.int64)
    there = (offsets[1].first, offsets[1].second) if offsets else rebuilt
    stamps, targets = (times[1].first, times[1].second) if times else (none, none)
    facts = LogFacts(chunks, distinct(np.concatenate([[0], there[1], _leads(rebuilt, targets, expectation)])), stamps)
    found = []
    if offsets:
        refuted = _refuted(offsets[1], facts, expectation)
        found = list(_check_offsets(*offsets, refuted, facts, expectation))
        if refuted.stale:
            there = (there[0][: refuted.first], there[1][: refuted.first])
            expectation = expectation if refuted.first else expectation.of_a_longer_interval()
    bad = replaced or any(one.severity == "error" or one.kind.endswith("-empty") for one in found)
    leads = _leads(rebuilt if bad else there, targets, expectation)
    least = _least(facts, leads[len(targets) :], expectation)
    return found, list(_check_times(*times, leads[: len(targets)], least, facts, expectation)) if times else []


def _leads(lookup: _Pairs, targets: npt.NDArray[np.int64], expectation: Expectation) -> npt.NDArray[np.int64]:
    """Where a search for each target starts; then where the last entry but one within the log leads, 0 where there is
    but one; no such where there is none.
    """
    within = (lookup[1] < expectation.valid_bytes) & ~_cut(lookup[0] + expectation.base_offset, expectation)
    before_last = np.concatenate([np.zeros(1, np.int64), lookup[1][within]])[:-1][-1:]
    starts = np.concatenate([[0], lookup[1]])[np.searchsorted(lookup[0], targets, "right")]  # 0: before all entries
    return np.concatenate([starts, before_last])


def _check_offsets(
    path: str, entries: Entries, refuted: _Refuted, facts: LogFacts, expectation: Expectation
) -> Iterator[Finding]:
    kinds, size = catalogue.OFFSET_INDEX, IndexKind.OFFSET.entry_size
    if not len(entries):
        yield from _empty(path, expectation)
        return
    at = facts.positions
    row = at.rows_of(entries.second)
    offsets = entries.first + expectation.base_offset
    beyond_log = kinds.beyond_open_log if expectation.open else kinds.beyond_log
    yield from _first(beyond_log, path, size, refuted.beyond, "position",
                     f"below {expectation.valid_bytes}", entries.second)  # fmt: skip
    yield from _first(beyond_log, path, size, refuted.cut, "offset",
                     f"{expectation.last_offset} or less", offsets)  # fmt: skip
    position = catalogue.STALE_POSITION if refuted.stale else catalogue.OFFSET_INDEX_POSITION
    yield from _first(position, path, size, refuted.inside, "position", "the beginning of a batch",
                     entries.second)  # fmt: skip
    yield from _first(kinds.stale_offset if refuted.stale else kinds.offset, path, size, refuted.passed, "offset",
                     at.offset_before[row] + 1, offsets, "at least ")  # fmt: skip
    until = np.concatenate([at.offset_before[row[1:]], [facts.last_offset]])
    odd = ~refuted.any & ~refuted.damaged & ((offsets < at.base_offset[row]) | (offsets > until))
    if refuted.stale:
        odd[refuted.first :] = False
    yield from _first(kinds.origin, path, size, odd, "offset", at.last_offset[row],
                     offsets)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Refuted:
    """Which entries of an offset index the log refutes: `beyond` its bytes, `cut` from its offsets, `inside` a batch,
    or `passed` by batches before; or that lead to a `damaged` batch, and are not known to be right or wrong.

    `stale`: all from the first of them on are what a truncation left in an open index, behind the entries that were
    written since: none of them is one that the log confirms to the byte.
    """

    beyond: npt.NDArray[np.bool_]
    cut: npt.NDArray[np.bool_]
    inside: npt.NDArray[np.bool_]
    passed: npt.NDArray[np.bool_]
    damaged: npt.NDArray[np.bool_]
    any: npt.NDArray[np.bool_]
    stale: bool

    @property
    def first(self) -> int:
        """The number of the first of them, or of entries."""
        return int(np.argmax(self.any)) if self.any.any() else len(self.any)


def _refuted(entries: Entries, facts: LogFacts, expectation: Expectation) -> _Refuted:
    at = facts.positions
    row = at.rows_of(entries.second)
    offsets = entries.first + expectation.base_offset
    damaged = (at.found[row] & (at.last_offset[row] == UNKNOWN)) | expectation.unread(entries.second)
    beyond = (entries.second >= expectation.valid_bytes) & ~damaged
    cut = _cut(offsets, expectation) & ~beyond & ~damaged
    within = ~(beyond | cut)
    inside = within & ~at.found[row] & ~damaged
    passed = within & ~inside & (at.offset_before[row] >= offsets)
    refuted = ~within | inside | passed
    confirmed = ~refuted & (offsets == at.last_offset[row])
    return _Refuted(beyond, cut, inside, passed, damaged, refuted, expectation.open and _stale(refuted, confirmed))


def _stale(refuted: npt.NDArray[np.bool_], confirmed: npt.NDArray[np.bool_]) -> bool:
    """Whether entries are refuted, and none behind the first of these is confirmed."""
    return bool(refuted.any()) and not confirmed[int(np.argmax(refuted)) :].any()


def _check_times(
    path: str, entries: Entries, positions: npt.NDArray[np.int64], least: int, facts: LogFacts, expectation: Expectation
) -> Iterator[Finding]:
    kinds, size, times = catalogue.TIME_INDEX, IndexKind.TIME.entry_size, entries.first
    last = int(times[-1]) if len(times) else -1
    if last < least:
        kind = catalogue.TIME_INDEX_INCOMPLETE if len(times) else catalogue.TIME_INDEX_EMPTY
        got = last if len(times) else "no entry"
        expected = f"last timestamp {least}{' or more' if expectation.open else ''}"
        yield kind.finding(path, None, "timestamp", expected, got)
    offsets = entries.second + expectation.base_offset
    lost = expectation.lost(offsets)
    beyond = (times > expectation.max_timestamp) & ~lost
    beyond_log = kinds.beyond_open_log if expectation.open else kinds.beyond_log
    yield from _first(beyond_log, path, size, beyond, "timestamp",
                     f"{expectation.max_timestamp} or less", times)  # fmt: skip
    cut = _cut(offsets, expectation) & ~beyond & ~lost
    yield from _first(beyond_log, path, size, cut, "offset",
                     f"{expectation.last_offset} or less", offsets)  # fmt: skip
    beyond |= cut
    at = facts.positions
    before = at.timestamp_before[at.rows_of(positions)]
    passed = (before >= times) & ~beyond
    first = facts.times
    reached = first.max_timestamp == times
    confirmed = reached & (first.last_offset == offsets) & ~passed & ~beyond
    stale = expectation.open and _stale(beyond | passed, confirmed)
    yield from _first(kinds.stale_offset if stale else kinds.offset, path, size, passed, "timestamp", before, times,
                     "more than ")  # fmt: skip
    odd = ~(reached & (first.base_offset <= offsets) & (offsets <= first.last_offset)) & ~beyond & ~passed & ~lost
    yield from _first(kinds.origin, path, size, odd, "offset", first.last_offset,
                     offsets)  # fmt: skip


def _cut(offsets: npt.NDArray[np.int64], expectation: Expectation) -> npt.NDArray[np.bool_]:
    """Entries for offsets above the log's end: in an open index what `truncateTo` drops stays in the file.

    Of a closed one a broker that starts reads the log from the last entry on, and would take its begin for its end.
    """
    return offsets > expectation.last_offset


def _least(facts: LogFacts, before_last: npt.NDArray[np.int64], expectation: Expectation) -> int:
    """The least that the last entry's timestamp must be: an open index gets an entry after each of the offset index.

    So a broker that is killed between the two leaves it without that of the last one (Kafka 4.1.0 `LogSegment.append`).
    Where the offset index has none, though a rebuild writes some, the rule of a closed index holds.
    """
    if not expectation.open or (not len(before_last) and expectation.entries[IndexKind.OFFSET]):
        return expectation.max_timestamp
    before = facts.positions.timestamp_before[facts.positions.rows_of(before_last)]
    return int(before.max(initial=-1))


def _empty(path: str, expectation: Expectation) -> Iterator[Finding]:
    """No entry where a rebuild writes some: answers are right, but slow. A follower that appends once leaves it so."""
    if expectation.entries[IndexKind.OFFSET]:
        expected = plural(expectation.entries[IndexKind.OFFSET], "entry")
        yield catalogue.OFFSET_INDEX_EMPTY.finding(path, expected=expected, got="no entry")


def _first(
    kind: Kind,
    path: str,
    size: int,
    wrong: npt.NDArray[np.bool_],
    field: str,
    expected: Any,
    got: npt.NDArray[np.int64],
    words: str = "",
) -> Iterator[Finding]:
    """The first of the wrong entries, and how many there are."""
    if not wrong.any():
        return
    at, count = int(np.argmax(wrong)), int(wrong.sum())
    wanted = expected if isinstance(expected, str) else f"{words}{int(expected[at])}"
    many = plural(count, "entry") if count > 1 else None
    yield kind.finding(path, at * size, field, wanted, int(got[at]), many=many)
