"""Reading a file that is mostly a hole: brokers make files long before they fill them."""

from __future__ import annotations

import errno
import os
from bisect import bisect_left
from collections.abc import Iterator
from types import TracebackType

from mqindex.errors import TruncatedFileError
from mqindex.files.disk import named
from mqindex.files.paths import size_of
from mqindex.files.places.place import Place
from mqindex.files.reading.regular import regular

_BLOCK = 4096  # bytes


class SparseFile:
    """A file that is read, not mapped: a page fault in a mapping reads ahead over the hole, page by page of zeros."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._fd = -1
        self._size: int | None = None
        if isinstance(self.path, Place):
            return
        with named(self.path):
            self._fd = regular(self.path, os.O_RDONLY)
            try:
                self._size = os.fstat(self._fd).st_size
            except OSError:
                self.close()
                raise

    @property
    def size(self) -> int:
        """Its length when it was opened, or first asked for."""
        if self._size is None:
            self._size = size_of(self.path)
        return self._size

    def data_end(self) -> int:
        """Where the last data ends; only zeros follow. The file's length, where the file system does not report it."""
        return max((end for _, end in self.stretches()), default=0)

    def probable_end(self) -> int:
        """Where the data seems to end, by few reads: right, unless there are blocks of zeros among the data."""
        if not isinstance(self.path, Place):
            return self.data_end()
        count = -(-self.size // _BLOCK)
        if count and any(self._block(count - 1)):  # most files are full
            return self.size
        return min(_BLOCK * bisect_left(range(count), True, key=lambda at: not any(self._block(at))), self.size)

    def _block(self, number: int) -> bytes:
        return self.read(number * _BLOCK, min((number + 1) * _BLOCK, self.size))

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Where data begins and ends, without the holes; all of it, where nothing reports them, as elsewhere."""
        end = 0
        if isinstance(self.path, Place):
            yield from [(0, self.size)][: self.size]
            return
        while end < self.size:
            try:
                at = os.lseek(self._fd, end, os.SEEK_DATA)
                end = os.lseek(self._fd, at, os.SEEK_HOLE)
            except (OSError, AttributeError) as error:
                if not isinstance(error, OSError) or error.errno != errno.ENXIO:  # else no data follows
                    yield end, self.size
                return
            yield at, end

    def read(self, start: int, stop: int) -> bytes:
        """The bytes [start, stop); `TruncatedFileError` where others have cut the file."""
        if isinstance(self.path, Place):
            return bytes(self.path.read(start, stop))
        parts, at = [], start
        with named(self.path):
            while at < stop and (part := os.pread(self._fd, stop - at, at)):
                parts.append(part)
                at += len(part)
        if at < stop:
            raise TruncatedFileError("the file was cut while it was open", path=self.path, expected=stop, got=at)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """May be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> SparseFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
