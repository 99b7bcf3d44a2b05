"""Units that a stretch of the log gives, against the files of their queues: compared while the log is read.

```
units ──▶ UnitLines ──▶ each at the next place of its queue, as expected: nothing more to do for them
                └─▶ the others of a queue, from the first on that is not there: held, grouped, given to UnitPlaces
```

`UnitPlaces` determines where a unit goes. Anything else at that place is a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import UnitLines, compare_units, decode_units, group_units
from mqindex.errors import MQIndexError
from mqindex.files.paths import join
from mqindex.files.places.place import require_answer
from mqindex.files.reading.sparse import SparseFile
from mqindex.rocketmq.layout import MAX_EXT_ADDRESS, QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.log_entries import UNIT, copy_rows
from mqindex.rocketmq.log.log_files import LogFile
from mqindex.rocketmq.queue.queue_files import queue_files
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import SCHEDULE_TOPIC
from mqindex.rocketmq.queue.queue_units import are_blank
from mqindex.rocketmq.queue.unit_places import NO_ODDITIES, Oddities, Ranges, UnitPlaces, joined, stretches

Array = npt.NDArray[Any]
ExtReader = Callable[[QueueName, Array], tuple[Array, Array]]

_HELD = 1 << 16  # units in memory before they are compared
_AHEAD, _AHEAD_OF_ALL, _AHEAD_LEAST = 24000, 1 << 18, 64  # places read at once: of a queue, of all together, at least
_MAX_LISTED = 20  # differences of one queue in one stretch that are listed one by one
_RANGES = 1000  # stretches of queue offsets of one queue in one stretch of the log; a broker makes one


@dataclass(frozen=True, slots=True)
class UnitDifference:
    """What is at a unit's place: nothing (`field` None, for `count` units in a row), or another value of `field`."""

    queue_offset: int
    phy_offset: int
    count: int = 1
    path: str | None = None
    at: int | None = None
    field: str | None = None
    expected: int | None = None
    got: int | None = None


@dataclass(slots=True, kw_only=True)
class Compared:
    """Units that the log gives one queue, and how its files differ from them.

    `next`: the place after the last unit, `last_end`: the end of the message placed last. `ranges`: the places of the
    units, [start, stop) each, ascending; `late`: those that late units have, `late_from`: the phy offset of the first.
    `scattered`: too many ranges, they are joined to one. `absent`, `wrong` and `wrong_ext` count units, `tag_hashes`
    those of the schedule topic that have a tag's hash in place of the time of delivery; `differences`: the first of
    them. `early_there`: units from before the queue offsets began again at 0 that are in the files, `early`: among
    which places; `began`: the phy offset of the message with which they began again last.
    """

    units: int = 0
    next: int = -1
    last_end: int = 0
    ranges: Ranges = ()
    late: Ranges = ()
    late_from: int = -1
    scattered: bool = False
    absent: int = 0
    wrong: int = 0
    wrong_ext: int = 0
    tag_hashes: int = 0
    differences: tuple[UnitDifference, ...] = ()
    oddities: Oddities = NO_ODDITIES
    early_there: int = 0
    early: Ranges = ()
    began: int = 0

    def forget(self, units: int, began: int) -> None:
        """The queue offsets begin again at 0, at a phy offset: what was compared so far, `units`, no longer counts."""
        self.began = began
        if there := units - self.absent - self.wrong:
            self.early_there += there
            self.early = joined([*self.early, *self.ranges, *self.late])
        self.units = self.absent = self.wrong = self.wrong_ext = self.tag_hashes = 0
        self.ranges = self.late = ()
        self.differences, self.scattered, self.late_from = (), False, -1


@dataclass(slots=True)
class QueueRun(Compared):
    """What a stretch of the log gives one queue.

    `first`: the queue offset of its first unit, `phy_offset` of that message.
    `anew`: its queue offsets begin again at 0. `follows`: what came before was known.
    """

    topic: str
    queue_id: int
    first: int = 0
    phy_offset: int = 0
    anew: bool = False
    follows: bool = False


