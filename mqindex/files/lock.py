"""Locks for a single writer: the lock file of a broker's store, held as the broker holds it, and a directory's."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import struct
import sys
import warnings
from collections.abc import Iterator
from typing import Literal, NamedTuple

from mqindex._native.owner import Owner
from mqindex.errors import FileStateError, StoreInUseError
from mqindex.files import disk
from mqindex.files.fork_lock import new_rlock
from mqindex.files.places.place import Place
from mqindex.files.rights import as_owner_of
from mqindex.files.tmpfile import link_into_place, open_nameless

_LOCKS = ("lock", ".lock")  # of a store, of a log dir
_ABOVE = 3  # directories from a queue to its store's root
_MOST_BELOW = 1_000_000  # directories that are looked through for a store in one that is to be moved
State = Literal["held", "free", "absent", "unreadable", "elsewhere"]


class Holder(NamedTuple):
    """Whether a lock file is held, and by which process; None: by none, or by one that cannot be seen from here."""

    state: State
    pid: int | None = None


_UNWRITABLE = {  # who cannot hold the lock writes nothing
    errno.EACCES: "expected to run as the broker's user, who may write it",
    errno.EROFS: "expected a place that is mounted for writing, or a copy of the directory in one",
}
_HELD_BY_BROKER = "a broker holds this lock, or another writer"
_held: set[tuple[int, int, int]] = set()
_held_lock = new_rlock()  # a dropped store may be let go at any moment, in a thread that has it
_unlocked: set[str] = set()  # directories that a warning has named


def refuse_writer(error: OSError, path: str) -> None:
    """Raise the error of a write with who may write `path`, where this process may not; else nothing is done.

    >>> refuse_writer(PermissionError(13, "Permission denied"), "/data")
    Traceback (most recent call last):
    PermissionError: [Errno 13] Permission denied; expected to run as the broker's user, who may write it: '/data'
    """
    if error.errno in _UNWRITABLE:
        raise OSError(error.errno, f"{error.strerror}; {_UNWRITABLE[error.errno]}", path) from error


def state(path: str) -> State:
    """Whether a broker holds a lock file, found out without taking it; "unreadable", "elsewhere": not known."""
    return holder(path).state


def holder(path: str) -> Holder:
    """Who holds the lock file `path`, found out without taking the lock.

    If this process holds the lock, the file is not opened: closing it would release the lock.
    """
    if isinstance(path, Place):
        return Holder("elsewhere")
    with _held_lock:
        try:
            if _place(os.path.dirname(path) or ".") in _held and os.path.exists(path):
                return Holder("held", os.getpid())
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return Holder("absent")
        except OSError:
            return Holder("unreadable")
        try:
            pid = lock_owner(fd)
        except OSError:
            return Holder("unreadable")
        finally:
            disk.close(fd)
    return Holder("free") if pid is None else Holder("held", pid or None)


def require_free(path: str) -> None:
    """`StoreInUseError` where another process holds the lock file `path`; it is not taken, and "unreadable" passes."""
    held, pid = holder(path)
    _require(held != "held" or pid == os.getpid(), path, _HELD_BY_BROKER, "stop it")


def program(pid: int | None) -> str | None:
    """The name of a process's program; None: it cannot be seen."""
    if not pid:
        return None
    try:
        with open(f"/proc/{pid}/comm", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


@contextlib.contextmanager
def hold(path: str, *, create: bool = True) -> Iterator[None]:
    """Hold the lock file `path`; `StoreInUseError` where a broker, or this process, holds it.

    Java's `FileLock` is a POSIX record lock that covers byte 0. Such a lock keeps other processes out, not this one,
    and ends when this process closes any descriptor of the file: so this process keeps a list of what it holds, and
    nothing else may open the file meanwhile. A file that does not exist is made, with its directory's owner, and
    removed again; with `create=False` it is not made, and other writers of this package are kept out, but no broker.
    Where the file system has no locks it is not known whether a broker runs: a `FileStateError`.
    """
    home = os.path.dirname(path) or "."
    with _hold_here(home, path):
        if not create and not disk.exists(path):
            with hold_directory(home, "directory"):
                yield
            return
        owner = Owner(path)
        with as_owner_of(home):
            fd, made = _locked(path)
        try:
            try:
                yield
            finally:
                if made and owner.here:
                    disk.remove(path)
        finally:
            disk.close(fd)


def _locked(path: str) -> tuple[int, bool]:
    """The lock file, open and locked, and whether it was made here.

    Another run may remove its file between two calls of this one: a lock of a file without a name keeps nobody out.
    """
    while True:
        fd = _made(path)
        made = fd is not None
        try:
            fd = disk.open_to_write(path) if fd is None else fd
        except OSError as error:
            refuse_writer(error, path)
            if error.errno != errno.ENOENT:
                raise
            if os.path.lexists(path):  # a link that leads nowhere
                raise
            continue
        try:
            _require(lock_byte(fd), path, _HELD_BY_BROKER, "stop it")
            if leads_to(path, fd):
                return fd, made
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)


def leads_to(path: str, fd: int) -> bool:
    """Whether an open file still has this path."""
    try:
        with disk.named(path):
            return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def require_unused(directory: str) -> None:
    """Raise unless no broker holds a directory that is to be moved, or one that it is a part of, or one in it.

    Both brokers' locks count, whoever asks. None is taken: one that starts after this is not kept out. What cannot be
    looked through, or has too many directories for that, is a `FileStateError`.
    """
    for path in _locks_around(directory):
        found = state(path)
        if found == "unreadable":
            hint = "choose another place for the result"
            raise FileStateError("it cannot be seen whether a broker holds this lock", path=path, hint=hint)
        _require(found != "held", path, _HELD_BY_BROKER, "stop it")


