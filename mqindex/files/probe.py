"""What the file system of a directory can do, tried on one small file that has no name, so that nothing can be left."""

from __future__ import annotations

import contextlib
import mmap
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from mqindex.files import disk, lock
from mqindex.files.reading.mapped_file import reserve
from mqindex.files.tmpfile import open_nameless

_SIZE = 1 << 20
_MOUNTS = "/proc/self/mountinfo"  # Linux


class Place(NamedTuple):
    """One directory: its file system's name where it is known, free bytes where they are counted, and what worked."""

    file_system: str | None
    free: int | None
    flock: bool
    record_locks: bool
    sparse: bool
    reserved: bool
    mapped: bool


def probe(directory: str) -> Place:
    """Try a directory; an `OSError` where no file can be made there."""
    fd = _open_passing(directory)
    try:
        flock, record_locks = lock.lock_whole(fd) is True, lock.lock_byte(fd) is True
        disk.resize(fd, _SIZE)
        sparse = os.fstat(fd).st_blocks * 512 < _SIZE
        disk.resize(fd, 0)
        reserved = _reserves(fd)
        mapped = reserved and _maps(fd)  # a page without disk space would be a SIGBUS
        kind, free = file_system(directory), disk.free_bytes(directory)
        return Place(kind, free, flock, record_locks, sparse, reserved, mapped)
    finally:
        os.close(fd)


def _open_passing(directory: str) -> int:
    fd = open_nameless(directory)
    if fd is None:  # the next best: its name is removed at once
        path = disk.temporary(directory, ".mqindex-probe")
        fd = disk.create(path)
        disk.remove(path)
    return fd


def _maps(fd: int) -> bool:
    with contextlib.suppress(OSError, ValueError), mmap.mmap(fd, _SIZE) as mapping:
        mapping[0] = 1
        return True
    return False


def _reserves(fd: int) -> bool:
    try:
        reserve(fd, _SIZE)
    except OSError:
        return False
    return os.fstat(fd).st_size == _SIZE


def file_system(directory: str) -> str | None:
    """The type of the mount that a directory is on: `ext4`, `nfs4`, `overlay`, ..."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    real = os.path.realpath(directory)
    best: tuple[int, str | None] = (-1, None)
    for mounted, point, kind in _mounts():
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside or mounted == number:
            best = max(best, (len(point) if inside else 0, kind), key=lambda one: one[0])
    return best[1]


def is_mount_point(directory: str) -> bool:
    """Whether something is mounted there, also of the same file system, which no device number shows."""
    real = os.path.realpath(directory)
    return os.path.ismount(directory) or any(point == real for _, point, _ in _mounts())


def _mounts() -> Iterator[tuple[str, str, str]]:
    """The numbers of the device, the place and the type of each mount; none where the system does not list them so."""
    with contextlib.suppress(OSError), open(_MOUNTS, "rb") as mounts:
        for line in mounts:
            words = line.split()
            place = re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), words[4])
            yield words[2].decode(), os.fsdecode(place), words[words.index(b"-") + 1].decode()
