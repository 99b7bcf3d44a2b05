"""Where a log ends while a broker goes on writing it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from mqindex._mapped_file import MappedFile
from mqindex._native.commit_log import Extractor, find_frame
from mqindex.errors import TruncatedFileError
from mqindex.rocketmq.log_files import LogFile, last_file_with_frames, list_log_files

__all__ = ["LogTail"]

_SETTLE_SECONDS = 0.01  # a broker copies a message into its mapping in far less


class LogTail:
    """The end of a log that may be growing, asked again and again: each time only what came since is read.

    Not for several threads. A message counts once it stays as it is for a moment: a broker copies it into the file, and
    a reader may come while it does.
    """

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        self._directories = list(directories)
        self._last: int | None = None  # the phy offset of the last message that counts
        self._end = 0

    def end(self) -> int:
        """The phy offset behind the last message; 0 for a log without files. `FileNotFoundError`: no directory."""
        files = list_log_files(self._directories)
        if not files:
            return 0
        if self._last is None or not self._walk(files, self._last):
            # The first look, or the log is not the one that it was.
            self._last, self._end = None, files[0].start
            self._walk(files, files[max(last_file_with_frames(files), 0)].start)
        return self._end

    def _walk(self, files: Sequence[LogFile], at: int) -> bool:
        """Follow the messages from the one at `at`; False where none begins there."""
        begins = False
        for number, file in enumerate(files):
            if file.stop <= at:
                continue
            with MappedFile.open(file.path) as log:
                walk = Extractor(log.map, file.start, max(at, file.start), file.stop, check_crc=True)
                for _ in walk:
                    _require_whole(log, file)
                begins = begins or (walk.messages > 0 and file.start <= at)
                if walk.messages and not self._count(log, file, walk):
                    return begins
            if walk.fault is not None and not _goes_on(files[number + 1 :]):
                return begins
            if walk.fault is None:
                self._end = walk.end
        return begins

    def _count(self, log: MappedFile, file: LogFile, walk: Extractor) -> bool:
        """Take what a walk met; False: its last message is still being written."""
        start, stop = walk.last_message - file.start, walk.end - file.start
        if walk.fault is not None and walk.last_message != self._last:
            seen = log.map[start:stop]
            time.sleep(_SETTLE_SECONDS)
            if log.map[start:stop] != seen:
                self._end = walk.last_message
                return False
        self._last, self._end = walk.last_message, walk.end
        return True


def _goes_on(files: Sequence[LogFile]) -> bool:
    """True where a message begins the next file: the bad record before it is damage and not the end."""
    for file in files[:1]:
        with MappedFile.open(file.path) as log:
            return find_frame(log.map, file.start, file.start, file.start + 1) == file.start
    return False


def _require_whole(log: MappedFile, file: LogFile) -> None:
    if (size := log.map.size()) < log.size:  # reading a mapping behind the end of its file kills the process
        raise TruncatedFileError("the file was cut while it was read", path=file.path, expected=log.size, got=size)
