"""One file of a segment: what it is checked with, and which findings are about it.

An index is compared with its log, a log with its indexes. The transactions that are open before a segment come from a
snapshot; where there is none, the segments before it are read too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.errors import BadMagicError
from mqindex.files import disk
from mqindex.files.paths import base_name, join, parent_of
from mqindex.kafka import catalogue
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis, Replayed, diagnose, differing_indexes
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.checks.segment_indexes import check_alone
from mqindex.kafka.checks.transaction_check import check_transactions_alone
from mqindex.kafka.directories.log_dir import was_clean
from mqindex.kafka.directories.offset_checkpoint import log_start_offset
from mqindex.kafka.directories.partition_files import PartitionFiles, list_segments
from mqindex.kafka.directories.producer_state import readable_snapshot
from mqindex.kafka.directories.survey import (
    Order,
    Partition,
    Survey,
    surveyed_partition,
    told_topics,
    was_cleanly_closed,
)
from mqindex.kafka.kinds import SegmentName, segment_file, segment_name
from mqindex.kafka.layout import IndexKind, base_offset_of
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles

_WITH_TRANSACTIONS: Final = ("log", IndexKind.TRANSACTION)


# ---- which segments are looked at


def survey_file(order: Order, *, from_start: bool = False) -> Survey:
    """Survey what one file is checked with: its segment, the last of those listed; none for an index without a log.

    from_start : with every segment before it, where transactions matter; else from a snapshot on that can be read.
    """
    path, name = order.directory, _name_of(order.directory)
    home = parent_of(path)
    known = list_segments(home) if name else PartitionFiles(home, (), {}, (), (), ())
    files = _segment_of(path, name, known)
    if files is None:
        return Survey(path, home, True, order.options, (), (catalogue.LOG_MISSING.finding(path),), path)
    before = tuple(each for each in known.segments if each.base_offset < files.base_offset)
    segments = known.segments if files in known.segments else (*before, files)
    first = number = segments.index(files)
    start = log_start_offset(home)
    if name and name.ending in _WITH_TRANSACTIONS:
        first = 0 if from_start else _first_needed(segments, number, known.snapshots, start)
    needed = known._replace(segments=segments[first : number + 1])
    closed = was_cleanly_closed(home, was_clean(parent_of(home)))
    topics = told_topics(parent_of(home), order.options)
    partition = surveyed_partition(home, needed, order.options, closed, start, topics)
    later = (each.base_offset for each in segments[number + 1 :])
    partition = replace(partition, next_base=next(later, None))
    findings = () if name else (catalogue.INDEXES_UNKNOWN.finding(path),)
    return Survey(path, parent_of(home), True, order.options, (partition,), findings, path)


def _name_of(path: str) -> SegmentName | None:
    """What the name says of a log or an index; None: perhaps a log that was copied."""
    name = segment_name(path)
    return None if name is None or name.ending == "snapshot" else name


def _segment_of(path: str, name: SegmentName | None, known: PartitionFiles) -> SegmentFiles | None:
    """The segment that a file is of: one that a broker would serve, else what has such a name; None: it has no log."""
    if name is None:
        return SegmentFiles(_first_offset(path), path)
    for files in known.segments:
        if path in files.paths:
            return files
    base = base_offset_of(path)
    log, *indexes = (join(known.directory, segment_file(base, kind, name.after)) for kind in ("log", *IndexKind))
    there = {kind: index for kind, index in zip(IndexKind, indexes, strict=True) if disk.is_file(index)}
    return SegmentFiles(base, log, there) if disk.is_file(log) else None


def _first_offset(path: str) -> int:
    """The base offset of a copied log is its first batch's (of a wrapper of magic 0 or 1 the last)."""
    with LogSegment.open(path, base_offset=0) as segment:
        rows = next(segment._batch_arrays(check_crc=False), None)
    if rows is None:
        raise BadMagicError(
            "no file of a segment", path=path, expected="a batch at its begin, or a name of 20 digits, a dot and log, "
            "index, timeindex or txnindex"
        )  # fmt: skip
    return max(int(rows["base_offset"][0]), 0)


