"""What the checkpoints of a log dir say of its partitions."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from mqindex.kafka.partition.offset_checkpoint import Offsets, readable_offsets

_CHECKPOINTS: Final = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


@dataclass(frozen=True, slots=True)
class KnownOffsets:
    """By the result of `entry_name`. A checkpoint that no broker can read says nothing; verify reports it."""

    log_start: Offsets = field(default_factory=dict)
    recovery_point: Offsets = field(default_factory=dict)
    high_watermark: Offsets = field(default_factory=dict)


def known_offsets(log_dir: str) -> KnownOffsets:
    """A task: read the checkpoints."""
    return KnownOffsets(*(readable_offsets(os.path.join(log_dir, name)) for name in _CHECKPOINTS))
