"""The zone map of each file of a commit log: taken from a cache, or gathered by one pass over the frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from mqindex.columns.columns import Columns
from mqindex.columns.texts import text_hashes
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.log.log_scan import scan_parts
from mqindex.zones.cache import FileIdentity, FileZones, ZoneCache, identity_of, mark_before
from mqindex.zones.zone_map import Entries, ZoneGatherer, ZoneMap

_ROLLBACK: Final = 0x0C  # in sys_flag: both bits of a transaction
_GATHERED: Final = ("phy_offset", "size", "store_timestamp", "topic")


class LogZones:
    """Zone maps of a log's files. A file that is damaged is read each time: what a scan leaves out is said each time.

    cache : where maps are kept. looking : called before each batch of a pass. read : gets the bytes that were walked.
    damaged : gets what a pass could not read.
    """

    def __init__(
        self,
        cache: ZoneCache,
        *,
        looking: Callable[[], None],
        read: Callable[[int], None],
        damaged: Callable[[Damage], None],
    ) -> None:
        self._cache = cache
        self._looking = looking
        self._read = read
        self._damaged = damaged

    def of(self, file: LogFile, mapped: MappedFile, *, last: bool) -> ZoneMap:
        """The map of all messages of a file; `last`: a broker may be writing it, so what is new is read."""
        try:
            identity = identity_of(file.path)
            known = known_zones(self._cache, file, mapped, last=last)
        except FileNotFoundError:  # it was deleted since it was opened
            return self._gathered(file, mapped, ZoneMap.empty(file.start), last=last)[0]
        if known is not None and known.end >= file.stop:
            return known
        return self.extended(file, mapped, known or ZoneMap.empty(file.start), identity, last=last)

    def extended(
        self, file: LogFile, mapped: MappedFile, known: ZoneMap, identity: FileIdentity, *, last: bool
    ) -> ZoneMap:
        """The same from a map of the file's begin on; it is kept. `identity`: of the file as it was before."""
        found, damage = self._gathered(file, mapped, known, last=last)
        if not damage and (found.end > known.end or not len(known.zones)):
            mark = mark_before(mapped, found.end - file.start)
            self._cache.store(FileZones(identity, file.start, found, mark))
        return found

    def _gathered(self, file: LogFile, mapped: MappedFile, known: ZoneMap, *, last: bool) -> tuple[ZoneMap, bool]:
        """The map with what comes after `known`, and whether there is damage."""
        gatherer, met = ZoneGatherer(known, base=file.start), list[Damage]()
        end = gather(
            gatherer, file, mapped, known.end, file.stop, last=last, behind=known.end == file.start,
            looking=self._looking, read=self._read, damaged=met.append,
        )  # fmt: skip
        for one in met:
            self._damaged(one)
        return gatherer.map(end if last else file.stop), bool(met)


def gather(
    gatherer: ZoneGatherer,
    file: LogFile,
    mapped: MappedFile,
    at: int,
    stop: int,
    *,
    last: bool,
    behind: bool,
    damaged: Callable[[Damage], None],
    looking: Callable[[], None] = lambda: None,
    read: Callable[[int], None] = lambda size: None,
    rolled_back: Callable[[list[int]], None] | None = None,
) -> int:
    """Add the messages that begin in [at, stop) by their heads; where the last one ends. Arguments as of `scan_parts`,
    `read` as of `LogZones`; rolled_back : gets the phy offsets of messages that were rolled back.
    """
    names = _GATHERED if rolled_back is None else (*_GATHERED, "sys_flag")
    parts = scan_parts(
        file, mapped, at, stop, names, check_crc=False, last=last, looking=looking, damaged=damaged, behind=behind
    )
    for _, batch in parts:
        gatherer.add(_entries(batch))
        if rolled_back is not None:
            rolled_back(batch["phy_offset"][batch["sys_flag"] & _ROLLBACK == _ROLLBACK].tolist())
        sizes = batch["size"]
        read(int(sizes.sum(dtype=np.int64)))
        at = int(batch["phy_offset"][-1]) + int(sizes[-1])
    return at


def known_zones(cache: ZoneCache, file: LogFile, mapped: MappedFile, *, last: bool) -> ZoneMap | None:
    """What a cache has of this file: all of the same version, of one that is written to what is still there."""
    kept = cache.load(identity_of(file.path), file.start)
    if kept is None:
        return None
    zones, same, mark = kept
    if zones.end > file.stop or not (same or last):
        return None
    return zones if same or mark == mark_before(mapped, zones.end - file.start) else None


def _entries(batch: Columns) -> Entries:
    starts, times = batch["phy_offset"], batch["store_timestamp"]
    rows = np.ones(len(batch), np.int64)
    return Entries(starts, starts + batch["size"], rows, times, times, starts, starts, text_hashes(batch["topic"]))
