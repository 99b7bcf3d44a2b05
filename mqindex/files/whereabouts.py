"""Where a path is: what is above it, and whether it is in a directory, by whatever name."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mqindex.files import disk

__all__ = ["lies_in", "upwards"]


def lies_in(path: str, directory: str) -> bool:
    """Whether a path is `directory` or below it, as it is written or with links resolved, whatever mounts lead there.

    Neither need exist.
    """
    home, there = os.path.realpath(directory), disk.status(directory)
    return any(
        above == home or (there is not None and (found := disk.status(above)) and os.path.samestat(there, found))
        for way in (os.path.abspath(path), os.path.realpath(path))
        for above in upwards(way)
    )


def upwards(path: str) -> Iterator[str]:
    """An absolute path, and every directory above it.

    >>> list(upwards("/data/store"))
    ['/data/store', '/data', '/']
    """
    yield path
    while path != (path := os.path.dirname(path)):
        yield path
