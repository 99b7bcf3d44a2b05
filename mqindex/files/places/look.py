"""One look at what is elsewhere: a directory is listed once, and what is then asked of it is known from that list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mqindex.files.fork_lock import new_lock
from mqindex.files.places.place import Place
from mqindex.files.places.storage import Stat, Storage


@contextmanager
def looking(root: Place) -> Iterator[None]:
    """See `paths.one_look`."""
    before, root.storage.look = root.storage.look, Look(root.storage, root.path)
    try:
        yield
    finally:
        root.storage.look = before


class Look:
    """What a storage said of the directory `root` and of what is below it. For several threads."""

    def __init__(self, storage: Storage, root: str) -> None:
        self._storage, self._root = storage, root
        self._lock = new_lock()
        self._directories: dict[str, dict[str, Stat]] = {}
        self._listed: set[str] = set()  # the directories in `root` of which everything is known

    def forget(self) -> None:
        """Something that was listed is not there any more: list anew."""
        with self._lock:
            self._directories.clear()
            self._listed.clear()

    def has(self, path: str) -> bool:
        """Whether this is in the directory, or the directory."""
        return path == self._root or not self._root or path.startswith(f"{self._root}/")

    def stat(self, path: str) -> Stat:
        """See `Storage.stat`."""
        if not self.has(path):
            return self._storage.stat(path)
        if path == self._root:
            return self._stat_root()
        home, _, name = path.rpartition("/")
        try:
            return self._entries(home)[name]
        except KeyError:
            raise FileNotFoundError from None

    def _stat_root(self) -> Stat:
        try:
            self._entries(self._root)
        except OSError:
            return self._storage.stat(self._root)
        return Stat(-1, directory=True)

    def entries(self, path: str) -> dict[str, Stat]:
        """See `Storage.entries`."""
        return dict(self._entries(path)) if self.has(path) else self._storage.entries(path)

    def _entries(self, path: str) -> dict[str, Stat]:
        with self._lock:
            if self._root not in self._directories:
                self._directories[self._root] = self._storage.entries(self._root)
            if path != self._root:
                self._list(path)
            if path not in self._directories:
                raise FileNotFoundError
            return self._directories[path]

    def _list(self, path: str) -> None:
        """Everything below the directory of `root` that leads to `path`, unless that is known."""
        first = path.removeprefix(self._root).lstrip("/").partition("/")[0]
        found = self._directories[self._root].get(first)
        if found is None or not found.directory:
            raise FileNotFoundError
        if first in self._listed:
            return
        top = f"{self._root}/{first}".lstrip("/")
        self._directories[top] = {}
        for below, one in self._storage.tree(top).items():
            self._note(top, below, one)
        self._listed.add(first)

    def _note(self, top: str, path: str, found: Stat) -> None:
        if found.directory:
            self._directories.setdefault(path, {})
        while path != top:
            home, _, name = path.rpartition("/")
            self._directories.setdefault(home, {})[name] = found
            path, found = home, Stat(-1, directory=True)
