"""Coverage: the log as a line of phy offsets, and which parts of it index files and consume queues cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mqindex.files.paths import base_name
from mqindex.health import a_day
from mqindex.report import Finding, Report
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.log_check import LogRun
from mqindex.rocketmq.checks.queues.unit_check import QueueRun
from mqindex.rocketmq.checks.store_diagnosis import StoreDiagnosis

_LISTED = 1000
_STALE = {
    catalogue.FRAMES_AFTER_LOG_END.name,
    catalogue.STALE_BYTES_AFTER_LOG_END.name,
    catalogue.STALE_QUEUE_BYTES.name,
    catalogue.INDEX_BEYOND_LOG.name,
    catalogue.QUEUE_BEYOND_LOG.name,
    catalogue.INDEX_ENTRIES_EXPIRED.name,
    catalogue.QUEUE_UNITS_EXPIRED.name,
}


@dataclass(frozen=True, slots=True)
class LogFileHealth:
    """A file of the log, with messages in the phy offsets [begin, end); times in ms since the epoch, None: no message.

    `size` is of the whole file: after `end` there is nothing yet, or nothing that counts.
    """

    name: str
    begin: int
    end: int
    size: int
    messages: int
    first_timestamp: int | None
    last_timestamp: int | None


@dataclass(frozen=True, slots=True)
class Covered:
    """A good index file holds the entries of the messages from `begin` up to and with `end`; None: none of this log."""

    name: str
    begin: int | None
    end: int | None
    entries: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Index entries of messages in the phy offsets [begin, end) that no good file holds."""

    begin: int
    end: int
    entries: int


@dataclass(frozen=True, slots=True)
class QueueStretch:
    """Units that the messages in the phy offsets [begin, end) give all queues, and how many of them are missing.

    `wrong`: others are in their place. `first`: the phy offset of the first message whose unit is known to be missing.
    """

    begin: int
    end: int
    units: int
    missing: int
    wrong: int
    first: int | None


@dataclass(frozen=True, slots=True)
class Damaged:
    """The phy offsets [begin, end) hold no readable message. `kind`: a finding's; or the file is not there."""

    begin: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Stale:
    """Something that belongs to no message of the log: a finding of that kind at a byte of a file."""

    kind: str
    path: str | None
    at: int | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The message at a phy offset was stored then, ms since the epoch."""

    phy_offset: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The log from `begin` to `end`, and what is made from it.

    Attributes
    ----------
    begin, end : int, phy offsets: of the oldest byte, after the newest message
    messages : int
    oldest, newest : int or None, store timestamps of the first message and of the latest one
    bytes_per_day : int or None, the log's growth over that time; None: less than a day, or no times
    files : tuple of LogFileHealth; more_files : int, those that are not listed
    timeline : tuple of Moment, at most 1000, ascending phy offsets
    index_files : tuple of Covered, in the log's order; bad_index_files : tuple of str, names of those that do not count
    gaps : tuple of Gap, missing_entries : int
    overlaps : tuple of Gap, what two neighbouring files have both; `entries` 0: not counted
    queues : tuple of QueueStretch or None: the queues are in RocksDB, which is not read
    missing_units : int
    damaged : tuple of Damaged
    stale : tuple of Stale, at most 1000
    """

    begin: int
    end: int
    messages: int
    oldest: int | None
    newest: int | None
    bytes_per_day: int | None
    files: tuple[LogFileHealth, ...]
    more_files: int
    timeline: tuple[Moment, ...]
    index_files: tuple[Covered, ...]
    bad_index_files: tuple[str, ...]
    gaps: tuple[Gap, ...]
    missing_entries: int
    overlaps: tuple[Gap, ...]
    queues: tuple[QueueStretch, ...] | None
    missing_units: int
    damaged: tuple[Damaged, ...]
    stale: tuple[Stale, ...]


