"""A zone map of one log file: the least and greatest time of each stretch of it, and its topics where they are few."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex.columns.distinct import distinct

ZONE_BYTES: Final = 256 << 10
"""A zone has what begins in so many bytes of a file: with a thousand messages of 250 bytes a scan skips well."""
MOST_TOPICS: Final = 16  # of a zone with more, nothing is known of its topics
NO_TIME: Final = -(2**63)  # of a message without one
_LATEST: Final = 2**63 - 1
_TABLE: Final = 128  # of more topics no table is made

ZONE: Final = np.dtype(
    [(name, "<i8") for name in ("start", "stop", "rows", "least", "greatest", "first", "last", "topics")]
)
"""start, stop: of its first and after its last byte; rows; least and greatest time, of no time the greatest and the
least int64; first and last offset; topics: how many there are, 0: not known."""

_Ints = npt.NDArray[np.int64]


class Entries(NamedTuple):
    """What a zone map is made of: a message or a batch each, in the order of the file.

    Attributes
    ----------
    starts, stops : int64[n], where each begins and ends
    rows : int64[n], messages or records of each
    least, greatest : int64[n], their times; those of no time are left out
    first, last : int64[n], their offsets
    topics : int32[n], hashes; None: they are not gathered
    """

    starts: _Ints
    stops: _Ints
    rows: _Ints
    least: _Ints
    greatest: _Ints
    first: _Ints
    last: _Ints
    topics: npt.NDArray[np.int32] | None = None


class ZoneMap:
    """The zones of a file, in order: what is in none of them holds no message.

    Attributes
    ----------
    zones : array of `ZONE`, shape (n,)
    topics : int32, the hashes of the topics of the zones, one zone after the other
    end : int, up to where the file was read
    """

    __slots__ = ("_ends", "end", "topics", "zones")

    def __init__(self, zones: npt.NDArray[np.void], topics: npt.NDArray[np.int32], end: int) -> None:
        self.zones = zones
        self.topics = topics
        self.end = end
        self._ends = np.cumsum(zones["topics"])

    @classmethod
    def empty(cls, at: int) -> ZoneMap:
        """The map of a file of which nothing was read, from `at` on."""
        return cls(np.empty(0, ZONE), np.empty(0, np.int32), at)

    def in_period(self, begin: int | None, end: int | None) -> npt.NDArray[np.bool_]:
        """Which zones can hold a time in [begin, end), ms; None: no bound. A message without a time is in no period."""
        if begin is None and end is None:
            return np.ones(len(self.zones), np.bool_)
        chosen: npt.NDArray[np.bool_] = self.zones["least"] <= self.zones["greatest"]
        if begin is not None:
            chosen &= self.zones["greatest"] >= begin
        if end is not None:
            chosen &= self.zones["least"] < end
        return chosen

    def with_topics(self, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which zones can hold a message of a topic with one of these hashes."""
        chosen: npt.NDArray[np.bool_] = self.zones["topics"] == 0
        zone_of = np.searchsorted(self._ends, np.flatnonzero(np.isin(self.topics, hashes)), "right")
        chosen[zone_of] = True
        return chosen

    def among_offsets(self, start: int | None, stop: int | None) -> npt.NDArray[np.bool_]:
        """Which zones can hold an offset in [start, stop); None: no bound."""
        chosen = np.ones(len(self.zones), np.bool_)
        if start is not None:
            chosen &= self.zones["last"] >= start
        if stop is not None:
            chosen &= self.zones["first"] < stop
        return chosen

    def between(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """Which zones have bytes in [start, stop)."""
        there: npt.NDArray[np.bool_] = (self.zones["stop"] > start) & (self.zones["start"] < stop)
        return there

    def stretches(self, chosen: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
        """Where the chosen zones are: [start, stop) of each, neighbours as one."""
        zones = self.zones[chosen]
        if not len(zones):
            return []
        cuts = np.flatnonzero(zones["start"][1:] != zones["stop"][:-1]) + 1
        starts, stops = zones["start"][np.r_[0, cuts]], zones["stop"][np.r_[cuts, len(zones)] - 1]
        return list(zip(starts.tolist(), stops.tolist(), strict=True))


class ZoneGatherer:
    """Makes a zone map in one pass over a file; it may go on from an earlier one.

    >>> gatherer = ZoneGatherer(ZoneMap.empty(0), base=0)
    >>> one = np.array([0, 100, 262144])
    >>> gatherer.add(Entries(one, one + 100, one * 0 + 1, one + 7, one + 7, one, one))
    >>> made = gatherer.map(262244)
    >>> made.zones[["start", "stop", "rows", "least", "greatest"]].tolist(), made.stretches(made.in_period(0, 100))
    ([(0, 200, 2, 7, 107), (262144, 262244, 1, 262151, 262151)], [(0, 200)])
    """

    def __init__(self, known: ZoneMap, *, base: int) -> None:
        self._base = base  # where the file begins
        self._zones = [known.zones]
        self._topics = [known.topics]

    def add_map(self, more: ZoneMap) -> None:
        """What another pass has found of the stretch that follows."""
        self._zones.append(more.zones)
        self._topics.append(more.topics)

    def add(self, more: Entries) -> None:
        """The next messages or batches of the file."""
        if not len(more.starts):
            return
        number = (more.starts - self._base) // ZONE_BYTES
        firsts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
        zones = np.empty(len(firsts), ZONE)
        zones["start"] = more.starts[firsts]
        zones["stop"] = more.stops[np.r_[firsts[1:], len(number)] - 1]
        zones["rows"] = np.add.reduceat(more.rows, firsts)
        zones["least"] = np.minimum.reduceat(more.least, firsts)
        zones["greatest"] = np.maximum.reduceat(more.greatest, firsts)
        zones["first"] = np.minimum.reduceat(more.first, firsts)
        zones["last"] = np.maximum.reduceat(more.last, firsts)
        if more.topics is None:
            counts, topics = np.zeros(len(firsts), np.int64), np.empty(0, np.int32)
        else:
            counts, topics = _few(np.repeat(np.arange(len(firsts)), np.diff(np.r_[firsts, len(number)])), more.topics)
        zones["topics"] = counts
        self._zones.append(zones)
        self._topics.append(topics)

    def map(self, end: int) -> ZoneMap:
        """The zones of all that was added; `end`: up to where the file was read."""
        zones = np.concatenate(self._zones)
        topics = np.concatenate(self._topics)
        if not len(zones):
            return ZoneMap(zones, topics, end)
        number = (zones["start"] - self._base) // ZONE_BYTES
        firsts = np.flatnonzero(np.r_[True, (number[1:] != number[:-1]) | (zones["start"][1:] != zones["stop"][:-1])])
        merged = zones[firsts]
        merged["stop"] = zones["stop"][np.r_[firsts[1:], len(zones)] - 1]
        merged["rows"] = np.add.reduceat(zones["rows"], firsts)
        for name, least in (("least", True), ("greatest", False), ("first", True), ("last", False)):
            merged[name] = (np.minimum if least else np.maximum).reduceat(zones[name], firsts)
        part_of = np.repeat(np.arange(len(firsts)), np.diff(np.r_[firsts, len(zones)]))
        unknown = np.zeros(len(firsts), np.bool_)
        unknown[part_of[zones["topics"] == 0]] = True
        zone_of = np.repeat(part_of, zones["topics"])
        kept = ~unknown[zone_of]
        counts, topics = _few(zone_of[kept], topics[kept], len(firsts))
        merged["topics"] = counts
        return ZoneMap(merged, topics, end)


def _few(
    zone_of: npt.NDArray[np.integer], topics: npt.NDArray[np.int32], zones: int | None = None
) -> tuple[_Ints, npt.NDArray[np.int32]]:
    """How many topics each zone has, and which, each once; of zones with many, none."""
    zone, named = _pairs(zone_of, topics)
    counts = np.bincount(zone, minlength=zones or 0).astype(np.int64)
    many = counts > MOST_TOPICS
    counts[many] = 0
    return counts, named[~many[zone]].view(np.int32)


def _pairs(zone_of: npt.NDArray[np.integer], topics: npt.NDArray[np.int32]) -> tuple[_Ints, npt.NDArray[np.uint32]]:
    """Each zone with each of its topics once, in order.

    Where topics are few they are told apart by 16 bits, and a table has the pairs: that is faster than a sort.
    """
    names, place = topics.view(np.uint32), topics & 0xFFFF
    of_place = np.zeros(1 << 16, np.uint32)
    of_place[place] = names
    there = np.zeros(1 << 16, np.bool_)
    there[place] = True
    known = np.flatnonzero(there)
    if not len(known) or len(known) > _TABLE or (of_place[place] != names).any():
        pairs = distinct((zone_of.astype(np.int64) << 32) | names.astype(np.int64))
        return pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.uint32)
    known = known[np.argsort(of_place[known])]
    rank = np.zeros(1 << 16, np.int64)
    rank[known] = np.arange(len(known))
    met = np.zeros((int(zone_of[-1]) + 1, len(known)), np.bool_)  # zones come in order
    met[zone_of, rank[place]] = True
    zone, number = np.nonzero(met)
    return zone, of_place[known[number]]


def least_of(times: _Ints) -> _Ints:
    """Times, those of no time as later than all."""
    return np.where(times == NO_TIME, _LATEST, times)
