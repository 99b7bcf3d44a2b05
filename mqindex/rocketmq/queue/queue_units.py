"""Units of a consume queue as columns, and what some of them mean: blanks, hashes of tags."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import UnitTaker, check_units, decode_units, unit_at
from mqindex.rocketmq.layout import BLANK_UNIT_SIZE
from mqindex.rocketmq.queue.queue_files import End, UnitFiles

_Ints: TypeAlias = npt.NDArray[np.int64]
_Sizes: TypeAlias = npt.NDArray[np.int32]

BLANK: Final = (0).to_bytes(8, "big") + BLANK_UNIT_SIZE.to_bytes(4, "big") + (0).to_bytes(8, "big")
"""A unit that leads nowhere: a broker fills a queue that begins later than its first file with these."""
_BLANK_FIELDS: Final = (0, BLANK_UNIT_SIZE, 0)


class QueueBounds(NamedTuple):
    """A queue at one moment: the offsets of its first unit and of the next one, and where its last message ends."""

    min_offset: int
    max_offset: int
    max_phy_offset: int


def tag_hash(tags: str) -> int:
    """The hash of `tags` that a unit holds: Java's `String.hashCode`, no absolute value.

    Source: RocketMQ 4.9.3 `MessageExtBrokerInner.tagsString2tagsCode`.

    >>> tag_hash("TagA"), tag_hash("pay-success"), tag_hash("")
    (2598919, -1685804066, 0)
    """
    if not isinstance(tags, str):
        raise TypeError(f"tags: expected str, got {type(tags).__name__}")
    units = tags.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return (hashed ^ 0x80000000) - 0x80000000


def all_columns(units: UnitFiles, start: int, stop: int) -> tuple[_Ints, _Ints, _Sizes, _Ints]:
    """queue_offset, phy_offset, size and tags_code of the units [start, stop) that some file holds."""
    parts = [
        (np.arange(part.first + part.start, part.first + part.stop), *decode_units(part.buf, part.start, part.stop))
        for part in units.stretches(start, stop)
    ]
    if not parts:
        return np.empty(0, np.int64), *decode_units(b"", 0, 0)
    if len(parts) == 1:
        return parts[0]
    offsets, phys, sizes, codes = zip(*parts, strict=True)
    return np.concatenate(offsets), np.concatenate(phys), np.concatenate(sizes), np.concatenate(codes)


def columns_of_file(units: UnitFiles, start: int, stop: int) -> tuple[_Ints, _Sizes, _Ints]:
    """phy_offset, size and tags_code of the units of [start, stop) that are in the first file that has any."""
    for part in units.stretches(start, stop):
        return decode_units(part.buf, part.start, part.stop)
    return decode_units(b"", 0, 0)


def last_end(units: UnitFiles, end: End) -> int:
    """The phy offset after the message of the last unit before an end; -1: no file holds it."""
    last = end.number - 1
    if 0 <= last - end.first < len(end.buf) // units.unit_size:
        phy_offset, size, _ = unit_at(end.buf, last - end.first)
        return phy_offset + size
    phys, sizes, _ = columns_of_file(units, last, last + 1)
    return int(phys[0]) + int(sizes[0]) if len(phys) else -1


def bounds_of_files(units: UnitFiles) -> QueueBounds:
    """The bounds of a queue that nobody has open for writing."""
    end, first = units.end(check_units), units.first
    one_file = end.first == first < end.number  # as a rule
    if not one_file or unit_at(end.buf, 0) == _BLANK_FIELDS:
        first = min(first + count_blanks(units, first, end.number), end.number)
    return QueueBounds(first, end.number, last_end(units, end) if first < end.number else -1)


class Taken(NamedTuple):
    """Columns of units. Units whose messages the log does not have (`gone`: there are some) have the size 0.

    `tags_codes`: None where they were not requested. `stop`: the queue offset after the last unit that was read.
    """

    queue_offsets: _Ints
    phy_offsets: _Ints
    sizes: _Sizes
    tags_codes: _Ints | None
    stop: int
    gone: bool

    def where(self, keep: npt.NDArray[Any]) -> Taken:
        """Only the rows of `keep`: their numbers, or True for each."""
        sizes = self.sizes[keep]
        codes = None if self.tags_codes is None else self.tags_codes[keep]
        gone = self.gone and not sizes.all()
        return Taken(self.queue_offsets[keep], self.phy_offsets[keep], sizes, codes, self.stop, gone)


def take_units(
    units: UnitFiles, start: int, stop: int, room: int, hashes: _Sizes | None, parts: _Ints, *, codes: bool = False
) -> Taken:
    """The first `room` of the units [start, stop) that pass a filter by hash; None: all pass.

    `parts`: int64[2, m], where the files of the log begin and where what they hold ends.
    """
    taker = UnitTaker(hashes, parts, room, codes=codes)
    for part in units.stretches(start, stop):
        seen = taker.take(part.buf, part.start, part.stop, part.first)
        if taker.full:
            stop = part.first + seen
            break
    return Taken(*taker.columns(), stop, taker.gone > 0)


def are_blank(phys: _Ints, sizes: _Sizes, codes: _Ints) -> npt.NDArray[np.bool_]:
    """Which units lead nowhere."""
    blank: npt.NDArray[np.bool_] = (phys == 0) & (sizes == BLANK_UNIT_SIZE) & (codes == 0)
    return blank


def count_blanks(units: UnitFiles, start: int, stop: int) -> int:
    """How many of the units [start, stop) are blanks, before the first that is none."""
    at, step = start, 1
    while at < stop:
        phys, sizes, codes = columns_of_file(units, at, min(at + step, stop))
        blank = are_blank(phys, sizes, codes)
        if not len(blank) or not blank.all():
            return at - start + (int(np.argmin(blank)) if len(blank) else 0)
        at, step = at + len(blank), min(4 * step, 1 << 16)
    return at - start
