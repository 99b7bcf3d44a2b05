"""Every call that changes a disk: new files, bytes, names, and the syncs that make them durable.

Nothing outside `mqindex.files` calls the system for these, so that a test can make every one of them fail. Each does
its work completely or raises the `OSError`, which names the path if there is one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

from mqindex._native import names
from mqindex.files.places.place import Place

_MAY_NOT = (errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOTTY)  # or cannot
_LONGEST = 100  # bytes of a name in a temporary one
_SYNCS = 16  # files at once: one after the other, each takes a commit of its own, which is ten times as long


# ---- errors that say where ----------------------------------------------------------------------------------------

_P = ParamSpec("_P")
_T = TypeVar("_T")


class named:  # like `contextlib.suppress`; a generator in its place would take three times as long
    """An `OSError` of the block that names no path, as those of descriptors, names this one."""

    __slots__ = ("_path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = os.fspath(self._path)


def naming_path(call: Callable[Concatenate[int, _P], _T]) -> Callable[Concatenate[int, _P], _T]:
    """The same for a descriptor: the path of its file is looked up after an error."""

    @wraps(call)
    def named_call(fd: int, /, *args: _P.args, **options: _P.kwargs) -> _T:
        try:
            return call(fd, *args, **options)
        except OSError as error:
            if error.filename is None:
                error.filename = _path_of(fd)
            raise

    return named_call


def _path_of(fd: int) -> str | None:
    """The path of an open file, where the system knows it."""
    with contextlib.suppress(OSError):
        if hasattr(fcntl, "F_GETPATH"):  # macOS
            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")
    return None


# ---- what is there ------------------------------------------------------------------------------------------------


def exists(path: str) -> bool:
    """Whether a name is there, a dangling link's too. What cannot be looked at is an `OSError`, not "nothing"."""
    if isinstance(path, Place):
        return is_there(path)
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_there(path: str) -> bool:
    """Whether a name leads to anything, itself or as a link; an `OSError` as for `exists`."""
    return _mode(path) != 0


def is_file(path: str) -> bool:
    """Whether a name leads to a regular file, itself or as a link; an `OSError` as for `exists`."""
    return stat.S_ISREG(_mode(path))


def is_directory(path: str) -> bool:
    """Whether a name leads to a directory, itself or as a link; an `OSError` as for `exists`."""
    return stat.S_ISDIR(_mode(path))


def kind_of(path: str) -> str:
    """What a name leads to, in words."""
    mode = _mode(path)
    if not mode:
        return "a link that leads nowhere" if exists(path) else "nothing"
    return "a file" if stat.S_ISREG(mode) else "a directory" if stat.S_ISDIR(mode) else "a special file"


def status(path: str) -> os.stat_result | None:
    """What a name leads to; None: nothing. What cannot be looked at is an `OSError`, as for `exists`."""
    try:
        return path.stat().as_result() if isinstance(path, Place) else os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # the last one: a link that leads to itself
            raise
        return None


def free_bytes(directory: str) -> int | None:
    """What may still be written there; None: nobody counts it, as in ramfs and elsewhere."""
    if isinstance(directory, Place):
        return None
    import shutil  # loads three compressors, which no check needs

    room = shutil.disk_usage(directory)
    return room.free if room.total else None


def check_space(directory: str, needed: int) -> str:
    """How many bytes are free, in words; if they are fewer than needed, `OSError(ENOSPC)` before the work begins."""
    free = free_bytes(directory)
    if free is None:
        return "nobody counts what is free"
    if needed > free:
        text = f"{os.strerror(errno.ENOSPC)}: this needs {needed:,} bytes, {free:,} are free"
        raise OSError(errno.ENOSPC, text, directory)
    return f"{free:,} are free"


def files_of(path: str) -> list[str]:
    """What is in a directory, sorted; of a file, itself."""
    return [os.path.join(path, name) for name in sorted(os.listdir(path))] if is_directory(path) else [path]


def _mode(path: str) -> int:
    found = status(path)
    return found.st_mode if found else 0


# ---- files --------------------------------------------------------------------------------------------------------


