"""Parts that the health report of every broker has: counts over time, distributions, hostile text, what was sampled.

Plain data, no picture in it: `mqindex.rocketmq.report` and `mqindex.kafka.report` return it, a page draws it.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from mqindex.files import disk
from mqindex.files.places.place import Place

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_BINS",
    "Histogram",
    "Read",
    "Share",
    "Site",
    "Text",
    "TimeBins",
    "TimeSeries",
    "a_day",
    "plain",
    "width_for",
]

MAX_BINS = 60
EARLIEST, LATEST = 946_684_800_000, 4_102_444_800_000  # ms, the years 2000 to 2099: other values are not taken as times
_MAX_TEXT = 200
_LADDER = (1, 5, 10, 50, 100, 500, *(seconds * 1000 for seconds in (1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200)))
_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a file: names, keys and tags may be anything, of any length.

    Attributes
    ----------
    text : str, its first 200 characters at most, as they are: escape them where they are shown
    length : int, how many characters there were

    >>> Text.of("Orders"), Text.of("x" * 1000).cut
    (Text(text='Orders', length=6), True)
    """

    text: str
    length: int

    @classmethod
    def of(cls, text: str) -> Text:
        """Keep what a reader needs of it."""
        return cls(text[:_MAX_TEXT], len(text))

    @property
    def cut(self) -> bool:
        """Whether there was more."""
        return self.length > len(self.text)

    def __str__(self) -> str:
        return f"{self.text}… ({self.length} characters)" if self.cut else self.text


@dataclass(frozen=True, slots=True)
class Share:
    """How many of all items a part of a report was made from.

    Attributes
    ----------
    part : str, what is counted from them
    what : str, the items, in the plural
    seen, total : int

    >>> print(Share("sizes, times and tags", "messages", 8_192, 131_072))
    sizes, times and tags: 8192 of 131072 messages
    """

    part: str
    what: str
    seen: int
    total: int

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return self.seen >= self.total

    def estimate(self, count: int) -> int:
        """A count among the items seen, scaled to all items.

        >>> Share("sizes", "messages", 10, 160).estimate(3)
        48
        """
        return count if self.whole or not self.seen else round(count * self.total / self.seen)

    def __str__(self) -> str:
        return f"{self.part}: {'all' if self.whole else f'{self.seen} of'} {self.total} {self.what}"


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values are in each bin: from its bound up to the next one.

    Attributes
    ----------
    bounds : tuple of int, the least value of each bin; the last bin has no end
    counts : tuple of int

    >>> Histogram.of({3: 2, 5: 1}, lambda number: 2**number)
    Histogram(bounds=(8, 16, 32), counts=(2, 0, 1))
    """

    bounds: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, counts: Mapping[int, int], bound: Any = int) -> Histogram:
        """From the counts of numbered bins; `bound(number)`: the least value of a bin."""
        numbers = range(min(counts), max(counts) + 1) if counts else range(0)
        return cls(tuple(bound(one) for one in numbers), tuple(counts.get(one, 0) for one in numbers))


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Messages or records, and their bytes, over time, in bins of one width.

    Attributes
    ----------
    start : int, ms since the epoch, where the first bin begins
    width : int, ms
    counts, bytes : tuple of int, one for each bin

    >>> series = TimeBins(1000, {1: (2, 20), 3: (1, 5)}).series()
    >>> series.start, series.width, series.counts
    (1000, 1000, (2, 0, 1))
    """

    start: int = 0
    width: int = 0
    counts: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()


def width_for(low: int, high: int, bins: int = MAX_BINS) -> int:
    """The least width, ms, in which the times from `low` to `high` need at most so many bins.

    Every width is a multiple of those before it, so that bins can be put together.

    >>> width_for(0, 59), width_for(0, 3_600_000), width_for(0, 86_400_000)
    (1, 300000, 3600000)
    """
    for width in _LADDER:
        if high // width - low // width < bins:
            return width
    width = _DAY
    while high // width - low // width >= bins:
        width *= 2
    return width


def a_day(amount: int, first: int | None, last: int | None) -> int | None:
    """How much a day, where `amount` came from `first` to `last`; None: they are no times, or too short a time to tell.

    That is less than a day: the hours of a day differ.

    >>> start = 1_700_000_000_000
    >>> a_day(500, start, start + 172_800_000), a_day(500, start, start + 74_000), a_day(500, 0, start)
    (250, None, None)
    """
    if first is None or last is None or not EARLIEST <= first <= last - _DAY < last < LATEST:
        return None
    return round(amount * _DAY / (last - first))


