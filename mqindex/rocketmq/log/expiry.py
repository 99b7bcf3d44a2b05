"""Files that a broker deletes while they are read: their time is over, or the disk is full.

It deletes the log from its old end, then the index files and queue files that lead there only. So whoever finds a file
gone that was just listed goes on at the log's new begin; a file that is missing between others is another matter.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.report import Finding
from mqindex.rocketmq import catalogue
from mqindex.rocketmq.log.log_entries import LogSpan

__all__ = ["LogExpiredError", "expired_finding", "present", "read_again", "still_there", "was_deleted"]

Result = TypeVar("Result")


class LogExpiredError(FormatError):
    """The file of the log that held a phy offset was deleted since the log was opened."""


def was_deleted(error: OSError) -> bool:
    """Whether the file that could not be opened is not there any more; a link that leads nowhere is."""
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
    """The files of a log without those at its old end that are gone. The newest is never deleted by a broker."""
    first = next((at for at, span in enumerate(spans) if disk.exists(span.path)), len(spans))
    if spans and first == len(spans):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), spans[-1].path)
    return tuple(spans[first:])


def present(spans: Sequence[LogSpan]) -> tuple[LogSpan, ...]:
    """The files of a log that are there, with holes where others are missing; not without the newest."""
    left = tuple(span for span in spans if disk.exists(span.path))
    if spans and left[-1:] != (spans[-1],):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), spans[-1].path)
    return left


def expired_finding(before: Sequence[LogSpan], left: Sequence[LogSpan]) -> list[Finding]:
    """What is said where `left` is what is left of the files `before`; nothing where it is all."""
    if not left or len(left) == len(before):
        return []
    files, directory = len(before) - len(left), os.path.dirname(left[0].path)
    wanted, got = f"from phy offset {before[0].file_start} on", f"from {left[0].file_start} on"
    return [catalogue.LOG_EXPIRED_MEANWHILE.finding(directory, expected=wanted, got=got, files=files)]
