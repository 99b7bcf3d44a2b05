"""Where sidecars are: beside the directory of their index files, never in it."""

from __future__ import annotations

from mqindex.files import disk
from mqindex.files.paths import absolute, join, list_names, parent_of, split

DIRECTORY = "mqindex-index"
FENCE = ".fence"  # after the name of the index file
FILTER = "keys.filter"  # one for all index files


def sidecar_directory(index_directory: str) -> str:
    """The directory with the sidecars of the index files of a directory.

    >>> sidecar_directory("/store/index")
    '/store/mqindex-index'
    """
    return join(parent_of(absolute(index_directory)), DIRECTORY)


def fence_path(index_path: str) -> str:
    """The fence of an index file, whether it is there or not.

    >>> fence_path("/store/index/20231114221320000")
    '/store/mqindex-index/20231114221320000.fence'
    """
    directory, name = split(absolute(index_path))
    return join(sidecar_directory(directory), name + FENCE)


def filter_path(index_directory: str) -> str:
    """The key filter of the index files of a directory, whether it is there or not."""
    return join(sidecar_directory(index_directory), FILTER)


def remove_fence(index_path: str) -> None:
    """Remove the fence of an index file that goes next; before the last one the filter, which nobody asks then.

    Where something cannot be removed, what is left is still found by the name of the index file.
    """
    path = fence_path(index_path)
    if not disk.is_file(path):
        return
    directory, own = split(path)
    keys = join(directory, FILTER)
    if disk.is_file(keys) and not any(name.endswith(FENCE) and name != own for name in list_names(directory)):
        disk.remove(keys)
    disk.remove(path)
