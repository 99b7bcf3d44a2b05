"""What is known of one queue once it was compared with the log, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.log_check import Walked
from mqindex.rocketmq.pipeline.survey import Survey


class CheckedQueue(NamedTuple):
    """One queue directory. A `good` one stays as it is; repair writes the others anew from the log.

    `min_offset`, `max_offset`: its queue offsets, [min, max), as far as its units are valid. `units`: those of them
    that the log gives.
    """

    topic: str
    queue_id: int
    good: bool
    findings: tuple[Finding, ...]
    files: int = 0
    units: int = 0
    min_offset: int = 0
    max_offset: int = 0


def spoils(finding: Finding) -> bool:
    """Whether a queue has to be written because of it."""
    return finding.severity == "error" and finding.kind != catalogue.STRAY_QUEUE_FILE.name


def lost_stretches(walked: Walked) -> tuple[tuple[int, int], ...]:
    """Phy offsets in which the log has no frame that could be read: damage, and whole files that are missing."""
    damaged = tuple((one.at, walked.end if one.stop is None else one.stop) for one in walked.damage)
    return (*damaged, *_gaps(walked.survey))


def _gaps(found: Survey) -> Iterator[tuple[int, int]]:
    for one, following in zip(found.spans, found.spans[1:], strict=False):
        if one.stop < following.file_start:
            yield one.stop, following.file_start
