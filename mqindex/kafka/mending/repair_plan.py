"""What a repair would do with each segment, in words and in files."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.index.transaction_index import aborted_bytes
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.partition.partition_files import SegmentFiles

__all__ = ["Mend", "planned_actions", "planned_mends"]


@dataclass(frozen=True, slots=True)
class Mend:
    """The indexes of one segment that are written anew. `transactions`: the bytes of the `.txnindex`, where it is."""

    files: SegmentFiles
    kinds: frozenset[IndexKind]
    size: int
    transactions: bytes = b""

    @property
    def from_log(self) -> bool:
        """Whether the segment's log is read again: all but the `.txnindex` comes from there."""
        return bool(self.kinds - {IndexKind.TRANSACTION})


def planned_mends(diagnosed: DiagnosedPartition) -> list[Mend]:
    """Segment by segment, where there is anything to do. A segment that the broker is exchanging stays its own."""
    mends = []
    sizes = diagnosed.partition.sizes
    for segment, due, size in zip(diagnosed.segments, diagnosed.due, sizes, strict=True):
        if segment.wrong and segment.files.log.endswith(".log"):
            aborted = aborted_bytes(due) if IndexKind.TRANSACTION in segment.wrong else b""
            mends.append(Mend(segment.files, frozenset(segment.wrong), size, aborted))
    return mends


def planned_actions(diagnosis: Diagnosis) -> list[str]:
    """One sentence for each file."""
    actions = []
    for one in diagnosis.partitions:
        for mend in planned_mends(one):
            for kind in filter(mend.kinds.__contains__, IndexKind):
                name = os.path.basename(mend.files.place_of(kind))
                path = name if diagnosis.survey.single else os.path.join(one.partition.name, name)
                if kind is IndexKind.TRANSACTION and not mend.transactions:
                    actions.append(f"move {path} to the backup")
                elif kind not in mend.files.indexes:
                    actions.append(f"write {path}")
                else:
                    actions.append(f"write {path} anew")
    return actions