def coverage_of(report: Report, diagnosis: StoreDiagnosis, *, left_out: frozenset[str], rocksdb: bool) -> Coverage:
    """The coverage of a store that was checked."""
    index, walked = diagnosis.index, diagnosis.walked
    spans = walked.survey.spans
    begin, end = (spans[0].file_start, spans[-1].stop) if spans else (0, 0)
    timeline = [Moment(run.first, run.counts.times[0]) for run in walked.runs if run.counts and run.counts.times]
    newest = walked.max_timestamp or None
    files = _files(diagnosis)
    gaps = tuple(Gap(one.gap.stretch.start, one.gap.stretch.stop, one.entries) for one in index.gaps if one.entries)
    queues = None if rocksdb else tuple(_thinned(_stretches(walked.runs, left_out)))
    return Coverage(
        begin=begin,
        end=end,
        messages=walked.messages,
        oldest=timeline[0].timestamp if timeline else None,
        newest=newest,
        bytes_per_day=a_day(end - begin, timeline[0].timestamp if timeline else None, newest),
        files=files[:_LISTED],
        more_files=max(len(files) - _LISTED, 0),
        timeline=_some(timeline),
        index_files=tuple(_covered(diagnosis))[:_LISTED],
        bad_index_files=tuple(map(base_name, index.bad))[:_LISTED],
        gaps=gaps,
        missing_entries=sum(gap.entries for gap in gaps),
        overlaps=tuple(_overlaps(diagnosis))[:_LISTED],
        queues=queues,
        missing_units=sum(one.missing for one in queues or ()),
        damaged=tuple(_damaged(diagnosis))[:_LISTED],
        stale=tuple(_stale(report.findings))[:_LISTED],
    )


def _files(diagnosis: StoreDiagnosis) -> tuple[LogFileHealth, ...]:
    by_path: dict[str, list[LogRun]] = {}
    for run in diagnosis.walked.runs:
        by_path.setdefault(run.path, []).append(run)
    found = []
    for span in diagnosis.walked.survey.spans:
        runs = by_path.get(span.path, [])
        counts = [run.counts for run in runs if run.counts]
        times = [one.times for one in counts if one.times]
        found.append(
            LogFileHealth(
                name=base_name(span.path),
                begin=span.file_start,
                end=span.stop,
                size=max((one.file_size for one in counts), default=span.stop - span.file_start),
                messages=sum(run.messages for run in runs),
                first_timestamp=times[0][0] if times else None,
                last_timestamp=times[-1][1] if times else None,
            )
        )
    return tuple(found)


def _some(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    return tuple(moments[:: -(-len(moments) // _LISTED) or 1])


def _covered(diagnosis: StoreDiagnosis) -> Iterable[Covered]:
    for one in diagnosis.index.good:
        begin, end = (None if place is None else place.phy_offset for place in (one.begin, one.end))
        yield Covered(base_name(one.path), begin, end, one.entries)


def _overlaps(diagnosis: StoreDiagnosis) -> Iterable[Gap]:
    for one, two in pairwise(diagnosis.index.good):
        if one.end is not None and two.begin is not None and two.begin < one.end:
            yield Gap(two.begin.phy_offset, one.end.phy_offset, 0)


def _stretches(runs: Iterable[LogRun], left_out: frozenset[str]) -> Iterable[QueueStretch]:
    for run in runs:
        if run.first < 0:
            continue
        queues = [one for one in run.queues if one.topic not in left_out]
        missing = sum(one.absent for one in queues)
        yield QueueStretch(
            begin=run.first,
            end=run.end,
            units=sum(one.units for one in queues),
            missing=missing,
            wrong=sum(one.wrong for one in queues),
            first=min(_absent(queues), default=None) if missing else None,
        )


def _absent(queues: Iterable[QueueRun]) -> Iterable[int]:
    return (each.phy_offset for one in queues for each in one.differences if each.field is None)


def _thinned(stretches: Iterable[QueueStretch]) -> list[QueueStretch]:
    """Join neighbours of which nothing is missing, and, while there are too many stretches, any two neighbours."""
    found: list[QueueStretch] = []
    for one in stretches:
        if found and not (one.missing or one.wrong or found[-1].missing or found[-1].wrong):
            found[-1] = _joined(found[-1], one)
        else:
            found.append(one)
    while len(found) > _LISTED:
        found = [_joined(*found[at : at + 2]) for at in range(0, len(found), 2)]
    return found


def _joined(one: QueueStretch, two: QueueStretch | None = None) -> QueueStretch:
    if two is None:
        return one
    first = min((place for place in (one.first, two.first) if place is not None), default=None)
    return replace(
        one,
        end=two.end,
        units=one.units + two.units,
        missing=one.missing + two.missing,
        wrong=one.wrong + two.wrong,
        first=first,
    )


def _damaged(diagnosis: StoreDiagnosis) -> Iterable[Damaged]:
    for one in diagnosis.walked.damage:
        yield Damaged(one.at, one.stop, one.kind)
    for before, after in pairwise(diagnosis.walked.survey.spans):
        if before.stop < after.file_start:
            yield Damaged(before.stop, after.file_start, catalogue.LOG_FILE_MISSING.name)


def _stale(findings: Iterable[Finding]) -> Iterable[Stale]:
    return (Stale(one.kind, one.path, one.at) for one in findings if one.kind in _STALE)