def create(path: str) -> int:
    """A descriptor of a new file, to read and write; never one that others made there, nor a link's target."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)


def open_to_write(path: str) -> int:
    """A descriptor of a file that is there, to read and write."""
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def open_directory(path: str) -> int:
    """A descriptor of a directory: its names are synced by it, and it may be locked."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def close(fd: int) -> None:
    """Close a descriptor."""
    os.close(fd)


@naming_path
def write_all(fd: int, data: bytes | memoryview) -> None:
    """Every byte, at the descriptor's position."""
    rest = memoryview(data)
    while rest:
        rest = rest[_progress(os.write(fd, rest)) :]


@naming_path
def pwrite_all(fd: int, data: bytes | memoryview, at: int) -> None:
    """Every byte, from position `at` on."""
    rest = memoryview(data).cast("B")
    while rest:
        written = _progress(os.pwrite(fd, rest, at))
        rest, at = rest[written:], at + written


def _progress(written: int) -> int:
    if written == 0:
        raise OSError(errno.EIO, "a write took no byte")
    return written


@naming_path
def resize(fd: int, size: int) -> None:
    """Cut a file, or let it grow by a hole."""
    os.ftruncate(fd, size)


@contextlib.contextmanager
def new_file(path: str) -> Iterator[int]:
    """A descriptor of a new file to fill, as `create` gives it."""
    fd = create(path)
    try:
        yield fd
    finally:
        os.close(fd)


def write_new(path: str, data: bytes | memoryview) -> None:
    """Write a file that must not exist yet; `sync_files` brings it to the disk."""
    with new_file(path) as fd:
        write_all(fd, data)


