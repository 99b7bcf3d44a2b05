"""The producers' state before a segment: which transactions are open there, and where they began.

A `.snapshot` holds the state as of the offset in its name.

```
0 version i16, 1 | 2 crc u32, CRC-32C of [6, end) | 6 count i32 | count times 46 bytes:
0 producer_id i64 | 8 epoch i16 | 10 last_sequence i32 | 14 last_offset i64 | 22 offset_delta i32 | 26 timestamp i64
| 34 coordinator_epoch i32 | 38 current_txn_first_offset i64, -1: no transaction is open
```
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.crc import crc32c
from mqindex._words import plural
from mqindex.errors import CorruptIndexError
from mqindex.files.places.place import given_path, require_answer
from mqindex.files.reading.regular import reading

OpenTransactions = tuple[tuple[int, int], ...]
"""Producer ids and first offsets."""

NEVER: Final = 2**63 - 1
"""No log reaches this offset."""

_HEADER = 10
_VERSION = 1
_ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("first_offset", ">i8"),
    ]
)
_LARGEST = 1 << 28  # bytes; of five million producers


def read_snapshot(path: str | os.PathLike[str]) -> OpenTransactions:
    """The transactions that a snapshot says are open; errors as in `read_producers`."""
    entries = read_producers(path)
    opened = entries[entries["first_offset"] >= 0]
    return tuple(zip(opened["producer_id"].tolist(), opened["first_offset"].tolist(), strict=True))


def read_producers(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """The producers of a snapshot, as a structured array; `first_offset`: of the open transaction, -1 where none is.

    Raises
    ------
    CorruptIndexError : another version, length or checksum; a broker skips such a snapshot too.

    Notes
    -----
    Source: Kafka 4.1.0 `ProducerStateManager.readSnapshot`.
    """
    name = given_path("path", path)
    with reading(name) as file:
        data = file.read(_LARGEST)
    if len(data) < _HEADER:
        wanted = f"{_HEADER} bytes or more"
        raise CorruptIndexError("no snapshot that a broker reads", path=name, expected=wanted, got=len(data))
    if (version := int.from_bytes(data[:2], "big")) != _VERSION:
        raise CorruptIndexError(
            "no snapshot that a broker reads", path=name, field="version", expected=_VERSION, got=version
        )
    count = int.from_bytes(data[6:10], "big", signed=True)
    if len(data) != _HEADER + count * _ENTRY.itemsize:
        wanted = f"{_HEADER} bytes and {_ENTRY.itemsize} for each of {plural(count, 'producer')}"
        raise CorruptIndexError("the snapshot has another length", path=name, expected=wanted, got=len(data))
    stored, crc = int.from_bytes(data[2:6], "big"), crc32c(memoryview(data)[6:])
    if stored != crc:
        raise CorruptIndexError(
            "the snapshot has a wrong checksum", path=name, at=2, field="crc", expected=crc, got=stored
        )
    return np.frombuffer(data, _ENTRY, offset=_HEADER)


def open_transactions_at(snapshots: Mapping[int, str], base_offset: int, log_start: int) -> OpenTransactions:
    """What is open at `base_offset` by the newest snapshot above the log's start that can be read; else nothing.

    Source: Kafka 4.1.0 `ProducerStateManager.truncateAndReload`.
    """
    for offset in sorted((offset for offset in snapshots if log_start < offset <= base_offset), reverse=True):
        if (found := readable_snapshot(snapshots[offset])) is not None:
            return found
    return ()


def readable_snapshot(path: str) -> OpenTransactions | None:
    """`read_snapshot`; None: it cannot be read, and a broker takes an older one."""
    try:
        return read_snapshot(path)
    except CorruptIndexError:
        return None
    except OSError as error:
        require_answer(error, path)
        return None


def loaded_state(snapshots: Mapping[int, str], bases: Collection[int], log_start: int) -> tuple[int, OpenTransactions]:
    """From which offset on a broker reads the log for its producers when it starts after a clean stop, and what it
    takes for open there; `NEVER`, nothing: where there is no snapshot it reads none of it.

    Notes
    -----
    Source: Kafka 4.1.0 `ProducerStateManager.loadFromSnapshot`, `UnifiedLog.rebuildProducerState`.
    """
    kept = kept_snapshots(snapshots, bases)
    if not kept:
        return NEVER, ()
    for at in sorted((at for at in kept if at > log_start), reverse=True):
        if (found := readable_snapshot(snapshots[at])) is not None:
            return at, found
    return log_start, ()


def kept_snapshots(offsets: Collection[int], bases: Collection[int]) -> list[int]:
    """The snapshots that a broker keeps which starts: those at segments' begins, and the last one behind all of these.

    Source: Kafka 4.1.0 `ProducerStateManager.removeStraySnapshots`.
    """
    greatest, last = max(bases, default=0), max(offsets, default=0)
    return [at for at in offsets if at in bases or (at == last and at > greatest)]
