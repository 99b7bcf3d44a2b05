"""Where the zeros behind the entries of an index file begin: an active segment's is as long as the broker allows."""

from __future__ import annotations

import os

from mqindex.files import disk
from mqindex.files.regular import regular

__all__ = ["entries_before_zeros"]

_BLOCK = 1 << 20


def entries_before_zeros(path: str | os.PathLike[str], entry_size: int) -> int:
    """How many places of an index file are left when its tail of zeros, and part of an entry, are cut.

    Whether they are entries that the log bears out is another question: `mqindex.kafka.verify` answers it.

    Notes
    -----
    Source: Kafka 4.1.0 `DumpLogSegments`, which ends at the first entry of the base offset behind another.
    """
    with disk.named(path), open(path, "rb", buffering=0, opener=regular) as file:
        places = os.fstat(file.fileno()).st_size // entry_size
        end = places * entry_size
        while end > 0:
            start = max(end - _BLOCK, 0)
            block = os.pread(file.fileno(), end - start, start).rstrip(b"\0")
            if block:
                return -(-(start + len(block)) // entry_size)
            end = start
    return 0