class UnitCheck:
    """Takes units as the log gives them, and compares them with the files below `directory`, which are only read.

    `names`: the queues by the numbers in the units; it may grow meanwhile. `before`: for queues whose units follow
    others, (next, last_end) of these. `ext`: reads extension units, None: there are none. `counted`: topics whose units
    are counted only.
    """

    def __init__(
        self,
        directory: str,
        names: Callable[[], list[QueueName]],
        file_size: int,
        before: Mapping[QueueName, tuple[int, int]],
        ext: ExtReader | None = None,
        counted: frozenset[str] = frozenset(),
    ) -> None:
        self._counted = counted
        self._directory, self._names, self._before = directory, names, before
        self._file_size, self._ext = file_size, ext
        self._held = np.empty(_HELD, UNIT)
        self._count = 0
        self._queues: dict[QueueName, _Queue] = {}
        self._known: list[QueueName] = []
        self._lines = UnitLines() if ext is None else None

    def add(self, units: Array) -> None:
        """The next units; the array is copied."""
        while len(units):
            some = units[: _HELD - self._count]
            if self._lines is None:
                copy_rows(self._held[self._count : self._count + len(some)], some)
                self._count, seen = self._count + len(some), len(some)
            else:
                seen, self._count = self._lines.match(some, self._held, self._count)
                if seen < len(some):
                    self._begin_line(self._lines, some[seen])
            units = units[seen:]
            if self._count == _HELD:
                self._compare()

    def finish(self) -> list[QueueRun]:
        """Compare the rest; the runs of all queues that got units."""
        self._compare()
        for queue in self._queues.values():
            self._end_line(queue)
        return [queue.finish() for queue in self._queues.values()]

    def _queue(self, number: int) -> _Queue:
        if number >= len(self._known):
            self._known = self._names()
        name = self._known[number]
        queue = self._queues.get(name)
        if queue is None:
            kind = _Counted if name[0] in self._counted else _Queue
            queue = kind(self._directory, name, self._file_size, self._before.get(name), self._ext)
            self._queues[name] = queue
        return queue

    def _begin_line(self, lines: UnitLines, unit: np.void) -> None:
        """Read ahead in the file that a unit's place is in; a unit that is not the next one there is left over."""
        number = int(unit["queue"])
        queue = self._queue(number)
        if queue.line == number:
            self._end_line(queue)
        data = b""
        if queue.line < 0:  # or another number has the same name
            most = max(min(_AHEAD, _AHEAD_OF_ALL // len(self._known)), _AHEAD_LEAST)
            data = queue.ahead(int(unit["queue_offset"]), int(unit["phy_offset"]), most)
        if data:
            queue.line = number
            lines.begin(number, queue.ahead_of[0], int(unit["phy_offset"]) - 1, queue.last_end, data)
        else:
            lines.end(number, False)

    def _end_line(self, queue: _Queue) -> None:
        if self._lines is not None and queue.line >= 0:
            queue.passed_ahead(*self._lines[queue.line])
            self._lines.end(queue.line, True)
            queue.line = -1

    def _compare(self) -> None:
        if not self._count:
            return
        self._known = self._names()
        units, offsets = group_units(self._held[: self._count], len(self._known))
        self._count = 0
        for number in np.flatnonzero(np.diff(offsets)).tolist():
            queue = self._queue(number)
            self._end_line(queue)
            queue.put(units[offsets[number] : offsets[number + 1]])
            if self._lines is not None:
                self._lines.end(number, True)


class _Queue(UnitPlaces):
    """One queue's files and its run."""

    def __init__(
        self, directory: str, name: QueueName, file_size: int, before: tuple[int, int] | None, ext: ExtReader | None
    ) -> None:
        super().__init__(file_size, before)
        self._run = QueueRun(*name, follows=before is not None)
        usable = name_problem(*name) is None
        self._files = queue_files(join(directory, name[0], str(name[1])), QUEUE_UNIT_SIZE)[0] if usable else []
        self._starts = np.array([file.start // QUEUE_UNIT_SIZE for file in self._files], np.int64)
        self._ext = ext
        self.line = -1  # its number among the lines, while it has one
        self.ahead_of = -1, -1  # queue offset and phy offset of the unit that it began with

    def ahead(self, place: int, phy_offset: int, most: int) -> bytes:
        """What the file has from `place` on, where the message at `phy_offset` is simply the next one; else nothing."""
        file = self._files[number] if (number := self._file_of(place)) >= 0 else None
        if file is None or not self.goes_on(place, phy_offset):
            return b""
        self.ahead_of = place, phy_offset
        try:
            return self._places_of(file, place, most)
        except (MQIndexError, FileNotFoundError) as error:  # cut or deleted meanwhile
            require_answer(error, file.path)
            return b""

    def passed_ahead(self, stop: int, phy_offset: int, last_end: int) -> None:
        """The units from the one of `ahead_of` on were where they belong, up to the place `stop`."""
        if stop > self.ahead_of[0]:
            self._cover(self.ahead_of[0], stop)
            self.passed(self.ahead_of, stop, phy_offset, last_end)

    def _file_of(self, place: int) -> int:
        return int(np.searchsorted(self._starts, place, "right")) - 1

    def finish(self) -> QueueRun:
        """What was found."""
        run = self._run
        run.units, run.next, run.last_end, run.oddities = self.units, self.next, self.last_end, self.oddities
        if self.first is not None:
            run.first, run.phy_offset = self.first
        return run

    def _begin_again(self, phy_offset: int) -> None:
        self._run.forget(self.units, phy_offset)
        self._run.anew = True

    def _write(self, units: Array) -> None:
        """Compare units with what is at their places."""
        place = int(units["queue_offset"][0])
        self._cover(place, place + len(units))
        self._compare(units)

    def _cover(self, start: int, stop: int) -> None:
        self._run.ranges = self._with(self._run.ranges, start, stop)

    def _with(self, ranges: Ranges, start: int, stop: int) -> Ranges:
        """These places too."""
        ranges = joined([*ranges, (start, stop)])
        if len(ranges) <= _RANGES:
            return ranges
        self._run.scattered = True
        return ((ranges[0][0], ranges[-1][1]),)

    def _put_late(self, units: Array) -> int:
        """Late units that are at their own place filled a hole, or are there in place of earlier ones; the others are
        repetitions.

        `QueueBuilder` remembers the holes. Here the files show them: holes of the splits before are not known, so
        `ExpectedUnits` tells which ones filled a hole.
        """
        different, run = self._different(units), self._run
        for start, stop in stretches(np.diff(different), len(units)):
            if not different[start]:
                some = units[start:stop]
                place = int(some["queue_offset"][0])
                run.late = self._with(run.late, place, place + len(some))
                if run.late_from < 0:
                    run.late_from = int(some["phy_offset"][0])
                self.units += len(some)
                self.last_end = int(some["phy_offset"][-1]) + int(some["size"][-1])
        return int(different.sum())

    def _different(self, units: Array) -> Array:
        """Which of them are not at their places."""
        different = np.ones(len(units), bool)
        at = 0
        for number, part in self._by_file(units):
            if number >= 0:
                file, first = self._files[number], int(part["queue_offset"][0])
                try:
                    places = compare_units(self._places_of(file, first, len(part)), first, part)
                    different[at : at + len(part)] = False
                    different[at + places] = True
                except (MQIndexError, FileNotFoundError) as error:
                    require_answer(error, file.path)
            at += len(part)
        return different

    def _by_file(self, units: Array) -> Iterator[tuple[int, Array]]:
        """Units with consecutive queue offsets by the file that holds their places; -1: before all files."""
        ends = np.searchsorted(self._starts, units["queue_offset"][[0, -1]], "right") - 1
        if ends[0] == ends[1]:
            yield int(ends[0]), units
            return
        files = np.searchsorted(self._starts, units["queue_offset"], "right") - 1
        for start, stop in stretches(np.diff(files), len(units)):
            yield int(files[start]), units[start:stop]

    def _compare(self, units: Array) -> None:
        for number, part in self._by_file(units):
            if number < 0:
                self._absent(part, None)
                continue
            file = self._files[number]
            first = int(part["queue_offset"][0])
            try:
                data = self._places_of(file, first, len(part))
            except (MQIndexError, FileNotFoundError) as error:  # cut or deleted meanwhile
                require_answer(error, file.path)
                self._absent(part, file.path)
            else:
                self._compare_places(file, first, data, part)

    def _places_of(self, file: LogFile, first: int, most: int) -> bytes:
        """What the file has at the places from `first` on."""
        with SparseFile(file.path) as opened:
            begin, places = file.start // QUEUE_UNIT_SIZE, opened.size // QUEUE_UNIT_SIZE
            start, stop = (min(place - begin, places) * QUEUE_UNIT_SIZE for place in (first, first + most))
            return opened.read(start, stop)

    def _compare_places(self, file: LogFile, first: int, data: bytes, units: Array) -> None:
        different = compare_units(data, first, units)
        if not len(different):
            return
        units = units[different]
        inside = units["queue_offset"] < first + len(data) // QUEUE_UNIT_SIZE
        self._absent(units[~inside], file.path)
        units = units[inside]
        if len(units):
            self._explain(file, first, data, units)

    def _explain(self, file: LogFile, first: int, data: bytes, units: Array) -> None:
        """Find what is there instead, for units that are not at their places."""
        places = units["queue_offset"] - first
        low = int(places[0])
        phys, sizes, codes = (column[places - low] for column in decode_units(data, low, int(places[-1]) + 1))
        nothing = (phys < 0) | (sizes <= 0) | are_blank(phys, sizes, codes)
        self._absent(units[nothing], file.path)
        message = ~nothing & (phys == units["phy_offset"]) & (sizes == units["size"])
        wrong = ~nothing & ~self._explained(units, codes, message)
        self._run.wrong += int(wrong.sum())
        for i in np.flatnonzero(wrong)[: max(_MAX_LISTED - len(self._run.differences), 0)].tolist():
            got = {"phy_offset": phys[i], "size": sizes[i], "tags_code": codes[i]}
            name = next(name for name in got if got[name] != units[name][i])
            self._run.differences += (
                UnitDifference(
                    int(units["queue_offset"][i]),
                    int(units["phy_offset"][i]),
                    path=file.path,
                    at=int(units["queue_offset"][i]) * QUEUE_UNIT_SIZE - file.start,
                    field=name,
                    expected=int(units[name][i]),
                    got=int(got[name]),
                ),
            )

    def _explained(self, units: Array, codes: Array, message: Array) -> Array:
        """Which units differ in their third field only, for a reason: an address, or a tag's hash for a time."""
        explained = np.zeros(len(units), bool)
        if self._ext is not None and (addresses := message & (codes <= MAX_EXT_ADDRESS)).any():
            ext_codes, ext_times = self._ext((self._run.topic, self._run.queue_id), codes[addresses])
            right = (ext_codes == units["tags_code"][addresses]) & (ext_times == units["store_timestamp"][addresses])
            self._run.wrong_ext += int((~right).sum())
            explained |= addresses
        if self._run.topic == SCHEDULE_TOPIC:
            hashes = message & (codes >= -(2**31)) & (codes < 2**31)
            self._run.tag_hashes += int(hashes.sum())
            explained |= hashes
        return explained

    def _absent(self, units: Array, path: str | None) -> None:
        self._run.absent += len(units)
        for start, stop in stretches(np.diff(units["queue_offset"]) != 1, len(units)):
            if len(self._run.differences) >= _MAX_LISTED:
                break
            queue_offset, phy_offset = int(units["queue_offset"][start]), int(units["phy_offset"][start])
            self._run.differences += (UnitDifference(queue_offset, phy_offset, stop - start, path),)


class _Counted(_Queue):
    """A queue whose units have other places."""

    def ahead(self, place: int, phy_offset: int, most: int) -> bytes:
        return b""

    def put(self, units: Array) -> None:
        self.first = self.first or (int(units["queue_offset"][0]), int(units["phy_offset"][0]))
        self.units += len(units)
