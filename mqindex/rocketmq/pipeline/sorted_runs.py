"""Index files from entries of any source, in any order: sorted runs, exact cuts, a merge.

```
SortedRunWriter   entries as they come    ->  runs, each sorted by (phy_offset, seq)
build_sorted      entries [start, stop) of all runs together, in that order  ->  one index file
```

A commit log needs none of this, it is sorted. The order of entries with equal keys is that of the runs, and within a
run that of arrival.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.files import disk
from mqindex.files.few_threads import of_each
from mqindex.files.places.paged_file import PagedFile
from mqindex.files.places.place import Place
from mqindex.files.places.remote_file import AT_ONCE
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.results.delivery import deliver, workshop
from mqindex.rocketmq.log.log_entries import RUN_ENTRY
from mqindex.rocketmq.pipeline import stages
from mqindex.rocketmq.pipeline.stages import Built, Part, Slice

CHUNK = 1 << 21  # entries in memory at a time: some 100 MB while they are sorted

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SortedRun:
    """A file of run entries; `seq_path`: beside it, the second sort key of each as int64; None: there is none."""

    path: str
    seq_path: str | None
    entries: int

    def delivered(self, directory: str) -> SortedRun:
        """The same in `directory`, brought there from a workshop."""
        seqs = None if self.seq_path is None else deliver(self.seq_path, directory)
        return SortedRun(deliver(self.path, directory), seqs, self.entries)


@dataclass(frozen=True, slots=True)
class SortedPart:
    """Entries [start, stop) of the merged runs, to be one index file in the directory `out`."""

    out: str
    hash_slot_num: int
    index_num: int
    runs: tuple[SortedRun, ...]
    start: int
    stop: int


class SortedRunWriter:
    """Sorts what it is given chunk by chunk; a chunk that continues the run before it joins that run.

    Parameters
    ----------
    directory : where the run files go, under names of their own
    with_seq : whether a second sort key is given
    """

    def __init__(self, directory: str, *, with_seq: bool, chunk: int = CHUNK) -> None:
        self._directory, self._with_seq, self._chunk = directory, with_seq, chunk
        self._entries: list[npt.NDArray[Any]] = []
        self._seqs: list[Int64] = []
        self._held = 0
        self._last: tuple[int, ...] | None = None
        self.runs: list[SortedRun] = []

    def add(self, hashes: npt.NDArray[np.int32], phys: Int64, times: Int64, seqs: Int64 | None = None) -> None:
        """Entries, in their order of arrival."""
        entries = np.empty(len(hashes), RUN_ENTRY)
        entries["key_hash"], entries["phy_offset"], entries["store_timestamp"] = hashes, phys, times
        self._entries.append(entries)
        if seqs is not None:
            self._seqs.append(seqs)
        self._held += len(entries)
        if self._held >= self._chunk:
            self._write()

    def finish(self) -> list[SortedRun]:
        """Write what is held; the runs in their order."""
        self._write()
        return self.runs

    def _write(self) -> None:
        if not self._held:
            return
        entries = np.concatenate(self._entries)
        seqs = np.concatenate(self._seqs) if self._with_seq else None
        self._entries, self._seqs, self._held = [], [], 0
        entries, seqs = _sorted(entries, seqs)
        first, last = _key(entries, seqs, 0), _key(entries, seqs, -1)
        if self._last is None or first < self._last:
            path = disk.temporary(self._directory, "run")
            self.runs.append(SortedRun(path, f"{path}.seq" if self._with_seq else None, 0))
        run = self.runs[-1]
        _append(run.path, entries)
        if run.seq_path is not None and seqs is not None:
            _append(run.seq_path, seqs)
        self.runs[-1] = SortedRun(run.path, run.seq_path, run.entries + len(entries))
        self._last = last


def assign_sorted(runs: Sequence[SortedRun], *, out: str, hash_slot_num: int, index_num: int) -> list[SortedPart]:
    """Cut the merged sequence as the broker would: index_num - 1 entries a file; one file if there are no entries."""
    total, capacity = sum(run.entries for run in runs), index_num - 1
    starts = range(0, total, capacity) if total else [0]
    return [
        SortedPart(out, hash_slot_num, index_num, tuple(runs), start, min(start + capacity, total)) for start in starts
    ]


def build_sorted(part: SortedPart) -> tuple[Built, int]:
    """Merge a part's entries and build its index file; also returns how many phy_offsets begin in it."""
    seed, before, offsets = None, None, 0
    with workshop(part.out) as home:
        path = disk.temporary(home, "merged")
        try:
            with _Runs(part.runs) as runs, disk.new_file(path) as fd:
                if part.start:
                    ((*_, phy, time),) = runs.merged(part.start - 1, part.start).tolist()
                    seed, before = (phy, time), phy
                for start in range(part.start, part.stop, CHUNK):
                    entries = runs.merged(start, min(start + CHUNK, part.stop))
                    disk.write_all(fd, stages.as_bytes(entries))
                    phys = entries["phy_offset"]
                    offsets += int(np.count_nonzero(np.diff(phys))) + (before is None or before != int(phys[0]))
                    before = int(phys[-1])
            slices = (Slice(path, 0, part.stop - part.start),) if part.stop > part.start else ()
            return stages.build(Part(part.out, part.hash_slot_num, part.index_num, slices, seed)), offsets
        finally:
            with contextlib.suppress(FileNotFoundError):
                disk.remove(path)


