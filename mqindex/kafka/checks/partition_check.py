"""What the segments of one partition say together: that offsets and leader epochs go on from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from mqindex.errors import CorruptIndexError
from mqindex.files import disk
from mqindex.kafka import catalogue
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.partition.leader_epochs import Epochs, read_epochs
from mqindex.report import Finding

__all__ = ["known_epochs", "overlapped", "overlaps", "those_gone"]


def overlaps(segments: Sequence[CheckedSegment], next_base: int | None) -> list[Finding]:
    """Every offset of a segment is below the next one's base offset. `next_base`: of the segment after the last."""
    segments = [segment for segment in segments if not segment.gone]
    bases = [segment.files.base_offset for segment in segments[1:]] + ([] if next_base is None else [next_base])
    return [
        catalogue.SEGMENT_OVERLAP.finding(one.files.log, None, "last_offset", f"below {base}", one.last_offset)
        for one, base in zip(segments, bases, strict=False)
        if one.last_offset is not None and one.last_offset >= base
    ]


def overlapped(segments: Sequence[CheckedSegment]) -> tuple[str, ...]:
    """The logs of segments that begin before an earlier one ends."""
    found, last = [], -1
    for segment in segments:
        if segment.files.base_offset <= last:
            found.append(segment.files.log)
        last = max(last, -1 if segment.last_offset is None else segment.last_offset)
    return tuple(found)


def those_gone(logs: Sequence[str]) -> set[str]:
    """A task: logs that are there no more. The cleaner removes those that it merged, then puts the merged one in place.

    Source: Kafka 4.1.0 `LocalLog.replaceSegments`.
    """
    return {path for path in logs if not disk.is_there(path)}


def known_epochs(directories: Sequence[str]) -> list[tuple[Epochs, list[Finding]]]:
    """A task: the checkpoints of partitions, or why they cannot be read.

    They are read after the logs: a broker that is writing puts an epoch there before its first batch.
    """
    return [_known(directory) for directory in directories]


def _known(directory: str) -> tuple[Epochs, list[Finding]]:
    try:
        return read_epochs(directory), []
    except CorruptIndexError as error:
        finding = catalogue.LEADER_EPOCH_CHECKPOINT.finding(error.path, expected=error.expected, got=error.got)
        return (), [finding]
