"""The bytes of a segment's log: mapped where it is on this machine, in windows where it is elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_log import BatchScan, batches_at
from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import OffsetOverflowError, TruncatedFileError
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import status_of
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import map_file
from mqindex.files.reading.regular import reading
from mqindex.kafka.layout import MAX_LOG_SIZE
from mqindex.kafka.log.batch_windows import HEAD, STEP, BatchWindows, Found, find, keep
from mqindex.kafka.log.batches import batch_rows

_FIRST_STRETCH: Final = 1 << 20  # bytes, by which the size of batches is judged
_LARGE_BATCH: Final = 32768  # from here on a read of a header costs less than the pages around it, however they lie


class LogBytes(Closable):
    """One log as it was when it was opened, for several threads: its bytes, and walks over its batches."""

    _thing = "segment"

    size: int = 0

    def __init__(self, path: str) -> None:
        self.path = path
        stat = status_of(path)
        self.size, self._modified, self._identity = stat.st_size, stat.st_mtime_ns, (stat.st_dev, stat.st_ino)
        if self.size > MAX_LOG_SIZE:
            raise OffsetOverflowError(
                "the segment is longer than positions reach", path=path, field="position",
                expected=f"{MAX_LOG_SIZE} bytes or less", got=self.size,
            )  # fmt: skip
        self._file = map_file(path) if self.size else None
        self._elsewhere = isinstance(path, Place)
        self.size = 0 if self._file is None else self._file.size
        self._lock = new_lock()

    @property
    def modified(self) -> int:
        """When the `.log` had last been changed as it was opened, ms since the epoch."""
        return self._modified // 1_000_000

    @property
    def is_deleted(self) -> bool:
        """Whether the name has gone since, or leads to another file: a broker has deleted the segment, or cleaned it.

        The log is renamed first, then its indexes: an index that was opened while this is False belongs to this log.
        """
        try:
            return not self._is_of(status_of(self.path))
        except FileNotFoundError:
            return True

    def _is_of(self, stat: os.stat_result) -> bool:
        """Whether this is the file that such a status was of."""
        return (stat.st_dev, stat.st_ino) == self._identity

    @contextlib.contextmanager
    def _opened_again(self) -> Iterator[int]:
        """A descriptor of the log; -1 where its name has gone since, or leads to another file."""
        with contextlib.ExitStack() as opened:
            fd = -1
            with contextlib.suppress(FileNotFoundError):
                file = opened.enter_context(reading(self.path, buffered=False))
                if self._is_of(os.fstat(file.fileno())):
                    fd = file.fileno()
            yield fd

    def _log_bytes(self, start: int = 0, stop: int | None = None) -> Any:
        """The log, mapped, for kernels; empty bytes where it is empty. Positions are those of this buffer.

        Of a log elsewhere only the bytes [start, stop) are there, and what was read before.
        """
        with self._lock:
            self._require_open()
            if self._file is None:
                return b""
            pinned = memoryview(self._file.map)
            size = self._file.map.size()  # also of a file whose name a broker took away
        if size < self.size:
            raise TruncatedFileError("the log was cut while it was open", path=self.path, expected=self.size, got=size)
        if self._elsewhere:
            self._file.window(start, self.size if stop is None else stop)
        return pinned

    def _log_of(self, rows: npt.NDArray[Any]) -> Any:
        """The log with these batches."""
        log = self._log_bytes(0, 0)
        if self._elsewhere and self._file is not None:
            positions = rows["position"].astype(np.int64)
            self._file.windows(positions, positions + rows["size"])
        return log

    def _rows_at(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """The batches at these positions; fewer where one of them has none."""
        log = self._log_bytes(0, 0)
        if self._elsewhere and self._file is not None:
            self._file.windows(positions, positions + HEAD)
        return batch_rows([batches_at(log, positions)])

    def _new_walk(self, start: int, stop: int | None = None, most: int = STEP) -> BatchWindows:
        """The windows of a walk, which share nothing with those of others."""
        return self._walk(self._again(), start, self.size if stop is None else stop, most)

    def _reaches(self, start: int, stop: int, *, check_crc: bool = True) -> bool:
        """Whether one good batch follows another from `start`, the position of one, to `stop`."""
        walk = self._new_walk(start, stop)
        for log, limit in walk:
            scan = BatchScan(log, walk.at, limit, check_crc=check_crc)
            for _ in scan:
                pass
            walk.at = scan.end
        return walk.at == stop

    def _found(self, start: int, stop: int, column: str, target: int) -> Found:
        """As `find_batch`."""
        return find(partial(self._window, self._file), self.size, start, stop, column, target)

    def close(self) -> None:
        """Close the log. May be called twice; a read that still runs ends normally."""
        with self._lock:
            self._closed = True
        if self._file is not None:
            self._file.close()

    def _again(self) -> MappedFile | None:
        return None if self._file is None else self._file.again()

    def _walk(self, file: MappedFile | None, start: int, stop: int, most: int = STEP) -> BatchWindows:
        release = file.release if file else keep
        return BatchWindows(partial(self._window, file), self.size, start, stop, release, most)

    def _window(self, file: MappedFile | None, start: int, stop: int) -> memoryview:
        whole: memoryview = self._log_bytes(0, 0)
        return memoryview(file.window(start, stop)) if self._elsewhere and file is not None else whole

    def _run(self, made: Recovered, file: MappedFile | None, *, every_byte: bool) -> None:
        """Give a recovery all of the log: every byte, or of large batches the headers alone where that costs less."""
        if every_byte or self._elsewhere:
            self._run_through(made, self._walk(file, 0, self.size))
        else:
            with self._opened_again() as fd:
                self._run_by_headers(made, fd)

    def _run_through(self, made: Recovered, walk: BatchWindows) -> None:
        for log, limit in walk:
            if not made.run(limit, -1, len(log) if self._elsewhere else None):
                return
            walk.at = made.end_bytes
        if walk.at < walk.size:
            walk.whole()
        made.run(walk.size)

    def _run_by_headers(self, made: Recovered, fd: int) -> None:
        """Small batches from the map, of which every page is needed; large ones by a read of each header, from `fd`.

        fd : of the same log; -1: there is none, and all batches are read from the map.
        """
        stop, reads = _FIRST_STRETCH, -1
        while True:
            if reads < 0:
                self._log_bytes()  # it was not cut meanwhile
            position, batches = made.end_bytes, made.batches
            if not made.run(stop, reads):
                return
            large = made.end_bytes - position > _LARGE_BATCH * (made.batches - batches)
            stop, reads = made.end_bytes + STEP, fd if large else -1
