"""The stages of the pipeline: plain functions of one picklable value, which an engine maps over a list.

```
extract   a byte range of one log file          ->  a run: its entries, 20 bytes each, in a scratch file
build     slices of runs, and the seed          ->  an index file under a temporary name
```

What there is more for consume queues is in `unit_runs` and `queue_stages`;
`mqindex.files.results.publication` publishes the result.

Every task writes under a name of its own, so that a retried or duplicated task harms nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.index_file import IndexCore
from mqindex.errors import RebuildError
from mqindex.files import disk
from mqindex.files.copying import copy
from mqindex.files.places.place import Place
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.reading.opening import bytes_of
from mqindex.files.results import staging
from mqindex.files.results.delivery import deliver, workshop
from mqindex.rocketmq import layout
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, FileWalk
from mqindex.rocketmq.pipeline.split_walk import SplitRange, SplitWalk, counts, walk_split
from mqindex.rocketmq.pipeline.unit_runs import UnitCollector, UnitRun
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.rocketmq.tally.split_zones import SplitZones, UnitZones


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(SplitRange):
    """`out`: the directory of the run; None: count only. `index`: write its entries. `rules`: write the units too;
    `only`: those of these queues. `zones`: gather its zone map from them.
    """

    out: str | None
    index: bool = True
    rules: QueueRules | None = None
    only: frozenset[QueueName] | None = None
    zones: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(SplitWalk):
    """The files that hold the split's entries and units. `last_message`, `last_entry`: as in `FileWalk`."""

    path: str | None = None
    last_message: int = -1
    last_entry: int = -1
    units: UnitRun | None = None
    zones: SplitZones | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries [first, first + count) of a run."""

    path: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Part:
    """One index file to build.

    `seed`: the entry before its first, as a slice of one entry or as (phy_offset, timestamp); None: the first file.
    `base`: an index file to copy and continue instead.
    """

    out: str
    hash_slot_num: int
    index_num: int
    slices: tuple[Slice, ...]
    seed: Slice | tuple[int, int] | None = None
    base: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """A built index file: its temporary path, entries, first and last time, and how long its syncs took."""

    path: str
    entries: int
    begin_timestamp: int
    end_timestamp: int
    end_phy_offset: int
    fsync_seconds: float


def extract(split: Split) -> Run:
    """Walk a split and write its run."""
    return walk_split(split, partial(_extract, split), Run())


def _extract(split: Split, log: MappedFile, first: int) -> Run:
    if split.out is None or not split.index:
        return read_entries(split, log, first, None)
    with workshop(split.out) as home:
        path = disk.temporary(home, "run")
        with disk.new_file(path) as fd:
            run = BlockWriter(fd)
            found = read_entries(split, log, first, lambda entries: run.write(as_bytes(entries)))
            run.flush()
        return replace(found, path=deliver(path, split.out))


def read_entries(split: Split, log: MappedFile, first: int, take: Callable[[npt.NDArray[Any]], None] | None) -> Run:
    """Walk a split from its first frame: `take` gets its entries, valid until it returns; its units are written."""
    table = split.rules.table() if split.rules is not None else None
    walk = FileWalk(log, split.span, first, split.stop, tags=split.tags, queues=table)
    units = zones = None
    if split.rules is not None and table is not None:
        units = UnitCollector(table, split.rules, split.only)
        zones = UnitZones(split.span, first, table) if split.zones else None
    for chunk in walk:
        if take is not None:
            take(chunk)
        if units is not None:
            units.add(walk.units)
        if zones is not None:
            zones.add(walk.units)
    return Run(
        last_message=walk.last_message,
        last_entry=walk.last_entry,
        units=units.write(split.out) if units is not None and split.out is not None else None,
        zones=zones.finish(log, walk, split.stop) if zones is not None else None,
        **counts(walk, first),
    )


def as_bytes(values: npt.NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array."""
    return memoryview(values.view(np.uint8).data)


def build(part: Part) -> Built:
    """Build one index file from its slices, put after put as the broker would."""
    with PartFile(part) as file:
        for piece in part.slices:
            _put_slice(file, piece)
        return file.finish()


class PartFile:
    """One index file while it is built. For one thread at a time."""

    def __init__(self, part: Part) -> None:
        self._out, self._stack = part.out, ExitStack()
        home = self._stack.enter_context(workshop(part.out))
        self.path = disk.temporary(home, "part")
        if part.base is not None:
            copy(part.base, self.path)
            self._file = MappedFile.open(self.path, writable=True)
        else:
            size = layout.index_file_size(part.hash_slot_num, part.index_num)
            self._file = MappedFile.create(self.path, size, like=staging.rights_in(home))
            self._file.advise_huge()
        self._core = IndexCore(self._file.map, part.hash_slot_num, part.index_num, True)
        if part.base is None:
            self._core.seed(*_seed(part.seed))

    def put(self, entries: memoryview) -> int:
        """Put packed records of a run; returns for how many there was room."""
        return self._core.put_run(entries)

    def finish(self, bring: Callable[[str, int], str] | None = None) -> Built:
        """Bring the file to where it is to be, and close it. `bring`: is told its path and first time, and does so."""
        begin_timestamp, end_timestamp, _, end_phy_offset, _, count = self._core.header()
        started = time.perf_counter()
        if not isinstance(self._out, Place):
            self._file.flush()
        elapsed = time.perf_counter() - started
        self._file.check()
        self._core.close()
        self._file.close()
        path = deliver(self.path, self._out) if bring is None else bring(self.path, begin_timestamp)
        self.close()
        return Built(path, max(count, 1) - 1, begin_timestamp, end_timestamp, end_phy_offset, elapsed)

    def close(self) -> None:
        """Close the file, finished or not."""
        self._core.close()
        self._file.close()
        self._stack.close()

    def __enter__(self) -> PartFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _seed(seed: Slice | tuple[int, int] | None) -> tuple[int, int]:
    if seed is None:
        return 0, 0
    if isinstance(seed, tuple):
        return seed
    with _entries(seed) as entries:
        entry = np.frombuffer(entries, RUN_ENTRY)[0]
        return int(entry["phy_offset"]), int(entry["store_timestamp"])


def _entries(piece: Slice) -> AbstractContextManager[memoryview]:
    at = piece.first * layout.RUN_ENTRY_SIZE
    return bytes_of(piece.path, at, at + piece.count * layout.RUN_ENTRY_SIZE)


def _put_slice(file: PartFile, piece: Slice) -> None:
    if piece.count == 0:
        return
    with _entries(piece) as entries:
        stored = file.put(entries)
    if stored != piece.count:
        raise RebuildError(
            "an index file took fewer entries than planned", path=file.path, expected=piece.count, got=stored
        )


_SIZE = 1 << 18  # bytes; the first use of 1 MiB of memory costs more than it saves


class BlockWriter:
    """Gathers bytes for the descriptor `fd`; what was written is in the file after `flush`. For one thread."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._block = memoryview(bytearray(_SIZE))
        self._used = 0

    def write(self, data: memoryview) -> None:
        """Write all of `data`, a contiguous view of bytes, which the caller may change afterwards."""
        if self._used + len(data) > _SIZE:
            self.flush()
        if len(data) > _SIZE:
            disk.write_all(self._fd, data)
            return
        self._block[self._used : self._used + len(data)] = data
        self._used += len(data)

    def flush(self) -> None:
        """Write what was gathered to the file."""
        disk.write_all(self._fd, self._block[: self._used])
        self._used = 0
