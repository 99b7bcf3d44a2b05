"""The offset and time index of one segment: byte for byte what recovery writes, or compared with the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.files import disk
from mqindex.files.paths import size_of
from mqindex.files.reading.regular import reading
from mqindex.kafka import catalogue
from mqindex.kafka.checks.index_check import Expectation, check_entries, check_shape
from mqindex.kafka.checks.log_check import has_grown, size_now
from mqindex.kafka.index.index_entries import Entries, entries_before_zeros, read_entries
from mqindex.kafka.layout import MAX_LOG_SIZE, MIN_BATCH_SIZE, IndexKind
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_damage import good_parts, served_batches
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.settings import INDEX_INTERVAL
from mqindex.report import Finding


@dataclass(slots=True)
class CheckedIndexes:
    """`wrong`: indexes that a repair writes anew; `differing`: sound ones that a rebuild would write otherwise.
    `entries`: how many each has.
    """

    findings: list[Finding] = field(default_factory=list)
    wrong: set[IndexKind] = field(default_factory=set)
    differing: set[IndexKind] = field(default_factory=set)
    open: bool = False
    entries: dict[IndexKind, int] = field(default_factory=dict)

    def judge(self, kind: IndexKind, findings: list[Finding]) -> None:
        """Findings of one file."""
        self.findings += findings
        if any(one.severity == "error" or one.kind.endswith(("-empty", "-missing")) for one in findings):
            self.wrong.add(kind)

    def soften(self) -> None:
        """Call no error what a broker with another interval may have left, and mends when it closes the segment."""
        self.findings = [replace(one, severity="warning") if one.severity == "error" else one for one in self.findings]


def check_indexes(
    files: SegmentFiles,
    segment: LogSegment,
    made: Recovered,
    damage: Sequence[BatchFault],
    *,
    index_interval_bytes: int,
    may_be_open: bool,
    trimmed: bool,
) -> CheckedIndexes:
    """Check both files of a segment for the good batches of its log. Those of damaged ones are neither right nor wrong.

    may_be_open : nobody closed the segment, as far as is known; it is open where one of its files ends in zeros, and
        where its log was written on since it was read: then entries of later batches are left out.
    trimmed : a broker that stops takes the zeros from an open one, so that these are told.
    """
    rebuilt = {IndexKind.OFFSET: made.offset_index, IndexKind.TIME: made.time_index}
    plain, looked = CheckedIndexes(), {}
    for kind, wanted in rebuilt.items():
        path = files.indexes.get(kind)
        if path is None:
            plain.judge(kind, [_missing(files, kind, made, wanted, may_be_open=may_be_open)])
        elif _same(path, wanted):
            plain.entries[kind] = len(wanted) // kind.entry_size
        elif size_of(path) > MAX_LOG_SIZE:
            plain.judge(kind, [_endless(path, kind)])
        else:
            looked[kind] = path, read_entries(path, kind, size_now(segment) // MIN_BATCH_SIZE + 1)
    if not looked:
        return plain
    last_offset = files.base_offset - 1 if made.last_offset is None else made.last_offset
    grew = may_be_open and has_grown(segment, made)
    if grew:
        last = last_offset - files.base_offset
        looked = {kind: (path, entries.up_to(last, kind)) for kind, (path, entries) in looked.items()}
    expectation = Expectation(
        files.base_offset,
        made.end_bytes,
        last_offset,
        made.max_timestamp,
        {kind: len(wanted) // kind.entry_size for kind, wanted in rebuilt.items()},
        open=grew or (may_be_open and any(entries.zeros for _, entries in looked.values())),
        trimmed=trimmed,
        damage=tuple(one for one in damage if one.batches or not may_be_open),
    )
    compare = partial(_against_log, segment, looked, _pairs(rebuilt[IndexKind.OFFSET]), plain=plain)
    done = compare(expectation)
    unindexed = None
    if IndexKind.TIME not in done.wrong:  # else a repair writes those that say so anew
        unindexed = _most_unindexed(files, segment, looked, expectation, done)
    if made.offset_index and unindexed is not None and unindexed <= index_interval_bytes:
        expectation = expectation.of_a_longer_interval()
        done = compare(expectation)
    unmade = {kind for kind, wanted in rebuilt.items() if kind not in files.indexes and not wanted}
    if expectation.open and done.wrong - unmade:  # a repair closes the segment, and then nothing of it is open any more
        done = compare(expectation.closed())
        if all(one.severity != "error" for one in compare(expectation.of_a_longer_interval()).findings):
            done.soften()
    if unindexed and index_interval_bytes == INDEX_INTERVAL.default and IndexKind.OFFSET not in done.wrong:
        done.findings += _perhaps_lost(files.indexes[IndexKind.OFFSET], len(looked[IndexKind.TIME][1]), unindexed)
    return done


def _most_unindexed(
    files: SegmentFiles,
    segment: LogSegment,
    looked: Mapping[IndexKind, tuple[str, Entries]],
    expectation: Expectation,
    done: CheckedIndexes,
) -> int | None:
    """An offset index without an entry: the most bytes of the log behind the last stop that a batch begins at.

    Where the interval is as long, none is missing: a broker that starts counts the bytes up to an entry anew, and one
    that stops gives the time index an entry. An entry that was lost has one in the time index too, and its batch begins
    further behind the entry before. None: that cannot be said. Source: Kafka 4.1.0 `LogSegment.append`, `close`.
    """
    if IndexKind.TIME not in looked or IndexKind.OFFSET not in files.indexes or done.entries[IndexKind.OFFSET]:
        return None
    closed = looked[IndexKind.TIME][1].second + expectation.base_offset
    start = run = most = 0
    for _, rows in good_parts(segment, expectation.damage, expectation.valid_bytes):
        runs = np.searchsorted(closed, rows["last_offset"])
        positions = rows["position"].astype(np.int64)
        begins = np.concatenate([[runs[0] != run], runs[1:] != runs[:-1]])
        starts = np.maximum.accumulate(np.where(begins, positions, start))
        most = max(most, int((positions - starts).max()))
        start, run = int(starts[-1]), int(runs[-1])
    return most


def _perhaps_lost(path: str, times: int, unindexed: int) -> list[Finding]:
    """Whether entries were lost only the interval tells: those of the time index come with them, or at a close.

    `times`: how many these are; a closed segment has one of its own.
    """
    if times < 2:
        return []
    got = f"no entry, and {plural(times, 'entry')} in the time index"
    return [catalogue.OFFSET_INDEX_PERHAPS_LOST.finding(path, got=got, most=unindexed, closed=times)]


def check_alone(path: str, kind: IndexKind) -> CheckedIndexes:
    """Check a file without its log. What a broker's own sanity check refuses is not in order here either."""
    done = CheckedIndexes()
    if size_of(path) > MAX_LOG_SIZE:
        done.judge(kind, [_endless(path, kind)])
        return done
    entries = read_entries(path, kind, MAX_LOG_SIZE // MIN_BATCH_SIZE + 1)
    done.entries[kind] = len(entries)
    done.judge(kind, check_shape(path, kind, entries, may_be_longer=entries.zeros > 0, trimmed=True))
    return done


def _against_log(
    segment: LogSegment,
    looked: Mapping[IndexKind, tuple[str, Entries]],
    rebuilt: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    expectation: Expectation,
    plain: CheckedIndexes,
) -> CheckedIndexes:
    """`plain`: what needs no log."""
    done = CheckedIndexes(list(plain.findings), set(plain.wrong), open=expectation.open, entries=dict(plain.entries))
    for kind, (path, entries) in looked.items():
        done.entries[kind] = len(entries)
        done.judge(kind, check_shape(path, kind, entries, may_be_longer=expectation.open, trimmed=expectation.trimmed))
    offsets, times = check_entries(
        served_batches(segment, expectation.damage, expectation.valid_bytes),
        looked.get(IndexKind.OFFSET),
        looked.get(IndexKind.TIME),
        rebuilt,
        expectation,
        replaced=IndexKind.OFFSET in done.wrong,
    )
    done.judge(IndexKind.OFFSET, offsets)
    done.judge(IndexKind.TIME, times)
    done.differing = set(looked) - done.wrong
    return done


def _pairs(index: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Relative offsets and positions."""
    entries = np.frombuffer(index, IndexKind.OFFSET.entry)
    return entries["offset"].astype(np.int64), entries["position"].astype(np.int64)


def _same(path: str, wanted: bytes) -> bool:
    if size_of(path) != len(wanted):
        return False
    with reading(path, buffered=False) as file:
        return file.read(len(wanted) + 1) == wanted


def no_file(place: str) -> Finding | None:
    """What is said of a name of an index that something else than a file has; None: there is nothing, or a file."""
    if disk.is_file(place) or not disk.exists(place):
        return None
    kind = catalogue.INDEX_NOT_A_FILE if disk.is_there(place) else catalogue.INDEX_LEADS_NOWHERE
    return kind.finding(place, expected="a file", got=disk.kind_of(place))


def _missing(files: SegmentFiles, kind: IndexKind, made: Recovered, wanted: bytes, *, may_be_open: bool) -> Finding:
    """Without a `.index` a broker rebuilds all indexes of the segment; a lost `.timeindex` it makes empty, for good.

    An index that would have no entry yet may be one that a broker has still to make: it does so at its first use. That
    is a look-up or the segment's second append for a `.index`, the first append for a `.timeindex` (Kafka 4.1.0
    `LazyIndex`, `LogSegment.shouldRoll`, `LogSegment.append`). So none that has several times is without a `.index`.
    """
    place = files.place_of(kind)
    if disk.is_there(place) and (other := no_file(place)):
        return other
    lost = catalogue.INDEXES[kind].missing
    times = files.indexes.get(IndexKind.TIME)
    if kind is IndexKind.TIME and not wanted:
        lost = catalogue.NO_TIMES_INDEXED
    elif may_be_open and not wanted and (times is None or entries_before_zeros(times, IndexKind.TIME) < 2):
        lost = catalogue.NO_OFFSETS_INDEXED
    elif kind is IndexKind.TIME and not disk.is_there(files.place_of(IndexKind.OFFSET)):
        lost = catalogue.TIMES_LOST_WITH_OFFSETS
    elif made.end_bytes == 0:
        lost = replace(lost, severity="warning")
    got = disk.kind_of(place) if disk.exists(place) and not disk.is_there(place) else "no file"
    return lost.finding(place, expected=plural(len(wanted) // kind.entry_size, "entry"), got=got)


def _endless(path: str, kind: IndexKind) -> Finding:
    """Not read: no broker could."""
    expected, got = f"at most {MAX_LOG_SIZE} bytes", size_of(path)
    return catalogue.INDEXES[kind].length.finding(path, expected=expected, got=got)
