"""Messages of one file of a commit log, as columns and up to its end; what is damaged is reported, and skipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mqindex._native.commit_log import find_frame
from mqindex._native.log_extract import Extractor
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.errors import TruncatedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.log_columns import as_columns, column_scanner
from mqindex.rocketmq.log.log_entries import drained
from mqindex.rocketmq.log.log_files import LogFile, data_end

_LOOK_BACK = 16 << 20  # more than a message may have: 4 MiB and 64 KiB by default


class DamagedStretch(NamedTuple):
    """Bytes of a log file that hold no readable message: phy offsets [at, next), and why."""

    path: str
    at: int
    next: int
    reason: str

    def __str__(self) -> str:
        size = plural(self.next - self.at, "byte")
        return f"{self.path}: no messages from phy offset {self.at} to {self.next}, {size} left out: {self.reason}"


def scan_file(
    file: LogFile,
    start: int,
    stop: int,
    columns: tuple[str, ...],
    *,
    check_crc: bool,
    last: bool,
    looking: Callable[[], None],
    damaged: Callable[[DamagedStretch], None],
) -> Iterator[Columns]:
    """Columns of the messages of a file that begin at the phy offsets [start, stop).

    last : it is the last one of its log: there the first bad record is the end, and bodies are checked. looking :
        called before each batch; what it raises ends the scan. damaged : called for what cannot be read.
    """
    with file.open() as mapped:
        stop, data_stop = min(stop, file.stop), file.start + min(data_end(file.path), file.size)
        at = file.start if start <= file.start else first_frame(mapped.map, file.start, start, min(stop, data_stop))
        while at >= 0:
            scanner = column_scanner(mapped.map, file.start, at, stop, columns, check_crc=check_crc or last)
            while True:
                looking()
                require_whole(file, mapped)
                made = next(scanner, None)
                if made is None:
                    break
                yield as_columns(*made)
            if scanner.fault is None:
                return
            bad, kind, name, expected, got = scanner.fault
            where = f" in {name}" if name else ""
            reason = f"{kind}{where}: expected {expected}, got {got}"
            if last:  # the log's end, behind which no broker reads
                if behind := whole_frames(mapped.map, file.start, bad, stop):
                    said = f"{reason}; the log ends here, and {plural(behind, 'complete frame')} after it"
                    damaged(DamagedStretch(file.path, bad, stop, said))
                return
            at = find_frame(mapped.map, file.start, bad + 1, min(stop, data_stop))
            damaged(DamagedStretch(file.path, bad, at if at >= 0 else stop, reason))


def whole_frames(buf: Any, file_start: int, at: int, stop: int) -> int:
    """How many complete frames are behind the bad one at `at`."""
    frames = 0
    while at + 1 < stop and (at := find_frame(buf, file_start, at + 1, stop)) >= 0:
        walk = drained(Extractor(buf, file_start, at, stop))
        frames += walk.messages
        at = max(walk.end, at)
    return frames


def first_frame(buf: Any, file_start: int, start: int, stop: int) -> int:
    """The first phy offset in [start, stop) where a message begins; -1: none.

    What looks like a frame may be a copy of one inside a body. So the walk begins more than a message's length before
    `start`: if it began inside a body, it has left that body when it reaches `start`.
    """
    at = max(start - _LOOK_BACK, file_start)
    if at > file_start:
        at = find_frame(buf, file_start, at, start)
    while 0 <= at < start:
        walk = drained(Extractor(buf, file_start, at, start))
        at = walk.end if walk.fault is None else find_frame(buf, file_start, walk.end + 1, start)
    if at < 0:
        return find_frame(buf, file_start, start, stop)
    return at if at < stop else -1


def end_of_file(file: LogFile, at: int | None = None) -> int:
    """The phy offset after the last message of a file before the first bad record; bodies are checked.

    at : where to begin: where a message begins, or may begin by now; None: the file's begin
    """
    with file.open() as mapped:
        walk = Extractor(mapped.map, file.start, file.start if at is None else at, file.stop, check_crc=True)
        for _ in walk:
            require_whole(file, mapped)
    return walk.end


def require_whole(file: LogFile, mapped: MappedFile) -> None:
    """Refuse a file that is shorter now: where it ends inside a page, its map would read as zeros."""
    size = os.stat(file.path).st_size
    if min(size, mapped.size) < file.size or size < mapped.size:
        raise TruncatedFileError(
            "the file shrank while it was open", path=file.path, expected=f"{file.size} bytes", got=size
        )
