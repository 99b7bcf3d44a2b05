"""A store's directory: what marks it, what brokers have in it, and the lock that a running broker holds."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from mqindex.errors import BadMagicError
from mqindex.files import disk, lock
from mqindex.files.paths import absolute, base_name, join, parent_of, scan
from mqindex.files.places.place import Place, without_unread
from mqindex.files.rights import is_led_by_another
from mqindex.rocketmq.kinds import COMMON_NAMES, OWN_NAMES, QUEUES, index_paths, is_left_of_store, is_part, names_in

_STORE_HAS = "a directory with commitlog/, consumequeue/, index/, checkpoint"
_LOG_ELSEWHERE = "if the log is elsewhere, give commitlog= (--commitlog)"


def homes_of(root: str, logs: Iterable[str] = ()) -> list[str]:
    """A store's root, the directories of its log, and the parts that it may have: no cache belongs into one."""
    return [root, *logs, *(join(root, name) for name in sorted(OWN_NAMES))]


def places_of(root: str, logs: Iterable[str] = ()) -> list[str]:
    """Where a store's files are: every part of its root, there or not, and its topics and queues that are links.

    Any of them may lead to another disk: `mqindex.files.path_relations` finds out what is in one.

    logs : the directories of its commit log, which may be in any place.
    """
    there: list[str] = []
    with without_unread(root):  # it may not be listed
        there = [name for name in names_in(root) if is_part(name)]
    parts = [join(root, name) for name in sorted({*OWN_NAMES, *COMMON_NAMES, *there})]
    return [*logs, *parts, *(link for name in QUEUES for link in _links(join(root, name), 1))]


def directories_of(root: str, logs: Iterable[str]) -> Iterator[str]:
    """Where everything is that a look at a store reads, there or not: each may be a volume of its own."""
    yield from (root, *logs, *(join(root, name) for name in ("index", *QUEUES, "config")))
    for name in QUEUES:
        yield from _links(join(root, name), 0)


def linked_directories(root: str) -> Iterator[str]:
    """The directories of index and queues that are links no repair enters: topics, queues, and the first for root."""
    for path in (join(root, name) for name in ("index", *QUEUES)):
        if is_led_by_another(path):
            yield path
        elif base_name(path) != "index":
            yield from (link for link in _links(path, 1) if not disk.is_file(link))


def _links(directory: str, depth: int) -> Iterator[str]:
    """The links in a directory, and in those that are so many levels below it. None is elsewhere."""
    if isinstance(directory, Place):
        return
    with suppress(OSError), scan(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            if depth and entry.is_dir():
                yield from _links(entry.path, depth - 1)


def was_unclean(root: str) -> bool:
    """True where `abort` exists: the last exit was unclean, or the broker runs (RocketMQ `DefaultMessageStore`)."""
    return disk.exists(join(root, "abort"))


def hold_lock(root: str) -> AbstractContextManager[None]:
    """Hold the store's `lock` as a broker would, so that none starts meanwhile; `StoreInUseError` where one runs."""
    return lock.hold(join(root, "lock"))


@contextmanager
def hold_writers(root: str) -> Iterator[None]:
    """Hold a store's `lock`, and be the only writer of this package in its index and its queues.

    Single index files are only tried: there may be more of them than files may be open.
    """
    with ExitStack() as held:
        held.enter_context(hold_lock(root))
        for name, what in (("index", "index"), ("consumequeue", "queue")):
            directory = join(root, name)
            if disk.is_directory(directory):
                held.enter_context(lock.hold_directory(directory, what))
        for path in index_paths(join(root, "index")):
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
        _require_free(parent_of(path))  # now: who holds the store from here on finds the file held
        yield


def _require_free(part: str) -> None:
    root = parent_of(absolute(part))
    if is_left_of_store(root):
        lock.require_free(join(root, "lock"))


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
