"""`checkpoint`: the times up to which a broker knows its files to be on the disk."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from mqindex.files.places.place import given_path
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.layout import CHECKPOINT_SIZE

LATEST_TIME = 1 << 47  # ms, in the year 6429; what is more is garbage
_FIELDS = struct.Struct(">6q")


class Checkpoint(NamedTuple):
    """The fields of `<store>/checkpoint`.

    Attributes
    ----------
    physic_msg_timestamp, logics_msg_timestamp, index_msg_timestamp : int, ms since the epoch
        Store times up to which the log, the consume queues and the index are known to be on the disk.
    master_flushed_offset : int, phy offset up to which the master's log is on its disk; from 5.0 on
    confirm_phy_offset : int, phy offset that the in-sync replicas have; from 5.1 on
    logics_physical_offset : int, phy offset of the last message that the queues on the disk have; from 5.5 on

    Notes
    -----
    What a broker's version does not write is 0. Source: RocketMQ 4.9.3 `store/StoreCheckpoint`; 5.5.0 for the offsets.

    Examples
    --------
    >>> Checkpoint.read("store/checkpoint").physic_msg_timestamp
    1680170469252
    """

    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_phy_offset: int = 0
    logics_physical_offset: int = 0

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
    ) -> Checkpoint | None:
        """The checkpoint in the file `path`; None: no file, or too short. `storage_options`: of a URL."""
        try:
            with reading(given_path("path", path, storage_options)) as file:
                head = file.read(_FIELDS.size)
        except FileNotFoundError:
            return None
        return cls(*_FIELDS.unpack(head)) if len(head) == _FIELDS.size else None

    def without_garbage(self) -> Checkpoint:
        """The same, with 0 (unknown) in place of what is no time and no offset.

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
