"""What a consumer reads of a partition."""

from __future__ import annotations

from pathlib import Path

from mqindex.kafka import PartitionLog

__all__ = ["consumed"]


def consumed(path: Path, level: str) -> list[int]:
    """The offsets that a consumer of an isolation level gets who begins at the log's start."""
    offsets: list[int] = []
    with PartitionLog.open(path) as log:
        at = log.log_start_offset
        while len(part := log.read(at, isolation_level=level, columns=["offset"])["offset"]):  # type: ignore[arg-type]
            offsets += part.tolist()
            at = offsets[-1] + 1
    return offsets
