"""Paths of this machine and of places elsewhere, handled alike: joined, listed, and asked for a file's length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from mqindex.files.places.place import Place

if TYPE_CHECKING:
    from mqindex.files.places.storage import Stat


class Entry(Protocol):
    """What `scan` gives, as `os.DirEntry`."""

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    def is_dir(self) -> bool: ...
    def is_file(self) -> bool: ...
    def is_symlink(self) -> bool: ...
    def stat(self) -> os.stat_result: ...


class _Elsewhere:
    """An entry of a directory elsewhere: what is known of it came with the listing."""

    __slots__ = ("_found", "name", "path")

    def __init__(self, directory: Place, name: str, found: Stat) -> None:
        self.name, self.path, self._found = name, Place(directory / name, directory.storage, found), found

    def is_dir(self) -> bool:
        return self._found.directory

    def is_file(self) -> bool:
        return not self._found.directory

    def is_symlink(self) -> bool:
        return False

    def stat(self) -> os.stat_result:
        return self._found.as_result()


def join(path: str, *names: str) -> str:
    """The path of what is below a path: a place's is a place.

    >>> join("store", "index", "20260101000000000")
    'store/index/20260101000000000'
    """
    if not isinstance(path, Place):
        return os.path.join(path, *names)
    for name in names:
        path = path / name
    return path


def parent_of(path: str) -> str:
    """The directory that a path is in; of what is at the top, the path itself."""
    if isinstance(path, Place):
        return path.parent or path
    return os.path.dirname(path)


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.name if isinstance(path, Place) else os.path.basename(path)


def absolute(path: str | os.PathLike[str]) -> str:
    """The path from this machine's root; that of a place is one already."""
    return path if isinstance(path, Place) else os.path.abspath(path)


class _Scan:
    """What `scan` gives of a directory elsewhere, as `os.scandir`."""

    def __init__(self, directory: Place) -> None:
        self._entries = [_Elsewhere(directory, name, found) for name, found in directory.entries().items()]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __enter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __exit__(self, *_: object) -> None: ...


class Scan(Protocol):
    """An iterable of entries that is closed at the end of a `with`."""

    def __iter__(self) -> Iterator[Entry]: ...
    def __enter__(self) -> Iterator[Entry]: ...
    def __exit__(self, kind: Any, error: Any, at: Any, /) -> Any: ...


def scan(directory: str) -> Scan:
    """What is in a directory, as `os.scandir` has it, in no order."""
    return _Scan(directory) if isinstance(directory, Place) else os.scandir(directory)


def list_names(directory: str) -> list[str]:
    """All names in a directory, as `os.listdir`."""
    return list(directory.entries()) if isinstance(directory, Place) else os.listdir(directory)


def status_of(path: str) -> os.stat_result:
    """What `os.stat` says; of what is elsewhere the kind and the length."""
    return path.stat().as_result() if isinstance(path, Place) else os.stat(path)


def size_of(path: str) -> int:
    """The length of a file."""
    return status_of(path).st_size


def as_it_is(path: str) -> tuple[str, int]:
    """A file's path and length; whoever opens that path elsewhere reads this version, or gets an error."""
    if not isinstance(path, Place):
        return path, size_of(path)
    found = path.stat()
    return Place(path, path.storage, found), found.size


def is_link(path: str) -> bool:
    """Whether a name is a symbolic link: none is elsewhere."""
    return not isinstance(path, Place) and os.path.islink(path)


def real_path(path: str) -> str:
    """The path without links."""
    return path if isinstance(path, Place) else os.path.realpath(path)


def relative(path: str, root: str) -> str:
    """The path as seen from `root`, which is above it."""
    return path.removeprefix(root).lstrip("/") if isinstance(root, Place) else os.path.relpath(path, root)


def split(path: str) -> tuple[str, str]:
    """The directory that a path is in, and its last part."""
    return parent_of(path), base_name(path)


@contextmanager
def one_look(*roots: str) -> Iterator[None]:
    """Within it each directory below these is listed once, with all that is below it, and no name is asked for alone.

    A survey asks for dozens of names, of which most are absent, and for every queue. What is read is read by its
    version as ever; when a file turns out to be gone, all is listed anew. Files of this machine are asked as always.
    """
    with ExitStack() as looks:
        for root in roots:
            if isinstance(root, Place) and (root.storage.look is None or not root.storage.look.has(root.path)):
                from mqindex.files.places.look import looking  # here: files of this machine need none of it

                looks.enter_context(looking(root))
        yield