def _locks_around(directory: str) -> Iterator[str]:
    from mqindex.files.path_relations import upwards  # here: a check moves no directory

    for way in dict.fromkeys((os.path.abspath(directory), os.path.realpath(directory))):
        for place in itertools.islice(upwards(way), _ABOVE + 1):
            yield from (path for name in _LOCKS if os.path.isfile(path := os.path.join(place, name)))
    yield from _locks_below(os.path.realpath(directory))


def _locks_below(root: str) -> Iterator[str]:
    """The lock files in a directory and, however deep, below it; links lead out of it."""
    waiting = [root]
    for _ in range(_MOST_BELOW):
        if not waiting:
            return
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.name in _LOCKS and entry.is_file():
                        yield entry.path
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except PermissionError as error:
            raise _not_looked_through(directory, error.strerror) from error
        except FileNotFoundError:  # removed meanwhile
            continue
    if waiting:
        raise _not_looked_through(root, f"more than {_MOST_BELOW:,} directories")


def _not_looked_through(directory: str, got: str | None) -> FileStateError:
    what = "it cannot be seen whether a broker has a store in this directory, so that it is not moved"
    return FileStateError(what, path=directory, got=got, hint="choose another place for the result")


def _require(locked: bool | None, path: str, refused: str, end: str) -> None:
    if locked is None:
        raise FileStateError(
            "this file system takes no locks, so it is unknown who else is writing",
            path=path,
            hint="mount it with locks (NFS: without nolock), or work on a copy of the directory",
        )
    if not locked:
        raise StoreInUseError(refused, path=path, hint=f"{end} first; reading needs no stop")


def _made(path: str) -> int | None:
    """A new lock file; None: there is one. It has its owner before its name, where files without a name are possible:
    a broker that starts after this run was killed must be able to open it.
    """
    if os.path.lexists(path):
        return None
    home = os.path.dirname(path) or "."
    fd = open_nameless(home)
    if fd is not None:
        try:
            disk.own_like(f"/proc/self/fd/{fd}", home)
            if link_into_place(fd, path):
                return fd
        except FileExistsError:  # made by another at this moment
            disk.close(fd)
            return None
        except BaseException:
            disk.close(fd)
            raise
        disk.close(fd)
    try:
        fd = disk.create(path)
    except FileExistsError:
        return None
    try:
        disk.own_like(path, home)
    except BaseException:
        disk.close(fd)
        disk.remove(path)
        raise
    return fd


@contextlib.contextmanager
def hold_directory(path: str, what: str) -> Iterator[None]:
    """Be the only writer of this package in a directory, which must exist; `StoreInUseError` if there is another.

    A forked child has the descriptor too: the parent releases the lock, the child only closes its descriptor.
    Where the file system has no locks (NFS has none for directories) one warning says that others are not kept out.

    what : "log" and the like, for the error.
    """
    with _only_writer(disk.open_directory(path), path, what):
        yield


@contextlib.contextmanager
def hold_file(path: str, what: str) -> Iterator[None]:
    """The same for one file, which must exist."""
    with _only_writer(disk.open_to_write(path), path, what):
        yield


@contextlib.contextmanager
def _only_writer(fd: int, path: str, what: str) -> Iterator[None]:
    owner = Owner(path)
    try:
        locked = lock_whole(fd)
        if locked is None:
            _warn(path if os.path.isdir(path) else os.path.dirname(path))
        else:
            _require(locked, path, f"another writer has this {what} open", "close it")
        try:
            yield
        finally:
            if locked and owner.here:
                unlock_whole(fd)
    finally:
        disk.close(fd)


def _warn(directory: str) -> None:
    """Warn once for each directory: an index has many files."""
    with _held_lock:
        first = directory not in _unlocked
        _unlocked.add(directory)
    if first:
        warnings.warn(
            f"this file system takes no locks, so nothing keeps a second writer of the index out: {directory}",
            stacklevel=2,
        )


@contextlib.contextmanager
def _hold_here(root: str, path: str) -> Iterator[None]:
    place = _place(root)
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


def _place(root: str) -> tuple[int, int, int]:
    status = os.stat(root)
    return os.getpid(), status.st_dev, status.st_ino  # a forked child holds nothing


# ---- calls of the operating system

_HELD = (errno.EACCES, errno.EAGAIN)
_NO_LOCKS = (errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


@disk.naming_path
def lock_whole(fd: int) -> bool | None:
    """Lock an open file of ours (`flock`), at once. False: another holds it; None: this file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno == errno.EACCES:  # means "held" for a record lock only
            raise
        return _refused(error)
    return True


@disk.naming_path
def unlock_whole(fd: int) -> None:
    """Release what `lock_whole` took, for every process that shares the open file."""
    fcntl.flock(fd, fcntl.LOCK_UN)


@disk.naming_path
def lock_byte(fd: int) -> bool | None:
    """Lock byte 0 of an open file as Java's `FileLock` does, at once; results as of `lock_whole`.

    Closing any descriptor of the file ends the lock.
    """
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError as error:
        return _refused(error)
    return True


def lock_owner(fd: int) -> int | None:
    """The process that holds a POSIX lock on byte 0; 0: one that cannot be seen from here; None: there is no lock.

    The query takes no lock, and does not see locks of this process.
    """
    linux = sys.platform.startswith("linux")
    query = (fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0) if linux else (0, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
    layout = struct.Struct("hhqqi4x" if linux else "qqihh")
    answer = layout.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, layout.pack(*query)))
    kind, pid = (answer[0], answer[4]) if linux else (answer[3], answer[2])
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def _refused(error: OSError) -> bool | None:
    if error.errno in _HELD:
        return False
    if error.errno in _NO_LOCKS:
        return None
    raise error
