"""The log of one segment by itself: where a recovery cuts it, and what no checksum of its batches covers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mqindex._native.kafka_log import BatchScan
from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.errors import FileStateError, IndexFullError, MQIndexError, OffsetOverflowError, TruncatedFileError
from mqindex.files.paths import status_of
from mqindex.files.places.place import Place
from mqindex.kafka import catalogue
from mqindex.kafka.index.offset_index import OffsetIndex
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.damage import BatchFault, is_zeros, torn
from mqindex.kafka.log.log_damage import stretches
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.options import PartitionOptions
from mqindex.report import Finding

_MIN_LENGTH: Final = 14
_SHORT_HEADER: Final = 61  # of a batch of magic 2
_OFFSETS: Final = 2**31  # that an index can hold
_LEAST_OFFSET: Final = -(2**63)
_DAMAGES: Final = 20  # are told one by one
_SHORT_BATCHES: Final = 1000  # and no more: hostile logs consist of them


def refused(path: str, error: MQIndexError, base_offset: int) -> Finding:
    """A log on which a broker's recovery fails, or that cannot be opened."""
    kind = catalogue.LOG_CANNOT_BE_READ if error.hint else catalogue.LOG_REFUSED
    if overflows(path, error, base_offset):
        kind = catalogue.LOG_OVERFLOWS
    return kind.finding(path, error.at, error.field, error.expected, error.got, what=error.what, hint=error.hint)


def require_all(error: MQIndexError, path: str) -> None:
    """Raise the error of a log elsewhere that was replaced, or of which not all came: it says nothing of the log."""
    if isinstance(path, Place) and isinstance(error, (FileStateError, TruncatedFileError)):
        raise error


