"""One segment: its log, its indexes against its log, and what the transactions of its partition need to know of it.

This is the stage that verify and repair share. The log is read once, as by a broker's recovery; the batch headers are
read again only where an index is not exactly what the recovery would write.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import MQIndexError, OutOfOrderError, TruncatedFileError
from mqindex.files import disk, lock
from mqindex.files.regular import reading
from mqindex.kafka import catalogue
from mqindex.kafka.checks.log_check import (
    end_findings,
    ends_at_fault,
    fills_index,
    found_end,
    has_grown,
    is_being_written,
    is_contradictory,
    log_findings,
    overflows,
    read_until,
    refused,
)
from mqindex.kafka.checks.record_check import check_records
from mqindex.kafka.checks.segment_count import CountedSegment, Counting, count_segment
from mqindex.kafka.checks.segment_indexes import CheckedIndexes, check_indexes, no_file
from mqindex.kafka.checks.threaded_recovery import recover_with_threads
from mqindex.kafka.index.transaction_index import read_aborted
from mqindex.kafka.layout import MAX_LOG_SIZE, MIN_BATCH_SIZE, IndexKind
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.options import PartitionOptions
from mqindex.kafka.partition.leader_epochs import RUN
from mqindex.kafka.partition.log_dir import log_dir_of
from mqindex.kafka.partition.partition_files import SegmentFiles
from mqindex.kafka.partition.transactions import EVENT, events_of
from mqindex.report import Finding

__all__ = ["CheckedSegment", "SegmentCheck", "check_segment", "events_in"]

_LEFT = "left as it is: the log contradicts itself, and perhaps the index is right"
_LEFT_TO_EXCHANGE = (
    "left as it is: a broker that starts completes the exchange, with one of zeros where an .index is missing; "
    "`mqindex repair` writes it after that"
)
_LEFT_TO_RECOVERY = (
    "left as it is: without an .index a broker that starts recovers this segment alone, and cuts its log where it is "
    "bad; with one it would not start, drop every later segment, or serve what is bad"
)
_REMOVED_FOR_RECOVERY = (
    "`mqindex repair` moves it to the backup: without it a broker that starts recovers this segment, and cuts its log "
    "where it is bad"
)


@dataclass(frozen=True, slots=True)
class SegmentCheck:
    """One segment to check. `last`: of its partition; `clean`: whether its broker closed it, None: unknown;
    `may_be_open`, `unflushed`: as `Partition.may_be_open` and `is_unflushed` have it. `log_start`: of its partition.

    `ends`: offsets where it ended before. `threads`: how many processors are free. `counting`: what to count
    for a health report.
    """

    files: SegmentFiles
    options: PartitionOptions
    last: bool
    clean: bool | None
    may_be_open: bool
    unflushed: bool = False
    ends: tuple[int, ...] = ()
    log_start: int = 0
    deep: bool = False
    threads: int = 1
    counting: Counting | None = None


@dataclass(slots=True)
class CheckedSegment:
    """What was found.

    `wrong`: the indexes that a repair writes anew; `differing`: sound ones that a rebuild would write
    otherwise. `readable`: the log is good to its last batch, so `events` are all there are. `transactions`: bytes of
    the `.txnindex`, None: there is none. `epochs`: runs of leader epochs. `contradictory`: the log's batches contradict
    each other. `refusal`: why a broker's recovery fails on the log, `out_of_order`: because offsets go back,
    `overflows`: because one is too far above the base offset; `fills_index`: it fails with the given settings; `cut`:
    bytes that it cuts. `end`: the offset after its last good batch; `found_end`: what a broker takes for that without a
    recovery, None: it fails; `read_until`: as `log_check.read_until` has it. `left`: it has no `.index`, and only
    without one a broker that starts cuts it as it must; `removed`: the index that a repair takes away for that. `gone`:
    a broker deleted the segment before it was read; `grew`: the log was written or cut meanwhile. `counted`: what it
    consists of; None: not asked for, or not to be read.
    """

    files: SegmentFiles
    findings: tuple[Finding, ...] = ()
    wrong: frozenset[IndexKind] = frozenset()
    differing: frozenset[IndexKind] = frozenset()
    readable: bool = False
    events: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT))
    epochs: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, RUN))
    contradictory: bool = False
    transactions: bytes | None = None
    open: bool = False
    batches: int = 0
    last_offset: int | None = None
    entries: int = 0
    index_files: int = 0
    refusal: str | None = None
    out_of_order: bool = False
    overflows: bool = False
    fills_index: Finding | None = None
    cut: int = 0
    end: int = 0
    found_end: int | None = 0
    read_until: int | None = None
    left: bool = False
    removed: frozenset[IndexKind] = frozenset()
    gone: bool = False
    grew: bool = False
    counted: CountedSegment | None = None

    def add(self, indexes: CheckedIndexes) -> None:
        """What was found of the offset and time index."""
        self.findings += tuple(indexes.findings)
        self.wrong, self.differing = frozenset(indexes.wrong), frozenset(indexes.differing)
        self.open, self.entries = indexes.open, sum(indexes.entries.values())

    def look_at_transaction_index(self) -> None:
        """A `.txnindex` that is no file: it is moved away where a broker cannot open it."""
        if (found := no_file(self.files.place_of(IndexKind.TRANSACTION))) is not None:
            self.findings += (found,)
            if found.severity == "error":
                self.wrong |= {IndexKind.TRANSACTION}

    def blocked(self) -> list[IndexKind]:
        """The indexes whose place has what a broker cannot open."""
        name = catalogue.INDEX_NOT_A_FILE.name
        places = {one.path for one in self.findings if one.kind == name and one.severity == "error"}
        return [kind for kind in IndexKind if self.files.place_of(kind) in places]

    def lost_offsets(self) -> bool:
        """Whether it has no `.index`, without which a broker that starts makes all indexes of a segment anew."""
        return IndexKind.OFFSET not in self.files.indexes and IndexKind.OFFSET not in self.blocked()

    def leave_indexes(self) -> None:
        """Replace no index of a log that contradicts itself: the index may be right for the log as it was."""
        there = set(self.files.indexes.values())
        self.wrong = self.wrong.difference(self.files.indexes)
        self.findings = tuple(
            replace(one, hint=_LEFT) if one.path in there and one.severity == "error" else one for one in self.findings
        )

    def leave_to_exchange(self) -> None:
        """Write no index of a segment whose files a broker is exchanging: it puts others in their places."""
        self._leave_all(_LEFT_TO_EXCHANGE)

    def leave_to_recovery(self) -> None:
        """Write no index of a segment that a broker recovers for the want of one: it writes them all."""
        self._leave_all(_LEFT_TO_RECOVERY)

    def remove_for_recovery(self) -> None:
        """Take a wrong `.index` away, so that a broker recovers the segment."""
        self.removed, path = frozenset({IndexKind.OFFSET}), self.files.place_of(IndexKind.OFFSET)
        self.findings = tuple(
            replace(one, hint=_REMOVED_FOR_RECOVERY) if one.path == path and one.severity == "error" else one
            for one in self.findings
        )

    def _leave_all(self, hint: str) -> None:
        self.wrong = frozenset()
        places = {self.files.place_of(kind) for kind in IndexKind}
        self.findings = tuple(
            replace(one, hint=hint) if one.path in places and one.severity == "error" else one for one in self.findings
        )


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
            if not (looks and strange and (_index_comes(check, done) or done.grew)):
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
    partition = os.path.dirname(files.log)
    try:
        if time.time() - os.stat(partition).st_mtime > _NEW:
            return False
        held = lock.holder(os.path.join(log_dir_of(partition), ".lock"))
    except FileNotFoundError:  # its topic is being deleted
        return False
    return held.state == "held" and held.pid != os.getpid()


def _identities(files: SegmentFiles) -> list[tuple[int, int] | None]:
    return [_identity(path) for path in files.paths]


def _identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino


def _there(files: SegmentFiles) -> SegmentFiles:
    """The names of a segment's indexes as they are now."""
    paths = {kind: files.place_of(kind) for kind in IndexKind}
    return replace(files, indexes={kind: path for kind, path in paths.items() if disk.is_there(path)})


