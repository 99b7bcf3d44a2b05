"""Zone maps of a log that is followed: they grow with it, from the units that dispatch has in hand anyway, and from the
heads of messages that these do not show.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.log_extract import QueueTable
from mqindex.errors import MQIndexError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.rights import as_process
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_entries import LogSpan
from mqindex.rocketmq.log.log_files import LogFile, list_log_files
from mqindex.rocketmq.tally.log_zones import LogZones, known_zones
from mqindex.rocketmq.tally.split_zones import UnitZones
from mqindex.zones.cache import FileZones, ZoneCache, identity_of, mark_before
from mqindex.zones.zone_map import ZoneMap

_MANY: Final = 1 << 16  # units that wait, at most
_KEPT_EVERY: Final = 60.0  # seconds


class FollowedZones:
    """Extends the maps in a cache. For one thread. `unchanged`: raises where the log is not as it was read.

    The map of a file goes on where that of the cache ends, or at the file's begin. Where the next unit does not follow
    there, as after a message without one, the heads of what comes are read once more, as a scan does, when the map is
    kept. What goes wrong ends the map of a file and nothing else.
    """

    def __init__(
        self,
        cache: ZoneCache,
        directories: Sequence[str | os.PathLike[str]],
        table: QueueTable,
        unchanged: Callable[[], None],
    ) -> None:
        self._cache, self._directories, self._table, self._unchanged = cache, list(directories), table, unchanged
        self._zones = LogZones(cache, looking=lambda: None, read=lambda size: None, damaged=self._end)
        self._waiting: list[npt.NDArray[Any]] = []
        self._many = 0
        self._file: LogFile | None = None
        self._units: UnitZones | None = None  # None: the map of the file ended
        self._kept, self._due = -1, time.monotonic() + _KEPT_EVERY

    def take(self, units: npt.NDArray[Any]) -> None:
        """The next units that were read; the caller may change them afterwards."""
        if self._cache.keeps and len(units):
            self._waiting.append(units.copy())
            self._many += len(units)
            if self._many >= _MANY:
                self._add()

    def tick(self) -> None:
        """Now and then, keep the map of the file that grows."""
        if time.monotonic() >= self._due:
            self.keep()

    def keep(self) -> None:
        """Keep it now."""
        self._add()
        self._due = time.monotonic() + _KEPT_EVERY
        self._of_file(self._keep)

    # ---- inside

    def _add(self) -> None:
        units = np.concatenate(self._waiting) if self._waiting else None
        self._waiting, self._many = [], 0
        while units is not None and len(units):
            at = int(units["phy_offset"][0])
            if self._file is None or not self._file.start <= at < self._file.stop:
                self._of_file(self._finish)
                self._file = self._units = None
                self._begin(at)
            if self._file is None:  # it has expired
                return
            known, count = np.searchsorted(units["phy_offset"], [self._kept, self._file.stop]).tolist()
            if self._units is not None:
                self._units.add(units[known:count])
            units = units[count:]

    def _begin(self, at: int) -> None:
        try:
            with as_process():
                files = list_log_files(self._directories)
                self._file = next((file for file in files if file.start <= at < file.stop), None)
                if self._file is not None:
                    with self._file.open() as mapped:
                        known = known_zones(self._cache, self._file, mapped, last=self._file is files[-1])
                    self._units = self._from(self._file, known or ZoneMap.empty(self._file.start))
        except (MQIndexError, OSError):
            self._units = None

    def _from(self, file: LogFile, known: ZoneMap) -> UnitZones:
        self._kept = known.end
        return UnitZones(LogSpan(file.path, file.start, file.stop), known.end, self._table, known)

    def _of_file(self, work: Callable[[LogFile, MappedFile, ZoneMap], None]) -> None:
        """Keep what is known of the file."""
        if self._units is None or self._file is None:
            return
        try:
            with as_process(), self._file.open() as mapped:
                work(self._file, mapped, self._units.map())
        except (MQIndexError, OSError):
            self._units = None

    def _keep(self, file: LogFile, mapped: MappedFile, found: ZoneMap) -> None:
        """Of a file that grows, if it is more than before."""
        assert self._units is not None
        identity = identity_of(file.path)
        if self._units.whole:
            if found.end <= self._kept:
                return
            mark = mark_before(mapped, found.end - file.start)
            self._unchanged()  # until now, and so the mark is of what was read
            self._cache.store(FileZones(identity, file.start, found, mark))
        else:
            self._unchanged()
            found = self._zones.extended(file, mapped, found, identity, last=True)
        if self._units is not None:
            self._units = self._from(file, found)

    def _finish(self, file: LogFile, mapped: MappedFile, found: ZoneMap) -> None:
        """Of a file that is full: what is behind its last message is read."""
        self._zones.extended(file, mapped, found, identity_of(file.path), last=False)

    def _end(self, damage: Damage) -> None:
        self._units = None
