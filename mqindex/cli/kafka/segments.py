"""One segment's log, also under a name that tells no base offset: a copy somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex.errors import BadMagicError
from mqindex.files.regular import regular

if TYPE_CHECKING:
    from mqindex.kafka import LogSegment

__all__ = ["open_segment"]


def open_segment(path: str) -> LogSegment:
    """Open a `.log`; its base offset is the name's, else its first batch's (of a wrapper of magic 0 or 1 the last)."""
    from mqindex.kafka import LogSegment

    try:
        return LogSegment.open(path)
    except BadMagicError:
        with open(path, "rb", opener=regular) as file:
            first = int.from_bytes(file.read(8), "big", signed=True)
        return LogSegment.open(path, base_offset=max(first, 0))