class _Table:
    """The records of a file of a run: `keys(field)` for a bisection, and stretches of them."""

    def __init__(self, path: str, of: npt.DTypeLike) -> None:
        self._file, self._of = MappedFile.open(path), np.dtype(of)
        self._records = np.frombuffer(memoryview(self._file.map), self._of)

    def __len__(self) -> int:
        return len(self._records)

    def keys(self, name: str | None) -> Any:
        """One field of all records; None: the records themselves."""
        return self._records if name is None else self._records[name]

    def stretch(self, start: int, stop: int) -> npt.NDArray[Any]:
        """The records [start, stop)."""
        return self._records[start:stop]

    def close(self, *, check: bool) -> None:
        """Close the file; `check`: it must have been whole until now."""
        del self._records  # the map closes when nothing refers to it
        try:
            if check:
                self._file.check()
        finally:
            self._file.close()


class _TableElsewhere:
    """The same of a file elsewhere: a bisection reads pages, a stretch is read by itself and not kept."""

    def __init__(self, place: Place, of: npt.DTypeLike) -> None:
        self._place, self._of, self._file = place, np.dtype(of), PagedFile(place)

    def __len__(self) -> int:
        return self._file.size // self._of.itemsize

    def __getitem__(self, i: int) -> Any:
        at = i * self._of.itemsize
        return np.frombuffer(self._file.read(at, at + self._of.itemsize), self._of)[0]

    def keys(self, name: str | None) -> Any:
        return self if name is None else _Field(self, name)

    def stretch(self, start: int, stop: int) -> npt.NDArray[Any]:
        size = self._of.itemsize
        return np.frombuffer(self._place.read(start * size, stop * size) if stop > start else b"", self._of)

    def close(self, *, check: bool) -> None:
        self._file.close()


class _Field:
    """One field of records elsewhere."""

    def __init__(self, records: _TableElsewhere, name: str) -> None:
        self._records, self._name = records, name

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, i: int) -> Any:
        return self._records[i][self._name]


def _table(path: str, of: npt.DTypeLike) -> _Table | _TableElsewhere:
    return _TableElsewhere(path, of) if isinstance(path, Place) else _Table(path, of)


class _Runs:
    """The sort keys and entries of open runs, and where the merged sequence cuts them."""

    def __init__(self, runs: Sequence[SortedRun]) -> None:
        self._entries = of_each(lambda run: _table(run.path, RUN_ENTRY), runs, AT_ONCE)
        paths = [run.seq_path for run in runs if run.seq_path is not None]
        self._seqs = of_each(lambda path: _table(path, np.int64), paths, AT_ONCE)
        self._keys = [[table.keys("phy_offset") for table in self._entries]]
        if self._seqs:
            self._keys.append([table.keys(None) for table in self._seqs])
        self._cut = (0, [0] * len(runs))

    def merged(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Entries [start, stop) of the merged sequence; `start` must not go back."""
        begins, ends = self._cut_at(start), self._cut_at(stop)
        seqs = _joined(self._seqs, begins, ends) if self._seqs else None
        return _sorted(_joined(self._entries, begins, ends), seqs)[0]

    def _cut_at(self, position: int) -> list[int]:
        """How many entries of each run are among the first `position` of all."""
        done, lows = self._cut
        cut = _cut(self._keys, lows, list(map(len, self._entries)), position - done)
        self._cut = position, cut
        return cut

    def __enter__(self) -> _Runs:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._keys = []
        with ExitStack() as stack:
            for table in (*self._entries, *self._seqs):
                stack.callback(table.close, check=kind is None)


def _joined(tables: Sequence[_Table | _TableElsewhere], begins: list[int], ends: list[int]) -> npt.NDArray[Any]:
    pieces = list(zip(tables, begins, ends, strict=True))
    return np.concatenate(of_each(lambda one: one[0].stretch(one[1], one[2]), pieces, AT_ONCE))


def _cut(keys: Sequence[Sequence[Any]], lows: list[int], highs: list[int], count: int) -> list[int]:
    """The first `count` entries of the windows [low, high) of all runs, by each of `keys` in turn, then by run."""
    if not keys:  # equal keys: the runs' order
        cut = []
        for low, high in zip(lows, highs, strict=True):
            taken = min(count, high - low)
            count -= taken
            cut.append(low + taken)
        return cut
    columns, *others = keys
    lows, highs = list(lows), list(highs)
    if count >= sum(highs) - sum(lows):
        return highs
    smallest, largest = _bounds(columns, lows, highs)
    # Bisect for the key of the last entry taken: fewer than `count` entries are below it, `count` or more up to it.
    while smallest < largest:
        middle = (smallest + largest) // 2
        ends = [bisect_right(c, middle, low, high) for c, low, high in zip(columns, lows, highs, strict=True)]
        inside = sum(ends) - sum(lows)
        if inside >= count:
            largest, highs = middle, ends
        else:
            smallest, lows, count = middle + 1, ends, count - inside
    return _cut(others, lows, highs, count)  # the windows hold this one key


def _bounds(columns: Sequence[Any], lows: list[int], highs: list[int]) -> tuple[int, int]:
    windows = [(c, low, high) for c, low, high in zip(columns, lows, highs, strict=True) if low < high]
    return min(int(c[low]) for c, low, _ in windows), max(int(c[high - 1]) for c, _, high in windows)


def _sorted(entries: npt.NDArray[Any], seqs: Int64 | None) -> tuple[npt.NDArray[Any], Int64 | None]:
    phys = np.ascontiguousarray(entries["phy_offset"])
    if seqs is None:
        if (phys[1:] >= phys[:-1]).all():
            return entries, None
        return entries[np.argsort(phys, kind="stable")], None
    order = np.lexsort((seqs, phys))
    return entries[order], seqs[order]


def _key(entries: npt.NDArray[Any], seqs: Int64 | None, i: int) -> tuple[int, ...]:
    phy = int(entries["phy_offset"][i])
    return (phy,) if seqs is None else (phy, int(seqs[i]))


def _append(path: str, values: npt.NDArray[Any]) -> None:
    disk.append(path, stages.as_bytes(values))
