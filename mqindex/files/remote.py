"""Files elsewhere, named by a URL, of which only the ranges that are needed are read: through fsspec."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.errors import ClosedFileError, FileStateError, MQIndexError, TruncatedFileError
from mqindex.files.few_threads import of_each
from mqindex.files.mapped_file import MappedFile

__all__ = ["AT_ONCE", "PAGE", "RemoteFile", "RemotePlace"]

PAGE: Final = 4096  # bytes of which it is known whether they were read
AT_ONCE: Final = 16  # requests in flight, where the file system does not decide that itself
_GAP = 16  # pages that are read too, because one request more costs more
_BLOCK = 8 << 20  # bytes of one request
_GROUP = 64 << 20  # bytes that are held beside the file
_VERSION = ("ETag", "etag", "md5Hash", "generation", "LastModified", "last_modified", "mtime", "modified")


@dataclass(frozen=True)
class RemotePlace:
    """A file or directory elsewhere. Errors of its file system are an `OSError` that names the URL."""

    url: str
    path: str  # as its file system has it
    _fs: Any

    @classmethod
    def of(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> RemotePlace:
        """The place of a URL. `storage_options`: what fsspec's file system takes, such as credentials.

        Raises
        ------
        ImportError : fsspec is missing, or what it needs for this scheme
        ValueError : a scheme that fsspec does not know
        """
        try:
            import fsspec
        except ImportError as error:
            raise ImportError(f"{url} needs fsspec: pip install 'mqindex[remote]'") from error
        scheme = url.partition("://")[0]
        try:
            fs, path = fsspec.core.url_to_fs(url, **(storage_options or {}))
        except ImportError as error:
            raise ImportError(f"{url} needs a package that fsspec names: {error}") from error
        except ValueError as error:
            known = ", ".join(sorted(set(fsspec.available_protocols()) & {"s3", "gs", "abfs", "hdfs", "https", "file"}))
            what = f"expected a URL whose scheme fsspec knows ({known}, ...), got {scheme}://: {error}"
            raise ValueError(f"{url}: {what}") from error
        return cls(url.rstrip("/"), path.rstrip("/"), fs)

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> RemotePlace:
        """The directory above."""
        return RemotePlace(self.url.rpartition("/")[0], self.path.rpartition("/")[0], self._fs)

    def __truediv__(self, name: str) -> RemotePlace:
        return RemotePlace(f"{self.url}/{name}", f"{self.path}/{name}", self._fs)

    def names(self) -> dict[str, bool]:
        """What is in a directory, sorted: each name, and whether it is a file with bytes."""
        with self._told():
            self._fs.invalidate_cache()
            listed = self._fs.ls(self.path, detail=True)
        found = {str(one["name"]).rstrip("/").rpartition("/")[2]: one for one in listed}
        return {name: found[name]["type"] == "file" and found[name]["size"] != 0 for name in sorted(found) if name}

    def version(self) -> tuple[object, ...]:
        """The length first, then what else changes when the file is replaced, as far as its place tells."""
        with self._told():
            self._fs.invalidate_cache()
            found = self._fs.info(self.path)
        if found.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), self.url)
        return found.get("size"), *(str(found[key]) for key in _VERSION if key in found)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes [start, stop) of each range; several are requested at a time."""
        with self._told():
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
            return list(self._fs.cat_ranges([self.path] * len(ranges), starts, stops, on_error="raise"))
        return of_each(lambda one: bytes(self._fs.cat_file(self.path, *one)), ranges, AT_ONCE)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except MQIndexError:
            raise
        except OSError as error:
            kinds = {FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES, TimeoutError: errno.ETIMEDOUT}
            number = error.errno or next((n for kind, n in kinds.items() if isinstance(error, kind)), errno.EIO)
            said = os.strerror(number) if number != errno.EIO else str(error) or os.strerror(number)
            raise OSError(number, said, self.url) from error
        except Exception as error:  # of the file system's own kinds
            raise OSError(errno.EIO, f"{type(error).__name__}: {error}", self.url) from error


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
        self._place, self._unsure = place, False
        self.present = np.zeros(-(-size // PAGE), np.uint8)  # a byte for each page

    def need(self, pages: npt.ArrayLike, *, before: int = 0) -> None:
        """Read the pages of these numbers, and so many before each, unless they are there already."""
        wanted = np.unique(np.asarray(pages, np.int64))
        if before:
            wanted = np.unique(np.maximum(wanted[:, None] - np.arange(before + 1), 0))
        missing = wanted[self.present[wanted] == 0]
        if len(missing):
            self._fill(list(self._ranges(missing)))

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop)."""
        self.need(np.arange(start // PAGE, -(-min(stop, self.size) // PAGE)))
        self.require_same()
        return super().read(start, stop)

    def populate(self, stop: int | None = None) -> None:
        """Read the file up to byte `stop`; None: all of it."""
        self.need(np.arange(-(-(self.size if stop is None else stop) // PAGE)))
        self.require_same()

    def require_same(self) -> None:
        """`FileStateError` where what was read since the last call may be of another file, put in place of this one."""
        if not self._unsure:
            return
        now = self._place.version()
        if now != self._version:
            raise FileStateError(
                "the file was replaced while it was read", path=self.path, expected=self._version, got=now,
                hint="open it again",
            )  # fmt: skip
        self._unsure = False

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
        self._unsure = True
        while ranges:
            sizes = np.cumsum([stop - start for start, stop in ranges])
            some = max(int(np.searchsorted(sizes, _GROUP, "right")), 1)
            for (start, stop), data in zip(ranges[:some], self._place.read(ranges[:some]), strict=True):
                memory[start:stop] = data
                self.present[start // PAGE : -(-stop // PAGE)] = 1
            ranges = ranges[some:]
