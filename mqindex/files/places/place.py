"""A place: the path of a file or directory that is not on this machine, with what it takes to get there."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from mqindex.errors import FileStateError, ReadOnlyFileError, path_of

if TYPE_CHECKING:
    from mqindex.files.places.storage import Stat, Storage

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)([?#].*)?", re.IGNORECASE | re.DOTALL)
_OBJECTS, _HDFS = "mqindex.files.places.object_storage:ObjectStorage", "mqindex.files.places.hdfs_storage:HdfsStorage"
STORAGES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n", "gs", "az", "azure", "abfs", "abfss", "http", "https"), _OBJECTS),
    "hdfs": _HDFS,
}
_BUFFER: Final = 64 << 10


def _errors_of(url: str) -> AbstractContextManager[None]:
    from mqindex.files.places.storage import errors_of  # here: paths of this machine need none of it

    return errors_of(url)


class Place(str):
    """The path of what is elsewhere: its URL, and its storage, which it carries wherever the path goes.

    Pickled it takes its storage along; shown it is its text alone. `mqindex.files.paths` has what is done with paths.

    `found`: what its directory's list said of it; whoever opens it reads that version, or gets an error.
    """

    __slots__ = ("found", "storage")
    storage: Storage
    found: Stat | None

    def __new__(cls, url: str, storage: Storage, found: Stat | None = None) -> Place:
        made = super().__new__(cls, url)
        made.storage, made.found = storage, found
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Place, (str(self), self.storage, self.found)

    def __add__(self, more: str) -> Place:
        return Place(super().__add__(more), self.storage)

    def __truediv__(self, name: str) -> Place:
        return self + (name if self.endswith("/") else f"/{name}")

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Place | None:
        """The directory above; None: nothing is above, as above a bucket."""
        above = self.rstrip("/").rpartition("/")[0]
        return None if not above or above.endswith("/") else Place(above, self.storage)

    @property
    def path(self) -> str:
        """What comes after bucket or host, without a slash before or after it."""
        return self.partition("://")[2].partition("/")[2].strip("/")

    def stat(self) -> Stat:
        """What is there; `FileNotFoundError`: nothing is."""
        with _errors_of(self):
            return (self.storage.look or self.storage).stat(self.path)

    def stat_now(self) -> Stat:
        """The same, whatever a list said before."""
        with _errors_of(self):
            return self.storage.stat(self.path)

    def entries(self) -> dict[str, Stat]:
        """What is in a directory, sorted by name; `FileNotFoundError`: nothing is."""
        with _errors_of(self):
            return (self.storage.look or self.storage).entries(self.path)

    def opened(self) -> io.BufferedReader:
        """The file, to read here and there."""
        return io.BufferedReader(_Ranges(self, self.pinned()), _BUFFER)

    def pinned(self) -> Stat:
        """What is known of the file, for `read`; `FileStateError`: it is another one than in the list of files.

        What was listed with an etag is not asked for again: it is read with that, and is there or not by then.
        """
        if self.found is not None and self.found.etag:
            return self.found
        now = self.stat()
        if now.directory:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self)
        if self.found is not None and not now.is_of(self.found):
            raise self._replaced(self.found, now)
        return now

    def require_same(self, found: Stat) -> None:
        """`FileStateError` where another file is there now; what has an etag was read with it."""
        if not found.etag and not (now := self.stat_now()).is_of(found):
            raise self._replaced(found, now)

    def _replaced(self, found: Stat | None, now: Stat) -> FileStateError:
        what, hint = "the file was replaced while it was read", "open it again"
        return FileStateError(what, path=self, expected=str(found), got=str(now), hint=hint)

    def read(self, start: int, stop: int, found: Stat | None = None) -> memoryview:
        """The bytes [start, stop) of a file; `found`: as `pinned` gave it.

        `FileStateError`: it was replaced, or is shorter by now, or its server answers no ranges.
        """
        try:
            with _errors_of(self):
                data = self.storage.read(self.path, start, stop, found.etag if found else "")
        except FileNotFoundError:
            if self.storage.look is not None:
                self.storage.look.forget()
            raise
        if data is None:
            raise self._replaced(found, self.stat_now())
        if len(data) != stop - start:
            raise FileStateError(  # no damage of what the file holds
                "a range came back with another length", path=self, at=start, expected=stop - start, got=len(data),
                hint="the file was replaced meanwhile, or its server answers no ranges",
            )  # fmt: skip
        return data


class _Ranges(io.RawIOBase):
    """A file of a place as a stream of bytes."""

    def __init__(self, place: Place, found: Stat) -> None:
        self._place, self._found, self._at = place, found, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._found.size}[whence]
        return self._at

    def readinto(self, target: Any, /) -> int:
        stop = min(self._at + len(target), self._found.size)
        count = max(stop - self._at, 0)
        if count:
            target[:count] = self._place.read(self._at, stop, self._found)
        self._at += count
        return count


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether this names what is not on this machine; a name that is there never does.

    >>> is_url("s3://bucket/store/index"), is_url("/store/index"), is_url("file:///store/index")
    (True, False, False)
    """
    found = _URL.fullmatch(path) if isinstance(path, str) else None
    return found is not None and found[1].lower() != "file" and not os.path.lexists(path)


