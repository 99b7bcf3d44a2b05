"""Where the units of one queue go, in the order of the log: the builder writes there, the checker compares there.

Every unit goes to its message's own queue offset. For what an uninterrupted broker dispatches, that is what the broker
writes (RocketMQ 4.9.3 `ConsumeQueue.putMessagePositionInfo`). Where the log lost messages, a broker writes the units
that follow at the next place, and from there on a queue offset leads to another message; here the hole is filled with
the blank units that a broker writes before the first unit of a queue.

```
queue offset = next place        written there
after it                         blanks up to it, then there. More blanks than the log between the two messages could
                                 have held messages: at the next place, as the broker does
0, and the queue is not empty    the topic was deleted and created again: what came before no longer counts
before it                        into a blank, where there is one; else a repetition, not written
below 0, or beyond 64 bits       not written
```

A log does not tell such a topic from a queue whose broker lost it. In both, consumers get the later messages. A broker
that builds the queue from nothing gives the earlier ones again, adds the later one of 0 behind them, and leaves out
the others up to there (4.9.3, 5.5.1): here they all stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import count_in_line
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE

Units = npt.NDArray[Any]
Ranges = tuple[tuple[int, int], ...]

_SMALLEST_FRAME = 91
_LOST_OFFSETS = 1024  # queue offsets that a broker may have given out without storing a message


@dataclass(frozen=True, slots=True)
class Oddities:
    """Units of one queue that an uninterrupted broker does not write.

    `blanks` in holes, `misplaced` units after a hole too large to fill, `repeated` units that were left out, `early`
    units from before the topic was deleted and created again, `twice`: how often such a topic had the queue offset 0
    too, `impossible` queue offsets. `at`: phy offset of the first such unit.
    """

    blanks: int = 0
    misplaced: int = 0
    repeated: int = 0
    early: int = 0
    twice: int = 0
    impossible: int = 0
    at: int = -1

    def __add__(self, later: Oddities) -> Oddities:
        """These, and those of units later in the log."""
        if later.at < 0 or self.at < 0:  # there are none in one of them, as a rule
            return self if later.at < 0 else later
        counts = {name: getattr(self, name) + getattr(later, name) for name in _COUNTS}
        return Oddities(**counts, at=self.at)

    def noted(self, at: int, **counts: int) -> Oddities:
        """These, and so many more at the phy offset `at`."""
        return self + Oddities(**counts, at=at) if any(counts.values()) else self


NO_ODDITIES: Final = Oddities()
_COUNTS = [field.name for field in fields(Oddities) if field.name != "at"]


def fits_hole(hole: int, between: int) -> bool:
    """Whether so many queue offsets can have belonged to messages in so many bytes of log, or to none at all."""
    return hole <= between // _SMALLEST_FRAME + _LOST_OFFSETS


class UnitPlaces:
    """The rule above for one queue. Subclasses define what happens at a place: `_write`, and others as needed.

    `before`: of units that came before, where that is known: (next, last_end). `units`: those in the queue so far;
    `next`: the place after the last one, -1: there is none; `last_end`: the end of the last message placed;
    `first`: the queue offset and phy offset of the first unit that was put.
    """

    def __init__(self, file_size: int, before: tuple[int, int] | None = None) -> None:
        self.units = 0
        self.next, self.last_end = before or (-1, 0)
        self.first: tuple[int, int] | None = None
        self.oddities = NO_ODDITIES
        self._limit = (2**63 - 1 - file_size) // QUEUE_UNIT_SIZE + 1
        self._phy_offset = -1  # of the last unit: a message that gives two units is in the queue once
        self._from_0 = False  # whether a unit had the queue offset 0, since the topic was created

    def put(self, units: Units) -> None:
        """The units that follow, in the log's order."""
        if not len(units):
            return
        last = int(units["phy_offset"][-1])
        in_line = count_in_line(units, self._phy_offset, self._limit) == len(units)  # the normal case
        if not in_line:
            units = self._possible(units)
        self._phy_offset = last
        if not len(units):
            return
        if self.first is None:
            self.first = int(units["queue_offset"][0]), int(units["phy_offset"][0])
        if in_line:
            self._put_line(units)
            return
        for start, stop in stretches(np.diff(units["queue_offset"]) != 1, len(units)):
            self._put_line(units[start:stop])

    def goes_on(self, place: int, phy_offset: int) -> bool:
        """Whether the message at `phy_offset`, with this queue offset, is simply the next one, or the first of all."""
        return 0 <= place < self._limit and phy_offset > self._phy_offset and self.next in (-1, place)

    def passed(self, first: tuple[int, int], stop: int, phy_offset: int, last_end: int) -> None:
        """Units up to the place `stop` were found elsewhere to be where they belong: nothing odd, nothing to write.

        `first`: queue offset and phy offset of the first of them, which was the next unit here; `phy_offset` and
        `last_end`: of the last one's message.
        """
        self.first = self.first or first
        if self.next < 0:
            self._begin(*first)
            self._from_0 = first[0] == 0
        self.units += stop - first[0]
        self.next, self._phy_offset, self.last_end = stop, phy_offset, last_end

    def _possible(self, units: Units) -> Units:
        """The units without second ones of one message, and without those whose queue offset has no place."""
        queue_offset = units["queue_offset"]
        keep = np.diff(units["phy_offset"], prepend=self._phy_offset) > 0
        impossible = (queue_offset < 0) | (queue_offset >= self._limit)
        if impossible.any():
            self._note(units[impossible], impossible=int(np.count_nonzero(impossible & keep)))
            keep &= ~impossible
        return units if keep.all() else units[keep]

    def _put_line(self, units: Units) -> None:
        """Units with consecutive queue offsets."""
        place = int(units["queue_offset"][0])
        if self.next < 0:
            self._begin(place, int(units["phy_offset"][0]))
            self.next, self._from_0 = place, place == 0
        elif place == 0 and self.next > 0:
            self._note(units, early=self.units, twice=int(self._from_0))
            self._begin_again(int(units["phy_offset"][0]))
            self.units, self.next, self._from_0 = 0, 0, True
        if place < self.next:
            late = units[: self.next - place]
            self._note(units, repeated=self._put_late(late))
            units, place = units[len(late) :], place + len(late)
            if not len(units):
                return
        if place > self.next:
            place = self._after_hole(place, units)
        self._put_at(place, units)
        self.next = place + len(units)

    def _after_hole(self, place: int, units: Units) -> int:
        hole, phy_offset = place - self.next, int(units["phy_offset"][0])
        if not fits_hole(hole, phy_offset - self.last_end):
            self._note(units, misplaced=len(units))
            return self.next
        self._note(units, blanks=hole)
        self._fill(self.next, place, self.last_end, phy_offset)
        return place

    def _put_at(self, place: int, units: Units) -> None:
        self.units += len(units)
        self.last_end = int(units["phy_offset"][-1]) + int(units["size"][-1])
        if int(units["queue_offset"][0]) != place:
            units = units.copy()
            units["queue_offset"] = np.arange(place, place + len(units))
        self._write(units)

    def _note(self, units: Units, **counts: int) -> None:
        self.oddities = self.oddities.noted(int(units["phy_offset"][0]), **counts)

    # ---- what happens at a place

    def _write(self, units: Units) -> None:
        """Units with consecutive queue offsets, which are their places."""
        raise NotImplementedError

    def _put_late(self, units: Units) -> int:
        """Units before the next place: `_put_at` where there is a blank; returns how many are left as repetitions."""
        raise NotImplementedError

    def _begin(self, place: int, phy_offset: int) -> None:
        """The first unit of all goes to `place`."""

    def _begin_again(self, phy_offset: int) -> None:
        """The topic was deleted and created again, with this message: forget all places."""

    def _fill(self, first: int, stop: int, low: int, high: int) -> None:
        """No unit goes to the places [first, stop); their messages would be in the phy offsets [low, high)."""


def stretches(breaks: npt.NDArray[np.bool_], stop: int) -> Iterator[tuple[int, int]]:
    """The stretches (start, stop) of `stop` items; `breaks[i]`: one ends after item i.

    >>> list(stretches(np.array([False, True, False]), 4)), list(stretches(np.array([], bool), 0))
    ([(0, 2), (2, 4)], [])
    """
    start = 0
    for last in np.flatnonzero(breaks).tolist():
        yield start, last + 1
        start = last + 1
    if start < stop:
        yield start, stop


def joined(ranges: list[tuple[int, int]]) -> Ranges:
    """The same numbers in as few ranges as possible, ascending.

    >>> joined([(5, 7), (0, 3), (3, 5), (9, 10)])
    ((0, 7), (9, 10))
    """
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return tuple(found)


def shared(some: Ranges, others: Ranges) -> Ranges:
    """The numbers that are in both; each is as `joined` gives it.

    >>> shared(((0, 5), (8, 9)), ((3, 8), (8, 12)))
    ((3, 5), (8, 9))
    """
    found, reached = [], -1
    for start, stop in sorted([*some, *others]):
        if start < reached:
            found.append((start, min(stop, reached)))
        reached = max(reached, stop)
    return tuple(found)