@dataclass(slots=True)
class TimeBins:
    """Counts by time, while they are gathered: (count, bytes) of each bin of `width` ms that has any, by its number.

    Tasks make them, each as fine as its own times allow; `gather` puts them together.

    >>> TimeBins(1000, {1: (2, 20)}).series()
    TimeSeries(start=1000, width=1000, counts=(2,), bytes=(20,))
    """

    width: int = 1
    bins: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def gather(cls, parts: Iterable[TimeBins]) -> TimeBins:
        """All `parts` in at most 60 bins, of the least width for that.

        >>> first, second = TimeBins(1, {1000: (2, 20)}), TimeBins(1000, {7: (1, 5)})
        >>> TimeBins.gather([first, second])
        TimeBins(width=1000, bins={1: (2, 20), 7: (1, 5)})
        """
        parts = [part for part in parts if part.bins]
        if not parts:
            return cls()
        low = min(min(part.bins) * part.width for part in parts)
        high = max(max(part.bins) * part.width for part in parts)
        width = max(width_for(low, high), *(part.width for part in parts))
        gathered = cls(width)
        for part in parts:
            gathered.add(part)
        return gathered

    def add(self, part: TimeBins) -> None:
        """Take in `part`, which is as fine as this, or finer."""
        factor = self.width // part.width
        for number, (count, size) in part.bins.items():
            known = self.bins.get(number // factor, (0, 0))
            self.bins[number // factor] = known[0] + count, known[1] + size

    def series(self, share: Share | None = None, over: TimeBins | None = None) -> TimeSeries:
        """As a series. `share`: what the counts are a sample of. `over`: use the bins of that one."""
        line = over or self
        if not line.bins:
            return TimeSeries()
        shown = TimeBins(line.width)
        shown.add(self)
        numbers = range(min(line.bins), max(line.bins) + 1)
        found = [shown.bins.get(number, (0, 0)) for number in numbers]
        scaled = [tuple(share.estimate(one) for one in pair) if share else pair for pair in found]
        counts, sizes = zip(*scaled, strict=True)
        return TimeSeries(numbers.start * line.width, line.width, counts, sizes)


@dataclass(frozen=True, slots=True)
class Read:
    """What a report was made of.

    Attributes
    ----------
    version : str, of mqindex
    deep : bool, as it was given
    made_at : int, ms since the epoch
    bytes : int, of the logs that were read
    seconds : float, of all the work
    sampled : tuple of Share, one for each part that may come from a sample, also where it comes from all items

    >>> read = Read("0.1.0", False, 1_700_000_000_000, 4096, 0.1, (Share("keys", "entries", 5, 80),))
    >>> [str(share) for share in read.sampled]
    ['keys: 5 of 80 entries']
    """

    version: str
    deep: bool
    made_at: int
    bytes: int
    seconds: float
    sampled: tuple[Share, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """Where a report was made, of which broker, and how long the disk lasts.

    Attributes
    ----------
    host : str or None, the machine on which it was made; None: the files are elsewhere
    broker : str or None, the broker's own name, where its files or its configuration say it
    newest : int or None, ms since the epoch, the time of the newest message or record
    newest_age : int or None, ms, how old that was then
    bytes_per_day : int or None, the growth of the logs; None: too short a time to tell
    disk_free : int or None, bytes of the disk of the logs
    days_left : float or None, until it is full at this growth, if nothing is deleted

    >>> Site.of(Machine("a", 10_000), "broker-a", None, 4_000, 1_700_000_000_000).days_left
    2.5
    """

    host: str | None
    broker: str | None
    newest: int | None
    newest_age: int | None
    bytes_per_day: int | None
    disk_free: int | None
    days_left: float | None

    @classmethod
    def of(
        cls, machine: Machine, broker: str | None, newest: int | None, bytes_per_day: int | None, made_at: int
    ) -> Site:
        """What these tell; `made_at`: ms since the epoch.

        >>> Site.of(Machine("a", None), None, 1_000, None, 61_000).newest_age
        60000
        """
        free = machine.disk_free
        return cls(
            host=machine.host,
            broker=broker,
            newest=newest,
            newest_age=None if newest is None else made_at - newest,
            bytes_per_day=bytes_per_day,
            disk_free=free,
            days_left=round(free / bytes_per_day, 1) if free is not None and bytes_per_day else None,
        )


class Machine(NamedTuple):
    """A machine's name, and the bytes that are free on a disk of it; None: not known."""

    host: str | None
    disk_free: int | None


def machine_of(directory: str) -> Machine:
    """The machine that has a directory; nothing is known of one elsewhere."""
    if isinstance(directory, Place):
        return Machine(None, None)
    try:
        free = disk.free_bytes(directory)
    except OSError:  # its volume is not mounted: the findings say so
        free = None
    return Machine(platform.node() or None, free)


def plain(section: Any) -> Any:
    """`section`, a dataclass or None, and all in it as dicts, lists, strings and numbers, for JSON.

    >>> plain(TimeSeries(0, 1000, (1, 2), (10, 20)))
    {'start': 0, 'width': 1000, 'counts': [1, 2], 'bytes': [10, 20]}
    """
    return None if section is None else _lists(asdict(section))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lists(one) for name, one in value.items()}
    return [_lists(one) for one in value] if isinstance(value, (list, tuple)) else value
