"""One segment: its log, its indexes against its log, and what the transactions of its partition need to know of it.

This is the stage that verify and repair share. The log is read once, as by a broker's recovery that goes on behind
damage; the batch headers are read again only where an index is not exactly what such a recovery would write.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files import disk, lock
from mqindex.files.paths import join, parent_of, size_of, status_of
from mqindex.files.reading.regular import reading
from mqindex.kafka import catalogue
from mqindex.kafka.checks.log_check import end_findings, found_end, log_findings, rebuilt_end, require_all
from mqindex.kafka.checks.segment_count import CountedSegment, count_segment
from mqindex.kafka.checks.segment_fate import Course, Fate, course_of
from mqindex.kafka.checks.segment_indexes import check_indexes, no_file
from mqindex.kafka.checks.segment_log import CheckedLog, SegmentCheck, checked_log, recovered, refused_log
from mqindex.kafka.directories.log_dir import log_dir_of
from mqindex.kafka.index.transaction_index import read_aborted
from mqindex.kafka.layout import MAX_LOG_SIZE, MIN_BATCH_SIZE, IndexKind
from mqindex.kafka.log.batches import has_append_time
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_damage import good_parts
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.partition.segment_zones import SegmentZones
from mqindex.report import Finding
from mqindex.zones.cache import FileZones


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    """What was found.

    `findings`: all but those of transactions, and of what becomes of them, which `with_transactions` adds. `differing`:
    sound indexes that a rebuild would write otherwise. `transactions`: bytes of the `.txnindex`, None: there is none.
    `open`: a broker may have left its indexes longer than their entries. `found_end`: the offset that a broker takes
    for the log's end without a recovery, None: it fails. `gone`: a broker deleted the segment before it was read.
    `counted`: what it consists of; None: not asked for, or not to be read. `zones`: those that a scan would keep; None:
    not asked for, or something is left out.
    """

    files: SegmentFiles
    log: CheckedLog = field(default_factory=CheckedLog)
    fate: Fate = field(default_factory=Fate)
    findings: tuple[Finding, ...] = ()
    differing: frozenset[IndexKind] = frozenset()
    transactions: bytes | None = None
    open: bool = False
    entries: int = 0
    index_files: int = 0
    found_end: int | None = 0
    gone: bool = False
    counted: CountedSegment | None = None
    zones: FileZones | None = None

    def with_transactions(self, found: list[Finding]) -> CheckedSegment:
        """With what was found of its `.txnindex`, and what becomes of each index."""
        wrong = {IndexKind.TRANSACTION} if any(one.severity == "error" for one in found) else set()
        fate = Fate.of(self.fate.course, self.fate.wrong | wrong, self.files)
        entries = len(self.transactions or b"") // IndexKind.TRANSACTION.entry_size
        findings = fate.told((*self.findings, *found), self.files)
        return replace(self, fate=fate, findings=findings, entries=self.entries + entries)

    def blocked(self) -> list[IndexKind]:
        """The indexes whose place has what a broker cannot open."""
        name = catalogue.INDEX_NOT_A_FILE.name
        places = {one.path for one in self.findings if one.kind == name and one.severity == "error"}
        return [kind for kind in IndexKind if self.files.place_of(kind) in places]

    def lost_offsets(self) -> bool:
        """Whether it has no `.index`, without which a broker that starts makes all indexes of a segment anew."""
        return IndexKind.OFFSET not in self.files.indexes and IndexKind.OFFSET not in self.blocked()


def check_segment(check: SegmentCheck) -> CheckedSegment:
    """Check one segment. Whatever its files hold ends in findings.

    If a broker deletes or cleans it meanwhile, what is there now is checked. If a broker is writing it and something is
    found, it is checked again: the broker was perhaps about to write just that, or to make an index of a new segment.
    """
    looks = _LOOKS
    for _ in range(_TRIES):
        before = _identities(check.files)
        if before[0] is None:
            break
        try:
            done = _checked(check)
        except FileNotFoundError:
            done = None
        if done is not None and _identities(check.files) == before:
            looks -= 1
            strange = any(one.severity != "info" for one in done.findings)
            if not (looks and strange and (_index_comes(check, done) or done.log.grew)):
                return done
        check = replace(check, files=_there(check.files))
    return CheckedSegment(check.files, gone=True)


_TRIES = 8
_LOOKS = 3  # at a log that grows
_NEW = 10.0  # seconds
_PATIENCE, _PAUSE = 1.0, 0.05  # for an index that a broker makes; seconds


def _index_comes(check: SegmentCheck, done: CheckedSegment) -> bool:
    """Wait a moment if a running broker may be about to make an index that was found missing; True: it came.

    A broker appends to the log first, and makes the indexes of a new segment after that (Kafka 4.1.0
    `LogSegment.append`, `LazyIndex`): it may have no processor just then. An old segment is not waited for.
    """
    places = {check.files.place_of(kind) for kind in IndexKind if kind not in check.files.indexes}
    missing = [one.path for one in done.findings if one.severity != "info" and one.path in places]
    if not missing or not check.may_be_open or not _is_in_use_and_new(check.files):
        return False
    until = time.monotonic() + _PATIENCE
    while not any(map(disk.is_there, missing)):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE)
    return True


def _is_in_use_and_new(files: SegmentFiles) -> bool:
    """Whether another process, as a rule a broker, holds the log dir's lock, and a file was made here just now."""
    partition = parent_of(files.log)
    try:
        if time.time() - status_of(partition).st_mtime > _NEW:
            return False
        held = lock.holder(join(log_dir_of(partition), ".lock"))
    except FileNotFoundError:  # its topic is being deleted
        return False
    return held.state == "held" and held.pid != os.getpid()


