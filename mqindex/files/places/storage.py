"""What every storage of files elsewhere can do."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mqindex.errors import MQIndexError
from mqindex.files.fork_lock import new_lock

if TYPE_CHECKING:
    from mqindex.files.places.look import Look
    from mqindex.files.places.page_cache import PageCache

_NUMBERS = {
    "NotFoundError": errno.ENOENT,
    "AlreadyExistsError": errno.EEXIST,
    "PermissionDeniedError": errno.EACCES,
    "UnauthenticatedError": errno.EACCES,
    "PreconditionError": errno.EEXIST,
    "401": errno.EACCES,
    "403": errno.EACCES,
    "404": errno.ENOENT,
}
_ANSWERED = re.compile(r"status code: ((\d+)[^:\n]*)")  # of a list, whose errors all have one class
_WHO = "; are key and secret right, and may they list and read there?"
_NO_BUCKET = "no such bucket or container"
_SECRET = re.compile(r"(?<=://)([^\s?]+\?)[^\s\"')]+")  # a query of a URL may be its signature
_REQUEST = re.compile(r"^.*Error performing .*? in \S+ .*?- +")  # which it was, and how often it was tried

_UNREACHED = "error sending request"
_OS_ERROR = re.compile(r" \(os error \d+\)")
_SERVER = "endpoint"  # a part of the names of options and variables
_VALUE = re.compile(r"""(?<= )"[^"]*"(?= )""")  # of an option


