"""What a repair would do with each segment, in words and in files."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Diagnosis
from mqindex.kafka.partition.partition_files import SegmentFiles
from mqindex.kafka.partition.survey import INDEXES, index_path, index_paths
from mqindex.kafka.partition.transactions import aborted_bytes

__all__ = ["Mend", "planned_actions", "planned_mends"]


@dataclass(frozen=True, slots=True)
class Mend:
    """The indexes of one segment that are written anew. `transactions`: the bytes of the `.txnindex`, where it is."""

    files: SegmentFiles
    endings: frozenset[str]
    size: int
    transactions: bytes = b""

    @property
    def from_log(self) -> bool:
        """Whether the segment's log is read again: all but the `.txnindex` comes from there."""
        return bool(self.endings & set(INDEXES[:2]))


def planned_mends(diagnosed: DiagnosedPartition) -> list[Mend]:
    """Segment by segment, where there is anything to do. A segment that the broker is exchanging stays its own."""
    mends = []
    sizes = diagnosed.partition.sizes
    for segment, due, size in zip(diagnosed.segments, diagnosed.due, sizes, strict=True):
        if segment.wrong and segment.files.log.endswith(".log"):
            aborted = aborted_bytes(due) if INDEXES[2] in segment.wrong else b""
            mends.append(Mend(segment.files, frozenset(segment.wrong), size, aborted))
    return mends


def planned_actions(diagnosis: Diagnosis) -> list[str]:
    """One sentence for each file."""
    actions = []
    for one in diagnosis.partitions:
        for mend in planned_mends(one):
            here = index_paths(mend.files)
            for ending in sorted(mend.endings):
                name = os.path.basename(index_path(mend.files, ending))
                path = name if diagnosis.survey.single else os.path.join(one.partition.name, name)
                if ending == INDEXES[2] and not mend.transactions:
                    actions.append(f"move {path} to the backup")
                elif here[ending] is None:
                    actions.append(f"write {path}")
                else:
                    actions.append(f"write {path} anew")
    return actions
