"""Where a log is damaged, with good batches behind: found by a recovery that goes on, as no broker's does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import IndexFullError, OffsetOverflowError, OutOfOrderError
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_segment import LogSegment

UNKNOWN: Final = -(2**63)  # an offset or a time of a batch that cannot be believed


def recovered_past_damage(recover: Callable[..., Recovered]) -> tuple[Recovered, bool]:
    """`recover(past_damage=True)`; where batches behind damage contradict those before, or fill an index, the result of
    a recovery that ends at it. And whether it does so.
    """
    try:
        return recover(past_damage=True), False
    except (OffsetOverflowError, OutOfOrderError, IndexFullError):
        made = recover(past_damage=False)  # which fails too where it meets the same before
        return made, True


def damage_in(segment: LogSegment, made: Recovered) -> tuple[BatchFault, ...]:
    """In the log's order, with what is good behind. What follows the last good batch is one where its lengths lead to
    the log's end, and where its offsets end is not known.
    """
    found = [
        BatchFault(*fault, end, before + 1, following - 1, passed, made.batches - batches, made.records - records)
        for fault, end, batches, records, before, following, passed in made.damage
    ]
    at, fault = made.end_bytes, made.end_fault
    if fault is not None and segment._reaches(at, segment.size, check_crc=False):
        last = segment.base_offset - 1 if made.last_offset is None else made.last_offset
        found.append(BatchFault(*fault, segment.size, last + 1, passed=True))
    return tuple(found)


def stretches(damage: Sequence[BatchFault], stop: int) -> Iterator[tuple[int, int, BatchFault | None]]:
    """(begin, end, None) of good batches that follow each other, up to a position, and each damage between them."""
    at = 0
    for one in damage:
        if at < one.at:
            yield at, one.at, None
        yield one.at, one.end, one
        at = one.end
    if at < stop:
        yield at, stop, None


def good_parts(segment: LogSegment, damage: Sequence[BatchFault], stop: int) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
    """The good batches that begin before a position, a few thousand at a time, as `LogSegment.batch_parts`."""
    for begin, end, bad in stretches(damage, stop):
        if bad is None:
            yield from segment._batch_parts(begin, end, check_crc=False)


def served_batches(segment: LogSegment, damage: Sequence[BatchFault], stop: int) -> Iterator[npt.NDArray[Any]]:
    """All batches that a broker finds by their lengths, a few thousand at a time; of bad ones only the position counts:
    their offsets and times are `UNKNOWN`.
    """
    for begin, end, bad in stretches(damage, stop):
        if bad is None:
            yield from segment._batch_arrays(begin, end, check_crc=False)
        elif bad.passed:
            yield from map(_without_content, segment._batch_arrays(begin, end, check_crc=False))


def _without_content(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    rows = np.array(rows)
    for name in ("base_offset", "last_offset", "max_timestamp"):
        rows[name] = UNKNOWN
    rows["magic"] = 2
    return rows
