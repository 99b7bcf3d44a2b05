"""The log of one segment by itself: where a recovery cuts it, and what no checksum of its batches covers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from mqindex._native.kafka_log import find_batch
from mqindex._native.kafka_recovery import Recovered
from mqindex._words import plural
from mqindex.errors import MQIndexError
from mqindex.files.regular import regular
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.report import Finding, Severity

__all__ = ["end_findings", "is_contradictory", "log_findings", "refused"]

_ZEROS: Final = 1 << 20


def refused(path: str, error: MQIndexError) -> Finding:
    """A log that a broker's recovery does not survive, or that cannot be opened."""
    hint = error.hint or "a broker that recovers this segment empties it, or does not start"
    return Finding(
        "error", "log-refused", path, error.at, error.field, error.expected, error.got, f"{error.what}; {hint}"
    )


def log_findings(path: str, made: Recovered, *, last: bool) -> list[Finding]:
    """What stands behind the last good batch, and batches that contradict each other."""
    return [*_oddities(path, made), *_tail(path, made, last=last)]


def is_contradictory(made: Recovered) -> bool:
    """Whether batches with good checksums contradict each other: which of them is right, the log does not tell."""
    return bool(made.oddities)


# ---- what no checksum covers

_RESTORE = "restore the segment from another replica"
_UNSEEN = "a broker's start passes over it, its recovery too unless the index gets an entry there"
_ODD: Final = {
    "order": ("offset-order", "base_offset", "{} or more", f"{_UNSEEN}; followers refuse the batch"),
    "base": ("offset-order", "base_offset", "the segment's base offset {} or more", _UNSEEN),
    "magic": ("magic", "magic", "0, 1 or 2", "a broker reads it as 1 or 2; a consumer gets no further than this batch"),
    "count": ("count", "count", "0..{}", "a consumer gets no further than this batch"),
}


def _oddities(path: str, made: Recovered) -> list[Finding]:
    """Of each kind the first, and how many there are.

    Notes
    -----
    Source: Kafka 4.1.0 `LogSegment.recover`, `UnifiedLog.append` (offsets of a follower's append), and of a consumer
    `ByteBufferLogInputStream`, `DefaultRecordBatch`. The checksum of magic 2 begins behind these fields.
    """
    found = []
    for kind, count, at, expected, got in made.oddities:
        name, field, words, hint = _ODD[kind]
        many = f"{plural(count, 'batch')} of this kind; " if count > 1 else ""
        hint = f"{many}{hint}; {_RESTORE}"
        found.append(Finding("error", f"log-{name}", path, at, field, words.format(expected), got, hint))
    return found


# ---- where the log ended before


def end_findings(segment: LogSegment, made: Recovered, ends: Sequence[int]) -> list[Finding]:
    """A log that ended at an offset has a batch that ends there, unless it was cut behind the broker's back.

    Notes
    -----
    Source: Kafka 4.1.0 `UnifiedLog.close` and `roll`, which write a snapshot of the log's end;
    `ProducerStateManager.truncateAndReload`, which takes those above it away.
    """
    log = segment.log_bytes()
    for end in ends:
        row, _, _ = find_batch(log, 0, made.valid_bytes, "last_offset", end - 1)
        if row is None:
            hint = "a snapshot says that the log went on to there: records are lost; the broker deletes the snapshot"
            next_offset = segment.base_offset if made.last_offset is None else made.last_offset + 1
            return [
                Finding("warning", "log-end", segment.path, None, "next_offset", f"{end} or more", next_offset, hint)
            ]
        batch = batch_rows([row])[0]
        if batch["last_offset"] != end - 1:
            got = f"{batch['base_offset']} to {batch['last_offset']}"
            hint = f"a snapshot says that the log ended there once; {_UNSEEN}; {_RESTORE}"
            at = int(batch["position"])
            return [
                Finding("error", "log-offset-order", segment.path, at, "offset", f"a batch to {end - 1}", got, hint)
            ]
    return []


# ---- where a recovery cuts


def _tail(path: str, made: Recovered, *, last: bool) -> list[Finding]:
    """Nothing, or what a broker's recovery cuts."""
    cut = made.truncated_bytes
    if not cut:
        return []
    kind, at, name, expected, got = made.fault or (
        "tail",
        made.valid_bytes,
        None,
        "the end of the log",
        plural(cut, "byte"),
    )
    zeros = _is_zeros(path, made.valid_bytes)
    severity: Severity = "error"
    if zeros and last:
        severity, kind = "info", "tail"
    elif last and (made.fault is None or _reaches_end(path, made.valid_bytes)):
        severity = "warning"
    hint = f"a broker's recovery cuts {plural(cut, 'byte')} here"
    if zeros:
        hint += "; they are zeros, as of a log that was given its length beforehand"
    elif not last:
        hint += ", and drops every later segment"
    return [Finding(severity, f"log-{kind}", path, at, name, expected, got, hint)]


def _is_zeros(path: str, start: int) -> bool:
    with open(path, "rb", buffering=0, opener=regular) as file:
        file.seek(start)
        while block := file.read(_ZEROS):
            if block.strip(b"\0"):
                return False
    return True


def _reaches_end(path: str, at: int) -> bool:
    """Whether the bad batch is the last thing in the log: one that was being written when the machine went down."""
    with open(path, "rb", buffering=0, opener=regular) as file:
        length = int.from_bytes(os.pread(file.fileno(), 4, at + 8), "big", signed=True)
        size = os.fstat(file.fileno()).st_size
    return length >= 14 and (at + 12 + length >= size or _is_zeros(path, at + 12 + length))
