"""One segment's log, also under a name without a base offset: a copy somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex.errors import BadMagicError

if TYPE_CHECKING:
    from mqindex.kafka import LogSegment


def open_segment(path: str) -> LogSegment:
    """Open a `.log`; its base offset is the name's, else its first batch's (of a wrapper of magic 0 or 1 the last)."""
    from mqindex.kafka import LogSegment
    from mqindex.kafka.kinds import first_offset

    try:
        return LogSegment.open(path)
    except BadMagicError:
        return LogSegment.open(path, base_offset=max(first_offset(path), 0))
