"""What the indexes share: all of them their opening, offset and time index a pre-sized, mapped file of entries."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_index import Entries
from mqindex._native.numbers import whole_number
from mqindex._native.owner import Owner
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.columns.limits import whole_number_from
from mqindex.columns.numbers import Time, Times, int64s, times
from mqindex.errors import CorruptIndexError, IndexFullError, OffsetOverflowError, ReadOnlyFileError, path_of
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import size_of
from mqindex.files.places.place import Place, require_here
from mqindex.files.reading.mapped_file import MappedFile, reserve
from mqindex.files.reading.opening import map_file
from mqindex.kafka.layout import IndexKind, base_offset_of, require_file
from mqindex.kafka.settings import INDEX_SIZE


class SegmentIndex(Closable):
    """An index file of one segment, by its path and base offset; in one process one object at a time may write it."""

    _thing = "index"

    kind: ClassVar[IndexKind]

    def __init__(self, path: str, base_offset: int, *, writable: bool) -> None:
        self.path = path
        self.base_offset = base_offset
        self.writable = writable
        self._lock = new_lock()
        self._owner = Owner(path)
        self._held = ExitStack()  # the lock of the only writer
        if writable:
            require_here(path)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        base_offset: int | None = None,
        writable: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open an index file, read-only unless asked. It is never created, as the broker's own tools would.

        Parameters
        ----------
        path : path or URL; a file elsewhere is read as a whole, and never written.
        base_offset : int or None; None: from the file's name.
        storage_options : dict, optional; for a URL, as of `PartitionArguments`

        Raises
        ------
        FileNotFoundError : not of a `.txnindex`, which begins to exist with its first entry.
        BadMagicError : the name has no base offset, or is that of another file of a segment.
        StoreInUseError : `writable`, and somebody has it open for writing, or a broker holds its log dir.
        OSError : `writable`, and no space is left for its sparse part, which brokers leave; nothing has changed.
        """
        name = require_file(path, cls.kind, storage_options=storage_options)
        if isinstance(name, Place):
            from mqindex.kafka.kinds import require_finished  # here: files of this machine need none of it

            require_finished(name)
        return cls(name, base_offset_of(name, base_offset), writable=writable)

    def _require_writable(self) -> None:
        self._require_open()
        if not self.writable:
            raise ReadOnlyFileError("the index is read-only", path=self.path, hint="open it writable")
        self._owner.require()


