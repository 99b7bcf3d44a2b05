"""A new file of a commit log: it appears at full length, because 4.9.3 does not start with a shorter one."""

from __future__ import annotations

import contextlib
import os
import stat
import threading

from mqindex._native.group_commit import allocate
from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.staging import scratch
from mqindex.files.tmpfile import link_into_place, open_nameless
from mqindex.files.whole_file import appearing

_PLENTY = 4  # files of free space


def create_log_file(path: str, size: int) -> None:
    """Make a file of zeros that takes no space yet; all but its name is on the disk."""
    if disk.exists(path) and (not stat.S_ISREG(os.lstat(path).st_mode) or os.path.getsize(path) > 0):
        raise FileStateError("something is already in the place of the log's next file", path=path)
    directory = os.path.dirname(path)
    with scratch(os.path.dirname(directory)) as place, appearing(path, like=directory, aside=place) as fd:
        disk.resize(fd, size)
        disk.sync(fd)


def allocate_file(fd: int, size: int, at: int = 0) -> bool:
    """Allocate the blocks of a file of that size from `at` on, where the disk has plenty; False: it has not."""
    there = os.fstatvfs(fd)
    return there.f_bavail * there.f_frsize >= _PLENTY * size and allocate(fd, at, size - at)


class SpareFile:
    """The next file, made without a name while the one before fills, as its sync waits for all other flushes.

    Where that is impossible, `place` returns False. A file that was not placed ends with its process.
    `allocated`: it has its blocks of the disk already.
    """

    def __init__(self, directory: str, size: int, *, allocated: bool) -> None:
        self.directory = directory
        self.allocated = allocated
        self._size = size
        self._fd: int | None = None
        self._maker = threading.Thread(target=self._make, name="mqindex-spare", daemon=True)
        self._maker.start()

    def place(self, path: str) -> bool:
        """Give it a name in its directory, which is not synced here; False: there is no spare file."""
        self._maker.join()
        if self._fd is None:
            return False
        with contextlib.suppress(OSError):
            return link_into_place(self._fd, path)
        return False

    def close(self) -> None:
        """Close it, with a name or without. May be called twice."""
        self._maker.join()
        if self._fd is not None:
            disk.close(self._fd)
        self._fd = None

    def _make(self) -> None:
        with contextlib.suppress(OSError):
            fd = open_nameless(self.directory)
            if fd is None:
                return
            try:
                disk.resize(fd, self._size)
                self.allocated = self.allocated and allocate_file(fd, self._size)
                disk.own_like(f"/proc/self/fd/{fd}", self.directory)
                disk.sync(fd)
            except BaseException:
                disk.close(fd)
                raise
            self._fd = fd
