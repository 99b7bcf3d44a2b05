"""A store's directory: what marks it, what brokers have in it, and the lock that a running broker holds."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Final

from mqindex.errors import BadMagicError
from mqindex.files import disk, lock
from mqindex.files.rights import is_led_by_another

QUEUES: Final = ("consumequeue", "consumequeue_ext", "batchconsumequeue")
# Names in a store's root: those that no other program gives, and those that may be anybody's.
OWN_NAMES: Final = {
    "commitlog", *QUEUES, "consumequeue_rocksdb", "rocksdbstore", "timerwheel", "timerlog", "epochFileCheckpoint",
}  # fmt: skip
COMMON_NAMES: Final = {
    "index", "config", "checkpoint", "lock", "abort", "abort.bak", "compaction", "transaction", "brokerIdentity",
    "tiered_index_file",
}  # fmt: skip
_BEGINNINGS: Final = ("dledger-", "mqindex-backup-")
_PARTS = (
    "commitlog", "consumequeue", "index", "checkpoint", "abort", "abort.bak", "consumequeue_ext", "batchconsumequeue",
    "consumequeue_rocksdb", "rocksdbstore", "timerwheel", "timerlog",
    os.path.join("config", "topics.json"), os.path.join("config", "consumerOffset.json"),
)  # fmt: skip
_STORE_HAS = "a directory with commitlog/, consumequeue/, index/, checkpoint"
_LOG_ELSEWHERE = "if the log is elsewhere, give commitlog= (--commitlog)"


def is_part(name: str) -> bool:
    """Whether a name in a store's root is one that brokers give there, or a backup's; every other one is free."""
    return name in OWN_NAMES or name in COMMON_NAMES or name.startswith(_BEGINNINGS)


def places_of(root: str, logs: Iterable[str] = ()) -> list[str]:
    """Where a store's files are: every part of its root, there or not, and its topics and queues that are links.

    Any of them may lead to another disk: `mqindex.files.path_relations` finds out what is in one.

    logs : the directories of its commit log, which may be in any place.
    """
    there: list[str] = []
    with suppress(OSError):  # it may not be listed
        there = [name for name in names_in(root) if is_part(name)]
    parts = [os.path.join(root, name) for name in sorted({*OWN_NAMES, *COMMON_NAMES, *there})]
    return [*logs, *parts, *(link for name in QUEUES for link in _links(os.path.join(root, name), 1))]


def directories_of(root: str, logs: Iterable[str]) -> Iterator[str]:
    """Where everything is that a look at a store reads, there or not: each may be a volume of its own."""
    yield from (root, *logs, *(os.path.join(root, name) for name in ("index", *QUEUES, "config")))
    for name in QUEUES:
        yield from _links(os.path.join(root, name), 0)


def linked_directories(root: str) -> Iterator[str]:
    """The directories of index and queues that are links no repair enters: topics, queues, and the first for root."""
    for path in (os.path.join(root, name) for name in ("index", *QUEUES)):
        if is_led_by_another(path):
            yield path
        elif os.path.basename(path) != "index":
            yield from (link for link in _links(path, 1) if not disk.is_file(link))


def _links(directory: str, depth: int) -> Iterator[str]:
    """The links in a directory, and in those that are so many levels below it."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            if depth and entry.is_dir():
                yield from _links(entry.path, depth - 1)


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
def hold_writers(root: str) -> Iterator[None]:
    """Hold a store's `lock`, and be the only writer of this package in its index and its queues.

    Single index files are only tried: there may be more of them than files may be open.
    """
    with ExitStack() as held:
        held.enter_context(hold_lock(root))
        for name, what in (("index", "index"), ("consumequeue", "queue")):
            directory = os.path.join(root, name)
            if disk.is_directory(directory):
                held.enter_context(lock.hold_directory(directory, what))
        for path in index_paths(os.path.join(root, "index")):
            with suppress(OSError), lock.hold_file(path, "index file"):  # who cannot open it does not write it
                pass
        yield


@contextmanager
def hold_part(directory: str, what: str) -> Iterator[None]:
    """Be the only writer of this package in a part of a store, which no other process may hold now.

    The store's own lock is not taken: this process may have it already, and write the store's parts with this one.
    """
    _require_free(directory)
    with lock.hold_directory(directory, what):
        yield


@contextmanager
def hold_index_file(path: str) -> Iterator[None]:
    """Be the only writer of this package in one index file; as `hold_part`."""
    with lock.hold_file(path, "index file"):
        _require_free(os.path.dirname(path))  # now: who holds the store from here on finds the file held
        yield


def _require_free(part: str) -> None:
    root = os.path.dirname(os.path.abspath(part))
    if is_left_of_store(root):
        lock.require_free(os.path.join(root, "lock"))


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