def _first_needed(segments: tuple[SegmentFiles, ...], number: int, snapshots: Mapping[int, str], log_start: int) -> int:
    """From which segment on the log shows what is open before segment `number`."""
    while number and not _has_snapshot(snapshots, segments[number].base_offset, log_start):
        number -= 1
    return number


def _has_snapshot(snapshots: Mapping[int, str], base_offset: int, log_start: int) -> bool:
    there = base_offset in snapshots and base_offset > log_start
    return there and readable_snapshot(snapshots[base_offset]) is not None


# ---- what is reported


def diagnose_file(engine: Engine, found: Survey, *, deep: bool, zones: bool = False, count: bool = False) -> Diagnosis:
    """What is right and wrong with one file; of a log, with the indexes beside it too."""
    assert found.file is not None
    if not found.partitions:
        return _alone(engine, found, found.file)
    diagnosis = diagnose(engine, found, deep=deep, zones=zones, count=count)
    transactions = _last(diagnosis).files.place_of(IndexKind.TRANSACTION)
    if any(finding.path == transactions for finding in _last(diagnosis).findings):
        from_start = partial(survey_file, from_start=True)
        whole = run_one(engine, from_start, Order(found.file, found.options), "look at the files")
        if whole != found:  # only earlier segments show whether an entry hides their records
            diagnosis = diagnose(engine, whole, deep=deep, count=count)
    return _narrowed(diagnosis, found.file)


def _last(diagnosis: Diagnosis) -> CheckedSegment:
    return diagnosis.partitions[0].segments[-1]


def _narrowed(diagnosis: Diagnosis, path: str) -> Diagnosis:
    """What was found of the file, which is one of the last segment that was checked."""
    (home,), segment, kinds = diagnosis.partitions, _last(diagnosis), _kinds(path)
    about = {segment.files.log}
    for kind in kinds:
        about |= {segment.files.place_of(kind), segment.files.indexes.get(kind, path)}
    segment = replace(
        segment,
        findings=tuple(finding for finding in segment.findings if finding.path in about),
        fate=segment.fate.only(kinds),
        differing=segment.differing & kinds,
    )
    partition = replace(home.partition, segments=(segment.files,), sizes=home.partition.sizes[-1:])
    findings = [finding for finding in home.findings if finding.path in about] + differing_indexes(path, [segment])
    done = home.transactions
    narrowed = Replayed(done.aborted[-1:], done.committed[-1:], done.open)
    only = DiagnosedPartition(partition, (segment,), narrowed, home.epochs, tuple(findings))
    return Diagnosis(diagnosis.survey, [only])


def _kinds(path: str) -> set[IndexKind]:
    """Which indexes of its segment are reported with a file."""
    name = _name_of(path)
    return set() if name is None else set(IndexKind) if name.ending == "log" else {IndexKind(name.ending)}


# ---- an index without a log


def _alone(engine: Engine, found: Survey, path: str) -> Diagnosis:
    segment = run_one(engine, _check_alone, path, "check the index")
    partition = Partition(found.log_dir, "", found.options, (segment.files,), (0,), (), {}, 0, None)
    done = Replayed(((),), (0,), {})
    return Diagnosis(found, [DiagnosedPartition(partition, (segment,), done, findings=segment.findings)])


def _check_alone(path: str) -> CheckedSegment:
    base, kind = base_offset_of(path), IndexKind(base_name(path).split(".")[1])
    if kind is IndexKind.TRANSACTION:
        found, entries = check_transactions_alone(path, base)
    else:
        indexes = check_alone(path, kind)
        found, entries = indexes.findings, sum(indexes.entries.values())
    return CheckedSegment(SegmentFiles(base, ""), findings=tuple(found), entries=entries, index_files=1)
