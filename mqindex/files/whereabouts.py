"""Where a path is: what is above it, and whether it is in a directory, by whatever name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from mqindex.files import disk

__all__ = ["around", "lies_in", "upwards"]


def lies_in(path: str, directory: str) -> bool:
    """Whether a path is `directory` or below it, as it is written or with links resolved, whatever mounts lead there.

    Neither need exist.
    """
    return around(path, [directory]) is not None


def around(path: str, directories: Iterable[str]) -> str | None:
    """The first of some directories in which a path lies, as of `lies_in`; None: in none of them.

    One that is there is known by its device and inode, which links and mounts share; another one by its name.
    """
    ways = {above for way in (os.path.abspath(path), os.path.realpath(path)) for above in upwards(way)}
    known = {(found.st_dev, found.st_ino) for above in ways if (found := disk.status(above)) is not None}
    for directory in directories:
        try:
            found = disk.status(directory)
        except OSError:  # it may not be looked at
            found = None
        if os.path.realpath(directory) in ways if found is None else (found.st_dev, found.st_ino) in known:
            return directory
    return None


def upwards(path: str) -> Iterator[str]:
    """An absolute path, and every directory above it.

    >>> list(upwards("/data/store"))
    ['/data/store', '/data', '/']
    """
    yield path
    while path != (path := os.path.dirname(path)):
        yield path