def _identities(files: SegmentFiles) -> list[tuple[int, int] | None]:
    return [_identity(path) for path in files.paths]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = status_of(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _there(files: SegmentFiles) -> SegmentFiles:
    """The names of a segment's indexes as they are now."""
    paths = {kind: files.place_of(kind) for kind in IndexKind}
    return replace(files, indexes={kind: path for kind, path in paths.items() if disk.is_there(path)})


def _checked(check: SegmentCheck) -> CheckedSegment:
    files = check.files
    try:
        with LogSegment.open(files.log, base_offset=files.base_offset) as segment:
            zones = SegmentZones(segment) if check.deep else None
            return _of_log(segment, *recovered(segment, check), zones, check)
    except MQIndexError as error:
        require_all(error, files.log)
        return _of_refused(check, error)


def _of_log(
    segment: LogSegment, made: Recovered, contradictory: bool, zones: SegmentZones | None, check: SegmentCheck
) -> CheckedSegment:
    files, log = check.files, checked_log(segment, made, check, contradictory=contradictory)
    indexes = check_indexes(
        files, segment, made, log.damage, may_be_open=check.may_be_open, trimmed=check.options.trims_indexes,
        index_interval_bytes=check.options.index_interval_bytes,
    )  # fmt: skip
    transactions, strange = _transactions(files, log.batches), _no_transaction_index(files)
    wrong = indexes.wrong | ({IndexKind.TRANSACTION} if any(one.severity == "error" for one in strange) else set())
    found: int | None = log.end
    told: list[Finding] = []
    if made.truncated_bytes or IndexKind.OFFSET in wrong:
        found, log = _found_end(check, segment, log)
        told = _told_end(check, segment, made, log, found, wrong)
    course = course_of(check, log, wrong)
    unasked = course_of(replace(check, cut_damaged=False), log, wrong) if check.cut_damaged else course
    findings = [
        *_bad(segment, made, check, log, unasked),
        *end_findings(segment, made, log.damage, check.ends, closed=check.clean is True),
        *(check_records(segment, zones, log.damage, made.end_bytes) if zones is not None else ()),
        *indexes.findings,
        *told,
        *strange,
    ]
    return CheckedSegment(
        files,
        log,
        Fate(course, frozenset(wrong)),
        tuple(findings),
        frozenset(indexes.differing),
        _of_read_log(transactions, log) if log.grew else transactions,
        indexes.open,
        sum(indexes.entries.values()),
        len(files.indexes),
        found,
        counted=count_segment(files, segment, made, indexes.entries, check.counting.sample) if check.counting else None,
        zones=zones.made() if zones is not None and check.zones and log.readable and check.options.check_crc else None,
    )


def _bad(segment: LogSegment, made: Recovered, check: SegmentCheck, log: CheckedLog, course: Course) -> list[Finding]:
    """What is bad in a log, and what follows from it for a start, if its indexes are dealt with like this."""
    alone = course is Course.RECOVERY  # its log is cut as if it were the last one
    return log_findings(
        segment, made, log.damage, last=check.last or alone, closed=check.clean is True and not alone,
        cut=check.is_recovered or alone, being_written=log.being_written,
    )  # fmt: skip


def _of_refused(check: SegmentCheck, error: MQIndexError) -> CheckedSegment:
    """What a broker does with a log that it cannot recover."""
    files, (log, finding) = check.files, refused_log(check, error)
    found: int | None = 0
    with contextlib.suppress(MQIndexError), LogSegment.open(files.log, base_offset=files.base_offset) as segment:
        found, log = _found_end(check, segment, log)
    transactions = _transactions(files, min(size_of(files.log), MAX_LOG_SIZE) // MIN_BATCH_SIZE)
    return CheckedSegment(
        files, log, findings=(finding,), transactions=transactions, index_files=len(files.indexes), found_end=found
    )


def _found_end(check: SegmentCheck, segment: LogSegment, log: CheckedLog) -> tuple[int | None, CheckedLog]:
    """What a broker takes for the end of the last log after a clean stop, and of one that it exchanges."""
    closed = check.last and check.clean is True
    if not (closed or check.files.is_swapping):
        return log.end, log
    end = found_end(segment, check.files.indexes.get(IndexKind.OFFSET))
    if closed and end is not None and log.read_until is not None and end <= log.read_until:
        log = replace(log, read_until=None)  # a broker reads no further than to the end
    return end, log


def _told_end(
    check: SegmentCheck,
    segment: LogSegment,
    made: Recovered,
    log: CheckedLog,
    found: int | None,
    wrong: set[IndexKind],
) -> list[Finding]:
    """An end that a broker finds after a clean stop, and that is not the log's; an index that a repair writes may lead
    to the right one: then it counts as wrong.
    """
    if not (check.last and check.clean is True) or found == log.end:
        return []
    if IndexKind.OFFSET not in check.files.indexes and check.options.makes_lost_indexes:
        return []  # it is recovered
    if log.good_behind and IndexKind.OFFSET not in wrong and rebuilt_end(segment, made) == log.end:
        wrong.add(IndexKind.OFFSET)
    elif found is None or (found > log.end and log.cut):
        return []
    kind = catalogue.OFFSET_INDEX_END if IndexKind.OFFSET in wrong else catalogue.OFFSET_INDEX_END_OF_LOG
    got = "none: it does not start" if found is None else found
    return [kind.finding(check.files.place_of(IndexKind.OFFSET), None, "next_offset", log.end, got)]


def _no_transaction_index(files: SegmentFiles) -> list[Finding]:
    """A `.txnindex` that is no file: it is moved away where a broker cannot open it."""
    found = no_file(files.place_of(IndexKind.TRANSACTION))
    return [] if found is None else [found]


def _transactions(files: SegmentFiles, batches: int) -> bytes | None:
    """The bytes of the `.txnindex`, as many as there can be transactions, and one entry more; None: there is none.

    `batches`: as many as the log has at most.

    A broker makes it for its first entry, perhaps after the directory was listed and before the log was read.
    """
    path = files.place_of(IndexKind.TRANSACTION)
    if not disk.is_file(path):  # as for the other indexes, what is none counts as nothing
        return None
    try:
        with reading(path, buffered=False) as file:
            data = file.read((batches + 2) * IndexKind.TRANSACTION.entry_size)
            return data if data is not None else b""
    except FileNotFoundError:
        return None


def _of_read_log(data: bytes | None, log: CheckedLog) -> bytes | None:
    """The entries before the first one that was written after the log was read."""
    last = -1 if log.last_offset is None else log.last_offset
    later = (number for number, txn in enumerate(read_aborted(data or b"")) if txn.last_offset > last)
    return data and data[: next(later, len(data)) * IndexKind.TRANSACTION.entry_size]


def check_records(segment: LogSegment, zones: SegmentZones, damage: Sequence[BatchFault], stop: int) -> list[Finding]:
    """Findings of the good batches before position `stop`, of which the zone map is made.

    Every consumer stops at a batch that cannot be read to its last record. A batch whose records are later than its
    header says is skipped by searches by time, in a broker too.
    """
    findings: list[Finding] = []
    first: tuple[int, int, int] | None = None
    count, told = 0, len(segment.damage)
    for _, rows, batches in zones.gather(good_parts(segment, damage, stop)):
        for bad in segment.damage[told:]:
            kind = catalogue.LOG_RECORDS
            findings.append(kind.finding(segment.path, bad.at, bad.field, bad.expected, bad.got, what=bad.kind))
        told, times = len(segment.damage), batches.greatest
        wrong = (times > rows["max_timestamp"]) & ~has_append_time(rows) & (rows["magic"] > 0)
        if first is None and wrong.any():
            row = int(np.argmax(wrong))
            first = int(rows["position"][row]), int(rows["max_timestamp"][row]), int(times[row])
        count += int(wrong.sum())
    if first is not None:
        at, said, got = first
        many, kind = plural(count, "batch"), catalogue.LOG_MAX_TIMESTAMP
        findings.append(kind.finding(segment.path, at, "max_timestamp", f"{got} or more", said, many=many))
    return findings
