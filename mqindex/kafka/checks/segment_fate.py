"""What a repair does with the indexes of one segment, decided once, from what is known of its log and of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from mqindex.files import disk
from mqindex.kafka.checks.segment_log import CheckedLog, SegmentCheck
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.report import Finding


class Course(Enum):
    """What is done with wrong indexes, with the hint of their findings; `WRITE`: the findings' own hints."""

    WRITE = ""
    CONTRADICTORY = "left as it is: the log contradicts itself, and perhaps the index is right"
    EXCHANGE = (
        "left as it is: a broker that starts completes the exchange, with one of zeros where an .index is missing; "
        "`mqindex repair` writes it after that"
    )
    RECOVERY = (
        "left as it is: without an .index a broker that starts recovers this segment alone, and cuts its log where it "
        "is bad; with one it would not start, drop every later segment, or serve what is bad"
    )
    CUT = (
        "`mqindex repair` moves the .index to the backup: without it a broker that starts recovers this segment, cuts "
        "its log where it is bad, and writes all its indexes"
    )


@dataclass(frozen=True, slots=True)
class Fate:
    """`wrong`: the indexes that are. `written`: those that a repair writes anew, `removed`: that it takes away."""

    course: Course = Course.WRITE
    wrong: frozenset[IndexKind] = frozenset()
    written: frozenset[IndexKind] = frozenset()
    removed: frozenset[IndexKind] = frozenset()

    @classmethod
    def of(cls, course: Course, wrong: Collection[IndexKind], files: SegmentFiles) -> Fate:
        """The fate of a segment whose indexes are all checked."""
        written = {
            Course.WRITE: frozenset(wrong),
            Course.CONTRADICTORY: frozenset(wrong).difference(files.indexes),  # one that is there may be right
            Course.CUT: frozenset(wrong) - {IndexKind.OFFSET},
        }.get(course, frozenset())
        removed = frozenset({IndexKind.OFFSET}) if course is Course.CUT else frozenset()
        return cls(course, frozenset(wrong), written, removed)

    def only(self, kinds: Collection[IndexKind]) -> Fate:
        """The same for some of the indexes."""
        return Fate(self.course, *(one & frozenset(kinds) for one in (self.wrong, self.written, self.removed)))

    def told(self, findings: Iterable[Finding], files: SegmentFiles) -> tuple[Finding, ...]:
        """The findings with what becomes of each."""
        places = {files.place_of(kind): kind for kind in IndexKind}
        return tuple(self._told(one, places[one.path]) if one.path in places else one for one in findings)

    def _told(self, finding: Finding, kind: IndexKind) -> Finding:
        if finding.severity != "error" or self.course is Course.WRITE or kind in self.written:
            return finding
        mended = finding.mended_by if kind in self.removed else None
        return replace(finding, hint=self.course.value, mended_by=mended)


def course_of(check: SegmentCheck, log: CheckedLog, wrong: Collection[IndexKind]) -> Course:
    """What is done with the wrong indexes of a segment, and why.

    A broker recovers a segment that has no `.index` when it loads it, and cuts its log at the first bad batch. With one
    it serves the good batches behind that after a clean stop, or below the recovery point: so nothing good is cut by a
    repair that is not asked to. Above the recovery point all later segments are dropped when the log is cut, but none
    when it was cut as it was loaded. The last segment of an unclean stop is cut in any case. Where nothing good lies
    behind, and the stop was clean, a broker with a right `.index` does not start on zeros, or appends behind what is
    bad. Source: Kafka 2.8.2 to 4.1.0 `LogLoader.loadSegmentFiles`, `recoverLog`.
    """
    files, is_cut = check.files, check.last and check.clean is not True
    if log.cut and not is_cut and not files.is_swapping and check.options.makes_lost_indexes:
        place = files.place_of(IndexKind.OFFSET)
        asked = check.cut_damaged or not log.good_behind
        if not disk.is_there(place) and (check.unflushed or asked):
            return Course.RECOVERY
        dead = check.last and IndexKind.OFFSET in wrong and not log.good_behind
        if disk.is_there(place) and not (log.contradictory or check.unflushed) and (check.cut_damaged or dead):
            return Course.CUT
    if log.contradictory:
        return Course.CONTRADICTORY
    return Course.EXCHANGE if files.is_swapping else Course.WRITE
