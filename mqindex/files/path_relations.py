"""Where a path is: what is above it, and whether it is in a directory, by whatever name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from mqindex.files import disk

_Identity = tuple[int, int] | None


def around(path: str, directories: Iterable[str]) -> str | None:
    """`PathRelations.around`, of one path."""
    return PathRelations().around(path, directories)


class PathRelations:
    """Where paths are. Each path is looked at once, as many of one check share what is above them."""

    def __init__(self) -> None:
        self._identities: dict[str, _Identity] = {}
        self._resolved: dict[str, str] = {}

    def around(self, path: str, directories: Iterable[str]) -> str | None:
        """The first of some directories in which a path lies, as it is written or with links resolved, whatever mounts
        lead there; None: in none of them.

        One that is there is known by its device and inode, which links and mounts share; another one by its name.
        """
        ways = {os.path.abspath(path), self._resolve(path)}
        for directory in directories:
            try:
                found = self._identity(directory)
            except OSError:  # it may not be looked at
                found = None
            if found is None:
                name = os.path.join(self._resolve(directory), "")
                inside = any(os.path.join(way, "").startswith(name) for way in ways)
            else:
                inside = any(self._identity(above) == found for way in ways for above in upwards(way))
            if inside:
                return directory
        return None

    def _identity(self, path: str) -> _Identity:
        """Its device and inode; None: nothing is there."""
        if path not in self._identities:
            found = disk.status(path)
            self._identities[path] = None if found is None else (found.st_dev, found.st_ino)
        return self._identities[path]

    def _resolve(self, path: str) -> str:
        """`os.path.realpath`, with what is above looked up once."""
        if path not in self._resolved:
            above, name = os.path.split(path)
            plain = name not in ("", os.curdir, os.pardir) and not os.path.islink(path)
            self._resolved[path] = os.path.join(self._resolve(above), name) if plain else os.path.realpath(path)
        return self._resolved[path]


def upwards(path: str) -> Iterator[str]:
    """An absolute path, and every directory above it.

    >>> list(upwards("/data/store"))
    ['/data/store', '/data', '/']
    """
    yield path
    while path != (path := os.path.dirname(path)):
        yield path
