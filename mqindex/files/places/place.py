"""A place: the path of a file or directory on this machine, or its URL, with what it takes to get there."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from mqindex.errors import ReadOnlyFileError
from mqindex.files.places.storage import Stat, Storage, errors_of

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^?#]*)(\?.*)?", re.IGNORECASE | re.DOTALL)
_OBJECTS, _HDFS = "mqindex.files.places.object_storage:ObjectStorage", "mqindex.files.places.hdfs_storage:HdfsStorage"
STORAGES: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n", "gs", "az", "azure", "abfs", "abfss", "http", "https"), _OBJECTS),
    "hdfs": _HDFS,
}


class Place:
    """A file or directory: `url` is its text, a path where `storage` is None. Errors of a storage name the URL.

    Pickled it takes its storage along. `str()` and `repr()` show the text alone.
    """

    __slots__ = ("storage", "url")

    def __init__(self, url: str, storage: Storage | None = None) -> None:
        self.url, self.storage = url, storage

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"Place({self.url!r})"

    def __truediv__(self, name: str) -> Place:
        return Place(self.url + name if self.url.endswith("/") else f"{self.url}/{name}", self.storage)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def parent(self) -> Place | None:
        """The directory above; None: nothing is above, as above a bucket."""
        above = self.url.rstrip("/").rpartition("/")[0]
        return None if not above or above.endswith("/") else Place(above, self.storage)

    @property
    def path(self) -> str:
        """What comes after bucket or host, without a slash before or after it."""
        return self.url.partition("://")[2].partition("/")[2].strip("/")

    def stat(self) -> Stat:
        """What is there; `FileNotFoundError`: nothing is."""
        with errors_of(self.url):
            return self.elsewhere.stat(self.path)

    def entries(self) -> dict[str, Stat]:
        """What is in a directory, sorted by name; `FileNotFoundError`: nothing is."""
        with errors_of(self.url):
            return self.elsewhere.entries(self.path)

    @property
    def elsewhere(self) -> Storage:
        """Its storage; a path of this machine has none."""
        if self.storage is None:
            raise TypeError(f"{self.url}: expected a URL")
        return self.storage


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


def place_of(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Place:
    """The place of a path, or that a URL names; `file://` is a path.

    storage_options : as of `obstore.store.from_url`, for HDFS the configuration of hdfs-native; for a path nothing

    Raises
    ------
    ImportError : the package of its storage is missing
    ValueError : an unknown scheme, or options that the storage does not know

    >>> place_of("s3://bucket/store/").name, place_of("file:///data/store").url
    ('store', '/data/store')
    """
    text = without_scheme(os.fspath(path))
    found = _URL.fullmatch(text)
    if found is None or os.path.lexists(text):
        return Place(text)
    scheme, authority, path, query = found.group(1).lower(), found[2], found[3], found[4] or ""
    kind = STORAGES.get(scheme)
    if kind is None:
        known = ", ".join(sorted(STORAGES))
        raise ValueError(f"{scheme}://{authority}{path}: expected a URL of {known}, got {scheme}://")
    module, _, name = kind.partition(":")
    text = f"{scheme}://{authority}{path}"
    storage = getattr(importlib.import_module(module), name)(scheme, authority, query, dict(storage_options or {}))
    return Place(text.rstrip("/") if path.strip("/") else text, storage)


def refuse_writing(url: str, writable: bool) -> None:
    """`ReadOnlyFileError` where a file elsewhere is to be written."""
    if writable:
        raise ReadOnlyFileError("files elsewhere are only read", path=url, hint="copy them here, or mount their place")
