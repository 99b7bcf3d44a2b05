"""Topics, queues and keys of one split of the log, counted from the units and entries of its walk.

Messages and bytes of a queue are exact. Times, sizes and tags are those of one message in `every`, keys those of one
stretch of the log in `every`. A task's result is small for every log: the topics of most bytes have their own counts,
the others are summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import UnitTally
from mqindex.health import EARLIEST, LATEST, MAX_BINS, TimeBins, width_for
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC

Array = npt.NDArray[Any]
Frequent = tuple[int, int, int]
"""(value, how often, phy offset of a message that has it)."""

_WHOLE = 64 << 20  # bytes of a log of which every message is counted; of a longer one about as many are
_MOST = 64  # at least one message in so many is counted
_STRETCH = 8 << 20  # about as much log gives one array of entries
_BINS = 16  # times of one split among many
_TOPICS = 64  # of one split that have counts of their own
_TAGS = 16  # of one topic in one split
_KEYS = 64  # of one split
_KEYS_HELD = 1 << 20  # entries of one split that are counted
_MOST_KEYS = 16  # of a message: so many, or more


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Messages and bytes that a split of the log gives one queue."""

    topic: str
    queue_id: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """The counts of one topic, from `seen` messages. `topic` None: all topics that have no counts of their own.

    `sizes`: messages by the power of two that their size reaches. `tags`: (hash, messages, phy offset of one).
    """

    topic: str | None
    seen: int
    times: TimeBins
    sizes: dict[int, int]
    tags: tuple[Frequent, ...]
    untagged: int


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """The counts of index entries, from `seen` entries. `messages`: those that have 1, 2, 3 and so on of them.

    `frequent`: (key_hash, entries, phy offset of one message), those that occur twice or more.
    """

    seen: int = 0
    messages: dict[int, int] = field(default_factory=dict)
    frequent: tuple[Frequent, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """Everything that was counted in one split of a file of `file_size` bytes.

    `times`: store timestamps of its first and last message.
    """

    queues: tuple[QueueCounts, ...] = ()
    topics: tuple[TopicCounts, ...] = ()
    keys: KeyCounts = field(default_factory=KeyCounts)
    times: tuple[int, int] | None = None
    file_size: int = 0


def sampling(log_bytes: int) -> int:
    """One message in how many is counted, in a log of that length."""
    return min(max(-(-log_bytes // _WHOLE), 1), _MOST)


class SplitTally:
    """Counts one split, which begins at the phy offset `start`; for one thread."""

    def __init__(self, every: int, start: int) -> None:
        self._every = every
        self._stretch = start // _STRETCH
        self._units = UnitTally(every, start)
        self._hashes: list[Array] = []
        self._places: list[Array] = []
        self._keys = 0

    def add_units(self, units: Array) -> None:
        """The next units; those that are counted are copied."""
        self._units.add(units)

    def add_entries(self, entries: Array) -> None:
        """Index entries in the log's order, all of a message's in one array."""
        self._stretch += 1
        if (self._stretch - 1) % self._every or self._keys + len(entries) > _KEYS_HELD:
            return
        self._hashes.append(entries["key_hash"].copy())
        self._places.append(entries["phy_offset"].copy())
        self._keys += len(entries)

    def finish(self, names: list[QueueName], times: tuple[int, int] | None, file_size: int) -> SplitCounts:
        """The counts. `names`: what the queues' numbers mean."""
        queues = [
            QueueCounts(*name, messages, size)
            for name, (messages, size) in zip(names, self._units.sums().tolist(), strict=False)
            if messages
        ]
        topics = tuple(self._topics(names, queues))
        return SplitCounts(tuple(queues), topics, self._key_counts(), times, file_size)

    def _topics(self, names: list[QueueName], queues: list[QueueCounts]) -> list[TopicCounts]:
        units = self._units.kept().view(UNIT)
        if not len(units):
            return []
        sizes: dict[str, int] = {}
        for queue in queues:
            sizes[queue.topic] = sizes.get(queue.topic, 0) + queue.bytes
        topics: list[str | None] = [*sorted(sizes, key=lambda topic: -sizes[topic])[:_TOPICS], None]
        numbers = {topic: number for number, topic in enumerate(topics)}
        others = len(topics) - 1
        number_of = np.array([numbers.get(topic, others) for topic, _ in names] or [others], np.int64)
        bins = MAX_BINS if self._every == 1 else _BINS
        return _counted(topics, number_of, units, bins)

    def _key_counts(self) -> KeyCounts:
        if not self._keys:
            return KeyCounts()
        hashes, places = np.concatenate(self._hashes), np.concatenate(self._places)
        last = np.flatnonzero(places[1:] != places[:-1])
        keys = np.bincount(np.diff(last, prepend=-1, append=len(places) - 1).clip(max=_MOST_KEYS))
        messages = {number: int(count) for number, count in enumerate(keys) if count}
        return KeyCounts(len(hashes), messages, most_frequent(hashes, places, _KEYS))


def _counted(topics: list[str | None], number_of: Array, units: Array, bins: int) -> list[TopicCounts]:
    topic, n = number_of[units["queue"]], len(topics)
    seen = np.bincount(topic, minlength=n).tolist()
    sizes = _table(topic, np.frexp(units["size"].astype(np.float64))[1].clip(1, 31) - 1, n, 31)
    times = _times(topic, units, n, bins)
    untimed = topics.index(SCHEDULE_TOPIC) if SCHEDULE_TOPIC in topics else -1  # its codes are times of delivery
    codes = units["tags_code"]
    tagged = (topic != untimed) & (codes != 0) & (codes >= -(2**31)) & (codes < 2**31)
    tags = _tags(topic[tagged], codes[tagged], units["phy_offset"][tagged], n)
    untagged = np.bincount(topic[codes == 0], minlength=n)
    return [
        TopicCounts(
            name,
            seen[number],
            times[number],
            {power: int(sizes[number, power]) for power in np.flatnonzero(sizes[number]).tolist()},
            tuple(tags[number]),
            int(untagged[number]),
        )
        for number, name in enumerate(topics)
        if seen[number]
    ]


def _table(topic: Array, bins: Array, topics: int, width: int, weights: Array | None = None) -> Array:
    """How many, or how much by weight, of each topic and bin."""
    return np.bincount(topic * width + bins, weights, topics * width).reshape(topics, width)


def _times(topic: Array, units: Array, n: int, most: int) -> list[TimeBins]:
    stored = units["store_timestamp"]
    timely = (stored >= EARLIEST) & (stored < LATEST)
    if not timely.all():
        topic, units, stored = topic[timely], units[timely], stored[timely]
    if not len(stored):
        return [TimeBins() for _ in range(n)]
    low, high = int(stored.min()), int(stored.max())
    width = width_for(low, high, most)
    base, count = low // width, high // width - low // width + 1
    bins = stored // width - base
    counts = _table(topic, bins, n, count)
    sizes = _table(topic, bins, n, count, units["size"].astype(np.float64))
    return [
        TimeBins(width, {base + one: (int(row[one]), int(size[one])) for one in np.flatnonzero(row).tolist()})
        for row, size in zip(counts, sizes, strict=True)
    ]


def _tags(topic: Array, codes: Array, phy_offsets: Array, n: int) -> list[list[Frequent]]:
    """The most frequent tags of each topic."""
    values = topic << 32 | codes & 0xFFFFFFFF
    kinds, counts = np.unique(values, return_counts=True)
    if len(kinds) > _TAGS:
        order = np.lexsort((-counts, kinds >> 32))
        ordered = kinds[order] >> 32
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        chosen = np.sort(order[rank < _TAGS])
        kinds, counts = kinds[chosen], counts[chosen]
    found: list[list[Frequent]] = [[] for _ in range(n)]
    rows = zip(kinds.tolist(), counts.tolist(), first_places(kinds, values, phy_offsets).tolist(), strict=True)
    for kind, count, place in rows:
        code = kind & 0xFFFFFFFF
        found[kind >> 32].append((code - (1 << 32) if code >> 31 else code, count, place))
    return found


def most_frequent(values: Array, phy_offsets: Array, most: int) -> tuple[Frequent, ...]:
    """The `most` most frequent of the values that occur twice or more, the most frequent first.

    >>> most_frequent(np.array([7, 5, 7, 9]), np.array([0, 100, 200, 300]), 4)
    ((7, 2, 0),)
    """
    ordered = np.sort(values)
    kinds = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(kinds):
        return ()
    counts = np.searchsorted(ordered, kinds, "right") - np.searchsorted(ordered, kinds)
    if len(kinds) > most:
        chosen = np.sort(np.argpartition(counts, -most)[-most:])
        kinds, counts = kinds[chosen], counts[chosen]
    found = zip(kinds.tolist(), counts.tolist(), first_places(kinds, values, phy_offsets).tolist(), strict=True)
    return tuple(sorted(found, key=lambda one: (-one[1], one[0])))


def together(parts: Iterable[Iterable[Frequent]], most: int) -> list[Frequent]:
    """The most frequent of several splits.

    >>> together([[(7, 2, 0)], [(5, 3, 100), (7, 2, 200)]], 1)
    [(7, 4, 0)]
    """
    seen: Counter[int] = Counter()
    places: dict[int, int] = {}
    for value, count, place in chain.from_iterable(parts):
        seen[value] += count
        places.setdefault(value, place)
    ranked = sorted(seen.items(), key=lambda one: (-one[1], one[0]))[:most]
    return [(value, count, places[value]) for value, count in ranked]


def first_places(kinds: Array, values: Array, phy_offsets: Array) -> Array:
    """For each of the `kinds`, which are sorted, the phy offset of the first such value."""
    places = np.full(len(kinds), -1, np.int64)
    if not len(kinds):
        return places
    which = np.searchsorted(kinds, values).clip(max=len(kinds) - 1)
    hit = np.flatnonzero(kinds[which] == values)[::-1]  # the first is written last
    places[which[hit]] = phy_offsets[hit]
    return places
