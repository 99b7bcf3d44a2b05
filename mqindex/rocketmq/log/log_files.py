"""The files of a commit log: which there are, where each begins, and how much of it was ever written."""

from __future__ import annotations

import errno
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mqindex.errors import FileStateError, FormatError, TruncatedFileError
from mqindex.files.entries import leads_to_file
from mqindex.files.paths import Entry, scan
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.kinds import offset_of
from mqindex.rocketmq.log.frame_windows import find_in

EMPTY = "an empty file"
_ELSEWHERE = (
    "the commit log is to be there (storePathCommitLog of a --broker-conf, else commitlog/ of the store); "
    "commitlog= (--commitlog) says where it is"
)
_BLOCK = 4096  # bytes
_LOOKS = 16  # at the begin of a file
_HINT = "a log has one; files of two logs are read each by itself, and of two copies the longer one"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file: the phy offset of its first byte, and how many bytes of the log it holds."""

    path: str
    start: int
    size: int

    @property
    def stop(self) -> int:
        """The phy offset after its last byte."""
        return self.start + self.size

    def open(self) -> MappedFile:
        """Map it; `TruncatedFileError`: somebody cut it meanwhile."""
        return map_log_file(self.path, self.size)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a log's directory that is no part of the log: a file, or the end of one."""

    path: str
    reason: str
    twin: str | None = None  # the file that has its place
    at: int = 0  # the byte from which on it is left out: there the twin begins


def map_log_file(path: str, size: int) -> MappedFile:
    """Map a file that holds `size` bytes of a log; `TruncatedFileError`: it was cut since it was found to do so."""
    try:
        mapped = map_file(path)
    except TruncatedFileError as error:
        raise _cut(path, size, error.got) from None
    if mapped.size < size:
        mapped.close()
        raise _cut(path, size, mapped.size)
    return mapped


def _cut(path: str, size: int, got: int) -> TruncatedFileError:
    return TruncatedFileError(
        "the log was cut while it was read",
        path=path,
        expected=f"{size} bytes or more",
        got=got,
        hint="run it again once nothing writes to it",
    )


def list_log_files(directories: Sequence[str | os.PathLike[str]]) -> list[LogFile]:
    """All files of a log that may be spread over several directories, by their start.

    Other and empty files are skipped, as 5.x brokers do. A directory that does not exist is an error, unless the log is
    so young that this directory has no file yet: files go to the directories in turn.
    """
    return survey_directories(directories)[0]


def survey_directories(directories: Sequence[str | os.PathLike[str]]) -> tuple[list[LogFile], list[Skipped]]:
    """The files of a log, and what was skipped and why."""
    try:
        return numbered_files(directories)
    except FileNotFoundError as error:
        said = f"{os.strerror(errno.ENOENT)}; {_ELSEWHERE}"
        raise FileNotFoundError(errno.ENOENT, said, error.filename) from None


def numbered_files(directories: Sequence[str | os.PathLike[str]]) -> tuple[list[LogFile], list[Skipped]]:
    """Files whose names are their starts, of a log or a queue, and what was skipped and why.

    A file that is missing between others is missed twice before it counts: brokers delete old files and make new ones
    while directories are listed, and what has begun at a deleted file is listed without it the second time.
    """
    files, skipped = _listed(directories)
    missed: list[tuple[int, int]] = []
    while (missed_now := _between(files)) != missed:
        missed = missed_now
        files, skipped = _listed(directories)
    return files, skipped


def _between(files: Sequence[LogFile]) -> list[tuple[int, int]]:
    return list(holes(files, files[0].start, files[-1].start)) if files else []


def _listed(directories: Sequence[str | os.PathLike[str]]) -> tuple[list[LogFile], list[Skipped]]:
    found: dict[int, LogFile] = {}
    skipped: list[Skipped] = []
    missing = []
    for directory in sorted(os.fspath(directory) for directory in directories):
        try:
            entries = sorted(scan(directory), key=lambda entry: entry.name)
        except FileNotFoundError:
            missing.append(directory)
            continue
        for entry in entries:
            _take(entry, found, skipped)
    if missing and (len(missing) == len(directories) or len(found) >= len(directories)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), missing[0])
    return _without_overlap([found[start] for start in sorted(found)], skipped), skipped


def _take(entry: Entry, found: dict[int, LogFile], skipped: list[Skipped]) -> None:
    start = offset_of(entry.name)
    if start is None or not leads_to_file(entry):
        skipped.append(Skipped(entry.path, "not a file named by 20 digits"))
        return
    try:
        size = entry.stat().st_size
    except FileNotFoundError:  # deleted since it was listed
        return
    if size == 0:
        skipped.append(Skipped(entry.path, EMPTY))
    elif start in found:
        skipped.append(Skipped(entry.path, f"the same offset as {found[start].path}", found[start].path))
    elif start + size > 2**63 - 1:
        skipped.append(Skipped(entry.path, "its offsets do not fit 64 bits"))
    else:
        found[start] = LogFile(entry.path, start, size)


