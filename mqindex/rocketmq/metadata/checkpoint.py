"""`checkpoint`: the times up to which a broker knows its files to be on the disk."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

from mqindex.files import disk
from mqindex.files.regular import regular

__all__ = ["CHECKPOINT_SIZE", "LATEST_TIME", "Checkpoint"]

CHECKPOINT_SIZE = 4096
LATEST_TIME = 1 << 47  # ms, in the year 6429; what is more is garbage
_FIELDS = struct.Struct(">6q")


class Checkpoint(NamedTuple):
    """The fields of `<store>/checkpoint`, times in ms since the epoch.

    Source: RocketMQ 4.9.3 `store/StoreCheckpoint`; `master_flushed_offset` (5.0), `confirm_phy_offset` (5.1) and
    `logics_physical_offset` (5.5: the last message that the queues on the disk have) are 0 in older files.
    """

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_physical_offset: int = 0

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Checkpoint | None:
        """The checkpoint in a file; None where there is no file, or none that is long enough."""
        try:
            with disk.named(path), open(path, "rb", opener=regular) as file:
                head = file.read(_FIELDS.size)
        except FileNotFoundError:
            return None
        return cls(*_FIELDS.unpack(head)) if len(head) == _FIELDS.size else None

    def without_garbage(self) -> Checkpoint:
        """The same, with 0, that is unknown, for what is no time and no offset.

        >>> Checkpoint(1_700_000_000_000, -5, 2**60).without_garbage()[:3]
        (1700000000000, 0, 0)
        """
        times = (time if 0 <= time < LATEST_TIME else 0 for time in self[:3])
        return Checkpoint(*times, *(max(offset, 0) for offset in self[3:]))

    def to_bytes(self) -> bytes:
        """The whole file as the broker writes it.

        >>> len(Checkpoint(index_msg_timestamp=1).to_bytes())
        4096
        """
        return _FIELDS.pack(*self).ljust(CHECKPOINT_SIZE, b"\0")
