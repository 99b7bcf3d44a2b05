"""Where a log ends while a broker is writing it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mqindex.rocketmq.log.growing_log import GrowingLog, LogChangedError
from mqindex.rocketmq.log.log_files import last_file_with_frames, list_log_files


class LogTail:
    """The end of a log that may be growing; each call reads only what came since the one before.

    For one thread. A copy by pickle begins anew.
    """

    def __init__(self, directories: Sequence[str | os.PathLike[str]]) -> None:
        self._directories = list(directories)
        self._log: GrowingLog | None = None

    def __reduce__(self) -> tuple[type[LogTail], tuple[list[str | os.PathLike[str]]]]:
        return LogTail, (self._directories,)

    def end(self) -> int:
        """The phy offset after the last whole message; 0 for a log without files.

        Raises
        ------
        FileNotFoundError : the log's directory does not exist
        """
        files = list_log_files(self._directories)
        if not files:
            return 0
        if self._log is not None:
            try:
                return _follow(self._log)
            except LogChangedError:
                self.close()
        self._log = GrowingLog(self._directories, files[max(last_file_with_frames(files), 0)].start)
        return _follow(self._log)

    def close(self) -> None:
        """Release the log; a later call reads from the start of its last file."""
        if self._log is not None:
            self._log.close()
        self._log = None


def _follow(log: GrowingLog) -> int:
    """Read all that is there, and a last message that may be torn until it stays as it is."""
    again = True
    while again:
        for _ in log.read():
            pass
        again = log.settle()
    return log.phy_offset