def _without_overlap(files: list[LogFile], skipped: list[Skipped]) -> list[LogFile]:
    """The files, each up to the next one's start."""
    clipped = files[-1:]
    for file, following in pairwise(files):
        at = following.start - file.start
        if at < file.size:
            reason = f"its bytes from {at} on have the place of {following.path}"
            skipped.append(Skipped(file.path, reason, following.path, at))
        clipped.insert(-1, LogFile(file.path, file.start, min(file.size, at)))
    return clipped


def holes(files: Sequence[LogFile | range], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The stretches of [start, stop) that no file holds, from files by their start.

    >>> list(holes([range(0, 10), range(10, 20), range(30, 40)], 5, 45))
    [(20, 30), (40, 45)]
    """
    for file in files:
        if start < min(file.start, stop):
            yield start, min(file.start, stop)
        start = max(start, file.stop)
    if start < stop:
        yield start, stop


def data_end(path: str | os.PathLike[str]) -> int:
    """Where the last data of a sparse file ends: a file made in advance is never read just to find zeros."""
    with SparseFile(path) as file:
        return file.data_end()


def probable_end(path: str) -> int:
    """The same by few reads, for a look at what is near it; see `SparseFile.probable_end`."""
    with SparseFile(path) as file:
        return file.probable_end()


def last_file_with_frames(files: Sequence[LogFile]) -> int:
    """The number of the last file that holds a frame anywhere, where the log ends; -1: no file does."""
    return next((at for at in reversed(range(len(files))) if _holds_frames(files[at])), -1)


def newest_begun(files: Sequence[LogFile]) -> int:
    """The number of the newest file that begins with a frame: the log ends in it or behind it; 0: none of a few does.

    A broker makes the next file in advance, which has no frame yet and may be full of zeros: it is not read here.
    """
    newest = range(len(files) - 1, max(len(files) - _LOOKS, 0), -1)
    return next((at for at in newest if begins_with_frame(files[at])), 0)


def begins_with_frame(file: LogFile) -> bool:
    """Whether there is a frame at its begin: no more of it is read."""
    with file.open() as log:
        return find_in(log, file.start, file.start, file.start + 1) >= 0


def _holds_frames(file: LogFile) -> bool:
    stop = file.start + min(file.size, data_end(file.path))
    if stop == file.start:
        return False
    with file.open() as log:
        return find_in(log, file.start, file.start, stop) >= 0


# ---- files that have one place: copies, or of two logs


def refuse_other_logs(skipped: Iterable[Skipped]) -> None:
    """`FileStateError` where a file, or the end of one, was skipped for another although it holds something else.

    A log only grows. So a copy, also an older one, has the same bytes or still zeros; it is enough to compare where it
    begins, with the times and hosts of messages, and where the data of the file that is read ends. A file of a log ends
    where the next one begins, at a message, so where one reaches further the two never are of one log.
    """
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
        with SparseFile(one.path) as left_out, SparseFile(twin) as read:
            if one.at:
                return _data_end(left_out) - _BLOCK <= one.at and not any(_block(left_out, one.at))
            end = _data_end(read)
            places = 0, max(end - _BLOCK, 0), end
            # What is left out first: both may be one file, in which a broker is writing.
            blocks = [(_block(left_out, at).rstrip(b"\0"), _block(read, at)) for at in places]
            return all(whole.startswith(block) for block, whole in blocks)
    except FileNotFoundError:  # deleted since it was listed
        return True


def _data_end(file: SparseFile) -> int:
    """The end of the block after which there are zeros only, whether they were written or not."""
    blocks = -(-file.size // _BLOCK)
    return _BLOCK * bisect_left(range(blocks), True, key=lambda number: not any(_block(file, number * _BLOCK)))


def _block(file: SparseFile, at: int) -> bytes:
    return file.read(at, min(at + _BLOCK, file.size)) if at < file.size else b""


def require_length(files: Sequence[LogFile], size: int) -> None:
    """`FormatError`: a file but the last has another length, or that one is longer."""
    for file in files:
        fits = file.size <= size if file is files[-1] else file.size == size
        if not fits:
            raise FormatError(
                "the file has another length", path=file.path, expected=f"{size} bytes", got=file.size,
                hint="check mapped_file_size (mappedFileSizeCommitLog of the broker)",
            )  # fmt: skip
