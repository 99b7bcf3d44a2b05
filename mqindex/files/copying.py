"""Copies, where a second name or a rename does not do: of a file's bytes, or of all that a name leads to."""

from __future__ import annotations

import errno
import os
import shutil
import stat

from mqindex.errors import FileStateError
from mqindex.files import disk

_NO_COPIES = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)
_PIECE = 1 << 20


def copy(source: str, target: str) -> None:
    """Copy a file's bytes to a new file, inside the kernel where possible; `sync_file` brings them to the disk."""
    old = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with disk.new_file(target) as new:
            with disk.named(target):
                inside = _copied_inside(old, new)
            while not inside and (piece := _read(old)):
                disk.write_all(new, piece)
    finally:
        os.close(old)


@disk.naming_path
def _read(fd: int) -> bytes:
    return os.read(fd, _PIECE)


def _copied_inside(old: int, new: int) -> bool:
    """False: the kernel cannot copy between these two, or (special files) finds nothing; continue at both positions."""
    if not hasattr(os, "copy_file_range"):  # Linux only
        return False
    try:
        while os.copy_file_range(old, new, 1 << 30):
            pass
    except OSError as error:
        if error.errno not in _NO_COPIES:
            raise
        return False
    return os.fstat(old).st_size == os.fstat(new).st_size


def copy_whole(source: str, target: str) -> None:
    """A file, a link, or a directory with all in it, to a new name: content, owner, mode and time, on the disk."""
    status = os.lstat(source)
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISDIR(mode):
        disk.make_directory(target)
        for name in os.listdir(source):
            copy_whole(os.path.join(source, name), os.path.join(target, name))
        disk.own_like(target, source)
        disk.sync_directory(target)
    elif stat.S_ISREG(mode):
        copy(source, target)
        disk.own_like(target, source)
        with disk.named(target):
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        disk.sync_file(target)
    else:
        raise FileStateError("neither a file nor a directory: it cannot go to another file system", path=source)


def remove_whole(path: str) -> None:
    """Remove a file, a link, or a directory with all in it."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        disk.remove(path)