class Stat(NamedTuple):
    """What is at a place. `changed`: when, as text. `etag`: of which version; "": its storage does not tell."""

    size: int
    changed: str = ""
    etag: str = ""
    directory: bool = False

    def is_of(self, other: Stat) -> bool:
        """Whether both are of the same file. Of a list and of the file itself, times and quotes may differ."""
        if self.etag and other.etag:
            return (self.size, self.etag.strip('"')) == (other.size, other.etag.strip('"'))
        return (self.size, self.changed) == (other.size, other.changed)

    def __str__(self) -> str:
        return ", ".join(filter(None, (f"{self.size} bytes", self.changed, self.etag)))

    def as_result(self) -> os.stat_result:
        """As `os.stat` has it: what kind it is, its length, when it changed; another version has another inode."""
        mode = stat.S_IFDIR | 0o555 if self.directory else stat.S_IFREG | 0o444
        version = self.etag.strip('"') or self.changed
        import hashlib  # here: it loads much

        inode = int.from_bytes(hashlib.blake2b(version.encode(), digest_size=7).digest(), "big")
        ms = _ms_of(self.changed)
        times = {"st_mtime": ms / 1000, "st_mtime_ns": ms * 1_000_000}
        return os.stat_result((mode, inode, 0, 1, 0, 0, max(self.size, 0), 0, ms // 1000, 0), times)


def _ms_of(changed: str) -> int:
    """Since the epoch; 0: not known."""
    if not changed or changed.isdecimal():
        return int(changed or 0)
    return int(datetime.fromisoformat(changed).timestamp() * 1000)


class Storage(Protocol):
    """A bucket, a host or a name node; a path is what its URL has after that. For several threads.

    Pickled it takes what it was given along, and nothing of it is shown; each process makes a client of its own.
    """

    look: Look | None
    """What answers `stat` and `entries` for now, without a request for each; see `one_look`."""

    @property
    def lists(self) -> bool:
        """Whether it has lists of directories: a web server has none, as a rule, and may answer anything."""
        ...

    pages: PageCache | None
    """Where this machine keeps pages that are read for look-ups; None: nowhere."""

    def full_name(self, path: str) -> str:
        """A text that tells a file from those of all other storages; it is shown nowhere."""
        ...

    def stat(self, path: str) -> Stat:
        """`FileNotFoundError`: nothing is there."""
        ...

    def entries(self, path: str) -> dict[str, Stat]:
        """What is in a directory, sorted by name; `FileNotFoundError`: nothing is there."""
        ...

    def tree(self, path: str) -> dict[str, Stat]:
        """The paths of all that is below a directory, files at least."""
        ...

    def read(self, path: str, start: int, stop: int, etag: str = "") -> memoryview | None:
        """The bytes [start, stop), or fewer where the file ends before. None: the file has another etag than this."""
        ...

    @property
    def renames(self) -> bool:
        """Whether a directory gets another name in one step; else each of its files is copied."""
        ...

    def put(self, path: str, data: bytes, *, new: bool = False) -> None:
        """A file of these bytes, whole or not at all. `new`: `FileExistsError` where there is one."""
        ...

    def upload(self, path: str, local: str) -> None:
        """The same of a file of this machine."""
        ...

    def move(self, path: str, target: str) -> None:
        """Give a file or directory another name, where `renames`, unless that is in use; else copy a file to it."""
        ...

    def remove(self, path: str, *, whole: bool = True) -> None:
        """Remove a file, or a directory, `whole`: and all in it; what is not there is no error."""
        ...

    def newest(self, path: str) -> float:
        """When the last change below a directory was, s since the epoch; 0: there is nothing."""
        ...

    def make_directory(self, path: str) -> None:
        """A directory, with those above it, where `renames`; else names need none."""
        ...


class OfClient:
    """What storages of a client share: it is made once in each process, for after a fork its threads are gone.

    `scheme` to `query`: the parts of the URL before and after the path. `options`: shown nowhere.
    """

    lists = True
    look: Look | None = None
    pages: PageCache | None = None

    def __init__(self, scheme: str, authority: str, query: str, options: dict[str, Any]) -> None:
        self._scheme, self._root, self._query, self._options = scheme, f"{scheme}://{authority}", query, options
        self._given = scheme, authority, query, options
        self._lock = new_lock()
        self._client: tuple[int, Any] | None = None
        try:
            self.client()  # what is wrong with the options is said at once, but for their values
        except (MQIndexError, ImportError):
            raise
        except Exception as error:
            raise ValueError(f"storage_options of {self._root}: {_VALUE.sub('...', _words(error))}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, OfClient) and other._given == self._given

    def __hash__(self) -> int:
        return hash(self._given[:3])

    def __repr__(self) -> str:
        return f"<storage of {self._root}>"

    def full_name(self, path: str) -> str:
        """See `Storage.full_name`. One name may be at several servers: by an option, or by the environment."""
        named = [f"{name}={value}" for name, value in sorted(self._options.items()) if _SERVER in name.lower()]
        named += [f"{name}={value}" for name, value in sorted(os.environ.items()) if _SERVER in name.lower()]
        return "\0".join((self._root, self._query, *named, path))

    def client(self) -> Any:
        """The library's client."""
        with self._lock:
            if self._client is None or self._client[0] != os.getpid():
                self._client = os.getpid(), self._connect()
            return self._client[1]

    def _connect(self) -> Any:
        raise NotImplementedError


@contextmanager
def errors_of(url: str) -> Iterator[None]:
    """Any error of a client is an `OSError` that names the URL, without what a URL's query holds."""
    try:
        yield
    except (MQIndexError, ImportError):
        raise
    except Exception as error:
        own = error.errno if isinstance(error, OSError) else None
        number = own if own is not None and own > 0 else _number(error)  # a library has numbers of its own below 0
        said = os.strerror(number) if number != errno.EIO else _words(error)
        said += _WHO if number == errno.EACCES else ""
        raise OSError(number, _NO_BUCKET if _is_of_no_bucket(error) else said, url) from None


def is_unanswered(error: Exception) -> bool:
    """Whether a server cannot be reached, or said nothing for a long time."""
    return _UNREACHED in str(error) or (_ANSWERED.search(str(error)) is None and "TimedOut" in str(error))


def _number(error: Exception) -> int:
    if _is_of_no_bucket(error):
        return errno.ENOENT
    own = {FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES, TimeoutError: errno.ETIMEDOUT}
    found = next((number for kind, number in own.items() if isinstance(error, kind)), None)
    answered = _ANSWERED.search(str(error))
    names = type(error).__name__, answered[2] if answered else ""
    late = errno.ETIMEDOUT if answered is None and "TimedOut" in str(error) else errno.EIO
    return found or next((_NUMBERS[name] for name in names if name in _NUMBERS), late)


def _is_of_no_bucket(error: Exception) -> bool:
    return any(word in str(error) for word in ("NoSuchBucket", "bucket does not exist", "ContainerNotFound"))


def _words(error: Exception) -> str:
    """The first sentence of a client's error: the rest is its own structures, and the server's page."""
    if answered := _ANSWERED.search(str(error)):
        return f"the server answered {answered[1]}"
    said = _SECRET.sub(r"\1...", str(error).strip()).partition("\n")[0].partition(": <")[0]
    if "list response" in said:
        return "the server's list of files came cut or damaged"
    if _UNREACHED in said:
        return "the server cannot be reached; is its name right, and the endpoint among storage_options?"
    return _OS_ERROR.sub("", _REQUEST.sub("", said)) or type(error).__name__
