"""Runs of units: those of one split, in the order of a fixed number of ranges of queues.

```
places       16 bytes for each range, and one more: at which byte it begins, how long the names there are
each range   the names of its queues and how many units each has, as JSON; then the units, 40 bytes each
```

So two reads of known places give a task the queues of its ranges, and nobody holds a row for each queue of each split.
A queue's range comes from a hash of its name: tasks that know no names but their own agree on it, and it spreads
queues evenly. An order by names would need the names of the whole log before its first split is read.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import group_units
from mqindex._native.log_extract import QueueTable
from mqindex.files import disk
from mqindex.files.paths import base_name
from mqindex.files.reading.sparse import SparseFile
from mqindex.files.results.delivery import deliver, workshop
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.pipeline.queue_build import NO_EXT
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules

RANGES: Final = 64
"""Into how many ranges all queues are divided. More would let more tasks build queues, with more reads for each run."""

_PLACE = np.dtype([("at", "=i8"), ("names", "=i8")])

Units = npt.NDArray[Any]


class UnitRun(NamedTuple):
    """The name of a split's run in the scratch directory, and how many units each range has in it, as uint32."""

    name: str
    counts: bytes


def range_of(name: QueueName) -> int:
    """The range of a queue; the queues of a topic are in ranges that follow each other.

    >>> range_of(("TopicTest", 0)), range_of(("TopicTest", 1))
    (9, 10)
    """
    topic, queue_id = name
    return (zlib.crc32(topic.encode(errors="surrogatepass")) + queue_id) % RANGES


def names_of(runs: Sequence[UnitRun]) -> npt.NDArray[np.bytes_]:
    """The names of runs, in as little memory as they can be."""
    return np.array([run.name for run in runs], "S")


def units_by_range(runs: Sequence[UnitRun]) -> list[int]:
    """How many units each range has in all runs."""
    total = np.zeros(RANGES, np.int64)
    for run in runs:
        total += np.frombuffer(run.counts, np.uint32)
    return list(map(int, total))


class UnitCollector:
    """Gathers the units of one walk in memory and writes them, grouped by queue. `only`: no other queues."""

    def __init__(self, table: QueueTable, rules: QueueRules, only: frozenset[QueueName] | None) -> None:
        self._table, self._rules, self._only = table, rules, only
        self._chunks: list[Units] = []

    def add(self, units: Units) -> None:
        """The units of the next chunk of frames; they are copied."""
        if len(units):
            self._chunks.append(units.copy())

    def write(self, out: str) -> UnitRun | None:
        """The run of everything that was added, in the directory `out`; None: there are no units."""
        units = np.concatenate(self._chunks) if self._chunks else np.empty(0, UNIT)
        self._chunks.clear()
        if self._rules.ext_file_size is not None and len(units):
            more = np.diff(units["phy_offset"], prepend=-1) == 0  # after the message's own unit: multi-dispatch
            units["store_timestamp"][more] = NO_EXT
        names, units = self._renumber(units)
        if not len(units):
            return None
        units, borders = group_units(units, len(names))
        with workshop(out) as home:
            path = disk.temporary(home, "units")
            counts = _write(path, names, units, borders)
            return UnitRun(base_name(deliver(path, out)), counts)

    def _renumber(self, units: Units) -> tuple[list[QueueName], Units]:
        """Number the queues by their order in a run; two that differ by bytes in the table may have one name."""
        met = self._table.names()
        names = sorted((one for one in dict.fromkeys(met) if self._only is None or one in self._only), key=range_of)
        numbers = {name: number for number, name in enumerate(names)}
        of = np.array([numbers.get(name, -1) for name in met], np.int32)
        if len(units):
            units["queue"] = of[units["queue"]]
            if len(names) < len(met):
                units = units[units["queue"] >= 0]
        return names, units


def _write(path: str, names: Sequence[QueueName], units: Units, borders: npt.NDArray[np.int64]) -> bytes:
    """Write a run of units that are grouped by queue; returns the counts of its ranges."""
    edges = np.searchsorted(list(map(range_of, names)), np.arange(RANGES + 1))  # the first queue of each range
    counts = np.diff(borders).tolist()
    texts = [_text(names[first:stop], counts[first:stop]) for first, stop in itertools.pairwise(edges.tolist())]
    places = np.zeros(RANGES + 1, _PLACE)
    places["names"][:-1] = list(map(len, texts))
    ends = np.cumsum(places["names"][:-1]) + borders[edges[1:]] * UNIT.itemsize
    places["at"] = places.nbytes + np.concatenate([[0], ends])
    with disk.new_file(path) as fd:
        disk.write_all(fd, places.tobytes())
        for text, (first, stop) in zip(texts, itertools.pairwise(borders[edges].tolist()), strict=True):
            if text:
                disk.write_all(fd, text)
                disk.write_all(fd, units[first:stop].view(np.uint8).data)
    return np.diff(borders[edges]).astype(np.uint32).tobytes()


def _text(names: Sequence[QueueName], counts: Sequence[int]) -> bytes:
    """Names and counts of a range; its length keeps the units behind it aligned."""
    rows = [(*name, count) for name, count in zip(names, counts, strict=True) if count]
    text = json.dumps(rows).encode() if rows else b""
    return text.ljust(-(-len(text) // 8) * 8)


def read_ranges(path: str, first: int, stop: int) -> Iterator[tuple[QueueName, memoryview]]:
    """The queues of the ranges [first, stop) in a run, and the bytes of their units in the log's order."""
    with SparseFile(path) as run:
        places = np.frombuffer(run.read(first * _PLACE.itemsize, (stop + 1) * _PLACE.itemsize), _PLACE).tolist()
        begin = places[0][0]
        data = memoryview(run.read(begin, places[-1][0]))
    for at, names in places[:-1]:
        begun = at - begin + names
        for topic, queue_id, count in json.loads(bytes(data[at - begin : begun]) or b"[]"):
            ended = begun + count * UNIT.itemsize
            yield (topic, queue_id), data[begun:ended]
            begun = ended
