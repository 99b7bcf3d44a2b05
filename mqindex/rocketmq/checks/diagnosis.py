"""What is right and wrong with the index of a store: found once, reported by verify, mended by repair."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.files.paths import base_name, join, parent_of
from mqindex.report import Finding, Start
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks import check, coverage
from mqindex.rocketmq.checks.check import Checked, FileCheck
from mqindex.rocketmq.checks.coverage import Filled, Gap
from mqindex.rocketmq.checks.start.recovery import Recovery
from mqindex.rocketmq.checks.start.start_check import check_start
from mqindex.rocketmq.index.compare import Place
from mqindex.rocketmq.layout import index_file_size
from mqindex.rocketmq.log.expiry import expired_finding, present, still_there
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.metadata.checkpoint import Checkpoint
from mqindex.rocketmq.pipeline.survey import Survey, index_switched_off


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`good` files in the log's order; `bad` paths; the gaps with what the log holds there; all findings."""

    survey: Survey
    good: tuple[Checked, ...]
    bad: tuple[str, ...]
    gaps: tuple[Filled, ...]
    messages: int
    findings: tuple[Finding, ...]
    checkpoint: Checkpoint | None
    start: Start


def check_files(
    engine: Engine, found: Survey, which: Iterable[int], *, deep: bool, measure: bool = False
) -> list[Checked]:
    """Check the index files of these numbers, each by itself; `measure`: also the shapes of those that are sound."""
    spans, files = found.spans, found.index_files
    checks = [
        FileCheck(
            path=files[at],
            geometry=found.geometry.value,
            spans=spans,
            log_end=_end(spans),
            commitlog=tuple(found.options.commitlog),
            tags=found.tags,
            deep=deep,
            earlier=files[max(0, at - 8) : at],
            measure=measure,
        )
        for at in which
    ]
    weights = [index_file_size(*found.geometry.value)] * len(checks)
    return engine.map(check.check_file, checks, name="check the index files", weights=weights, unit="byte")


def conclude(
    engine: Engine,
    ended: Survey,
    checked: Sequence[Checked],
    findings: list[Finding],
    reads: Sequence[Recovery],
    split_size: int,
    out: str | None = None,
) -> Diagnosis:
    """Compare the checked files with each other, and find what none covers; `findings`: what is known already.

    `reads`: what the next start reads of the log.
    """
    if any(one.gone for one in checked):  # a broker deleted index files, and what they led to before
        left = engine.map(still_there, [ended.spans], name="look at what is left")[0]
        findings = findings + expired_finding(ended.spans, left)
        ended, checked = replace(ended, spans=left), [one for one in checked if not one.gone]
    good, misplaced = _settle(checked)
    good_paths = {one.path for one in good}
    switch = ended.options.index_switch
    spans: tuple[LogSpan, ...] = ended.spans
    stretches: list[Gap] = []
    if switch is None:
        spans, stretches = run_one(engine, partial(_gaps, good=good), ended, "look for gaps in the index")
    filled = coverage.measure(engine, stretches, spans, split_size, tags=ended.tags, out=out)
    checkpoint = engine.map(_read_checkpoint, [join(ended.options.root, "checkpoint")], name="read the checkpoint")[0]
    findings = findings + [finding for one in checked for finding in one.findings] + misplaced
    bad = tuple(one.path for one in checked if one.path not in good_paths)
    findings += [finding for one in filled for finding in one.extracted.findings() + _missing(ended, one, bad)]
    findings += [] if switch is None else [index_switched_off(ended.options)]
    started = engine.map(partial(check_start, reads=reads), [ended], name="look at the start")[0]
    findings += started.findings
    return Diagnosis(
        survey=ended,
        good=tuple(good),
        bad=bad + ended.index_directories,
        gaps=tuple(filled),
        messages=sum(one.extracted.messages for one in filled),
        findings=tuple(dict.fromkeys([*ended.findings, *findings])),
        checkpoint=checkpoint,
        start=started.start,
    )


def _gaps(ended: Survey, good: Sequence[Checked]) -> tuple[tuple[LogSpan, ...], list[Gap]]:
    """The gaps between good files, in what is left of the log when they are looked for."""
    spans = ended.spans
    while True:
        try:
            return spans, coverage.gaps(good, spans, tags=ended.tags)
        except FileNotFoundError:
            left = present(spans)
            if len(left) == len(spans):
                raise
            spans = left


def _read_checkpoint(path: str) -> Checkpoint | None:
    """None also where it is no file or may not be read: `side_check` reports that."""
    try:
        return Checkpoint.read(path)
    except (IsADirectoryError, PermissionError):
        return None


def _end(spans: Sequence[LogSpan]) -> int:
    return spans[-1].stop if spans else 0


# ---- index files among each other


def _settle(checked: Sequence[Checked]) -> tuple[list[Checked], list[Finding]]:
    """The good files in the log's order. An empty file is good at the end only, seeded by the one before."""
    sound = [one for one in checked if one.good]
    good, findings = _disjoint(_placed(sorted((one for one in sound if one.entries), key=_position)))
    findings += _order(good) + _repeated(good)
    seeds = (good[-1].end_phy_offset, good[-1].end_timestamp) if good else (0, 0)
    for one in sound:
        if one.entries:
            continue
        if one is checked[-1] and (one.end_phy_offset, one.end_timestamp) == seeds and not (good and good[-1].room):
            good.append(one)
        else:
            expected = f"entries, or seeds {seeds} at the end"
            findings.append(catalogue.INDEX_EMPTY.finding(one.path, expected=expected, got="no entry"))
    return good, findings


