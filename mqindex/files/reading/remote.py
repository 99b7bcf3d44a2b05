"""Files elsewhere, named by a URL, of which only the ranges that are needed are read: through fsspec."""

from __future__ import annotations

import errno
import importlib
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from mqindex._needs import needing
from mqindex._words import plural
from mqindex.columns.distinct import distinct
from mqindex.errors import ClosedFileError, FileStateError, MQIndexError, TruncatedFileError
from mqindex.files.few_threads import of_each
from mqindex.files.fork_lock import new_lock, new_rlock
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.urls import parts

PAGE: Final = 4096  # bytes of which it is known whether they were read
AT_ONCE: Final = 16  # requests in flight, where the file system does not decide that itself
_GAP = 16  # pages that are read too, because one request more costs more
_BLOCK = 8 << 20  # bytes of one request
_GROUP = 64 << 20  # bytes that are held beside the file
_FOR_THREADS = ("file", "local", "hdfs", "arrow_hdfs")  # beside those of asyncio; others may share a place in a file
_VERSION = {"etag", "lastmodified", "mtime", "modified", "updated", "created", "md5hash", "contentmd5", "generation",
            "versionid"}  # fmt: skip
_turns: WeakKeyDictionary[Any, AbstractContextManager[Any]] = WeakKeyDictionary()
_KINDS = {FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES, TimeoutError: errno.ETIMEDOUT}


