"""Logs as DLedger keeps them, written with struct alone."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

__all__ = ["to_dledger"]


def _entry(body: bytes, number: int, pos: int) -> bytes:
    """As `DLedgerEntryCoder` of DLedger 0.2.3 writes it."""
    return struct.pack(">iiqqqiiii", 1, 48 + len(body), number, 0, pos, 0, 0, 0, len(body)) + body


def to_dledger(root: Path, *, start: int = 0, keep_log: bool = False) -> Path:
    """The store's log in entries of DLedger; returns its directory."""
    data = root / "dledger-n0" / "data"
    data.mkdir(parents=True)
    log = (root / "commitlog" / f"{0:020d}").read_bytes()
    (size,) = struct.unpack_from(">i", log)
    first = _entry(log[:size], 0, start)
    (data / f"{start:020d}").write_bytes((first + _entry(log[:size], 1, start + len(first))).ljust(4096, b"\0"))
    if not keep_log:
        shutil.rmtree(root / "commitlog")
    return data
