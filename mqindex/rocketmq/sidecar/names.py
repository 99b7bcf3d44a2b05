"""Where sidecars are: beside the directory of their index files, never in it."""

from __future__ import annotations

import os

from mqindex.files import disk

__all__ = ["DIRECTORY", "SUFFIXES", "remove_sidecars", "sidecar_directory", "sidecar_paths"]

DIRECTORY = "mqindex-index"
SUFFIXES = (".fence", ".filter")


def sidecar_directory(index_directory: str) -> str:
    """The directory with the sidecars of the index files of a directory.

    >>> sidecar_directory("/store/index")
    '/store/mqindex-index'
    """
    return os.path.join(os.path.dirname(os.path.abspath(index_directory)), DIRECTORY)


def sidecar_paths(index_path: str) -> tuple[str, str]:
    """The fence and the filter of an index file, whether they are there or not."""
    directory, name = os.path.split(os.path.abspath(index_path))
    fence, keys = (os.path.join(sidecar_directory(directory), name + suffix) for suffix in SUFFIXES)
    return fence, keys


def remove_sidecars(index_path: str) -> None:
    """Remove the sidecars of an index file that is gone."""
    for path in sidecar_paths(index_path):
        if disk.is_file(path):
            disk.remove(path)
