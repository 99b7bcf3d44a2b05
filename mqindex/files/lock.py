"""The lock file of a broker's store: held as the broker holds it, so that none starts meanwhile."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator

from mqindex.errors import StoreInUseError

__all__ = ["hold"]

_held: set[tuple[int, int, int]] = set()
_held_lock = threading.Lock()


@contextlib.contextmanager
def hold(path: str, *, create: bool = True) -> Iterator[None]:
    """Hold the lock file `path`; `StoreInUseError` where a broker, or this process, holds it.

    Java's `FileLock` is a POSIX record lock that covers byte 0. Such a lock keeps other processes out, not this one,
    and ends when this process closes any descriptor of the file: so who holds it here is kept besides, and nothing
    else may open the file meanwhile. A file that does not exist is made, and removed again; with `create=False` it is
    not, and only this process is kept out.
    """
    with _hold_here(os.path.dirname(path) or ".", path):
        existed = os.path.exists(path)
        if not existed and not create:
            yield
            return
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                raise StoreInUseError(
                    "a broker holds this lock, or another writer",
                    path=path,
                    hint="stop it first; reading needs no stop",
                ) from None
            yield
            if not existed:
                os.unlink(path)
        finally:
            os.close(fd)


@contextlib.contextmanager
def _hold_here(root: str, path: str) -> Iterator[None]:
    status = os.stat(root)
    place = os.getpid(), status.st_dev, status.st_ino  # a child that was forked holds nothing
    with _held_lock:
        if place in _held:
            raise StoreInUseError(
                "this process holds this store for writing already", path=path, hint="close the other one first"
            )
        _held.add(place)
    try:
        yield
    finally:
        with _held_lock:
            _held.discard(place)
