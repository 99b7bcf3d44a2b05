"""The files of a commit log that is written: the current one, blanks, the next one, and what a failed write leaves."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
from collections.abc import Callable, Sequence
from typing import Any

from mqindex._native.group_commit import GroupCommit, allocate, write_at
from mqindex._native.log_writer import WRITERS, Frames
from mqindex._native.owner import Owner
from mqindex.errors import CapacityError, FileStateError
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.few_threads import started
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import join, parent_of, size_of
from mqindex.files.results.staging import scratch
from mqindex.files.results.whole_file import appearing
from mqindex.files.tmpfile import link_into_place, open_nameless
from mqindex.rocketmq.kinds import name_at
from mqindex.rocketmq.layout import MAGIC_BLANK
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.writing.log_recovery import zero_range

BLANK_SIZE = 8
_STRETCH = 64 << 20  # bytes between two checks for signals
_SPARED = 16 << 20  # bytes from which a file is worth making beforehand
_PREPARED = 1 << 20  # bytes of zeros ahead of short writes
_ZEROS = memoryview(bytes(1 << 14))  # written at once: larger pieces in the page cache make each short write slower


class LogWriter(Closable):
    """Writes whole frames after the end of a log, file after file, each at full length from the start.

    With `lock` held, a caller writes what belongs together by `write` and `roll`, then calls `commit`. `position` is
    the end of what was committed, `at` that of what was written; `group` brings it to the disk. After a failed write
    `take_back` makes everything after `position` zeros again, so no part of it is ever found. Bytes go through
    `pwrite`: a full disk is an exception. A file takes space as it fills; but for short writes that are synced one by
    one a megabyte of blocks is made ready, and a file that is written in bulk gets all its blocks at once, where the
    disk has plenty.

    Parameters
    ----------
    directories : where new files go, in turn by their number, in the order of their names
    files : those that exist, by start
    created : called with each new file

    Notes
    -----
    Source: RocketMQ 4.9.3 `MappedFileQueue.getLastMappedFile`, `MultiPathMappedFileQueue`, `CommitLog.doAppend`.
    """

    _thing = "commit log"

    def __init__(
        self,
        directories: Sequence[str],
        files: Sequence[LogFile],
        position: int,
        file_size: int,
        created: Callable[[LogFile], None],
    ) -> None:
        self.lock = new_lock()
        self.owner = Owner(directories[0])
        self.group = GroupCommit(position)
        self.position = self.at = position
        self.file_size = file_size
        self._directories = sorted(directories)
        self._paths = {file.start: file.path for file in files}
        self._created = created
        base = files[0].start if files else 0
        self._start = position - (position - base) % file_size
        self._fd: int | None = None
        self._prepared = position  # after the zeros that were written ahead
        self._allocated = -1  # the start of the file that has all its blocks of the disk
        self._spare: SpareFile | None = None
        self._unsynced: str | None = None  # a directory whose newest name is not on the disk

    @property
    def left(self) -> int:
        """Bytes from `at` to the end of the current file."""
        return self._start + self.file_size - self.at

    @property
    def path(self) -> str:
        """The current file, which `write` makes where it is not there yet."""
        return self._paths.get(self._start, self._directories[0])

    def fits(self, size: int) -> bool:
        """Whether a frame of that size, and a blank after it, are in the current file."""
        return self.at + size + BLANK_SIZE <= self._start + self.file_size

    def write(self, data: Any) -> None:
        """Bytes at `at`, in the current file."""
        fd = self._current()
        try:
            write_at(fd, data, self.at - self._start)
        except OSError as error:
            error.filename = self.path
            raise
        self.at += len(data)

    def write_frames(self, frames: Frames, buffer: memoryview, largest: int) -> bool:
        """The next frames, encoded into `buffer`, at `at`. True: what follows must go to another file."""
        if min(frames.total, self.left) > len(buffer) and largest <= len(buffer) // WRITERS:
            fd = self._current()
            self._allocate(fd)
            with disk.named(self.path):
                used, roll = frames.append(fd, self._start, buffer, self.at, self.left, _STRETCH)
            self.at += used
            return roll
        used, roll = frames.encode(buffer, self.at, self.left)
        if used:
            self.write(buffer[:used])
        return roll

    def prepare(self, size: int) -> None:
        """Allocate the disk's blocks of the next `size` bytes, by writing zeros over zeros.

        A sync of bytes in a hole writes the file's map of blocks too, which takes longer than the bytes.
        """
        if self.at + size > self._prepared:
            fd = self._current()
            start = max(self._prepared, self.at)
            self._prepared = min(max(start + _PREPARED, self.at + size), self._start + self.file_size)
            with contextlib.suppress(OSError):  # a full disk is an error only when the message itself is written
                for at in range(start, self._prepared, len(_ZEROS)):
                    write_at(fd, _ZEROS[: self._prepared - at], at - self._start)

    def roll(self) -> None:
        """A blank to the end of the current file; what follows goes to the next."""
        if self.left >= BLANK_SIZE:
            left = self.left
            self.write(struct.pack(">ii", left, MAGIC_BLANK))
        self._fd = None
        self._start += self.file_size
        self.at = self._start

    def commit(self) -> int:
        """Make what was written a part of the log; returns the log's end."""
        self.position = self.at
        self.group.commit(self.at)
        return self.at

    def take_back(self) -> None:
        """Make what was written since the last commit zeros, in all files that it reached."""
        reached = self._start
        self._fd = None
        while self._start > self.position:
            self._start -= self.file_size
        for start in range(self._start, reached + 1, self.file_size):
            if start in self._paths:
                zero_range(self._paths[start], max(self.position - start, 0), self.file_size)
        self.at = self.position

    def end(self) -> None:
        """Write no more."""
        with self.lock:
            self._closed = True
            self._fd = None
            self._drop_spare()

    def close(self) -> None:
        """Close the files; nothing is synced. May be called twice."""
        self.end()
        self.group.close()

    def let_go(self) -> None:
        """`close` in a forked child, where the threads that would release the locks do not exist."""
        self._closed = True
        self._drop_spare()
        self.group.close()

    def _current(self) -> int:
        self._require_open()
        if self._fd is None:
            self._sync_earlier()
            path = self._paths.get(self._start) or self._create()
            if self._unsynced is not None:
                disk.sync_directory(self._unsynced)
                self._unsynced = None
            fd = disk.open_to_write(path)
            self.group.switch_to(fd)
            self._fd = fd
        if self._spare is None and self.file_size >= _SPARED and self.left < self.file_size // 2:
            directory = self._directory_of(self._start + self.file_size)
            self._spare = SpareFile(directory, self.file_size, allocated=self._allocated == self._start)
        return self._fd

    def _allocate(self, fd: int) -> None:
        """Once for each file: a flush that must find free blocks on a busy disk blocks all writes."""
        if self._allocated != self._start:
            self._allocated = self._start
            allocate_file(fd, self.file_size, self.at - self._start)

    def _sync_earlier(self) -> None:
        """Sync all but the last two files and the new one: recovery reads only three."""
        path = self._paths.get(self._start - 2 * self.file_size)
        if path is not None:
            try:
                disk.sync_file(path)
            except OSError as error:
                self.group.fail(error.errno or errno.EIO)
                raise

    def _create(self) -> str:
        if self._start > 2**63 - 1 - self.file_size:
            raise CapacityError(
                "the offsets of a log end at 2^63", expected=2**63 - 1 - self.file_size, got=self._start
            )
        directory = self._directory_of(self._start)
        path = join(directory, name_at(self._start))
        if not self._place_spare(path):
            disk.make_directories(directory, inherit=True)
            self._unsynced = directory  # a writer to the file syncs the directory first
            create_log_file(path, self.file_size)
        self._paths[self._start] = path
        self._created(LogFile(path, self._start, self.file_size))
        return path

    def _directory_of(self, start: int) -> str:
        return self._directories[start // self.file_size % len(self._directories)]

    def _place_spare(self, path: str) -> bool:
        """Give the file that was made beforehand its name, which the next sync brings to the disk first."""
        placed = False
        if self._spare is not None and self._spare.directory == parent_of(path):
            names = disk.open_directory(self._spare.directory)
            self.group.switch_to(names)
            placed = self._spare.place(path)
            if placed and self._spare.allocated:
                self._allocated = self._start
        self._drop_spare()
        return placed

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
        self._spare = None


_PLENTY = 4  # files of free space


def create_log_file(path: str, size: int) -> None:
    """Make a file of zeros that takes no space yet; all but its name is on the disk."""
    if disk.exists(path) and (not stat.S_ISREG(os.lstat(path).st_mode) or size_of(path) > 0):
        raise FileStateError("something is already in the place of the log's next file", path=path)
    directory = parent_of(path)
    with scratch(parent_of(directory)) as place, appearing(path, like=directory, aside=place) as fd:
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
        self._maker = started(self._make, "spare")

    def place(self, path: str) -> bool:
        """Give it a name in its directory, which is not synced here; False: there is no spare file."""
        self._wait()
        if self._fd is None:
            return False
        with contextlib.suppress(OSError):
            return link_into_place(self._fd, path)
        return False

    def close(self) -> None:
        """Close it, with a name or without. May be called twice."""
        self._wait()
        if self._fd is not None:
            disk.close(self._fd)
        self._fd = None

    def _wait(self) -> None:
        if self._maker is not None:
            self._maker.join()

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
