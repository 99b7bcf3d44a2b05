"""Files that a broker deletes while they are read: their time is over, or the disk is full.

It deletes the log from its old end, then the index files and queue files that lead there only. So a reader for which a
listed file has disappeared continues at the log's new beginning; a file that is missing between others is damage.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.paths import parent_of
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.log.log_entries import LogSpan

Result = TypeVar("Result")

LOOK_AGAIN_SECONDS = 0.01  # until calls that would take longer for it see again whether a file is still there


class LogExpiredError(FormatError):
    """The file of the log that held a phy offset was deleted since the log was opened."""


def was_deleted(error: OSError) -> bool:
    """Whether the file that could not be opened has disappeared; a link that leads nowhere has not."""
    return isinstance(error, FileNotFoundError) and error.filename is not None and not disk.exists(error.filename)


def read_again(work: Callable[[], Result]) -> Result:
    """`work()`, which lists files and then opens them; once more for each that was deleted between the two."""
    gone: set[str] = set()
    while True:
        try:
            return work()
        except FileNotFoundError as error:
            if error.filename in gone or not was_deleted(error):
                raise
            gone.add(error.filename)


def still_there(spans: Sequence[LogSpan]) -> tuple[LogSpan, ...]:
    """The files of a log without deleted ones at its old end. A broker never deletes the newest."""
    first = next((at for at, span in enumerate(spans) if disk.exists(span.path)), len(spans))
    if spans and first == len(spans):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), spans[-1].path)
    return tuple(spans[first:])


def present(spans: Sequence[LogSpan]) -> tuple[LogSpan, ...]:
    """The files of a log that exist, with holes where others are missing; the newest must exist."""
    left = tuple(span for span in spans if disk.exists(span.path))
    if spans and left[-1:] != (spans[-1],):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), spans[-1].path)
    return left


def expired_finding(before: Sequence[LogSpan], left: Sequence[LogSpan]) -> list[Finding]:
    """The finding where `left` are the remaining ones of the files `before`; none if all remain."""
    if not left or len(left) == len(before):
        return []
    files, directory = len(before) - len(left), parent_of(left[0].path)
    wanted, got = f"from phy offset {before[0].file_start} on", f"from {left[0].file_start} on"
    return [catalogue.LOG_EXPIRED_MEANWHILE.finding(directory, expected=wanted, got=got, files=files)]