def _checked(check: SegmentCheck) -> CheckedSegment:
    done = CheckedSegment(check.files)
    done.index_files = len(check.files.indexes)
    try:
        with LogSegment.open(check.files.log, base_offset=check.files.base_offset) as segment:
            made = _recovered(segment, check)
            done.readable = made.fault is None and (made.truncated_bytes == 0 or check.last)
            done.batches, done.last_offset = made.batches, made.last_offset
            done.end = done.found_end = segment.base_offset if made.last_offset is None else made.last_offset + 1
            if made.truncated_bytes:
                done.read_until = read_until(segment, made.valid_bytes, done.end)
            being_written = check.last and is_being_written(segment, made)
            done.cut = 0 if being_written else made.truncated_bytes
            closed = check.clean is True
            done.left = _is_left_to_recovery(check, done, made)
            last, kept = check.last or done.left, closed and not done.left
            done.findings += (
                *log_findings(segment.path, made, last=last, closed=kept, being_written=being_written),
                *end_findings(segment, made, check.ends, closed=closed),
            )
            done.events, done.epochs = events_in(segment, made, check.log_start), np.frombuffer(made.epochs, RUN)
            done.contradictory = is_contradictory(made)
            done.fills_index = fills_index(segment, made, check.options)
            indexes = check_indexes(
                check.files, segment, made, may_be_open=check.may_be_open, trimmed=check.options.trims_indexes,
                index_interval_bytes=check.options.index_interval_bytes,
            )  # fmt: skip
            done.add(indexes)
            if made.truncated_bytes or IndexKind.OFFSET in indexes.wrong:
                _look_for_end(check, segment, done)
            if _is_removed_for_recovery(check, done, made):
                done.remove_for_recovery()
            if check.deep:
                done.findings += tuple(check_records(segment, made.valid_bytes))
            if check.counting is not None:
                done.counted = count_segment(check.files, segment, made, indexes.entries, check.counting.sample)
            done.transactions = _transactions(check.files, done.batches)
            done.look_at_transaction_index()
            done.grew = check.may_be_open and has_grown(segment, made)
            if done.grew:
                done.transactions = _of_read_log(done.transactions, done)
    except MQIndexError as error:
        done.readable = False
        done.grew = isinstance(error, TruncatedFileError)  # a preallocated log loses its zeros when it is closed
        done.refusal, done.out_of_order = error.what, isinstance(error, OutOfOrderError)
        _look_at_refused(check, error, done)
    return done


