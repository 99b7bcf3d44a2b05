"""The messages of stretches of log files that match: heads are compared first, bodies are taken of what matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import scan_at
from mqindex._native.log_columns import columns_at
from mqindex.columns.columns import Columns
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.frame_windows import MARGIN
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.log_scan import scan_parts
from mqindex.rocketmq.messages.log_columns import BULKY_COLUMNS, as_columns
from mqindex.rocketmq.scanning.message_filter import MessageFilter

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from mqindex.files.reading.mapped_file import MappedFile

_PLACES: Final = ("phy_offset", "size")
_BATCH_BYTES: Final = 4 << 20  # of the frames of one batch with bodies


class Matches:
    """What matches, as columns of the log.

    columns : names; batches may have more. check_crc : compare the bodies of all messages with their checksums.
    looking : called before each batch. read : gets the bytes of the frames that were walked. damaged : gets what cannot
    be read.
    """

    def __init__(
        self,
        wanted: MessageFilter,
        columns: tuple[str, ...],
        *,
        check_crc: bool,
        looking: Callable[[], None],
        read: Callable[[int], None],
        damaged: Callable[[Damage], None],
    ) -> None:
        self._wanted, self._taken, self._check_crc = wanted, columns, check_crc
        self._looking, self._read, self._damaged = looking, read, damaged
        self._is_bulky = not BULKY_COLUMNS.isdisjoint(columns)

    def of(self, file: LogFile, mapped: MappedFile, at: int, stop: int, *, start: int, last: bool) -> Iterator[Columns]:
        """Those of a file that begin in [at, stop), from `start` on; at `at` begins one. `last`: it is the last file of
        its log.
        """
        compared = self._wanted.columns
        names = (*compared, *_PLACES) if compared else tuple(dict.fromkeys((*self._taken, *_PLACES)))
        parts = scan_parts(
            file, mapped, at, stop, names, check_crc=self._check_crc, last=last, looking=self._looking,
            damaged=self._damaged,
        )  # fmt: skip
        for window, batch in parts:
            self._read(int(batch["size"].sum(dtype=np.int64)))
            chosen = self._wanted.matching(batch)
            if batch["phy_offset"][0] < start:
                begun = batch["phy_offset"] >= start
                chosen = begun if chosen is None else chosen & begun
            if compared:
                rows = np.arange(len(batch)) if chosen is None else np.flatnonzero(chosen)
                yield from self._decoded(file, window, batch["phy_offset"][rows], batch["size"][rows], self._taken)
            else:
                yield batch if chosen is None else batch.take(chosen)

    def at(self, file: LogFile, mapped: MappedFile, phys: npt.NDArray[np.int64]) -> Iterator[Columns] | None:
        """Those at some places of a file, one or more; None: at one of them is no good frame."""
        self._looking()
        first = phys - file.start
        frames, whole = scan_at(mapped.windows(first, first + MARGIN), file.start, phys, check_crc=True)
        return self._compared(file, mapped, phys, frames["size"].astype(np.int32)) if whole.all() else None

    def _compared(
        self, file: LogFile, mapped: MappedFile, phys: npt.NDArray[np.int64], sizes: npt.NDArray[np.int32]
    ) -> Iterator[Columns]:
        names = tuple(dict.fromkeys((*self._wanted.columns, *self._taken)))
        window = mapped.windows(phys - file.start, phys - file.start + sizes)
        self._read(int(sizes.sum(dtype=np.int64)))
        for batch in self._decoded(file, window, phys, sizes, names):
            self._looking()
            chosen = self._wanted.matching(batch)
            yield batch if chosen is None else batch.take(chosen)

    def _decoded(
        self,
        file: LogFile,
        window: Buffer,
        phys: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int32],
        names: tuple[str, ...],
    ) -> Iterator[Columns]:
        """The columns of some messages, a few MiB of them at a time where bodies are among them."""
        most = _BATCH_BYTES if self._is_bulky else 2**62
        ends = np.cumsum(sizes, dtype=np.int64)
        first = 0
        while first < len(phys):
            before = int(ends[first - 1]) if first else 0
            stop = max(int(np.searchsorted(ends, before + most, "right")), first + 1)
            made, n = columns_at(window, file.start, phys[first:stop], sizes[first:stop], names)
            if n:
                yield as_columns(made, n)
            first = stop if n == stop - first else first + n + 1  # what was just read has changed meanwhile