class AbstractIndex(SegmentIndex):
    """An index file of one segment. See `OffsetIndex` and `TimeIndex`.

    All of size // entry_size places are taken as entries when a file is opened, zeros included, as the broker does.
    Look-ups are safe from several threads; appending, truncating and resizing are not. One object at a time may
    have the file open for writing, in one process: another is a `StoreInUseError`, and a forked child may not write.

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.AbstractIndex`.
    """

    entry_size: ClassVar[int]
    _entry: ClassVar[Any]  # the NamedTuple of an entry

    def __init__(self, path: str, base_offset: int, *, writable: bool) -> None:
        super().__init__(path, base_offset, writable=writable)
        with ExitStack() as held:
            if writable:
                from mqindex.kafka.index.only_writer import hold_index  # here: a look-up in a new process needs none

                held.enter_context(hold_index(path))
            self._map_entries()
            self._held = held.pop_all()

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], base_offset: int, *, max_index_size: int = INDEX_SIZE.default
    ) -> Self:
        """Create an empty index file, which must not exist yet, at its full length; its disk space is reserved.

        Parameters
        ----------
        max_index_size : int, bytes (segment.index.bytes), rounded down to whole entries.

        Raises
        ------
        FileExistsError
        StoreInUseError : a broker holds the log dir.
        OSError : no space left, before anything is written.
        """
        given = whole_number_from(cls.entry_size, "max_index_size", max_index_size)
        size = given // cls.entry_size * cls.entry_size
        name, base_offset = path_of("path", path), base_offset_of(path, base_offset)
        MappedFile.create(name, size).close()
        try:
            index = cls(name, base_offset, writable=True)
        except BaseException:
            disk.remove(name)
            raise
        index.truncate()
        return index

    # ---- what there is

    def __len__(self) -> int:
        """How many entries there are."""
        return self._core.entries

    @property
    def max_entries(self) -> int:
        """How many the file has room for."""
        return self._core.room

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the entries."""
        return len(self) * self.entry_size

    def entries(self, start: int = 0, stop: int | None = None) -> Columns:
        """The entries [start, stop) as two columns, named as the fields of an entry; None: to the last.

        Returns
        -------
        Columns : offset int64 and position int32 of an offset index, timestamp int64 (ms) and offset int64 of a time
            index
        """
        self._require_whole()
        stop = len(self) if stop is None else whole_number("stop", stop)
        columns = self._core.decode(whole_number("start", start), stop)
        return Columns(dict(zip(self._entry._fields, columns, strict=True)))

    def entry(self, number: int) -> Any:
        """Entry `number`, from 0."""
        if not 0 <= whole_number("number", number) < len(self):
            raise IndexError(f"number: expected 0..{len(self) - 1}, got {number}")
        return self._core.entry(number)

    # ---- look-ups

    def lookup(self, target: Time) -> Any:
        """The entry with the greatest key that is not above `target`: an offset, or of a time index a time in ms."""
        return self._core.lookup(target)

    def lookup_many(self, targets: Times) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """`lookup` of each target, as two arrays. Many are looked up side by side, increasing ones by a merge.

        Parameters
        ----------
        targets : int64[n], offsets; of a time index ms since the epoch, or datetime64[n], aware datetimes, Arrow
            timestamps

        Returns
        -------
        offsets int64[n] and positions int32[n]; of a time index timestamps int64[n] and offsets int64[n]
        """
        self._require_whole()
        first, second = self._core.lookup_many((times if self.kind is IndexKind.TIME else int64s)("targets", targets))
        return first, second

    # ---- changes

    def truncate(self) -> None:
        """Keep no entry. The file's length and the bytes of the entries stay."""
        self._keep(0)

    def truncate_to(self, offset: int) -> None:
        """Keep the entries with an offset below `offset`. The file's length and the bytes of the others stay.

        Source: Kafka 4.1.0, `truncateTo`.
        """
        offset = whole_number("offset", offset)
        with self._lock:
            self._require_writable()
            column = self._entry._fields.index("offset")
            at = self._core.search(column, min(max(offset - self.base_offset, -(2**31) - 1), 2**31), False)
            if at >= 0:
                at += self._core.entry(at)[column] != offset
            self._core.keep(max(at, 0))

    def resize(self, new_size: int) -> bool:
        """Set the file's length to whole entries of `new_size` bytes; False: it was that already.

        Longer: zeros follow, with disk space of their own. Shorter than the entries is a ValueError.
        """
        new_size = whole_number_from(0, "new_size", new_size)
        with self._lock:
            self._require_writable()
            size, entries = new_size // self.entry_size * self.entry_size, len(self)
            if size == size_of(self.path):
                return False
            if size < entries * self.entry_size:
                raise ValueError(f"new_size: expected {entries * self.entry_size} or more, got {new_size}")
            self._unmap()
            try:
                _set_length(self.path, size)
            finally:
                self._map_entries()
                self._core.keep(min(entries, len(self)))
            return True

    def trim_to_valid_size(self) -> None:
        """Cut what follows the entries, as the broker does when it rolls or closes a segment."""
        self.resize(self.size_in_bytes)

    def flush(self) -> None:
        """Bring the file to the disk."""
        if self._file is not None and self.writable:
            self._file.flush()

    def close(self) -> None:
        """Unmap; may be called twice and changes no byte. (The broker also trims: `trim_to_valid_size`.)"""
        self._closed = True
        self._unmap()
        self._held.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, base_offset={self.base_offset})"

    # ---- inside

    def _keep(self, entries: int) -> None:
        with self._lock:
            self._require_writable()
            self._core.keep(entries)

    def _map_entries(self) -> None:
        self._file = _opened(self.path, writable=self.writable) if size_of(self.path) else None
        buffer = None if self._file is None else self._file.map
        times = self.kind is IndexKind.TIME
        self._core = Entries(buffer, times, self.base_offset, self._entry, self.writable, str(self.path))
        self.__dict__["lookup"] = self._core.lookup  # the same as the method, without a call in Python

    def _unmap(self) -> None:
        self._core.release()
        if self._file is not None:
            self._file.close()

    def _require_whole(self) -> None:
        """Refuse look-ups in a file that is shorter now: where it ends inside a page, its map reads as zeros."""
        if self._file is not None:
            self._file.require_whole()

    def _refuse(self, why: str | None, offsets: npt.NDArray[np.int64]) -> None:
        """Raise where entries from the first of these offsets on had no place, or do not fit."""
        if why == "full":
            expected = f"fewer than {plural(self.max_entries, 'entry')}"
            raise IndexFullError("the index is full", path=self.path, expected=expected, got=len(self))
        if why == "overflow":
            raise OffsetOverflowError(
                "the offset is too far from the base offset", path=self.path, field="offset",
                expected=f"{self.base_offset}..{self.base_offset + 2**31 - 1}", got=int(offsets[0]),
            )  # fmt: skip

    def _corrupt(self, field: str, expected: object, got: object) -> CorruptIndexError:
        return CorruptIndexError(
            "the index contradicts itself", path=self.path, field=field, expected=expected, got=got,
            hint="rebuild it from the segment's log",
        )  # fmt: skip

    def _check_length(self) -> None:
        size = size_of(self.path)
        if size % self.entry_size:
            raise self._corrupt("length", f"a multiple of {self.entry_size} bytes", size)


def _opened(path: str, *, writable: bool) -> MappedFile:
    if writable:
        return MappedFile.open(path, writable=True)
    file = map_file(path)
    if isinstance(path, Place):
        file.populate()
    return file


def _set_length(path: str, size: int) -> None:
    fd = disk.open_to_write(path)
    try:
        old = size_of(path)
        disk.resize(fd, min(size, old))
        if size > old:
            try:
                reserve(fd, size)
            except OSError as error:
                disk.resize(fd, old)
                raise OSError(error.errno or errno.EIO, os.strerror(error.errno or errno.EIO), path) from None
    finally:
        disk.close(fd)
