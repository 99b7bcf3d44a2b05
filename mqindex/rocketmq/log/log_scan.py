"""Messages of one file of a commit log, as columns and up to its end; what is damaged is reported, and skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mqindex._native.log_columns import ColumnScanner
from mqindex._native.log_extract import Extractor
from mqindex.columns.columns import Columns
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.damage import Damage, damage_of
from mqindex.rocketmq.log.frame_windows import FrameWindows, find_in
from mqindex.rocketmq.log.log_entries import drained
from mqindex.rocketmq.log.log_files import LogFile, data_end
from mqindex.rocketmq.messages.log_columns import as_columns, column_scanner

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LOOK_BACK = 16 << 20  # more than a message may have: 4 MiB and 64 KiB by default


def scan_file(
    file: LogFile,
    start: int,
    stop: int,
    columns: tuple[str, ...],
    *,
    check_crc: bool,
    last: bool,
    looking: Callable[[], None],
    damaged: Callable[[Damage], None],
    known: int = 0,
) -> Iterator[Columns]:
    """Columns of the messages of a file that begin at the phy offsets [start, stop).

    last : it is the last one of its log: there the first bad record is the end, and bodies are checked. looking :
        called before each batch; what it raises ends the scan. damaged : called for what cannot be read. known : a
        phy offset in the last file up to which every record is known to be good.
    """
    with file.open() as mapped:
        at = first_at(file, mapped, start, stop, last=last, known=known)
        parts = scan_parts(
            file, mapped, at, stop, columns, check_crc=check_crc, last=last, looking=looking, damaged=damaged
        )
        yield from (batch for _, batch in parts)


def first_at(file: LogFile, mapped: MappedFile, start: int, stop: int, *, last: bool, known: int = 0) -> int:
    """The phy offset of the first message that begins at `start` or later; -1: none does, before `stop`."""
    if start <= file.start:
        return file.start
    if last and known < start:  # does the log end before? Then what is there is of an earlier life
        return walked(mapped, file.start, max(known, file.start), start, check_crc=True)[0].end
    return first_frame(mapped, file.start, start, min(stop, _data_stop(file)))


def _data_stop(file: LogFile) -> int:
    """The phy offset behind all data of a file; its end, where a broker deleted it since it was opened."""
    try:
        return file.start + min(data_end(file.path), file.size)
    except FileNotFoundError:
        return file.stop


def scan_parts(
    file: LogFile,
    mapped: MappedFile,
    at: int,
    stop: int,
    columns: tuple[str, ...],
    *,
    check_crc: bool,
    last: bool,
    looking: Callable[[], None],
    damaged: Callable[[Damage], None],
    behind: bool = True,
) -> Iterator[tuple[Buffer, Columns]]:
    """The same from `at` on, where a message begins (-1: there is none), each with a buffer that has its frames.

    The buffer is good until the next batch is asked for. behind : False: do not look for frames behind the log's end.
    """
    stop = min(stop, file.stop)
    while at >= 0:
        frames = FrameWindows(mapped, file.start, at, stop, partial(_scanner, file.start, columns, check_crc or last))
        for scanner in frames:
            while True:
                looking()
                mapped.require_whole()
                made = next(scanner, None)
                if made is None:
                    break
                yield frames.window, as_columns(*made)
        if frames.fault is None:
            return
        if last:  # the log's end, behind which no broker reads
            stale = frames_behind(mapped, file.path, file.start, frames.fault[0], file.stop) if behind else None
            if stale is not None:
                damaged(stale)
            return
        one = damage_of(frames.fault, mapped, file.path, file.start, file.stop, _data_stop(file))
        damaged(one)
        at = one.stop
        if at >= stop:
            return


def _scanner(
    file_start: int, columns: tuple[str, ...], check_crc: bool, window: Any, at: int, stop: int
) -> ColumnScanner:
    return column_scanner(window, file_start, at, stop, columns, check_crc=check_crc)


def walked(
    log: MappedFile, file_start: int, at: int, stop: int, *, check_crc: bool = False
) -> tuple[FrameWindows[Extractor], int]:
    """A walk over frames, run to its end, and how many messages it met."""
    frames = FrameWindows(
        log, file_start, at, stop,
        lambda window, at, stop: Extractor(window, file_start, at, stop, check_crc=check_crc),
    )  # fmt: skip
    return frames, sum(drained(step).messages for step in frames)


def frames_behind(log: MappedFile, path: str, file_start: int, end: int, stop: int) -> Damage | None:
    """The complete frames behind the bad record at `end`, a log's end in its last file; None: there are none."""
    messages, at = 0, end
    fault = walked(log, file_start, end, end + 1, check_crc=True)[0].fault
    if fault is None:  # a message was written there meanwhile
        return None
    while at + 1 < stop and (at := find_in(log, file_start, at + 1, stop)) >= 0:
        frames, met = walked(log, file_start, at, stop)
        messages += met
        at = max(frames.end, at)
    return Damage(path, file_start, end, stop, *fault[1:], behind=messages) if messages else None


def first_frame(log: MappedFile, file_start: int, start: int, stop: int) -> int:
    """The first phy offset in [start, stop) where a message begins; -1: none.

    What looks like a frame may be a copy of one inside a body. So the walk begins more than a message's length before
    `start`: if it began inside a body, it has left that body when it reaches `start`.
    """
    at = max(start - _LOOK_BACK, file_start)
    if at > file_start:
        at = find_in(log, file_start, at, start)
    while 0 <= at < start:
        frames, _ = walked(log, file_start, at, start)
        at = frames.end if frames.fault is None else find_in(log, file_start, frames.end + 1, start)
    if at < 0:
        return find_in(log, file_start, start, stop)
    return at if at < stop else -1


def end_of_file(file: LogFile, at: int | None = None) -> int:
    """The phy offset after the last message of a file before the first bad record; bodies are checked.

    at : where to begin: where a message begins, or may begin by now; None: the file's begin
    """
    with file.open() as mapped:
        frames = FrameWindows(
            mapped, file.start, file.start if at is None else at, file.stop,
            lambda window, at, stop: Extractor(window, file.start, at, stop, check_crc=True),
        )  # fmt: skip
        for step in frames:
            for _ in step:
                mapped.require_whole()
    return frames.end
