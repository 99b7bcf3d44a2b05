"""The names of one segment's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mqindex.files.paths import join, parent_of
from mqindex.kafka.kinds import segment_file
from mqindex.kafka.layout import IndexKind

_SWAP: Final = ".swap"


@dataclass(frozen=True, slots=True)
class SegmentFiles:
    """The files of one base offset. `indexes`: those that exist. After a crash a name may still end in `.swap`.

    `next_base_offset`: of the partition's next segment; None: there is none, or it is not known.
    """

    base_offset: int
    log: str
    indexes: Mapping[IndexKind, str] = field(default_factory=dict)
    next_base_offset: int | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Of all files that exist, the log's first."""
        return (self.log, *self.indexes.values())

    @property
    def is_swapping(self) -> bool:
        """Whether a broker was exchanging the files."""
        return self.log.endswith(_SWAP)

    def place_of(self, kind: IndexKind) -> str:
        """The path of an index, or where it belongs. A broker that was exchanging files may have left it a `.swap`."""
        if kind in self.indexes:
            return self.indexes[kind]
        name = segment_file(self.base_offset, kind, _SWAP if self.is_swapping else "")
        return join(parent_of(self.log), name)
