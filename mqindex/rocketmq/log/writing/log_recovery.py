"""Opening a log to write: the end of what is good, and zeros after it, so that no old frame comes back later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from mqindex.errors import FormatError
from mqindex.files import disk
from mqindex.files.lock import hold_directory
from mqindex.files.paths import base_name, join, parent_of, size_of
from mqindex.files.reading.regular import reading
from mqindex.files.results.staging import backup_name, unused
from mqindex.files.results.whole_file import appearing
from mqindex.rocketmq.directories.store import hold_lock
from mqindex.rocketmq.log.dledger import plain_log_files
from mqindex.rocketmq.log.log_files import LogFile, data_end, last_file_with_frames
from mqindex.rocketmq.log.log_scan import end_of_file
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.settings import LOG_FILE_SIZE

_BLOCK = 1 << 20
RECOVERED_FILES = 3
"""After a clean end a broker reads so many files again: the last ones."""
_ZEROS = bytes(_BLOCK)
_MARKS = ("lock", "abort", "checkpoint", "consumequeue", "config")  # of a store's root


def make_directories(directories: Sequence[str]) -> None:
    """Make the directories, durably: appended bytes are not safer than the name of their directory."""
    for directory in directories:
        disk.make_directories(directory, inherit=True)


def recover(options: StoreOptions, file_size: int | None) -> tuple[int, int]:
    """Clear a log behind its end: returns where that is, and the length of its files."""
    files, _ = plain_log_files(options.commitlog)
    with options.blaming(FormatError, *(() if file_size else (LOG_FILE_SIZE,))):
        size = log_file_size(files, file_size or options.known(LOG_FILE_SIZE), LOG_FILE_SIZE.default)
    position = recovered_end(files)
    clear_behind(files, position, size)
    return position, size


def log_file_size(files: Sequence[LogFile], given: int | None, default: int) -> int:
    """The length of a log's files. Only the last may be shorter, a copy that was cut: it is filled up with zeros."""
    size = given if given is not None else files[0].size if files else default
    for file in files:
        real = size_of(file.path)
        wrong = real > size or (real < size and file is not files[-1])
        if wrong or (file.start - files[0].start) % size or file.start + size > 2**63 - 1:
            raise FormatError(
                "the file does not fit its log", path=file.path,
                expected=f"files of {size} bytes, one after the other",
                got=f"{real} bytes from {file.start} on", hint="give mapped_file_size (mappedFileSizeCommitLog)",
            )  # fmt: skip
    return size


def recovered_end(files: Sequence[LogFile]) -> int:
    """The end of what is good: after the last good record before the first bad one in the last three files.

    A bad record that is not a file's end may be in an earlier file: when the power went, it was not yet on the disk,
    but what was written after it was. A broker would cut there, and lose what was appended after it.
    Source: RocketMQ 4.9.3 `CommitLog.recoverNormally`, which reads those three and compares checksums.
    """
    last = last_file_with_frames(files)
    end = files[0].start if files else 0
    for file in files[max(last + 1 - RECOVERED_FILES, 0) : last + 1]:
        end = end_of_file(file)
        if end < file.stop:
            break
    return end


@contextlib.contextmanager
def hold_directories(directories: Sequence[str], *, store: bool = True) -> Iterator[None]:
    """Be the only writer of a log: keep out other processes and objects of this package, and a store's broker.

    store=False: the caller holds the store's lock.
    """
    with contextlib.ExitStack() as held:
        for root in sorted({parent_of(directory) for directory in directories}):
            if store and any(disk.exists(join(root, mark)) for mark in _MARKS):
                held.enter_context(hold_lock(root))
        for directory in directories:
            held.enter_context(hold_directory(directory, "log"))
        yield


def clear_behind(files: Sequence[LogFile], position: int, file_size: int) -> list[str]:
    """Make all bytes after a log's end zeros, after they were saved; returns the paths of the backups.

    A backup holds only that range, and is named by the file and the byte of the file where the range began.
    """
    backups = []
    for file in files:
        at = max(position - file.start, 0)
        if at < file_size:
            end = _last_byte(file.path, at)
            if end > at:
                backups.append(_save(file.path, at, end))
                zero_range(file.path, at, end)
            if size_of(file.path) < file_size:
                _lengthen(file.path, file_size)
    return backups


def _lengthen(path: str, size: int) -> None:
    fd = disk.open_to_write(path)
    try:
        disk.resize(fd, size)
    finally:
        disk.close(fd)


def zero_range(path: str, start: int, stop: int) -> None:
    """Write zeros at the bytes [start, stop), durably. Blocks that are zeros already stay as they are, holes too."""
    stop = min(stop, data_end(path))
    fd = disk.open_to_write(path)
    try:
        with disk.named(path):
            for at in range(start, stop, _BLOCK):
                block = os.pread(fd, min(_BLOCK, stop - at), at)
                if block.strip(b"\0"):
                    disk.pwrite_all(fd, memoryview(_ZEROS)[: len(block)], at)
            disk.sync(fd)
    finally:
        disk.close(fd)


def _last_byte(path: str, start: int) -> int:
    """After the last byte from `start` on that is not zero; `start`: there is none."""
    stop = data_end(path)
    with reading(path, buffered=False) as file:
        while stop > start:
            at = max(start, stop - _BLOCK)
            found = len(os.pread(file.fileno(), stop - at, at).rstrip(b"\0"))
            if found:
                return at + found
            stop = at
    return start


def _save(path: str, start: int, stop: int) -> str:
    directory = parent_of(path)
    root = parent_of(directory)
    folder = join(root, f"mqindex-backup-{backup_name()}", base_name(directory))
    disk.make_directories(folder, inherit=True)
    target = unused(join(folder, f"{base_name(path)}.{start}"))
    with reading(path, buffered=False) as source, appearing(target, like=path, aside=folder) as copy:
        for at in range(start, stop, _BLOCK):
            disk.write_all(copy, os.pread(source.fileno(), min(_BLOCK, stop - at), at))
        disk.sync(copy)
    disk.sync_directory(folder)
    return target
