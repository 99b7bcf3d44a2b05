"""A store's directory: what marks it, and the lock that a running broker holds."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from mqindex.errors import BadMagicError, StoreInUseError
from mqindex.files import disk, lock

__all__ = [
    "are_queues",
    "file_size",
    "hold_lock",
    "hold_part",
    "index_directories",
    "index_paths",
    "is_left_of_store",
    "names_in",
    "require_parts",
    "require_store",
    "strangers",
    "stray_index_names",
    "was_unclean",
]

_PARTS = (
    "commitlog", "consumequeue", "index", "checkpoint", "abort", "abort.bak", "consumequeue_ext", "batchconsumequeue",
    "consumequeue_rocksdb", "rocksdbstore", "timerwheel", "timerlog",
    os.path.join("config", "topics.json"), os.path.join("config", "consumerOffset.json"),
)  # fmt: skip
_STORE_HAS = "a directory with commitlog/, consumequeue/, index/, checkpoint"
_LOG_ELSEWHERE = "if the log is elsewhere, give commitlog= (--commitlog)"


def strangers(directory: str, digits: int | None = None) -> list[str]:
    """The names in a directory in which none is a number (of so many digits); [] where one is.

    What file systems put into directories, and hidden names, do not count.
    """
    names = names_in(directory)
    if any(is_number(name) and digits in (None, len(name)) for name in names):
        return []
    return [name for name in names if name != "lost+found" and not name.startswith(".")]


def was_unclean(root: str) -> bool:
    """True where `abort` exists: the last exit was unclean, or the broker runs (RocketMQ `DefaultMessageStore`)."""
    return disk.exists(os.path.join(root, "abort"))


def hold_lock(root: str) -> AbstractContextManager[None]:
    """Hold the store's `lock` as a broker would, so that none starts meanwhile; `StoreInUseError` where one runs."""
    return lock.hold(os.path.join(root, "lock"))


@contextmanager
def hold_part(directory: str, what: str) -> Iterator[None]:
    """Be the only writer of this package in a part of a store, which no other process may hold now.

    The store's own lock is not taken: this process may have it already, and write the store's parts with this one.
    """
    root = os.path.dirname(os.path.abspath(directory))
    held, pid = lock.holder(os.path.join(root, "lock")) if is_left_of_store(root) else ("free", None)
    if held == "held" and pid != os.getpid():
        raise StoreInUseError(
            "a broker holds this store, or another writer", path=root, hint="stop it first; reading needs no stop"
        )
    with lock.hold_directory(directory, what):
        yield


def index_paths(directory: str) -> list[str]:
    """The index files of a directory in the broker's load order: by name, numeric names only."""
    return [path for path in _numbered(directory) if not disk.is_directory(path)]


def index_directories(directory: str) -> list[str]:
    """Directories named as index files are: a broker loads no file after them, one of 5.1 or later does not start."""
    return [path for path in _numbered(directory) if disk.is_directory(path)]


def file_size(path: str) -> int:
    """The length of a listed file; 0 for a link that leads nowhere, which a broker fills with zeros or cannot open."""
    try:
        return os.path.getsize(path)
    except OSError:
        if os.path.islink(path):
            return 0
        raise


def stray_index_names(directory: str) -> list[str]:
    """Names that the broker logs and skips."""
    return [name for name in names_in(directory) if not is_number(name)]


def require_store(root: str) -> None:
    """Raise a clear error where a path is not a store."""
    if not disk.is_there(root):
        raise FileNotFoundError(errno.ENOENT, "no such store directory", root)
    if not disk.is_directory(root):
        raise BadMagicError("not a store", path=root, expected="the root directory of a broker's store", got="a file")


def require_parts(root: str) -> None:
    """Raise a clear error where a directory has nothing of a store."""
    if not is_left_of_store(root):
        raise BadMagicError("not a store", path=root, expected=_STORE_HAS, got="none of it", hint=_LOG_ELSEWHERE)


def is_left_of_store(root: str) -> bool:
    """Whether a directory has anything that only a store has, however little is left of it."""
    return any(disk.is_there(os.path.join(root, name)) for name in _PARTS)


def are_queues(directory: str) -> bool:
    """Whether a directory that is called `consumequeue` or so is that of all queues, and no store's root of that name.

    A topic may be called `index` too: what is in its directory are queues, named by numbers.
    """
    parts = (os.path.join(directory, name) for name in ("commitlog", "consumequeue", "index"))
    return not any(disk.is_directory(part) and not any(map(disk.is_directory, _numbered(part))) for part in parts)


def _numbered(directory: str) -> list[str]:
    return [os.path.join(directory, name) for name in names_in(directory) if is_number(name)]


def names_in(directory: str) -> list[str]:
    """All names in a directory, sorted; none where there is no directory."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):  # as a broker, which finds no file there
        return []


def is_number(name: str) -> bool:
    """Whether a broker takes a name for a file's: by Long.parseLong, which takes the decimal digits of any script."""
    return name.isdecimal() and int(name) < 2**63
