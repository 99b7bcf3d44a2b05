"""A store's directory: what marks it, and the lock that a running broker holds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator

from mqindex.errors import BadMagicError, StoreInUseError

__all__ = ["hold_lock", "index_paths", "stray_index_names", "was_unclean"]

_held: set[tuple[int, int, int]] = set()
_held_lock = threading.Lock()


def was_unclean(root: str) -> bool:
    """True where `abort` exists: the last exit was unclean, or the broker runs (RocketMQ `DefaultMessageStore`)."""
    return os.path.exists(os.path.join(root, "abort"))


@contextlib.contextmanager
def hold_lock(root: str) -> Iterator[None]:
    """Hold the store's lock as a broker would, so that none starts meanwhile; `StoreInUseError` where one runs.

    Java's `FileLock` is a POSIX record lock on byte 0 of `lock`. Such a lock keeps other processes out, not this one,
    and ends when this process closes any descriptor of the file: so who holds it here is kept besides, and nothing
    else may open the file meanwhile.
    """
    path = os.path.join(root, "lock")
    with _hold_here(root, path):
        existed = os.path.exists(path)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    raise
                raise StoreInUseError(
                    "a broker holds this store", path=path, hint="stop the broker first; reading needs no stop"
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


def index_paths(directory: str) -> list[str]:
    """The index files of a directory in the broker's load order: by name, numeric names only."""
    return [os.path.join(directory, name) for name in _names(directory) if _is_number(name)]


def stray_index_names(directory: str) -> list[str]:
    """Names that the broker logs and skips."""
    return [name for name in _names(directory) if not _is_number(name)]


def require_store(root: str) -> None:
    """A clear word where a path is not a store."""
    if not os.path.exists(root):
        raise FileNotFoundError(errno.ENOENT, "no such store directory", root)
    if not os.path.isdir(root):
        raise BadMagicError("not a store", path=root, expected="the root directory of a broker's store", got="a file")


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def _is_number(name: str) -> bool:
    # The broker parses a name with Long.parseLong, which takes the decimal digits of any script.
    return name.isdecimal() and int(name) < 2**63
