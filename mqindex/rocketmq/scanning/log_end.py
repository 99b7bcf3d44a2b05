"""Where a log ends for several scans that answer of the same messages while a broker appends."""

from __future__ import annotations

from threading import Lock

from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.log_scan import end_of_file, frames_behind
from mqindex.rocketmq.tally.log_zones import known_zones
from mqindex.zones.cache import ZoneCache


class LogEnd:
    """The last file when the first of the scans began, and its end when one of them first came to it. For threads.

    `opening`: held from before a scan lists the files until `most`, so that none has listed fewer than the first one.
    """

    def __init__(self) -> None:
        self._lock, self.opening = Lock(), Lock()
        self._last: LogFile | None = None
        self._most: int | None = None
        self._end: int | None = None
        self._behind: Damage | None = None

    def most(self, log: CommitLog) -> int:
        """A phy offset behind which none of the scans goes."""
        with self._lock:
            if self._most is None:
                number = log._last_file()
                self._last = log.files[number] if number >= 0 else None
                self._most = log.min_phy_offset if self._last is None else self._last.stop
            return self._most

    def of(self, file: LogFile, mapped: MappedFile, cache: ZoneCache) -> tuple[int | None, Damage | None]:
        """The phy offset that ends the scans in a file, None: none does; and what is behind the log's end there."""
        with self._lock:
            if self._last is None or file.start != self._last.start or isinstance(file.path, Place):
                return None, None  # elsewhere a file does not grow, and to look for an end would bring it twice
            if self._end is None:
                try:
                    known = known_zones(cache, file, mapped, last=True)
                    self._end = end_of_file(file, None if known is None else known.end)
                except FileNotFoundError:  # it was deleted since it was opened, and so grows no more
                    return None, None
                self._behind = frames_behind(mapped, file.path, file.start, self._end, file.stop)
            return self._end, self._behind
