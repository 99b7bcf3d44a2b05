"""`CommitLog`: the messages of a broker's commit log, as columns and one at a time."""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from mqindex._mapped_file import MappedFile
from mqindex._native.commit_log import Extractor, Scanner, find_frame
from mqindex._results import Columns
from mqindex.errors import ClosedFileError, FormatError, TruncatedFileError
from mqindex.rocketmq.log_columns import columns_of, require_columns
from mqindex.rocketmq.log_files import (
    LogFile,
    Skipped,
    data_end,
    last_file_with_frames,
    list_log_files,
    survey_directories,
)
from mqindex.rocketmq.message import Message, read_message

__all__ = [
    "CommitLog",
    "DamagedStretch",
    "LogFile",
    "Skipped",
    "data_end",
    "first_frame",
    "last_file_with_frames",
    "list_log_files",
]

_OPEN_MAPS = 4
_LOOK_BACK = 16 << 20  # more than a message may have: 4 MiB and 64 KiB by default
_BATCH_ROWS = 65536


class DamagedStretch(NamedTuple):
    """Bytes of a log file that hold no readable message: phy offsets [at, next), and why."""

    path: str
    at: int
    next: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: no messages from phy offset {self.at} to {self.next}: {self.reason}"


class CommitLog:
    """The messages of a commit log, which may be spread over several directories. Read-only.

    Safe from several threads. Files are mapped while they are needed; not more than a few at a time.

    Attributes
    ----------
    files : list of LogFile (path, start, size), by start.
    skipped : list of Skipped (path, reason): what else is in the directories.
    damage : list of DamagedStretch (path, at, next, reason) that the scans so far have met.

    Notes
    -----
    In the last file that holds messages the first bad record is the end of the log, and bodies are checked there;
    in an earlier file it is damage, and a scan goes on at the next record.
    Source: RocketMQ 4.9.3 `CommitLog.checkMessageAndReturnSize`, `MappedFileQueue`; record version 2 as in 5.1.

    Examples
    --------
    >>> with CommitLog.open("/data/store/commitlog") as log:                # doctest: +SKIP
    ...     for batch in log.scan(columns=["topic", "keys", "phy_offset"]):
    ...         print(batch.num_rows)
    ...     log.get_message(0).body
    """

    def __init__(self, files: Sequence[LogFile], skipped: Sequence[Skipped] = ()) -> None:
        self.files = list(files)
        self.skipped = list(skipped)
        self.damage: list[DamagedStretch] = []
        self._starts = [file.start for file in files]
        self._lock = threading.Lock()
        self._maps: OrderedDict[str, MappedFile] | None = OrderedDict()
        self._last: int | None = None
        self._end: int | None = None

    @classmethod
    def open(
        cls,
        directories: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        mapped_file_size: int | None = None,
    ) -> CommitLog:
        """Open a log.

        Parameters
        ----------
        directories : path, or several: the union of their files is the log
        mapped_file_size : int or None
            What every file but the last must be long; None: any length goes.

        Raises
        ------
        FileNotFoundError : a directory does not exist
        FormatError : a file has not `mapped_file_size`
        """
        if isinstance(directories, (str, os.PathLike)):
            directories = [directories]
        files, skipped = survey_directories(directories)
        if mapped_file_size is not None:
            _require_size(files, mapped_file_size)
        return cls(files, skipped)

    @property
    def min_phy_offset(self) -> int:
        """The phy offset at which the first file begins; 0 for a log without files."""
        return self.files[0].start if self.files else 0

    @property
    def max_phy_offset(self) -> int:
        """The end of the log: behind its last message. Found once, by reading the last file."""
        if self._end is None:
            last = self._last_file()
            self._end = self.min_phy_offset if last < 0 else self._end_of(self.files[last])
        return self._end

    def scan(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        columns: Iterable[str] | None = None,
        check_crc: bool = False,
    ) -> Iterator[Columns]:
        """Columns of the messages that begin at the phy offsets [start, stop), in their order.

        Parameters
        ----------
        start, stop : int or None; None: the log's begin and end. A start inside a message leaves that message out.
        columns : names; None: all but `body` (bytes as stored) and `properties` (text as stored)
        check_crc : bool; True: compare bodies with their checksums in every file, not only in the last

        Yields
        ------
        Columns of at most 65536 rows; fewer where bodies are large

        Raises
        ------
        ValueError : a column that does not exist
        TruncatedFileError : a file shrank meanwhile
        """
        chosen = require_columns(columns)
        self._require_open()
        return self._scan(
            self.min_phy_offset if start is None else start, 2**63 - 1 if stop is None else stop, chosen, check_crc
        )

    def get_message(self, phy_offset: int, size: int | None = None) -> Message:
        """The message at a phy offset.

        Parameters
        ----------
        size : int or None; what a consume queue says of the message, compared if given

        Raises
        ------
        FormatError : no message begins there (BadMagicError), it is cut short, or its bytes do not agree
        """
        file, mapped = self.file_at(phy_offset)
        message = read_message(mapped, file.start, phy_offset, file.path)
        if size is not None and size != message.size:
            raise FormatError(
                "the message has another size", path=file.path, at=phy_offset - file.start, field="total_size",
                expected=size, got=message.size,
            )  # fmt: skip
        return message

    def file_at(self, phy_offset: int) -> tuple[LogFile, mmap.mmap]:
        """The file that holds a phy offset, and its map, for as long as the caller keeps it; `FormatError`: none."""
        file = self._file_of(phy_offset)
        return file, self._map_of(file)

    def close(self) -> None:
        """Unmap. May be called twice; a scan that still runs ends with `ClosedFileError`."""
        with self._lock:
            self._maps = None

    def __enter__(self) -> CommitLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CommitLog({len(self.files)} files from phy offset {self.min_phy_offset})"

    def _scan(self, start: int, stop: int, columns: tuple[str, ...], check_crc: bool) -> Iterator[Columns]:
        last = self._last_file()
        for number, file in enumerate(self.files[: last + 1]):
            if file.start < stop and start < file.stop:
                self._require_open()
                with _open_whole(file) as mapped:
                    yield from self._scan_file(file, mapped, start, stop, columns, check_crc, number == last)

    def _scan_file(
        self,
        file: LogFile,
        mapped: MappedFile,
        start: int,
        stop: int,
        columns: tuple[str, ...],
        check_crc: bool,
        last: bool,
    ) -> Iterator[Columns]:
        stop, data_stop = min(stop, file.stop), file.start + min(data_end(file.path), file.size)
        at = file.start if start <= file.start else first_frame(mapped.map, file.start, start, min(stop, data_stop))
        while at >= 0:
            scanner = Scanner(mapped.map, file.start, at, stop, check_crc=check_crc or last, max_frames=_BATCH_ROWS)
            while True:
                self._require_open()
                _require_whole(file, mapped)
                frames = next(scanner, None)
                if frames is None:
                    break
                yield from columns_of(mapped.map, frames, columns)
            if scanner.fault is None or last:
                return
            fault = scanner.fault
            at = find_frame(mapped.map, file.start, fault[0] + 1, min(stop, data_stop))
            self._record(file, fault, at if at >= 0 else stop)

    def _record(self, file: LogFile, fault: tuple[int, str, str | None, str, str], following: int) -> None:
        at, kind, name, expected, got = fault
        where = f" in {name}" if name else ""
        stretch = DamagedStretch(file.path, at, following, f"{kind}{where}: expected {expected}, got {got}")
        if stretch not in self.damage:
            self.damage.append(stretch)

    def _last_file(self) -> int:
        if self._last is None:
            self._last = last_file_with_frames(self.files)
        return self._last

    def _end_of(self, file: LogFile) -> int:
        self._require_open()
        with _open_whole(file) as mapped:
            walk = Extractor(mapped.map, file.start, file.start, file.stop, check_crc=True)
            for _ in walk:
                _require_whole(file, mapped)
        return walk.end

    def _file_of(self, phy_offset: int) -> LogFile:
        number = bisect_right(self._starts, phy_offset) - 1
        if number < 0 or phy_offset >= self.files[number].stop:
            raise FormatError(
                "the phy offset is not in the log",
                path=self.files[0].path if self.files else None,
                expected=f"{self.min_phy_offset}..{self.files[-1].stop - 1}" if self.files else "a log with files",
                got=phy_offset,
                hint="the broker may have deleted the file that held it",
            )
        return self.files[number]

    def _map_of(self, file: LogFile) -> mmap.mmap:
        # Maps are never closed here, only let go: another thread may be reading one. The last to leave unmaps it.
        with self._lock:
            if self._maps is None:
                raise ClosedFileError("the commit log is closed", path=os.path.dirname(file.path))
            mapped = self._maps.get(file.path)
            if mapped is None:
                mapped = self._maps[file.path] = _open_whole(file)
                if len(self._maps) > _OPEN_MAPS:
                    self._maps.popitem(last=False)
            self._maps.move_to_end(file.path)
        _require_whole(file, mapped)
        return mapped.map

    def _require_open(self) -> None:
        if self._maps is None:
            raise ClosedFileError("the commit log is closed", path=self.files[0].path if self.files else None)


