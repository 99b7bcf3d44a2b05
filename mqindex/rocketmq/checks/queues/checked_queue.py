"""What is known of one queue once it was compared with the log, whatever its kind."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.log_check import Walked


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
    damaged = ((one.at, one.stop) for one in walked.damage)
    gaps = ((one.stop, two.file_start) for one, two in itertools.pairwise(walked.survey.spans))
    return (*damaged, *(gap for gap in gaps if gap[0] < gap[1]))