def without_scheme(path: str) -> str:
    """The path that a `file://` names; anything else as it is.

    >>> without_scheme("file:///data/a%20b"), without_scheme("/data")
    ('/data/a b', '/data')
    """
    found = _URL.fullmatch(path)
    here = found is not None and found[1].lower() == "file" and found[2] in ("", "localhost")
    if found is None or not here:
        return path
    from urllib.parse import unquote  # here: it loads much

    return unquote(found[3])


def place_of(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> str:
    """The path that was given; a URL is a `Place`, and `file://` a path of this machine.

    storage_options : as of `obstore.store.from_url`, for HDFS the configuration of hdfs-native; for a path nothing

    Raises
    ------
    ImportError : the package of its storage is missing
    ValueError : an unknown scheme, or options that the storage does not know

    >>> place_of("s3://bucket/store/").name, place_of("file:///data/store")
    ('store', '/data/store')
    """
    text = os.fspath(path)
    if isinstance(text, Place) and storage_options is None:
        return text
    text = without_scheme(text)
    found = _URL.fullmatch(text)
    if found is None or os.path.lexists(text):
        return text
    scheme, authority, path, query = found.group(1).lower(), found[2], found[3], found[4] or ""
    kind = STORAGES.get(scheme)
    if ":" in authority.rpartition("@")[0]:
        said = f"{scheme}://...@{authority.rpartition('@')[2]}{path}: expected no user and password in a URL"
        raise ValueError(f"{said}; what gives access is among storage_options")
    if kind is None:
        known = ", ".join(sorted(STORAGES))
        raise ValueError(f"{scheme}://{authority}{path}: expected a URL of {known}, got {scheme}://")
    if not authority and kind != _HDFS:
        raise ValueError(f"{scheme}://{path}: expected the name of a bucket or a host after {scheme}://")
    if query and scheme not in ("http", "https"):  # it may be a secret
        said = f"{scheme}://{authority}{path}: expected a name without ? and #, got one, and more after it"
        raise ValueError(f"{said}; what gives access is among storage_options")
    module, _, name = kind.partition(":")
    text = f"{scheme}://{authority}{path}"
    storage = getattr(importlib.import_module(module), name)(scheme, authority, query, dict(storage_options or {}))
    return Place(text.rstrip("/") if path.strip("/") else text, storage)


def given_path(name: str, path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> str:
    """As `place_of`, of an argument that a caller gives by this name; `TypeError`, `ValueError`: it is no path."""
    return path if isinstance(path, Place) else place_of(path_of(name, path), storage_options)


def require_answer(error: Exception, path: str | None) -> None:
    """Raise the error of a place elsewhere, unless nothing is there: who does not answer says nothing of the file.

    For who goes on without a file that cannot be read. What the file holds may be wrong; that it was replaced
    meanwhile says nothing of it either.
    """
    none = isinstance(error, OSError | FileStateError) and not isinstance(error, FileNotFoundError)
    if none and isinstance(path, Place):
        raise error


class without_unread:  # like `contextlib.suppress`
    """Leave the block where a file cannot be read, or by one of `more`; for who goes on without, as `require_answer`.

    >>> with without_unread("/no/such/directory"):
    ...     os.listdir("/no/such/directory")
    """

    __slots__ = ("_kinds", "_path")

    def __init__(self, path: str, *more: type[Exception]) -> None:
        self._path = path
        self._kinds: tuple[type[Exception], ...] = (OSError, *more)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if not isinstance(error, self._kinds):
            return False
        require_answer(error, self._path)
        return True


def require_here(path: str, what: str = "only files of this machine are written in place") -> None:
    """`ReadOnlyFileError` for a place elsewhere, of what only a local disk has."""
    if isinstance(path, Place):
        raise ReadOnlyFileError(what, path=path, hint="copy it here, or mount its place")
