"""The names of one segment's files."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SegmentFiles"]


class SegmentFiles(NamedTuple):
    """The files of one base offset; None: there is none. After a crash a name may still end in `.swap`."""

    base_offset: int
    log: str
    index: str | None  # type: ignore[assignment]  # a tuple's own method, which nobody calls here
    timeindex: str | None
    txnindex: str | None