def append(path: str, data: memoryview) -> None:
    """Add bytes to the end of a file, which is made where there is none."""
    if not exists(path):
        close(create(path))
    fd = open_to_write(path)
    try:
        pwrite_all(fd, data, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def temporary(directory: str, name: str) -> str:
    """A path in `directory` that no other attempt of the same task uses: retries and speculation never collide.

    Of a long name only the beginning is used: with more than it, it could be longer than a name may be.
    """
    begin = os.fsencode(name)[:_LONGEST].decode(sys.getfilesystemencoding(), errors="ignore")
    return os.path.join(directory, f"{begin}.{os.urandom(6).hex()}")


def remove_temporaries(directory: str, name: str) -> None:
    """Remove the files that killed processes left of `temporary(directory, name)`, a regular expression here.

    Nobody else may be writing there now.
    """
    ours = re.compile(rf"{name}\.[0-9a-f]{{12}}")
    for entry in list(os.scandir(directory)):
        if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


# ---- names --------------------------------------------------------------------------------------------------------


def make_directory(path: str) -> None:
    """A new directory in one that is there."""
    os.mkdir(path)


def make_directories(path: str, *, inherit: bool = False) -> None:
    """A directory, and those above it, that are there afterwards; the names of new ones are durable.

    inherit : each new one takes owner and mode of the one above it; else they are as the process makes them.
    """
    if is_directory(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    make_directories(above, inherit=inherit)
    try:
        os.mkdir(path)
    except FileExistsError:  # made by another at this moment, unless it is no directory
        if not is_directory(path):
            raise
    else:
        if inherit:
            own_like(path, above)
    sync_directory(above)


def remove(path: str) -> None:
    """Remove the name of a file."""
    os.unlink(path)


def remove_directory(path: str) -> None:
    """Remove an empty directory."""
    os.rmdir(path)


def link(source: str, target: str) -> bool:
    """A second name for a file, or for a link itself. False: the file systems cannot."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS):
            raise
        return False
    return True


def swap(one: str, other: str) -> bool:
    """Let two names exchange what they lead to, at once. False: the file system cannot."""
    return names.swap(one, other)


def require_writable(directory: str) -> None:
    """An `OSError` where no name in a directory may be changed: before some names are, and others cannot be."""
    as_now = os.access in os.supports_effective_ids
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=as_now):
        number = errno.EROFS if os.statvfs(directory).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(number, f"{os.strerror(number)}; nothing was changed", directory)


def rename(source: str, target: str) -> None:
    """Give a file or directory another name; `replace` makes it durable too."""
    os.rename(source, target)


def replace(source: str, target: str) -> None:
    """Rename over `target`, durably."""
    os.replace(source, target)
    sync_directory(os.path.dirname(target) or ".")


def own_like(path: str, neighbour: str | os.stat_result) -> None:
    """Give a new file or directory its neighbour's owner and mode: a repair by root must not lock the broker out.

    A process that may not do that, or whose file system has no owners, keeps its own. A directory that all share, such
    as /tmp, is no model. A link in the place of the file is not followed: whoever put it there may own the directory.
    """
    like = os.stat(neighbour) if isinstance(neighbour, str) else neighbour
    mode = stat.S_IMODE(like.st_mode)
    if mode & stat.S_ISVTX:
        return
    is_open = path.startswith("/proc/self/fd/")  # and stays so: a close would let its locks go
    fd = int(path[14:]) if is_open else os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        _own_open(fd, like, mode)
    finally:
        if not is_open:
            close(fd)


@naming_path
def _own_open(fd: int, like: os.stat_result, mode: int) -> None:
    now = os.fstat(fd)
    if stat.S_ISDIR(now.st_mode) and not stat.S_ISDIR(like.st_mode):
        mode |= (mode & 0o444) >> 2  # who may read the file may enter the directory
    elif not stat.S_ISDIR(now.st_mode) and stat.S_ISDIR(like.st_mode):
        mode &= ~0o7111  # nor what setgid and the like mean for a directory
    another = (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid)
    if another and not _as_allowed(lambda: os.fchown(fd, like.st_uid, like.st_gid)):
        _as_allowed(lambda: os.fchown(fd, -1, like.st_gid))
    _as_allowed(lambda: os.fchmod(fd, mode))


def _as_allowed(change: Callable[[], object]) -> bool:
    """False: this user may not, or the file system cannot."""
    try:
        change()
    except OSError as error:
        if error.errno not in _MAY_NOT:
            raise
        return False
    return True


# ---- syncs ---------------------------------------------------------------------------------------------------------


@naming_path
def sync(fd: int) -> None:
    """Return when a file's bytes and length are on the disk."""
    if not _through_the_cache(fd):
        os.fsync(fd)


@naming_path
def sync_data(fd: int) -> None:
    """Return when a file's bytes, and what is needed to find them, are on the disk."""
    if not _through_the_cache(fd):
        getattr(os, "fdatasync", os.fsync)(fd)


def _through_the_cache(fd: int) -> bool:
    """On macOS, where `fsync` leaves bytes in the drive's cache, empty that too, as Java's `FileChannel.force` does.

    False: another system, or a file system that cannot, such as a network's: `fsync` is all there is.
    """
    full = getattr(fcntl, "F_FULLFSYNC", None)
    return full is not None and _as_allowed(lambda: fcntl.fcntl(fd, full))


def sync_file(path: str) -> None:
    """Make the contents of one file durable."""
    _sync(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    _sync(open_directory(path))


def _sync(fd: int) -> None:
    try:
        sync(fd)
    finally:
        os.close(fd)


def sync_tree(root: str) -> None:
    """Make every directory's names below `root`, and its own, durable; the files were synced when they were written."""
    sync_directories([directory for directory, _, _ in os.walk(root, onerror=_raise)])


def sync_directories(paths: Collection[str]) -> None:
    """Make the names in directories durable; many at once share the disk's commits."""
    _sync_all(sync_directory, sorted(paths))


def _raise(error: OSError) -> None:
    raise error


def sync_files(paths: Sequence[str]) -> float:
    """Make the contents of files durable, and say how many seconds that took. Many at once share the disk's commits."""
    started = time.perf_counter()
    _sync_all(sync_file, paths)
    return time.perf_counter() - started


def _sync_all(sync_one: Callable[[str], None], paths: Sequence[str]) -> None:
    if len(paths) < 3:
        for path in paths:
            sync_one(path)
        return
    from mqindex.files.few_threads import for_each  # here: no look-up needs threads

    for_each(sync_one, paths, _SYNCS)
