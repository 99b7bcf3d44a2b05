"""Zone maps of log files from the units that a walk over all of a log has in hand anyway.

Units show every message as far as they follow each other without a gap, each once. From where a message has no unit, or
several, the heads of the rest of the split are read once more, as a scan does. Elsewhere, where that would bring the
bytes again, and where the log is damaged, nothing is kept of the file, and the first scan reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.log_extract import QueueTable
from mqindex.columns.distinct import distinct
from mqindex.columns.texts import text_column, text_hashes
from mqindex.errors import MQIndexError
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq.log.damage import Damage
from mqindex.rocketmq.log.log_entries import FileWalk, LogSpan
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.tally.log_zones import gather
from mqindex.zones.cache import FileIdentity, FileZones, ZoneCache, identity_of, mark_before
from mqindex.zones.zone_map import ZONE_BYTES, Entries, ZoneGatherer, ZoneMap

_NONE: Final = bytes(32)  # a version of no file, a mark of no bytes


@dataclass(frozen=True, slots=True)
class SplitZones:
    """The map of a split from the phy offset `first` on; `zones` None: it is not known.

    `identity`: of its file, before the walk. `mark`: of its end, in the last file, which may grow.
    `rolled_back`: phy offsets of the messages that were, whose keys are in no index.
    """

    span: LogSpan
    identity: FileIdentity
    first: int
    zones: ZoneMap | None = None
    mark: bytes = b""
    rolled_back: tuple[int, ...] = ()


class UnitZones:
    """Makes the map of one split, which begins at the frame `first`, or continues that of a file; for one thread."""

    def __init__(self, span: LogSpan, first: int, table: QueueTable, known: ZoneMap | None = None) -> None:
        self._span, self._first, self._table = span, first, table
        self._identity = identity_of(span.path)
        self._gatherer = ZoneGatherer(known or ZoneMap.empty(first), base=span.file_start)
        self._end, self._rows, self._whole = first, 0, True
        self._rolled_back = list[int]()
        self._hashes: npt.NDArray[np.int32] | None = np.empty(0, np.int32)  # of each queue's topic; None: not known

    def add(self, units: npt.NDArray[Any]) -> None:
        """The next units of the walk."""
        if not self._whole or not len(units):
            return
        starts = units["phy_offset"].copy()
        stops = starts + units["size"]
        self._whole = bool(starts[0] == self._end and np.array_equal(stops[:-1], starts[1:]))
        if self._whole:
            self._end = int(stops[-1])
            self._rows += len(units)
            self._gatherer.add(self._summed(units, starts, stops))

    @property
    def whole(self) -> bool:
        """Whether the units have shown every message so far."""
        return self._whole

    def map(self) -> ZoneMap:
        """The map as far as units show every message."""
        return self._gatherer.map(self._end)

    def finish(self, log: MappedFile, walk: FileWalk, stop: int) -> SplitZones:
        """The map of what the walk has met, of messages that begin before `stop`."""
        found = SplitZones(self._span, self._identity, self._first)
        shown = self._whole and walk.messages == self._rows  # what was rolled back has no unit
        if walk.damage or not (shown or self._by_heads(log, stop)):
            return found
        mark = mark_before(log, self._end - self._span.file_start) if self._span.last else _NONE
        return replace(found, zones=self._gatherer.map(self._end), mark=mark, rolled_back=tuple(self._rolled_back))

    def _by_heads(self, log: MappedFile, stop: int) -> bool:
        """Add what the units do not show; False: it is not known."""
        span, met = self._span, list[Damage]()
        if isinstance(span.path, Place):
            return False
        file = LogFile(span.path, span.file_start, span.stop - span.file_start)
        try:
            self._end = gather(
                self._gatherer, file, log, self._end, stop, last=span.last, behind=False, damaged=met.append,
                rolled_back=self._rolled_back.extend,
            )  # fmt: skip
        except (MQIndexError, OSError):  # it was cut, or has expired: the walk has what counts
            return False
        return not met

    def _summed(self, units: npt.NDArray[Any], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Entries:
        """One entry for each zone and queue of some units."""
        base = self._span.file_start
        low, high = ((int(at) - base) // ZONE_BYTES for at in (starts[0], starts[-1]))
        borders = np.searchsorted(starts, base + ZONE_BYTES * np.arange(low + 1, high + 1))
        firsts = distinct([0, *borders.tolist()])
        lasts = np.r_[firsts[1:], len(units)]
        times, queues = units["store_timestamp"].copy(), units["queue"].astype(np.int64)
        pairs = _distinct(np.repeat(np.arange(len(firsts)), lasts - firsts), queues, len(firsts))
        zone, queue = pairs[0], pairs[1]
        counts = np.where(np.r_[True, zone[1:] != zone[:-1]], (lasts - firsts)[zone], 0)
        least, greatest = (pick.reduceat(times, firsts)[zone] for pick in (np.minimum, np.maximum))
        places = starts[firsts][zone], starts[lasts - 1][zone]
        return Entries(places[0], stops[lasts - 1][zone], counts, least, greatest, *places, self._topics(queue))

    def _topics(self, queues: npt.NDArray[np.int64]) -> npt.NDArray[np.int32] | None:
        """The hashes of their topics; None: one of all has a name that is not known byte by byte."""
        if self._hashes is not None and int(queues.max()) >= len(self._hashes):
            topics = [topic for topic, _ in self._table.names()]
            known = not any("\ufffd" in topic for topic in topics)
            self._hashes = text_hashes(text_column(topic.encode() for topic in topics)) if known else None
        return None if self._hashes is None else self._hashes[queues]


def _distinct(
    zone_of: npt.NDArray[np.int64], queues: npt.NDArray[np.int64], zones: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The pairs of zone and queue that occur, each once, in order."""
    most = int(queues.max()) + 1
    both = zone_of * most + queues
    found = np.flatnonzero(np.bincount(both)) if zones * most <= 8 * len(both) else distinct(both)
    return found // most, found % most


class Kept(NamedTuple):
    """A file whose map was kept, from its first byte to `end`. `rolled_back`: as of `SplitZones`."""

    identity: FileIdentity
    start: int
    end: int
    rolled_back: tuple[int, ...]


def keep_zones(cache: ZoneCache, parts: Iterable[SplitZones | None], *, behind: bool) -> list[Kept]:
    """Keep the maps of files of which all splits have one; `parts`: in the log's order, of whole files, as far as the
    walk was asked for maps. `behind`: frames are behind the log's end, of which each scan says that it leaves them out.
    """
    found = list[Kept]()
    for span, some in groupby((one for one in parts if one is not None), key=lambda one: one.span):
        if not (span.last and behind):
            found += _keep(cache, span, list(some))
    return found


def _keep(cache: ZoneCache, span: LogSpan, parts: Sequence[SplitZones]) -> Iterator[Kept]:
    at, gatherer = span.file_start, ZoneGatherer(ZoneMap.empty(span.file_start), base=span.file_start)
    for part in parts:
        if part.zones is None or part.first != at:
            return
        gatherer.add_map(part.zones)
        at = part.zones.end
    identity, same = parts[0].identity, len({part.identity for part in parts}) == 1
    if not (same or span.last):
        return
    if not same:  # a broker writes it: what is before its end stays
        identity = identity._replace(version=_NONE)
    end = at if span.last else span.stop
    cache.store(FileZones(identity, span.file_start, gatherer.map(end), parts[-1].mark))
    yield Kept(identity, span.file_start, end, tuple(chain.from_iterable(part.rolled_back for part in parts)))