def first_frame(buf: Any, file_start: int, start: int, stop: int) -> int:
    """The first phy offset in [start, stop) where a message begins; -1: none.

    What looks like a frame may be the image of one inside a body. So the walk begins further back than a message is
    long: wherever inside a body it began, it has left that body before it reaches `start`.
    """
    at = max(start - _LOOK_BACK, file_start)
    if at > file_start:
        at = find_frame(buf, file_start, at, start)
    while 0 <= at < start:
        walk = Extractor(buf, file_start, at, start)
        for _ in walk:
            pass
        at = walk.end if walk.fault is None else find_frame(buf, file_start, walk.end + 1, start)
    if at < 0:
        return find_frame(buf, file_start, start, stop)
    return at if at < stop else -1


def _require_size(files: Sequence[LogFile], size: int) -> None:
    for file in files:
        fits = file.size <= size if file is files[-1] else file.size == size
        if not fits:
            raise FormatError(
                "the file has another length", path=file.path, expected=f"{size} bytes", got=file.size,
                hint="check mapped_file_size (mappedFileSizeCommitLog of the broker)",
            )  # fmt: skip


def _open_whole(file: LogFile) -> MappedFile:
    mapped = MappedFile.open(file.path)
    try:
        _require_whole(file, mapped)
    except BaseException:
        mapped.close()
        raise
    return mapped


def _require_whole(file: LogFile, mapped: MappedFile) -> None:
    # Reading a mapping behind the end of its file kills the process: look before each step.
    size = os.stat(file.path).st_size
    if min(size, mapped.size) < file.size or size < mapped.size:
        raise TruncatedFileError(
            "the file shrank while it was open", path=file.path, expected=f"{file.size} bytes", got=size
        )