class RemotePlace:
    """A file or directory elsewhere. Errors of its file system are an `OSError` that names the URL.

    Safe for use by several threads; where its file system is not, they take turns.
    """

    def __init__(self, url: str, path: str, fs: Any, turns: AbstractContextManager[Any]) -> None:
        self.url = url
        self.path = path  # as its file system has it
        self._fs, self._turns = fs, turns

    @classmethod
    def of(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> RemotePlace:
        """The place of a URL. `storage_options`: what fsspec's file system takes, such as credentials.

        Raises
        ------
        ImportError : fsspec is missing, or what it needs for this scheme
        ValueError : a scheme that fsspec does not know
        OSError : its file system cannot be reached
        """
        with needing(f"{url} needs fsspec: pip install 'mqindex[remote]'", "fsspec"):
            fsspec: Any = importlib.import_module("fsspec")
        for link in url.split("::"):
            scheme = link.partition("://")[0]
            if scheme not in {*fsspec.available_protocols(), *fsspec.registry}:
                known = ", ".join(sorted({"s3", "gs", "abfs", "hdfs", "https"} & set(fsspec.available_protocols())))
                raise ValueError(f"{url}: expected a URL whose scheme fsspec knows ({known}, ...), got {scheme}://")
        try:
            with _naming(url):
                fs, path = fsspec.core.url_to_fs(url, **(storage_options or {}))
        except ImportError as error:
            raise ImportError(f"{url} needs a package that fsspec names: {error}") from error
        turns = nullcontext() if _takes_threads(fs) else _turns.setdefault(fs, new_rlock())
        return cls(url if url.endswith("://") else url.rstrip("/"), path.rstrip("/"), fs, turns)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.partition("?")[0].rpartition("/")[2]

    @property
    def parent(self) -> RemotePlace | None:
        """The directory above; None: nothing is above, as above a bucket, or a query names this place alone."""
        above, slash, _ = self.path.rpartition("/")
        if not slash or above.endswith(":/") or "?" in self.url:
            return None
        before, own, after = parts(self.url)
        return RemotePlace(before + own.rpartition("/")[0] + after, above, self._fs, self._turns)

    def __truediv__(self, name: str) -> RemotePlace:
        if "?" in self.url:
            raise ValueError(f"{self.url}: expected a directory's URL without a query, which is of this place alone")
        before, own, after = parts(self.url)
        own = own + name if own.endswith("://") else f"{own}/{name}"
        return RemotePlace(before + own + after, f"{self.path}/{name}" if self.path else name, self._fs, self._turns)

    def names(self) -> dict[str, int | None]:
        """The files in a directory, sorted by name, and their lengths; None: not known. And directories, with -1."""
        with _naming(self.url), self._turns:
            self._fs.invalidate_cache()
            listed = self._fs.ls(self.path, detail=True)
        found = {str(one["name"]).rstrip("/").rpartition("/")[2]: one for one in listed}
        lengths = {name: -1 if one["type"] == "directory" else one["size"] for name, one in found.items()}
        return {name: lengths[name] for name in sorted(lengths) if name and "?" not in name}

    def version(self) -> tuple[object, ...]:
        """The length first, then what else changes when the file is replaced, as far as its place tells."""
        with _naming(self.url), self._turns:
            self._fs.invalidate_cache()
            found = self._fs.info(self.path)
        if found.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.url)
        told = {key.lower().replace("-", "").replace("_", ""): str(value) for key, value in found.items()}
        return found.get("size"), *(told[key] for key in sorted(_VERSION & told.keys()))

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes [start, stop) of each range; several are requested at a time."""
        with _naming(self.url), self._turns:
            found = self._read(ranges)
        for data, (start, stop) in zip(found, ranges, strict=True):
            if len(data) != stop - start:
                raise TruncatedFileError(
                    "a range came back with another length", path=self.url, at=start, expected=stop - start,
                    got=len(data), hint="the file was replaced meanwhile, or its server answers no ranges",
                )  # fmt: skip
        return found

    def _read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if getattr(self._fs, "async_impl", False):
            starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
            found = self._fs.cat_ranges([self.path] * len(ranges), starts, stops, on_error="raise")
            for one in found:
                if isinstance(one, BaseException):  # versions of 2024 return them
                    raise one
            return list(found)
        at_once = AT_ONCE if _takes_threads(self._fs) else 1
        return of_each(lambda one: bytes(self._fs.cat_file(self.path, *one)), ranges, at_once)


def _takes_threads(fs: Any) -> bool:
    protocol = fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)
    return bool(getattr(fs, "async_impl", False)) or any(name in _FOR_THREADS for name in protocol)


@contextmanager
def _naming(url: str) -> Iterator[None]:
    """Any error of a file system is an `OSError` that names the URL, but for that of a missing package."""
    try:
        yield
    except (MQIndexError, ImportError):
        raise
    except OSError as error:
        number = error.errno or next((n for kind, n in _KINDS.items() if isinstance(error, kind)), errno.EIO)
        if number == errno.EIO or number < 0:  # of a name that no server knows, by its library's own number
            raise OSError(errno.EIO, str(error) or os.strerror(errno.EIO), url) from error
        raise OSError(number, os.strerror(number), url) from error
    except Exception as error:  # of the file system's own kinds
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}", url) from error


class RemoteFile(MappedFile):
    """A file elsewhere as a mapping that is filled page by page: what was not asked for is zeros.

    What was read stays in memory until `close`. Safe for use by several threads.
    """

    def __init__(self, place: RemotePlace) -> None:
        self._version = place.version()
        size = self._version[0]
        if not isinstance(size, int):
            raise OSError(errno.ESPIPE, "its place does not say how long it is", place.url)
        if size == 0:
            raise TruncatedFileError("the file is empty", path=place.url, expected="1 byte or more", got=0)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            memory = mmap.mmap(-1, size, flags=flags)
        except (OSError, OverflowError, ValueError) as error:
            raise OSError(errno.ENOMEM, f"no memory for its {plural(size, 'byte')}", place.url) from error
        super().__init__(place.url, memory, False)
        self._memory: mmap.mmap | None = memory
        self._place, self._filled, self._sure = place, 0, 0
        self._lock = new_lock()
        self.present = np.zeros(-(-size // PAGE), np.uint8)  # a byte for each page

    def need(self, pages: npt.ArrayLike, *, before: int = 0) -> None:
        """Read the pages of these numbers, and so many before each, unless they are there already."""
        wanted = distinct(np.asarray(pages, np.int64))
        if before:
            wanted = distinct(np.maximum(wanted[:, None] - np.arange(before + 1), 0))
        missing = wanted[self.present[wanted] == 0]
        if len(missing):
            self._fill(list(self._ranges(missing)))

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop)."""
        self.need(np.arange(start // PAGE, -(-min(stop, self.size) // PAGE)))
        self.require_same()
        return super().read(start, stop)

    def read_again(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop) as they are there now, whatever was read before."""
        return self._place.read([(start, stop)])[0]

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop`; None: all of it."""
        self.need(np.arange(-(-(self.size if stop is None else stop) // PAGE)))
        self.require_same()

    def require_same(self) -> None:
        """`FileStateError` where what was read since the last call may be of another file, put in place of this one."""
        filled = self._filled  # what other threads read from now on, they make sure of
        if filled == self._sure:
            return
        now = self._place.version()
        if now != self._version:
            raise FileStateError(
                "the file was replaced while it was read", path=self.path, expected=self._version, got=now,
                hint="open it again",
            )  # fmt: skip
        with self._lock:
            self._sure = max(self._sure, filled)

    def require_whole(self) -> None:
        """All of it is read: much of it will be."""
        self.populate()

    def close(self) -> None:
        """Release the memory: now, or at the end of a call that still uses it. May be called twice."""
        super().close()
        self._memory = None

    def _advise(self, advice: int | None, start: int = 0, length: int | None = None) -> None:
        """No disk is behind it."""

    def _ranges(self, missing: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Bytes of runs of these pages, neighbours in one."""
        ends = np.flatnonzero(np.diff(missing) > _GAP)
        firsts, lasts = missing[np.r_[0, ends + 1]], missing[np.r_[ends, len(missing) - 1]]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            stop = min((last + 1) * PAGE, self.size)
            for at in range(first * PAGE, stop, _BLOCK):
                yield at, min(at + _BLOCK, stop)

    def _fill(self, ranges: list[tuple[int, int]]) -> None:
        memory = self._memory
        if memory is None:
            raise ClosedFileError("the file is closed", path=self.path)
        while ranges:
            sizes = np.cumsum([stop - start for start, stop in ranges])
            some = max(int(np.searchsorted(sizes, _GROUP, "right")), 1)
            read = self._place.read(ranges[:some])
            with self._lock:
                self._filled += 1  # before anybody takes what was read
            for (start, stop), data in zip(ranges[:some], read, strict=True):
                memory[start:stop] = data
                self.present[start // PAGE : -(-stop // PAGE)] = 1
            ranges = ranges[some:]
