"""What is right and wrong with the indexes of partitions: found once, reported by verify, repaired by repair."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqindex._words import plural
from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.kafka import catalogue
from mqindex.kafka.checks.partition_check import (
    check_loaded,
    known_epochs,
    lost_epochs,
    overlapped,
    overlaps,
    those_gone,
)
from mqindex.kafka.checks.segment_check import CheckedSegment, check_segment
from mqindex.kafka.checks.segment_count import plan_counting
from mqindex.kafka.checks.segment_log import SegmentCheck
from mqindex.kafka.checks.transaction_check import Markers, check_transactions
from mqindex.kafka.directories.producer_state import OpenTransactions, open_transactions_at
from mqindex.kafka.directories.survey import Partition, Survey, gone
from mqindex.kafka.index.transaction_index import AbortedTxn, aborted_bytes
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.leader_epochs import Epochs, check_epochs
from mqindex.kafka.partition.transactions import Replay, events_from
from mqindex.report import Finding, Report


@dataclass(frozen=True, slots=True)
class Replayed:
    """The transactions of a partition: of each segment those that were `aborted` in it, and how many were `committed`;
    the producers and first offsets of those that are `open` at the end; `lone` abort markers, as `Replay` has them.
    """

    aborted: tuple[tuple[AbortedTxn, ...], ...]
    committed: tuple[int, ...]
    open: Mapping[int, int]
    lone: tuple[AbortedTxn, ...] = ()


@dataclass(frozen=True, slots=True)
class DiagnosedPartition:
    """What is wrong with a segment is in `segments`. `epochs`: of the partition's checkpoint."""

    partition: Partition
    segments: tuple[CheckedSegment, ...]
    transactions: Replayed
    epochs: Epochs = ()
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class Diagnosis:
    """All partitions of a survey."""

    survey: Survey
    partitions: list[DiagnosedPartition]

    def findings(self) -> list[Finding]:
        """Those of the survey, then partition by partition."""
        return [*self.survey.findings, *(finding for one in self.partitions for finding in one.findings)]

    def segments(self) -> list[CheckedSegment]:
        """Of all partitions."""
        return [segment for one in self.partitions for segment in one.segments]


