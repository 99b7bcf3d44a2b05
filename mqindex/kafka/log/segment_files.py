"""The names of one segment's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from mqindex.kafka.layout import IndexKind

__all__ = ["SegmentFiles"]


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of one base offset. `indexes`: those that exist. After a crash a name may still end in `.swap`."""

    base_offset: int
    log: str
    indexes: Mapping[IndexKind, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all files that exist, the log's first."""
        return (self.log, *self.indexes.values())

    def place_of(self, kind: IndexKind) -> str:
        """The path where an index belongs, whether it exists or not."""
        return os.path.join(os.path.dirname(self.log), f"{self.base_offset:020d}.{kind}")