@dataclass(frozen=True, slots=True)
class _Way:
    """A place for each file so far, the last one's in `file`; `cost`: how unlikely they are together."""

    file: Checked
    cost: int
    before: _Way | None


def _placed(ordered: Sequence[Checked]) -> list[Checked]:
    """The files, each with its place in the log. Of those inside one message, where they may have several, it is what
    lets most of them go on where the one before ended, or else begin the message again.
    """
    ways: list[_Way] = []
    for one in ordered:
        before = _Before(ways)
        ways = [before.on(replace(one, begin=begin, end=end)) for begin, end in ((one.begin, one.end), *one.places)]
    way = _Before(ways).ended
    placed: list[Checked] = []
    while way is not None:
        placed.append(way.file)
        way = way.before
    return placed[::-1]


class _Before:
    """The best of the ways up to a file: by where they end, of all, and of all if their message goes on in no file.

    Of the places of a file the first one is where the message ends, if one is.
    """

    def __init__(self, ways: Sequence[_Way]) -> None:
        self._ending = {way.file.end: way for way in sorted(ways, key=_cost, reverse=True)}
        self._nearest = min(ways, key=_cost, default=None)
        self.ended = min(
            (replace(way, cost=way.cost + (at > 0)) for at, way in enumerate(ways)), key=_cost, default=None
        )

    def on(self, file: Checked) -> _Way:
        """The best of the ways to a file at its place."""
        begin, last = file.begin, self._nearest.file.end if self._nearest else None
        before, extra = self.ended, 0 if begin is None or begin.ordinal == 0 else 2
        if begin is not None and last is not None and last.phy_offset == begin.phy_offset:
            going_on = self._ending.get(begin)
            before, extra = going_on or self._nearest, 0 if going_on else 1 if begin.ordinal == 0 else 2
        return _Way(file, extra + (before.cost if before else 0), before)


def _cost(way: _Way) -> int:
    return way.cost


def _disjoint(ordered: Sequence[Checked]) -> tuple[list[Checked], list[Finding]]:
    """Each file begins where the one before it ended, or repeats its last message; any other overlap is an error."""
    good: list[Checked] = []
    findings = []
    end: Place | None = None
    for one in ordered:
        begin = one.begin
        if begin is None or end is None or begin >= min(end, Place(end.phy_offset, 0)):
            good.append(one)
            end = one.end or end
        else:
            findings.append(catalogue.INDEX_OVERLAP.finding(one.path, expected=f"from {end} on", got=str(begin)))
    return good, findings


def _position(one: Checked) -> tuple[int, int, str]:
    """The sort key. Of files inside one message the names show the order: it may have been indexed again from its begin
    on. The end is all that is known where all messages are gone.
    """
    return one.end_phy_offset, one.begin.phy_offset if one.begin else one.end_phy_offset, one.path


def _order(good: Sequence[Checked]) -> list[Finding]:
    paths = [one.path for one in good]
    if paths == sorted(paths):
        return []
    names = ", ".join(map(base_name, paths))
    return [catalogue.INDEX_ORDER.finding(parent_of(paths[0]), expected=names, got="another order by name")]


def _repeated(good: Sequence[Checked]) -> list[Finding]:
    return [
        catalogue.MESSAGE_INDEXED_TWICE.finding(two.path, expected=f"from {one.end} on", got=str(two.begin))
        for one, two in itertools.pairwise(good)
        if one.end is not None and two.begin is not None and two.begin < one.end
    ]


def _missing(found: Survey, filled: Filled, bad: Sequence[str]) -> list[Finding]:
    gap = filled.gap
    if not filled.entries:
        return []
    expected = f"{plural(filled.entries, 'entry')} from phy offset {gap.stretch.start} on"
    got = "none " + _between(gap.after, gap.before) + _not_counted(gap, [base_name(path) for path in bad])
    no_files = not found.index_files and found.options.broker_conf is None  # so it may be the broker's will
    kind = catalogue.MISSING_WITHOUT_FILES if no_files else catalogue.MISSING_ENTRIES
    return [kind.finding(found.options.index, expected=expected, got=got)]


def _not_counted(gap: Gap, bad: Sequence[str]) -> str:
    """The files of these names that lie in the gap: they have findings of their own, of the same entries."""
    low = base_name(gap.after.path) if gap.after is not None else ""
    inside = [name for name in bad if low < name and (gap.before is None or name < base_name(gap.before.path))]
    if not inside:
        return ""
    more = f" and {plural(len(inside) - 1, 'other file')}" if len(inside) > 1 else ""
    return f"; {inside[0]}{more}, with {'findings of their' if more else 'a finding of its'} own, should have them"


def _between(after: Checked | None, before: Checked | None) -> str:
    names = [base_name(one.path) if one else None for one in (after, before)]
    if names[0] and names[1]:
        return f"between {names[0]} and {names[1]}"
    if names[0]:
        return f"after {names[0]}"
    return f"before {names[1]}" if names[1] else "in any index file"
