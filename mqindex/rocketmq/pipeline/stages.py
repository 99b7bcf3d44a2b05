"""The stages of the pipeline: plain functions of one picklable value, which an engine maps over a list.

```
extract   a byte range of one log file          ->  a run: its entries, 20 bytes each, in a scratch file
build     slices of runs, and the seed          ->  an index file under a temporary name
```

What consume queues need of them besides is in `queue_stages`; `mqindex.files.publication` lets the result appear.

Every task writes under a name of its own, so that a retried or duplicated task harms nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.index_file import IndexCore
from mqindex.errors import RebuildError
from mqindex.files import disk
from mqindex.files.block_writer import BlockWriter
from mqindex.files.copying import copy
from mqindex.files.mapped_file import MappedFile
from mqindex.rocketmq import layout
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, FileWalk
from mqindex.rocketmq.pipeline.queue_stages import UnitCollector, UnitRun
from mqindex.rocketmq.pipeline.split_walk import SplitRange, SplitWalk, counts, walk_split
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules

__all__ = ["Built", "Part", "Run", "Slice", "Split", "as_bytes", "build", "extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(SplitRange):
    """`out`: the directory of the run; None: count only. `index`: write its entries. `rules`: write the units too,
    `only` those of these queues.
    """

    out: str | None
    index: bool = True
    rules: QueueRules | None = None
    only: frozenset[QueueName] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(SplitWalk):
    """The files that hold the split's entries and units. `last_message`, `last_entry`: as in `FileWalk`."""

    path: str | None = None
    last_message: int = -1
    last_entry: int = -1
    units: UnitRun | None = None


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
    """A built index file: its temporary path, entries, first and last time, and what its way to the disk took."""

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
    table = split.rules.table() if split.rules is not None else None
    walk = FileWalk(log, split.span, first, split.stop, tags=split.tags, queues=table)
    units = None
    if split.rules is not None and table is not None:
        units = UnitCollector(table, split.rules, split.only)
    return Run(
        path=_write_run(walk, split.out if split.index else None, units),
        last_message=walk.last_message,
        last_entry=walk.last_entry,
        units=units.write(split.out) if units is not None and split.out is not None else None,
        **counts(walk, first),
    )


def _write_run(walk: FileWalk, out: str | None, units: UnitCollector | None) -> str | None:
    if out is None:
        for _ in walk:
            if units is not None:
                units.add(walk.units)
        return None
    path = disk.temporary(out, "run")
    with disk.new_file(path) as fd:
        run = BlockWriter(fd)
        for chunk in walk:
            run.write(as_bytes(chunk))
            if units is not None:
                units.add(walk.units)
        run.flush()
    return path


def as_bytes(values: npt.NDArray[Any]) -> memoryview:
    """The bytes of an array that lies in one piece."""
    return memoryview(values.view(np.uint8).data)


def build(part: Part) -> Built:
    """Build one index file from its slices, put after put as the broker would."""
    path = disk.temporary(part.out, "part")
    with _begin(part, path) as file:
        core = IndexCore(file.map, part.hash_slot_num, part.index_num, True)
        try:
            for piece in part.slices:
                _put_slice(core, piece, path)
            begin_timestamp, end_timestamp, _, end_phy_offset, _, count = core.header()
        finally:
            core.close()
        started = time.perf_counter()
        file.flush()
        elapsed = time.perf_counter() - started
    return Built(path, max(count, 1) - 1, begin_timestamp, end_timestamp, end_phy_offset, elapsed)


def _begin(part: Part, path: str) -> MappedFile:
    if part.base is not None:
        copy(part.base, path)
        return MappedFile.open(path, writable=True)
    file = MappedFile.create(path, layout.index_file_size(part.hash_slot_num, part.index_num))
    if sum(piece.count for piece in part.slices) >= _HUGE_FROM:
        file.advise_huge()
    core = IndexCore(file.map, part.hash_slot_num, part.index_num, True)
    core.seed(*_seed(part.seed))
    core.close()
    return file


_HUGE_FROM = 100_000  # entries; below, huge pages cost more than they give


def _seed(seed: Slice | tuple[int, int] | None) -> tuple[int, int]:
    if seed is None:
        return 0, 0
    if isinstance(seed, tuple):
        return seed
    entry = np.fromfile(seed.path, RUN_ENTRY, 1, offset=seed.first * RUN_ENTRY.itemsize)[0]
    return int(entry["phy_offset"]), int(entry["store_timestamp"])


def _put_slice(core: IndexCore, piece: Slice, path: str) -> None:
    if piece.count == 0:
        return
    with MappedFile.open(piece.path) as run:
        at = piece.first * layout.RUN_ENTRY_SIZE
        with memoryview(run.map) as whole, whole[at : at + piece.count * layout.RUN_ENTRY_SIZE] as entries:
            stored = core.put_run(entries)
    if stored != piece.count:
        raise RebuildError("an index file took fewer entries than planned", path=path, expected=piece.count, got=stored)
