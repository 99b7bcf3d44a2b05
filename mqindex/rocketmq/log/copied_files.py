"""Files that have one place in a log: they are copies, or of two logs.

A log only grows. So a copy, also an older one, has the same bytes or still zeros; it is enough to compare where it
begins, with the times and hosts of messages, and where the data of the file that is read ends. A file of a log ends
where the next one begins, at a message, so where one reaches further the two never are of one log.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable
from typing import BinaryIO, Final

from mqindex.errors import FileStateError
from mqindex.files.reading.regular import reading
from mqindex.rocketmq.log.log_files import Skipped

_BLOCK: Final = 4096  # bytes
_HINT: Final = "a log has one; files of two logs are read each by itself, and of two copies the longer one"


def refuse_other_logs(skipped: Iterable[Skipped]) -> None:
    """`FileStateError` where a file, or the end of one, was skipped for another although it holds something else."""
    for one in skipped:
        if one.twin is None or _holds_nothing_else(one, one.twin):
            continue
        if one.at:
            what, expected = "a file of the log reaches into another one", "its end there"
        else:
            what, expected = "two files begin at one offset of the log", "a copy"
        raise FileStateError(what, path=one.path, at=one.at or None, expected=expected, got=one.twin, hint=_HINT)


def _holds_nothing_else(one: Skipped, twin: str) -> bool:
    try:
        with reading(one.path, buffered=False) as left_out, reading(twin, buffered=False) as read:
            if one.at:
                return _data_end(left_out) - _BLOCK <= one.at and not any(_block(left_out, one.at))
            end = _data_end(read)
            places = 0, max(end - _BLOCK, 0), end
            # What is left out first: both may be one file, in which a broker is writing.
            blocks = [(_block(left_out, at).rstrip(b"\0"), _block(read, at)) for at in places]
            return all(whole.startswith(block) for block, whole in blocks)
    except FileNotFoundError:  # deleted since it was listed
        return True


def _data_end(file: BinaryIO) -> int:
    """The end of the block after which there are zeros only, whether they were written or not."""
    blocks = -(-os.fstat(file.fileno()).st_size // _BLOCK)
    return _BLOCK * bisect_left(range(blocks), True, key=lambda number: not any(_block(file, number * _BLOCK)))


def _block(file: BinaryIO, at: int) -> bytes:
    return os.pread(file.fileno(), _BLOCK, at)