def diagnose(
    engine: Engine, found: Survey, *, deep: bool, zones: bool = False, count: bool = False, cut_damaged: bool = False
) -> Diagnosis:
    """Check every segment, then the transactions of each partition. `zones`: also their zone maps, where `deep`;
    `count`: what they consist of; `cut_damaged`: as of `repair`.
    """
    countings = plan_counting(found, deep=deep) if count else None
    segments = sum(len(partition.segments) for partition in found.partitions)
    threads = max(1, getattr(engine, "workers", 1) // max(1, segments))
    checks = [
        SegmentCheck(
            files=files,
            options=partition.options,
            last=partition.is_last(files),
            clean=partition.clean,
            may_be_open=partition.may_be_open(files),
            unflushed=partition.is_unflushed(files),
            ends=partition.ends(files),
            log_start=partition.log_start,
            deep=deep,
            zones=zones,
            threads=threads,
            counting=countings[number][at] if countings else None,
            cut_damaged=cut_damaged,
        )
        for number, partition in enumerate(found.partitions)
        for at, files in enumerate(partition.segments)
    ]
    weights = [size + 1 for partition in found.partitions for size in partition.sizes]
    checked = iter(engine.map(check_segment, checks, name="check the segments", weights=weights, unit="byte"))
    known = run_one(
        engine, known_epochs, tuple(partition.path for partition in found.partitions), "read the leader epochs"
    )
    return Diagnosis(
        found,
        [
            _diagnosed(engine, each, list(itertools.islice(checked, len(each.segments))), *epochs)
            for each, epochs in zip(found.partitions, known, strict=True)
        ],
    )


def count_checked(report: Report, diagnosis: Diagnosis) -> None:
    """Fill in how many indexes, entries and batches were checked."""
    segments = diagnosis.segments()
    report.files = sum(segment.index_files for segment in segments)
    report.entries = sum(segment.entries for segment in segments)
    report.batches = sum(segment.log.batches for segment in segments)


def replay(engine: Engine, partition: Partition, events: Sequence[Any], readable: Sequence[bool]) -> Replayed:
    """The transactions of a partition.

    After a segment that cannot be read to its end, the open transactions come from a snapshot of just that place:
    those of an older one may have ended since. Without it they are not known.
    """
    going, lone = Replay(partition.begun), list[AbortedTxn]()
    aborted, committed = [], []
    for number, files in enumerate(partition.segments):
        if number and not readable[number - 1]:
            begun = run_one(engine, _open_at, (partition, files.base_offset), "read a snapshot")
            lone += going.lone
            going = Replay(begun)
        before = going.committed
        aborted.append(tuple(going.run(events[number])))
        committed.append(going.committed - before)
    return Replayed(tuple(aborted), tuple(committed), going.open, (*lone, *going.lone))


def _open_at(item: tuple[Partition, int]) -> OpenTransactions:
    partition, offset = item
    there = {at: path for at, path in partition.snapshots.items() if at == offset}
    return open_transactions_at(there, offset, partition.log_start)


# ---- one partition


def _diagnosed(
    engine: Engine, partition: Partition, segments: list[CheckedSegment], epochs: Epochs, unread: list[Finding]
) -> DiagnosedPartition:
    segments = _without_merged(engine, segments)
    events = [segment.log.events for segment in segments]
    replayed = replay(engine, partition, events, [segment.log.readable for segment in segments])
    missed = [segment.files for segment in segments if segment.gone]
    findings = gone(partition.path, partition.segments, missed)
    wrong = [
        number
        for number, (segment, expected) in enumerate(zip(segments, replayed.aborted, strict=True))
        if segment.log.readable
        and IndexKind.TRANSACTION not in segment.fate.wrong  # else it is no file
        and (segment.transactions or b"") != aborted_bytes(expected)
    ]
    strange = dict[int, list[Finding]]()
    if wrong:
        seen = _seen(engine, partition, segments, replayed)
        end = max((one.log.last_offset or 0 for one in segments), default=0) + 1
        markers = Markers(events, end, seen.lone)
        strange = {
            number: _check_transactions(
                segments[number], replayed.aborted[number], seen.aborted[number], markers, partition
            )
            for number in wrong
        }
    segments = [one.with_transactions(strange.get(number, [])) for number, one in enumerate(segments)]
    findings += [finding for segment in segments for finding in segment.findings]
    findings += overlaps(segments, partition.next_base)
    findings += unread or lost_epochs(partition, segments, epochs)
    findings += check_epochs([(segment.files.log, segment.log.epochs) for segment in segments], epochs)
    findings += check_loaded(partition, segments, replayed.open)
    findings += differing_indexes(partition.path, segments)
    return DiagnosedPartition(partition, tuple(segments), replayed, epochs, tuple(findings))


def _without_merged(engine: Engine, segments: list[CheckedSegment]) -> list[CheckedSegment]:
    """What a broker's cleaner merged into an earlier segment, after it was read, counts as gone: it is in both."""
    logs = overlapped(segments)
    merged = run_one(engine, those_gone, logs, "look for merged segments") if logs else set()
    return [CheckedSegment(one.files, gone=True) if one.files.log in merged else one for one in segments]


def _seen(engine: Engine, partition: Partition, segments: Sequence[CheckedSegment], replayed: Replayed) -> Replayed:
    """The transactions as the records that a reader gets show them: a broker that reads a log for its producers begins
    at the log's start.
    """
    if partition.log_start <= partition.oldest:
        return replayed
    events = [events_from(segment.log.events, partition.log_start) for segment in segments]
    return replay(engine, dataclasses.replace(partition, begun=()), events, [one.log.readable for one in segments])


def _check_transactions(
    segment: CheckedSegment,
    expected: Sequence[AbortedTxn],
    seen: Sequence[AbortedTxn],
    markers: Markers,
    partition: Partition,
) -> list[Finding]:
    path = segment.files.place_of(IndexKind.TRANSACTION)
    lost = catalogue.ABORTED_LOST_WITH_OFFSETS if segment.lost_offsets() else catalogue.TRANSACTION_INDEX_MISSING
    return check_transactions(
        path, segment.transactions, expected, seen, markers,
        base_offset=segment.files.base_offset, open_end=segment.open, log_start=partition.log_start, lost=lost,
    )  # fmt: skip


def differing_indexes(path: str, segments: Sequence[CheckedSegment]) -> list[Finding]:
    """Sound indexes that are not what a rebuild writes: one finding for all of a kind."""
    found = []
    for kind in (IndexKind.OFFSET, IndexKind.TIME):
        wanted = [segment.files for segment in segments if kind in segment.differing and not segment.open]
        if wanted:
            got = f"{len(wanted)} of {plural(len(segments), f'.{kind} file')} that a rebuild would write differently"
            found.append(catalogue.INDEX_DIFFERS.finding(path, got=got))
    return found
