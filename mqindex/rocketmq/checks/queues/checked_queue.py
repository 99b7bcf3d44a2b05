"""What is known of one queue once it was compared with the log, whatever its kind."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from mqindex._words import plural
from mqindex.report import Finding, Kind
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.checks.log_check import Walked


@dataclass(slots=True)
class CheckedQueue:
    """One queue directory. A `good` one stays as it is; repair writes the others anew from the log.

    `min_offset`, `max_offset`: its queue offsets, [min, max), as far as its units are valid. `units`: those of them
    that the log gives. `reach`: the greatest phy offset that a unit has beyond the log's end; -1: none has.
    """

    topic: str
    queue_id: int
    good: bool = True
    findings: tuple[Finding, ...] = ()
    files: int = 0
    units: int = 0
    min_offset: int = 0
    max_offset: int = 0
    reach: int = -1


def spoils(finding: Finding) -> bool:
    """Whether a queue has to be written because of it."""
    return finding.severity == "error" and finding.kind != catalogue.STRAY_QUEUE_FILE.name


def unit_finding(
    kind: Kind, count: int, path: str, at: int | None, phy_offset: int, low: int, high: int, what: str = "message"
) -> Finding:
    """Of `count` units that are not right by themselves, the first at this place. The log is in [low, high)."""
    if kind in (catalogue.QUEUE_UNITS_EXPIRED, catalogue.QUEUE_UNITS_OF_DAMAGED_LOG):
        return kind.finding(path, at, got=count)
    if kind == catalogue.INVALID_UNIT:
        return kind.finding(path, at, expected="a unit", got="none", places=plural(count, "place"))
    expected = f"below {high}" if kind == catalogue.QUEUE_BEYOND_LOG else f"a {what} of this queue from {low} on"
    return kind.finding(path, at, "phy_offset", expected, phy_offset, units=plural(count, "unit"))


def lost_stretches(walked: Walked) -> tuple[tuple[int, int], ...]:
    """Phy offsets in which the log has no frame that could be read: damage, and whole files that are missing."""
    damaged = ((one.at, one.stop) for one in walked.damage)
    gaps = ((one.stop, two.file_start) for one, two in itertools.pairwise(walked.survey.spans))
    return (*damaged, *(gap for gap in gaps if gap[0] < gap[1]))
