"""The log of one segment by itself: where a recovery cuts it, and what no checksum of its batches covers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from mqindex._native.kafka_log import BatchScan, find_batch
from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.errors import MQIndexError, OffsetOverflowError
from mqindex.files.regular import reading
from mqindex.kafka import catalogue
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.report import Finding

__all__ = [
    "end_findings",
    "has_grown",
    "hides_its_end",
    "is_being_written",
    "is_contradictory",
    "log_findings",
    "overflows",
    "refused",
    "size_now",
]

_ZEROS: Final = 1 << 20
_MIN_LENGTH: Final = 14
_NO_OFFSET: Final = 2**63 - 1


def refused(path: str, error: MQIndexError, base_offset: int) -> Finding:
    """A log on which a broker's recovery fails, or that cannot be opened."""
    kind = catalogue.LOG_CANNOT_BE_READ if error.hint else catalogue.LOG_REFUSED
    if overflows(error, base_offset):
        kind = catalogue.LOG_OVERFLOWS
    return kind.finding(path, error.at, error.field, error.expected, error.got, what=error.what, hint=error.hint)


def overflows(error: MQIndexError, base_offset: int) -> bool:
    """Whether a log is refused for an offset that no index of its segment can hold: a broker splits such a segment.

    Source: Kafka 4.1.0 `LogLoader.retryOnOffsetOverflow`, which fails where an offset is below the base offset.
    """
    return isinstance(error, OffsetOverflowError) and error.field == "offset" and error.got > base_offset


def log_findings(
    path: str, made: Recovered, *, last: bool, closed: bool = False, being_written: bool = False
) -> list[Finding]:
    """What follows the last good batch, and batches that contradict each other. `closed`: its broker stopped cleanly;
    `being_written`: it will be a batch.
    """
    return [*_oddities(path, made), *([] if being_written else _tail(path, made, last=last, closed=closed))]


def size_now(segment: LogSegment) -> int:
    """More than `size` where somebody has written more since the segment was opened."""
    return os.stat(segment.path).st_size


def has_grown(segment: LogSegment, made: Recovered) -> bool:
    """Whether somebody has written more since the log was read: it is longer, or has a batch where a recovery ended.

    The latter happens in a preallocated log: zeros follow its batches, and its length stays.
    Source: Kafka 4.1.0 `FileRecords.open`, `LogConfig.PREALLOCATE_CONFIG`.
    """
    if size_now(segment) > segment.size:
        return True
    return made.truncated_bytes > 0 and any(True for _ in BatchScan(segment.log_bytes(), made.valid_bytes))


def is_being_written(segment: LogSegment, made: Recovered) -> bool:
    """Whether what follows the last good batch is a part of one that somebody was writing when the log was opened."""
    return (
        made.truncated_bytes > 0
        and (made.fault is None or size_now(segment) == segment.size)
        and has_grown(segment, made)
    )


def is_contradictory(made: Recovered) -> bool:
    """Whether batches with good checksums contradict each other: the log does not show which of them is right."""
    return bool(made.oddities)


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


# ---- where the log ended before


def end_findings(segment: LogSegment, made: Recovered, ends: Sequence[int], *, closed: bool) -> list[Finding]:
    """A log that ended at an offset has no batch across it, unless somebody else cut it. It may have a gap there: a
    truncation can end in one. But when it was `closed` it ended at the last of them.

    Notes
    -----
    Source: Kafka 4.1.0 `UnifiedLog.close` and `roll`, which write a snapshot of the log's end;
    `ProducerStateManager.truncateAndReload`, which removes those above it.
    """
    log = segment.log_bytes()
    for end in ends:
        row, _, _ = find_batch(log, 0, made.valid_bytes, "last_offset", end - 1)
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


# ---- where a recovery cuts


def _tail(path: str, made: Recovered, *, last: bool, closed: bool) -> list[Finding]:
    """Nothing, or what a broker's recovery cuts; it would, if the log was `closed`."""
    cut = made.truncated_bytes
    if not cut:
        return []
    nothing = "tail", made.valid_bytes, None, "the end of the log", plural(cut, "byte")
    fault, at, name, expected, got = made.fault or nothing
    kinds = catalogue.LOG_TAILS[fault]
    if last and closed:
        kind = kinds.closed
    elif _is_zeros(path, made.valid_bytes):
        kind = catalogue.LOG_ENDS_IN_ZEROS if last else kinds.zeros_followed
    elif not last:
        kind = kinds.followed
    else:
        kind = kinds.unfinished if made.fault is None or _reaches_end(path, made.valid_bytes) else kinds.last
    return [kind.finding(path, at, name, expected, got, bytes=plural(cut, "byte"))]


def hides_its_end(segment: LogSegment, made: Recovered, index: str) -> bool:
    """Whether a broker that reads the log for its end, from the last entry of its `.index` on, fails at a batch's
    length.

    Source: Kafka 4.1.0 `LogSegment.readNextOffset`, `FileLogInputStream.nextBatch`, which compares no checksum.
    """
    if not made.truncated_bytes:
        return False
    log, at = segment.log_bytes(), max(made.valid_bytes, _last_position(index))
    fault = find_batch(log, at, None, "last_offset", _NO_OFFSET)[2] if at < segment.size else None
    return fault is not None and _length(log[fault[1] + 8 : fault[1] + 12]) < _MIN_LENGTH


def _last_position(index: str) -> int:
    """That of an offset index's last place, 0 where there is none."""
    size = IndexKind.OFFSET.entry_size
    with reading(index, buffered=False) as file:
        places = os.fstat(file.fileno()).st_size // size
        return _length(os.pread(file.fileno(), 4, places * size - 4)) if places else 0


def _length(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _is_zeros(path: str, start: int) -> bool:
    with reading(path, buffered=False) as file:
        file.seek(start)
        while block := file.read(_ZEROS):
            if block.strip(b"\0"):
                return False
    return True


def _reaches_end(path: str, at: int) -> bool:
    """Whether the bad batch is the last thing in the log: one that was being written when the machine went down."""
    with reading(path, buffered=False) as file:
        length = _length(os.pread(file.fileno(), 4, at + 8))
        size = os.fstat(file.fileno()).st_size
    return length >= _MIN_LENGTH and (at + 12 + length >= size or _is_zeros(path, at + 12 + length))
