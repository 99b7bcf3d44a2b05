"""What the segments of one partition say together: that offsets and leader epochs go on from one to the next."""

from __future__ import annotations

from collections.abc import Sequence

from mqindex.errors import CorruptIndexError
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.partition.leader_epochs import CHECKPOINT, Epochs, read_epochs
from mqindex.report import Finding

__all__ = ["known_epochs", "overlaps"]


def overlaps(segments: Sequence[CheckedSegment], next_base: int | None) -> list[Finding]:
    """Every offset of a segment is below the next one's base offset. `next_base`: of the segment behind the last."""
    bases = [segment.files.base_offset for segment in segments[1:]] + ([] if next_base is None else [next_base])
    hint = "the segment behind it begins there; one of the two has offsets that are not its own"
    return [
        Finding("error", "segment-overlap", one.files.log, None, "last_offset", f"below {base}", one.last_offset, hint)
        for one, base in zip(segments, bases, strict=False)
        if one.last_offset is not None and one.last_offset >= base
    ]


def known_epochs(directories: Sequence[str]) -> list[tuple[Epochs, list[Finding]]]:
    """A task: what the checkpoints of partitions tell, or why they do not.

    They are read behind the logs: a broker that is writing puts an epoch there before its first batch.
    """
    return [_known(directory) for directory in directories]


def _known(directory: str) -> tuple[Epochs, list[Finding]]:
    try:
        return read_epochs(directory), []
    except CorruptIndexError as error:
        hint = "a broker puts the whole log dir offline, or does not start; without the file it starts, and learns anew"
        return (), [Finding("error", CHECKPOINT, error.path, None, None, error.expected, error.got, hint)]
