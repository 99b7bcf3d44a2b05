"""What a repair would do to each segment, in words and in files."""

from __future__ import annotations

from dataclasses import dataclass

from mqindex.files.paths import base_name, join
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.checks.log_check import good_behind
from mqindex.kafka.index.transaction_index import aborted_bytes
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.segment_files import SegmentFiles


@dataclass(frozen=True, slots=True)
class SegmentRepair:
    """The indexes of one segment to write anew. `size`: of its log. `transactions`: the bytes of the new `.txnindex`;
    none: no transaction was aborted, and the file is removed. `removed`: others that are, and not written; then the
    next start cuts the log, and `cut` is the first damage with good batches behind, if there is any.
    """

    files: SegmentFiles
    kinds: frozenset[IndexKind]
    size: int
    transactions: bytes = b""
    removed: frozenset[IndexKind] = frozenset()
    cut: BatchFault | None = None

    @property
    def from_log(self) -> frozenset[IndexKind]:
        """Those for which the segment's log is read again: all that are written but the `.txnindex` come from there."""
        return self.kinds - self.removed - {IndexKind.TRANSACTION}


def planned_repairs(diagnosed: DiagnosedPartition) -> list[SegmentRepair]:
    """Segment by segment, where there is anything to do."""
    repairs = []
    sizes = diagnosed.partition.sizes
    for segment, aborted, size in zip(diagnosed.segments, diagnosed.transactions.aborted, sizes, strict=True):
        if kinds := segment.fate.written | segment.fate.removed:
            data = aborted_bytes(aborted) if IndexKind.TRANSACTION in kinds else b""
            cut = segment.log.damage[0] if segment.log.good_behind else None
            repairs.append(SegmentRepair(segment.files, kinds, size, data, segment.fate.removed, cut))
    return repairs


def planned_actions(diagnosis: Diagnosis) -> list[str]:
    """One sentence for each file."""
    actions = []
    for one in diagnosis.partitions:
        for repair in planned_repairs(one):
            for kind in filter(repair.kinds.__contains__, IndexKind):
                name = base_name(repair.files.place_of(kind))
                path = name if diagnosis.survey.single else join(one.partition.name, name)
                if kind in repair.removed or (kind is IndexKind.TRANSACTION and not repair.transactions):
                    lost = "" if repair.cut is None or kind not in repair.removed else _given_up(repair.cut)
                    actions.append(f"move {path} to the backup{lost}")
                elif kind not in repair.files.indexes:
                    actions.append(f"write {path}")
                else:
                    actions.append(f"write {path} anew")
    return actions


def _given_up(cut: BatchFault) -> str:
    return f": the next start cuts the log at byte {cut.at}, with all good batches behind: {good_behind(cut)}"