def fills_index(segment: LogSegment, made: Recovered, options: PartitionOptions) -> Finding | None:
    """An index of a topic with these settings is full before the log ends, at which a broker's recovery fails; None:
    it is not. A time index keeps one place for its last entry.
    """
    places = {kind: options.max_index_size // kind.entry_size for kind in (IndexKind.OFFSET, IndexKind.TIME)}
    times = len(made.time_index) // IndexKind.TIME.entry_size
    offsets = len(made.offset_index) // IndexKind.OFFSET.entry_size
    if offsets <= places[IndexKind.OFFSET] and times < places[IndexKind.TIME] - 1:
        return None
    interval, size = options.index_interval_bytes, options.max_index_size
    try:
        segment.recover(
            index_interval_bytes=interval,
            max_index_size=size,
            kafka_version=options.kafka_version,
            check_crc=options.check_crc,
        )
    except IndexFullError as error:
        return catalogue.LOG_FILLS_INDEX.finding(
            segment.path, error.at, error.field, error.expected, error.got,
            what=error.what, interval=interval, size=size,
        )  # fmt: skip
    return None


def overflows(path: str, error: MQIndexError, base_offset: int) -> bool:
    """Whether a log is refused for an offset that no index of its segment can hold, and a broker splits the segment.

    Source: Kafka 4.1.0 `LocalLog.splitOverflowedSegment`, which fails where the last offset is not one of these.
    """
    end, fails = None, False
    if isinstance(error, OffsetOverflowError) and error.field == "offset":
        with (
            contextlib.suppress(MQIndexError, FileNotFoundError),
            LogSegment.open(path, base_offset=base_offset) as log,
        ):
            end, fails = _read_on(log, 0, _LEAST_OFFSET)
    return end is not None and not fails and end > base_offset + _OFFSETS


def log_findings(
    segment: LogSegment,
    made: Recovered,
    damage: Sequence[BatchFault],
    *,
    last: bool,
    closed: bool = False,
    cut: bool = False,
    being_written: bool = False,
) -> list[Finding]:
    """What is bad in a log, and batches that contradict each other.

    `last`: of its partition; `closed`: its broker stopped cleanly; `cut`: the next start cuts the log at the first bad
    batch; `being_written`: its end will be a batch.
    """
    path, between = segment.path, [one for one in damage if one.batches]
    found = [*_oddities(path, made), *_unit_of_times(path, made.max_timestamp)]
    for number, one in enumerate(between[:_DAMAGES]):
        kinds = catalogue.LOG_TAILS[one.kind]
        kind = kinds.damaged if not cut else kinds.damaged_last if last else kinds.damaged_followed
        left = len(between) - number if number == _DAMAGES - 1 else 1
        many = plural(left, "stretch") if left > 1 else None
        found.append(kind.finding(path, one.at, one.field, one.expected, one.got, many=many,
                                  left_out=one.left_out, good=good_behind(one)))  # fmt: skip
    return found if being_written else [*found, *_tail(segment, made, last=last, closed=closed)]


def good_behind(one: BatchFault) -> str:
    """How many good batches are behind it, and their records."""
    return f"{one.batches} ({plural(one.records, 'record')})"


def size_now(segment: LogSegment) -> int:
    """More than `size` where somebody has written more since the segment was opened."""
    return status_of(segment.path).st_size


def has_grown(segment: LogSegment, made: Recovered) -> bool:
    """Whether somebody has written more since the log was read: it is longer, or has a batch where a recovery ended.

    The latter happens in a preallocated log: zeros follow its batches, and its length stays.
    Source: Kafka 4.1.0 `FileRecords.open`, `LogConfig.PREALLOCATE_CONFIG`.
    """
    if size_now(segment) > segment.size:
        return True
    return made.truncated_bytes > 0 and _has_batch(segment, made.end_bytes)


def _has_batch(segment: LogSegment, at: int) -> bool:
    return any(any(True for _ in BatchScan(log, at, limit)) for log, limit in segment._new_walk(at, at + 1))


def is_being_written(segment: LogSegment, made: Recovered) -> bool:
    """Whether what follows the last good batch is a part of one that somebody was writing when the log was opened."""
    return (
        made.truncated_bytes > 0
        and (made.fault is None or size_now(segment) == segment.size)
        and has_grown(segment, made)
    )


# ---- what no checksum covers

_ODD: Final = {
    "order": (catalogue.LOG_OFFSET_ORDER, "base_offset", "{} or more"),
    "base": (catalogue.LOG_BELOW_BASE, "base_offset", "the segment's base offset {} or more"),
    "magic": (catalogue.LOG_MAGIC, "magic", "0, 1 or 2"),
    "count": (catalogue.LOG_COUNT, "count", "0..{}"),
}


def _oddities(path: str, made: Recovered) -> list[Finding]:
    """Of each kind the first, and how many there are.

    Notes
    -----
    Source: Kafka 4.1.0 `LogSegment.recover`, `UnifiedLog.append` (offsets of a follower's append), and of a consumer
    `ByteBufferLogInputStream`, `DefaultRecordBatch`. The checksum of magic 2 begins after these fields.
    """
    found = []
    for oddity, count, at, expected, got in made.oddities:
        kind, field, words = _ODD[oddity]
        many = plural(count, "batch") if count > 1 else None
        found.append(kind.finding(path, at, field, words.format(expected), got, many=many))
    return found


def _unit_of_times(path: str, greatest: int) -> list[Finding]:
    """Whether the times of records are of this century in another unit than ms: a broker takes them for ms."""
    for unit, ms in _UNITS.items():
        if _CENTURY[0] <= greatest * ms < _CENTURY[1]:
            then = "may delete all of it, also the newest records" if ms > 1 else "never deletes it"
            return [catalogue.RECORD_TIMES.finding(path, None, "max_timestamp", "ms", f"{greatest}: {unit}", then=then)]
    return []


_CENTURY: Final = 946_684_800_000, 4_102_444_800_000  # ms
_UNITS: Final = {"seconds": 1000, "microseconds": 1 / 1000, "nanoseconds": 1 / 1_000_000}


# ---- where the log ended before


def end_findings(
    segment: LogSegment, made: Recovered, damage: Sequence[BatchFault], ends: Sequence[int], *, closed: bool
) -> list[Finding]:
    """A log that ended at an offset has no batch across it, unless somebody else cut it. It may have a gap there: a
    truncation can end in one. But when it was `closed` it ended at the last of them.

    Notes
    -----
    Source: Kafka 4.1.0 `UnifiedLog.close` and `roll`, which write a snapshot of the log's end;
    `ProducerStateManager.truncateAndReload`, which removes those above it.
    """
    for end in ends:
        row = _batch_to(segment, made, damage, end - 1)
        if row is None:
            next_offset = segment.base_offset if made.last_offset is None else made.last_offset + 1
            return [catalogue.LOG_END.finding(segment.path, None, "next_offset", f"{end} or more", next_offset)]
        batch = batch_rows([row])[0]
        across = batch["base_offset"] < end or (closed and end == ends[-1])
        if batch["last_offset"] != end - 1 and across:
            got = f"{batch['base_offset']} to {batch['last_offset']}"
            kind, at = catalogue.LOG_NOT_AT_SNAPSHOT, int(batch["position"])
            return [kind.finding(segment.path, at, "offset", f"a batch to {end - 1}", got)]
    return []


def _batch_to(segment: LogSegment, made: Recovered, damage: Sequence[BatchFault], offset: int) -> bytes | None:
    """The first good batch that ends at an offset or after it."""
    for begin, end, bad in stretches(damage, made.end_bytes):
        if bad is None:
            start = begin if damage or made.oddities else _indexed(made, offset - segment.base_offset)
            row, _, _ = segment._found(start, end, "last_offset", offset)
            if row is not None:
                return bytes(row)
    return None


def _indexed(made: Recovered, relative: int) -> int:
    """The position in the last entry for a relative offset, or for one below it."""
    entries = np.frombuffer(made.offset_index, IndexKind.OFFSET.entry)
    number = int(np.searchsorted(entries["offset"], relative, "right"))
    return int(entries["position"][number - 1]) if number else 0


# ---- where a recovery cuts


def _tail(segment: LogSegment, made: Recovered, *, last: bool, closed: bool) -> list[Finding]:
    """Nothing, or what a broker's recovery cuts behind the last good batch; it would, if the log was `closed`."""
    at, log = made.end_bytes, segment._log_bytes(made.end_bytes)
    cut = made.valid_bytes + made.truncated_bytes - at
    if not cut:
        return []
    fault, _, name, expected, got = made.end_fault or torn(at, cut)
    kinds = catalogue.LOG_TAILS[fault]
    if last and closed:
        kind = kinds.closed
    elif is_zeros(log, at):
        kind = catalogue.LOG_ENDS_IN_ZEROS if last else kinds.zeros_followed
    elif not last:
        kind = kinds.followed
    else:
        kind = kinds.unfinished if made.end_fault is None or _reaches_end(log, at) else kinds.last
    return [kind.finding(segment.path, at, name, expected, got, bytes=plural(cut, "byte"))]


# ---- what a broker reads that does not recover the log


def found_end(segment: LogSegment, index: str | None) -> int | None:
    """The offset that a broker which starts after a clean stop takes for the log's end: it reads from the last entry of
    the `.index` on, if there is one. None: it fails, at a batch's length.

    Source: Kafka 4.1.0 `LogSegment.readNextOffset`, `translateOffset`.
    """
    last, position = segment.base_offset, 0
    if index is not None:
        with OffsetIndex.open(index, base_offset=segment.base_offset) as entries:
            last = entries.last_offset
            position = max(entries.lookup(last).position, 0)
    return _end_from(segment, position, last)


def rebuilt_end(segment: LogSegment, made: Recovered) -> int | None:
    """The same with the `.index` that a rebuild writes."""
    size = IndexKind.OFFSET.entry_size
    relative, position = made.offset_index[-size:][:4], made.offset_index[-4:]
    return _end_from(segment, _length(position), segment.base_offset + _length(relative))


def _end_from(segment: LogSegment, position: int, last: int) -> int | None:
    end, fails = _read_on(segment, position, last)
    return None if fails else segment.base_offset if end is None else end


def read_until(segment: LogSegment, position: int, offset: int) -> int | None:
    """The offset at which a broker fails that reads the log for its producers, comparing no checksum: where a batch's
    length is impossible. None: it reads it to its end. `offset`: that of the position, up to which it is good.
    """
    end, fails = _read_on(segment, position, _LEAST_OFFSET)
    return None if not fails else offset if end is None else end


def _read_on(segment: LogSegment, position: int, offset: int) -> tuple[int | None, bool]:
    """The offset after the last batch from a position on, None: none has this offset or a greater one; and whether a
    broker fails at a batch's length. It goes on where one of magic 2 is too short only for its own header.

    Source: Kafka 4.1.0 `FileLogInputStream.nextBatch`.
    """
    walk, reached, end = segment._new_walk(min(position, segment.size)), False, None
    for _ in range(_SHORT_BATCHES):
        for log, limit in walk:
            scan = BatchScan(log, walk.at, limit, check_crc=False)
            for view in scan:
                offsets = batch_rows([view])["last_offset"]
                reached, end = reached or bool((offsets >= offset).any()), int(offsets[-1]) + 1
            walk.at = scan.end
        if scan.fault is None:
            break
        header = bytes(walk.window(walk.at, walk.at + _SHORT_HEADER)[walk.at : walk.at + _SHORT_HEADER])
        length = _length(header[8:12])
        if length < _MIN_LENGTH or len(header) < _SHORT_HEADER:
            return end if reached else None, True
        last = _length(header[:8]) + _length(header[23:27])
        reached, end = reached or last >= offset, last + 1
        walk.at = min(walk.at + 12 + length, segment.size)
    return end if reached else None, False


def _length(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _reaches_end(log: Any, at: int) -> bool:
    """Whether the bad batch is the last thing in the log: one that was being written when the machine went down."""
    length = _length(bytes(log[at + 8 : at + 12]))
    return length >= _MIN_LENGTH and is_zeros(log, at + 12 + length)