def _is_left_to_recovery(check: SegmentCheck, done: CheckedSegment, made: Recovered) -> bool:
    """Whether a broker recovers a segment when it loads it, for the want of an `.index`, and had better do so.

    With one, the log keeps what is bad after a clean stop, or below the recovery point. Above that all later segments
    are dropped when the log is cut, but none when it was cut as it was loaded. The last segment of an unclean stop is
    cut in any case. Good batches behind a bad one are kept by an `.index`.
    Source: Kafka 2.8.2 to 4.1.0 `LogLoader.loadSegmentFiles`, `recoverLog`.
    """
    if not (done.cut and done.lost_offsets() and check.options.makes_lost_indexes):
        return False
    if check.files.is_swapping or (check.last and check.clean is not True):
        return False
    return check.unflushed or ends_at_fault(check.files.log, made)


def _is_removed_for_recovery(check: SegmentCheck, done: CheckedSegment, made: Recovered) -> bool:
    """Whether a broker, though it was stopped cleanly, must cut the newest log, and its `.index` is wrong.

    With a right one it does not start where zeros follow the last batch, and else appends behind what is bad.
    """
    if not (check.last and check.clean is True and done.cut and IndexKind.OFFSET in done.wrong):
        return False
    if done.contradictory or check.files.is_swapping or not disk.is_file(check.files.place_of(IndexKind.OFFSET)):
        return False
    return check.options.makes_lost_indexes and ends_at_fault(check.files.log, made)


def _look_at_refused(check: SegmentCheck, error: MQIndexError, done: CheckedSegment) -> None:
    """What a broker does with a log that it cannot recover."""
    files = check.files
    with contextlib.suppress(MQIndexError), LogSegment.open(files.log, base_offset=files.base_offset) as segment:
        done.read_until = read_until(segment, 0, segment.base_offset)
        _look_for_end(check, segment, done)
    done.overflows = overflows(files.log, error, files.base_offset)
    done.findings += (refused(files.log, error, files.base_offset),)
    done.transactions = _transactions(files, min(os.path.getsize(files.log), MAX_LOG_SIZE) // MIN_BATCH_SIZE)


def _look_for_end(check: SegmentCheck, segment: LogSegment, done: CheckedSegment) -> None:
    """As a broker does in the last log after a clean stop, and in one that it exchanges; and whether it is told."""
    files, closed = check.files, check.last and check.clean is True
    if not (closed or files.is_swapping):
        return
    done.found_end = end = found_end(segment, files.indexes.get(IndexKind.OFFSET))
    if end is None or not closed:
        return
    if done.read_until is not None and end <= done.read_until:
        done.read_until = None  # a broker reads no further than to the end
    if done.refusal is None and (end < done.end or (end > done.end and not done.cut)):
        path, of_index = files.place_of(IndexKind.OFFSET), IndexKind.OFFSET in done.wrong
        kind = catalogue.OFFSET_INDEX_END if of_index else catalogue.OFFSET_INDEX_END_OF_LOG
        done.findings += (kind.finding(path, None, "next_offset", done.end, end),)


def _recovered(segment: LogSegment, check: SegmentCheck) -> Recovered:
    """What recovery writes, however many entries that is: the file's own length limits nothing here."""
    options = check.options
    recover = partial(
        segment.recover,
        index_interval_bytes=options.index_interval_bytes,
        max_index_size=max(options.max_index_size, 2 * IndexKind.TIME.entry_size + segment.size),
        kafka_version=options.kafka_version,
        stretch=0 if check.counting is None else check.counting.stretch,
    )
    return recover_with_threads(segment, check.threads, recover) if options.check_crc else recover(check_crc=False)


def events_in(segment: LogSegment, made: Recovered, log_start: int = 0) -> npt.NDArray[Any]:
    """The events of a segment, with the markers read from its log."""
    rows = batch_rows([made.transactional])
    return events_of(rows, segment.log_bytes(), log_start) if len(rows) else np.empty(0, EVENT)


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


def _of_read_log(data: bytes | None, done: CheckedSegment) -> bytes | None:
    """The entries before the first one that was written after the log was read."""
    last = -1 if done.last_offset is None else done.last_offset
    later = (number for number, txn in enumerate(read_aborted(data or b"")) if txn.last_offset > last)
    return data and data[: next(later, len(data)) * IndexKind.TRANSACTION.entry_size]
