"""How anything is ever written: aside, complete, on the disk, then renamed into place.

A *scratch* is one directory `.mqindex-<id>` in the file system of the target. A run that ends in any way but SIGKILL
removes its own; the next run in the same place removes what SIGKILL left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from mqindex.errors import OutputExistsError

__all__ = [
    "backup_name",
    "check_space",
    "discard",
    "hold",
    "make_scratch",
    "own_like",
    "replace",
    "require_new",
    "sync_directory",
    "temporary",
]

_PREFIX = ".mqindex-"
_OWNER = "owner"
_UNHELD_FOR = 24 * 3600  # seconds after which a scratch that no process ever held is given up


def backup_name(now: float | None = None) -> str:
    """The UTC second as people read it in a file name.

    >>> backup_name(0)
    '19700101T000000Z'
    """
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(root: str) -> None:
    """Make every directory's names below `root`, and its own, durable; the files were synced when they were written."""
    for directory, _, _ in os.walk(root):
        sync_directory(directory)


def replace(source: str, target: str) -> None:
    """Rename over `target`, durably."""
    os.replace(source, target)
    sync_directory(os.path.dirname(target) or ".")


def temporary(directory: str, name: str) -> str:
    """A path in `directory` that no other attempt of the same task uses: retries and speculation never collide."""
    return os.path.join(directory, f"{name}.{uuid.uuid4().hex[:12]}")


def make_scratch(parent: str) -> str:
    """A new scratch directory in `parent`; those that a killed run left there are removed."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if name.startswith(_PREFIX) and os.path.isdir(path) and _abandoned(os.path.join(path, _OWNER)):
            discard(path)
    scratch = os.path.join(parent, f"{_PREFIX}{uuid.uuid4().hex[:12]}")
    os.mkdir(scratch)
    with open(os.path.join(scratch, _OWNER), "xb"):
        return scratch


@contextlib.contextmanager
def hold(scratch: str) -> Iterator[None]:
    """Mark a scratch as in use by this process, by a lock that ends with it, and remove it at the end.

    The driver of a cluster may not see the directory: then only its age tells whether it was abandoned.
    """
    fd = None
    try:
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(os.path.join(scratch, _OWNER), os.O_RDWR | os.O_CLOEXEC)
        if fd is not None:
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.write(fd, b"held by a lock")
        yield
    finally:
        discard(scratch)
        if fd is not None:
            os.close(fd)


def _abandoned(owner: str) -> bool:
    try:
        fd = os.open(owner, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held_once = os.fstat(fd).st_size > 0
        return held_once or time.time() - os.fstat(fd).st_mtime > _UNHELD_FOR
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def discard(path: str) -> None:
    """Remove a directory of ours and all in it; what is gone already is fine."""
    shutil.rmtree(path, ignore_errors=True)


def require_new(out: str, *, overwrite: bool) -> None:
    """`out` must not exist or be an empty directory, unless it may be moved aside."""
    if os.path.lexists(out) and not overwrite:
        if os.path.isdir(out) and not os.listdir(out):
            return
        raise OutputExistsError(
            "the output exists and is not empty",
            path=out,
            hint="choose another place, or overwrite (--force), which moves it to a backup beside it",
        )


def check_space(directory: str, needed: int) -> None:
    """Refuse before the work begins, with `OSError(ENOSPC)`, what the file system cannot hold."""
    free = shutil.disk_usage(directory).free
    if needed > free:
        text = f"{os.strerror(errno.ENOSPC)}: this needs {needed:,} bytes, {free:,} are free"
        raise OSError(errno.ENOSPC, text, directory)


def own_like(path: str, neighbour: str) -> None:
    """Give a new file or directory its neighbour's owner and mode: a repair by root must not lock the broker out."""
    like = os.stat(neighbour)
    mode = stat.S_IMODE(like.st_mode)
    if os.path.isdir(path) and not stat.S_ISDIR(like.st_mode):
        mode |= (mode & 0o444) >> 2  # who may read the file may enter the directory
    elif not os.path.isdir(path) and stat.S_ISDIR(like.st_mode):
        mode &= ~0o111
    if (os.stat(path).st_uid, os.stat(path).st_gid) != (like.st_uid, like.st_gid):
        os.chown(path, like.st_uid, like.st_gid)
    os.chmod(path, mode)
