"""`ConsumeQueueExt`: the extension units of a queue, written where `enableConsumeQueueExt` is on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import check_whole
from mqindex._words import plural
from mqindex.columns.columns import BinaryColumn, Columns
from mqindex.columns.distinct import distinct
from mqindex.files.closable import Closable
from mqindex.files.places.place import given_path
from mqindex.files.reading.file_maps import FileMaps
from mqindex.rocketmq.directories.wrong_place import refuse_strangers
from mqindex.rocketmq.kinds import require_finished
from mqindex.rocketmq.layout import EXT_UNIT_SIZE, FIRST_EXT_ADDRESS, MAX_EXT_ADDRESS
from mqindex.rocketmq.log.log_files import LogFile, Skipped
from mqindex.rocketmq.queue.queue_files import UnitFiles

_Ints = npt.NDArray[np.int64]
_LONGEST = EXT_UNIT_SIZE + 2**15  # bytes of a unit, its bitmap included

EXT_UNIT = np.dtype([("size", ">i2"), ("tags_code", ">i8"), ("store_timestamp", ">i8"), ("bitmap_size", ">i2")])
"""An extension unit without its bitmap, as it is in the file."""


class ExtUnit(NamedTuple):
    """One extension unit. `bitmap`: of the filters that let the message pass, mostly empty."""

    tags_code: int
    store_timestamp: int
    bitmap: bytes


class ConsumeQueueExt(Closable):
    """The extension files of one queue. Read-only; for several threads.

    A unit of the queue holds an address in place of its tags code: the byte of the extension unit - 2^63. There is no
    count of extension units; a walk over all ends in each file at the first impossible size.
    Source: RocketMQ 4.9.3 `store/ConsumeQueueExt`. Layout: `mqindex.rocketmq.layout`.

    Examples
    --------
    >>> import os, struct, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with open(os.path.join(directory, "0" * 20), "xb") as file:
    ...     size = file.write(struct.pack(">hqqh", 20, 100, 1604123001645, 0).ljust(60, bytes(1)))
    >>> with ConsumeQueueExt.open(directory) as ext:
    ...     ext.get(-9223372036854775808)
    ExtUnit(tags_code=100, store_timestamp=1604123001645, bitmap=b'')
    """

    def __init__(self, files: UnitFiles, owns_maps: bool = True) -> None:
        self.directory = files.directory
        self._files = files
        self._owns_maps = owns_maps

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
    ) -> ConsumeQueueExt:
        """Open `<store>/consumequeue_ext/<topic>/<queueId>`, a path or a URL.

        Parameters
        ----------
        storage_options : for a URL, as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native

        Raises
        ------
        FileNotFoundError : there is no such directory
        BadMagicError : it only has files of another kind
        """
        where = given_path("directory", directory, storage_options)
        require_finished(where)
        refuse_strangers(where, "extensions of a consume queue", queues="consumequeue_ext")
        return cls(UnitFiles(where, 1, FileMaps("queue")))

    @classmethod
    def _of(cls, directory: str, maps: FileMaps) -> ConsumeQueueExt:
        """`open` with maps that are shared with other queues."""
        return cls(UnitFiles(directory, 1, maps), False)

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files (path, start, size), by start."""
        return tuple(self._files.files)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What else is in the directory (path, reason)."""
        return tuple(self._files.skipped)

    def get(self, address: int) -> ExtUnit | None:
        """The unit at an address; None: no unit is there, or the number is a tags code."""
        if address > MAX_EXT_ADDRESS:
            return None
        buf, at = self._place(address - FIRST_EXT_ADDRESS)
        return _unit_at(buf, at)

    def get_many(self, addresses: npt.ArrayLike) -> Columns:
        """The units at many addresses, int64[n].

        Returns
        -------
        Columns : found bool, tags_code int64, store_timestamp int64 (ms), bitmap_size int16. Where there is no unit,
            found is False and the rest 0.
        """
        places = np.ascontiguousarray(addresses, np.int64)
        out = {
            "found": np.zeros(len(places), np.bool_),
            "tags_code": np.zeros(len(places), np.int64),
            "store_timestamp": np.zeros(len(places), np.int64),
            "bitmap_size": np.zeros(len(places), np.int16),
        }
        rows = np.flatnonzero(places <= MAX_EXT_ADDRESS)
        offsets = places[rows] - FIRST_EXT_ADDRESS
        if len(rows) and int(offsets.max()) >= self._stop():
            self._files.relist()  # a broker may have written more
        starts = np.array([file.start for file in self._files.files], np.int64)
        numbers = np.searchsorted(starts, offsets, "right") - 1
        for number in distinct(numbers[numbers >= 0]).tolist():
            mine = numbers == number
            self._fill(rows[mine], offsets[mine], self._files.files[number], out)
        return Columns(out)

    def _tags_codes(self, codes: _Ints) -> _Ints:
        """Tags codes, with addresses replaced by the codes they lead to; those that lead nowhere stay."""
        units = self.get_many(codes)
        return np.where(units["found"], units["tags_code"], codes)

    def units(self) -> Columns:
        """All units, in order: address, tags_code, store_timestamp int64, bitmap (bytes)."""
        rows = [(offset + FIRST_EXT_ADDRESS, *unit) for offset, unit in self._walk()]
        columns: dict[str, Any] = {
            name: np.array([row[n] for row in rows], np.int64)
            for n, name in enumerate(("address", "tags_code", "store_timestamp"))
        }
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row[3]) for row in rows], out=offsets[1:])
        columns["bitmap"] = BinaryColumn(np.frombuffer(b"".join(row[3] for row in rows), np.uint8), offsets)
        return Columns(columns)

    def close(self) -> None:
        """Close the files; may be called twice."""
        if self._owns_maps:
            self._files.maps.close()

    def __repr__(self) -> str:
        return f"ConsumeQueueExt({self.directory!r}, {plural(len(self._files.files), 'file')})"

    def _stop(self) -> int:
        return self._files.files[-1].stop if self._files.files else 0

    def _place(self, offset: int) -> tuple[Any, int]:
        if offset >= self._stop():
            self._files.relist()
        for part in self._files.stretches(offset, offset + _LONGEST):
            return part.buf, part.start
        return b"", 0

    def _fill(self, rows: _Ints, offsets: _Ints, file: LogFile, out: dict[str, npt.NDArray[Any]]) -> None:
        for part in self._files.stretches(int(offsets.min()), min(int(offsets.max()) + _LONGEST, file.stop)):
            fits = offsets - part.first <= part.stop - EXT_UNIT_SIZE
            rows, at = rows[fits], (offsets - part.first)[fits]
            # Copied at once: a mapping must not be held longer than a call.
            bytes_of = np.frombuffer(part.buf, np.uint8)[at[:, None] + np.arange(EXT_UNIT_SIZE)]
            check_whole(part.buf)
            heads = np.ascontiguousarray(bytes_of).view(EXT_UNIT)[:, 0]
            size, bitmap_size = heads["size"].astype(np.int64), heads["bitmap_size"].astype(np.int64)
            good = (size >= 1) & (at + EXT_UNIT_SIZE + np.maximum(bitmap_size, 0) <= part.stop)
            out["found"][rows[good]] = True
            for name in ("tags_code", "store_timestamp", "bitmap_size"):
                out[name][rows[good]] = heads[name][good]
            return

    def _walk(self) -> Iterator[tuple[int, ExtUnit]]:
        self._files.relist()
        for file in self._files.files:
            for part in self._files.stretches(file.start, file.stop):
                if part.first != file.start:
                    break  # the file itself is gone
                at = 0
                while (unit := _unit_at(part.buf, at)) is not None:
                    size = int.from_bytes(part.buf[at : at + 2], "big", signed=True)
                    if size < EXT_UNIT_SIZE:  # no broker writes it, and a walk of single bytes would take too long
                        break
                    yield file.start + at, unit
                    at += size
                break


def _unit_at(buf: Any, at: int) -> ExtUnit | None:
    if at + EXT_UNIT_SIZE > len(buf):
        return None
    (head,) = np.frombuffer(buf[at : at + EXT_UNIT_SIZE], EXT_UNIT)
    bitmap_size = max(int(head["bitmap_size"]), 0)
    if int(head["size"]) < 1 or at + EXT_UNIT_SIZE + bitmap_size > len(buf):
        return None
    start = at + EXT_UNIT_SIZE
    return ExtUnit(int(head["tags_code"]), int(head["store_timestamp"]), bytes(buf[start : start + bitmap_size]))
