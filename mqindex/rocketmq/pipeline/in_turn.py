"""From a log to index files in one pass, where all tasks share one memory: no run is written.

Every task reads a split; its entries are put into the index files when the splits before it are done.

```
splits   0  1  2  3  …      read by any worker, in this order
turn        ^               its worker puts what it reads at once; workers of later splits keep theirs until then
```

So the files are filled one after the other while the log is read, and with several workers none waits for the disk: a
thread of its own writes full files. This works only for a log without faults: `splits.stitch` is for a damaged one, or
one whose files are deleted meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.engines import Engine, LocalEngine
from mqindex.engines.workers import Workers
from mqindex.files import disk
from mqindex.files.paths import join
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.files.results.delivery import remove
from mqindex.files.results.in_place import InPlace
from mqindex.rocketmq import layout
from mqindex.rocketmq.index.names import names_between
from mqindex.rocketmq.pipeline.split_walk import walk_split
from mqindex.rocketmq.pipeline.splits import Extracted, stitch
from mqindex.rocketmq.pipeline.stages import Built, Part, PartFile, Run, Split, as_bytes, extract, read_entries

_KEPT = 8 << 20  # bytes of entries that wait for their turn, about
_FULL = 4  # files that wait for the disk, at most

Entries = npt.NDArray[Any]


def build_in_turn(
    engine: Engine, splits: Sequence[Split], out: str, geometry: tuple[int, int], place: InPlace | None = None
) -> tuple[Extracted, list[Built]] | None:
    """Read the splits of a whole log and build its index files; None: it has faults, all is undone.

    place : what brings each file to its name; None: they are left in `out`, for later
    """
    if not isinstance(engine, LocalEngine):
        return None
    weights = [split.stop - split.start for split in splits]
    files = IndexFiles(out, geometry, beside=engine.workers > 1, place=place)
    ordered = _InLogOrder(files)
    try:
        runs = engine.map(ordered.read, list(enumerate(splits)), name="read the log", weights=weights, unit="byte")
        if ordered.odd:
            files.discard()
            return None
        extracted = stitch(engine, extract, list(zip(splits, runs, strict=True)), Extracted())
        more = extracted.last_message > extracted.last_entry
        return extracted, files.finish(more=more, empty=extracted.messages > 0)
    finally:
        files.close()


class IndexFiles:
    """Index files that are filled one after the other, as the broker rolls them.

    `beside`: full files are brought to the disk in a thread of their own. `place`: as in `build_in_turn`.
    """

    def __init__(self, out: str, geometry: tuple[int, int], *, beside: bool, place: InPlace | None = None) -> None:
        self._out, self._geometry, self._place = out, geometry, place
        self._name: str | None = None  # of the last file that has one
        self._file: PartFile | None = None
        self._room = 0
        self._seed: tuple[int, int] | None = None
        self._disk = Workers(1, "mqindex-disk") if beside else None
        self._built: list[Built] = []

    def put(self, entries: Entries) -> None:
        """The entries that follow."""
        while len(entries):
            if self._room == 0:
                self._begin()
            some = entries[: self._room]
            assert self._file is not None
            self._room -= self._file.put(as_bytes(some))
            self._seed = int(some["phy_offset"][-1]), int(some["store_timestamp"][-1])
            entries = entries[len(some) :]

    def finish(self, *, more: bool, empty: bool) -> list[Built]:
        """All files. `more`, `empty`: as in `splits.assign`."""
        if (more and self._room == 0 and self._file is not None) or (empty and self._file is None):
            self._begin()
        self._end()
        self._wait_for_disk(0)
        return self._built

    def _begin(self) -> None:
        self._end()
        disk.check_space(self._out, layout.index_file_size(*self._geometry))
        part = Part(self._out, *self._geometry, (), self._seed)
        self._file = PartFile(part)
        self._room = self._geometry[1] - 1

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        if self._disk is None:
            self._built.append(self._finish(file))
        else:
            self._disk.submit(self._finish, file)
            self._wait_for_disk(_FULL)

    def _wait_for_disk(self, most: int) -> None:
        """Wait until at most so many full files are not on the disk."""
        while self._disk is not None and self._disk.pending > most:
            self._built.append(self._disk.next())

    def _finish(self, file: PartFile) -> Built:
        with file:
            return file.finish(None if self._place is None else self._bring)

    def _bring(self, path: str, begin_timestamp: int) -> str:
        assert self._place is not None
        (self._name,) = names_between(self._name, None, [begin_timestamp])
        return self._place.bring(path, join("index", self._name))

    def discard(self) -> None:
        """Remove what was built."""
        self._wait_for_disk(0)
        if self._place is not None:
            self._place.take_back()
            self._built.clear()
        paths = [built.path for built in self._built]
        if self._file is not None:
            self._file.close()
            paths.append(self._file.path)
        for path in paths:
            remove(path)

    def close(self) -> None:
        """Close an unfinished file; full ones are on the disk afterwards."""
        if self._file is not None:
            self._file.close()
        if self._disk is not None:
            self._disk.close(cancel=False)


class _Share:
    """What a task has read of its split but not put yet. `first`: its first frame, -1: there is none."""

    def __init__(self, number: int, split: Split) -> None:
        self.number, self.split = number, split
        self.first = -1
        self.kept: deque[Entries] = deque()
        self.good: bool | None = None  # whether it follows what was put before; None: its turn has not come


class _InLogOrder:
    """Passes the entries of the splits on in the order of the log. `odd`: the log has a fault, stop."""

    def __init__(self, files: IndexFiles) -> None:
        self._files = files
        self._changed = threading.Condition()
        self._turn = 0
        self._done: dict[int, tuple[_Share, Run]] = {}  # splits that were read before their turn
        self._kept = 0  # bytes
        self._file, self._at = "", 0  # the log's file, and where its next frame begins
        self._ended = self._failed = self.odd = False

    def read(self, item: tuple[int, Split]) -> Run:
        """A task: read one split, and put its entries in turn."""
        share = _Share(*item)
        if self.odd or self._failed:
            return Run()
        try:
            run = walk_split(share.split, partial(self._walk, share), Run())
            self._hand_over(share, run)
        except BaseException:
            with self._changed:
                self._failed = True  # no worker waits for a turn that does not come
                self._changed.notify_all()
            raise
        return run

    def _walk(self, share: _Share, log: MappedFile, first: int) -> Run:
        share.first = first
        return read_entries(share.split, log, first, partial(self._take, share))

    def _take(self, share: _Share, entries: Entries) -> None:
        if self._turn != share.number and not self._keep(share, entries):
            return
        self._put(share)
        if share.good:
            self._files.put(entries)

    def _keep(self, share: _Share, entries: Entries) -> bool:
        """Keep a copy, or wait if too much is kept already; True: the turn has come instead."""
        with self._changed:
            while self._turn != share.number and self._kept + entries.nbytes > _KEPT and not self._failed:
                self._changed.wait()
            if self._turn == share.number:
                return True
            self._kept += entries.nbytes
        if not self._failed:
            share.kept.append(np.array(entries))
        return False

    def _hand_over(self, share: _Share, run: Run) -> None:
        """The split was read: in its turn finish it, and then those after it that were read already."""
        with self._changed:
            if self._turn != share.number:
                self._done[share.number] = share, run
                return
        ready: tuple[_Share, Run] | None = (share, run)
        while ready is not None:
            self._finish(*ready)
            with self._changed:
                self._turn += 1
                ready = self._done.pop(self._turn, None)
                self._changed.notify_all()

    # ---- in turn: one thread at a time

    def _put(self, share: _Share) -> None:
        """Put what was kept; the first call checks whether the split begins where the one before it ended."""
        if share.good is None:
            share.good = self._follows(share)
        while share.kept:
            entries = share.kept.popleft()
            if share.good:
                self._files.put(entries)
            with self._changed:
                self._kept -= entries.nbytes
                self._changed.notify_all()  # workers that wait for room need not wait for the whole split

    def _follows(self, share: _Share) -> bool:
        """Whether it begins where the one before it ended: the rule of `stitch`, for a log without faults."""
        if self._ended or self.odd:
            return False
        if share.split.span.path != self._file:
            self._file, self._at = share.split.span.path, share.split.start
        if self._at >= share.split.stop:  # a frame that began earlier, or the blank, covers this split
            return False
        return share.first == self._at

    def _finish(self, share: _Share, run: Run) -> None:
        self._put(share)
        if self._ended or self.odd or self._at >= share.split.stop:
            return
        if not share.good:  # a body that imitates a frame, or the log's end at the border
            run = self._read_again(share.split)
        self._ended = run.fault is not None
        if run.damage or run.gone:
            self.odd = True
        else:
            self._at = run.end

    def _read_again(self, split: Split) -> Run:
        """Read a split again from its true beginning; `stitch` later does so too, for all but the entries."""
        again = replace(split, start=self._at, resync=False, rules=None)
        return walk_split(again, lambda log, first: read_entries(again, log, first, self._files.put), Run())
