"""How anything is ever written: aside, complete, on the disk, then renamed into place.

A *scratch* is one directory `.mqindex-<id>` in the file system of the target. A run that ends in any way but SIGKILL
removes its own; the next run in the same place removes what SIGKILL left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

from mqindex.errors import OutputExistsError
from mqindex.files.disk import sync_directory

__all__ = [
    "backup_name",
    "check_space",
    "copy_file",
    "discard",
    "exchange",
    "make_shared_scratch",
    "require_new",
    "scratch",
    "sweep",
    "unused",
]

_PREFIX = ".mqindex-"
_OWNER = "owner"
_SHARED = "shared"
_SHARED_FOR = 24 * 3600  # seconds after which a shared scratch is given up


def backup_name(now: float | None = None) -> str:
    """The UTC second as people read it in a file name.

    >>> backup_name(0)
    '19700101T000000Z'
    """
    moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    return moment.strftime("%Y%m%dT%H%M%SZ")


def unused(path: str) -> str:
    """`path`, or where two runs in one second want it, `path-2` and so on."""
    names = itertools.chain([path], (f"{path}-{n}" for n in itertools.count(2)))
    return next(name for name in names if not os.path.lexists(name))


def exchange(source: str, target: str, aside: str | None) -> None:
    """Rename a directory into place, durably; what stands there goes `aside`, and comes back if that fails."""
    moved = aside is not None and os.path.lexists(target)
    if aside is not None and moved:
        aside = unused(aside)
        os.rename(target, aside)
    try:
        os.rename(source, target)
    except BaseException:
        if aside is not None and moved:
            os.rename(aside, target)
        raise
    sync_directory(os.path.dirname(target))


@contextlib.contextmanager
def scratch(parent: str) -> Iterator[str]:
    """A new scratch directory in `parent`, gone at the end however it ends; what a killed run left there goes first."""
    with _alone(parent):
        path = _make(parent)
        fd = None
        try:
            fd = os.open(os.path.join(path, _OWNER), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(fd, fcntl.LOCK_EX)
        except BaseException:
            discard(path)
            raise
    try:
        yield path
    finally:
        discard(path)
        os.close(fd)


def make_shared_scratch(parent: str) -> str:
    """A scratch made in one task for others: no process holds it, so only its age tells whether it was abandoned."""
    with _alone(parent):
        path = _make(parent)
        with open(os.path.join(path, _OWNER), "x") as owner:
            owner.write(_SHARED)
        return path


@contextlib.contextmanager
def _alone(parent: str) -> Iterator[None]:
    """Between making a scratch and locking it nobody else may look for abandoned ones."""
    fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: the moment between is short
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def sweep(parent: str) -> None:
    """Remove the scratch that killed runs left in `parent`."""
    with _alone(parent):
        _sweep(parent)


def _sweep(parent: str) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if name.startswith(_PREFIX) and os.path.isdir(path) and _abandoned(os.path.join(path, _OWNER)):
            discard(path)


def _make(parent: str) -> str:
    _sweep(parent)
    path = os.path.join(parent, f"{_PREFIX}{uuid.uuid4().hex[:12]}")
    os.mkdir(path)
    return path


def _abandoned(owner: str) -> bool:
    """Its process is gone, and with it the lock."""
    try:
        fd = os.open(owner, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shared = os.fstat(fd).st_size > 0
        return not shared or time.time() - os.fstat(fd).st_mtime > _SHARED_FOR
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


def check_space(directory: str, needed: int) -> int:
    """The free bytes; what the file system cannot hold is refused before the work begins, with `OSError(ENOSPC)`."""
    free = shutil.disk_usage(directory).free
    if needed > free:
        text = f"{os.strerror(errno.ENOSPC)}: this needs {needed:,} bytes, {free:,} are free"
        raise OSError(errno.ENOSPC, text, directory)
    return free


def copy_file(source: str, target: str) -> None:
    """Copy a file's bytes to a new file inside the kernel."""
    with open(source, "rb", buffering=0) as old, open(target, "xb", buffering=0) as new:
        left = os.fstat(old.fileno()).st_size
        while left > 0:
            copied = os.copy_file_range(old.fileno(), new.fileno(), left)
            if copied == 0:
                break
            left -= copied
