"""Many messages of one queue at once: units in bulk, the wanted ones picked by hash, their frames decoded together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import frame_dtype, scan_at
from mqindex._results import BinaryColumn, Columns, StringColumn
from mqindex.rocketmq.commit_log import CommitLog
from mqindex.rocketmq.consume_queue import ConsumeQueue
from mqindex.rocketmq.get_message import GetMessageResult, GetMessageStatus, read_unit, refusal
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.log_columns import COLUMNS
from mqindex.rocketmq.tag_filter import TagFilter

__all__ = ["get_messages"]

_Ints = npt.NDArray[np.int64]

_PLACES = ("queue_offset", "phy_offset", "size")
_MIN_UNITS = 16384  # looked at in one step where a filter may let few of them pass


def get_messages(
    queue: ConsumeQueue | None,
    log: CommitLog,
    offset: int,
    max_msg_nums: int,
    wanted: TagFilter,
    columns: tuple[str, ...],
    exact: bool = True,
) -> GetMessageResult[Columns]:
    """Up to `max_msg_nums` messages, through as many files of the queue as it takes."""
    low, high = (queue.min_offset_in_queue, queue.max_offset_in_queue) if queue is not None else (0, 0)
    refused = refusal(queue, offset)
    if refused is not None or queue is None:
        assert refused is not None
        return GetMessageResult(*refused, low, high, _joined([], columns))
    status, parts, found, at = GetMessageStatus.NO_MATCHED_MESSAGE, list[Columns](), 0, offset
    only_places = not exact and set(columns) <= set(_PLACES)
    while at < high and found < max_msg_nums:
        left = max_msg_nums - found
        numbers, phys, sizes, at = _step(queue, at, high, left, wanted)
        there = _in_log(log, phys, sizes)
        if not there.all() and not found:
            status = GetMessageStatus.MESSAGE_WAS_REMOVING
        if not there.all():
            numbers, phys, sizes = numbers[there], phys[there], sizes[there]
        if only_places:
            taken: Iterator[Columns] = _places(numbers, phys, sizes, columns)
        else:
            taken = _columns(log, numbers, phys, sizes, wanted if exact else TagFilter(None), columns)
        for part in taken:
            parts.append(part)
            found += part.num_rows
    if found:
        status = GetMessageStatus.FOUND
    return GetMessageResult(status, at, low, high, _joined(parts, columns))


def _step(queue: ConsumeQueue, at: int, high: int, left: int, wanted: TagFilter) -> tuple[_Ints, _Ints, _Ints, int]:
    """Queue offsets, phy offsets and sizes of up to `left` units that the broker would send, and where to go on."""
    stop = min(at + (left if wanted.tags is None else max(_MIN_UNITS, 4 * left)), high)
    if wanted.tags is None:
        units = queue.units(at, stop)
        offsets, phys, sizes = units["queue_offset"], units["phy_offset"], units["size"].astype(np.int64)
    else:
        offsets = queue.select(wanted.hashes.tolist(), at, stop)[:left]
        phys, sizes = queue.places_at(offsets)
    if len(offsets) == left:
        stop = int(offsets[-1]) + 1
    elif not len(offsets):
        stop = _held_from(queue, stop, high)
    return offsets, phys, sizes, stop


def _held_from(queue: ConsumeQueue, at: int, high: int) -> int:
    """The first queue offset from `at` on that a file holds: over missing files in one step, however many they are."""
    files, place = queue.files, at * QUEUE_UNIT_SIZE
    n = bisect_right(files, place, key=lambda file: file.start)
    if n and place < files[n - 1].stop:
        return at
    return files[n].start // QUEUE_UNIT_SIZE if n < len(files) else high


def _in_log(log: CommitLog, phys: _Ints, sizes: _Ints) -> npt.NDArray[np.bool_]:
    """`get_message.holds` of many units."""
    if not log.files or not len(phys):
        return np.zeros(len(phys), np.bool_)
    number = bisect_right(log.files, int(phys.min()), key=lambda file: file.start) - 1
    stop = min(log.files[number].stop, log.max_phy_offset)
    if number >= 0 and sizes.min() > 0 and int(phys.max()) <= stop - int(sizes.max()):
        return np.ones(len(phys), np.bool_)  # as a rule: all in one file
    stops = np.array([min(file.stop, log.max_phy_offset) for file in log.files])
    numbers = _file_numbers(log, phys)
    return np.asarray((numbers >= 0) & (sizes > 0) & (phys <= stops[numbers] - sizes))


def _file_numbers(log: CommitLog, phys: _Ints) -> _Ints:
    return np.searchsorted(np.array([file.start for file in log.files]), phys, "right") - 1


def _places(numbers: _Ints, phys: _Ints, sizes: _Ints, columns: tuple[str, ...]) -> Iterator[Columns]:
    """What the units themselves say: the log need not be read for it."""
    said: dict[str, npt.NDArray[Any]] = dict(zip(_PLACES, (numbers, phys, sizes.astype(np.int32)), strict=True))
    if len(phys):
        yield Columns({name: said[name] for name in columns}, num_rows=len(phys))


def _columns(
    log: CommitLog, offsets: _Ints, phys: _Ints, sizes: _Ints, wanted: TagFilter,
    columns: tuple[str, ...],
) -> Iterator[Columns]:  # fmt: skip
    """The messages of the units; those of one file of the log are one part."""
    cuts = np.flatnonzero(np.diff(_file_numbers(log, phys))) + 1
    for rows in np.split(np.arange(len(phys)), cuts):
        if len(rows) == 0:
            continue
        file, buf = log.file_at(int(phys[rows[0]]))
        frames, valid = scan_at(buf, file.start, phys[rows])
        bad = np.flatnonzero(~valid | (frames["size"] != sizes[rows]))
        if len(bad):
            first = rows[bad[0]]
            read_unit(log, int(phys[first]), int(sizes[first]), int(offsets[first]))
        if wanted.tags:
            tags = COLUMNS["tags"](buf, frames)
            assert isinstance(tags, StringColumn)
            kept = wanted.matching(tags)
            frames = frames if kept.all() else frames[kept]
        yield Columns({name: COLUMNS[name](buf, frames) for name in columns}, num_rows=len(frames))


def _joined(parts: list[Columns], names: tuple[str, ...]) -> Columns:
    if not parts:
        none = np.empty(0, frame_dtype())
        return Columns({name: COLUMNS[name](b"", none) for name in names}, num_rows=0)
    if len(parts) == 1:
        return parts[0]
    return Columns({name: _column([part[name] for part in parts]) for name in names}, sum(p.num_rows for p in parts))


def _column(parts: list[Any]) -> Any:
    first = parts[0]
    if not isinstance(first, StringColumn):
        return np.concatenate(parts)
    starts = np.cumsum([0] + [int(part.offsets[-1]) for part in parts])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    valid = None if first.valid is None else np.concatenate([part.valid for part in parts])
    kind = BinaryColumn if isinstance(first, BinaryColumn) else StringColumn
    return kind(np.concatenate([part.data for part in parts]), np.concatenate([*offsets, starts[-1:]]), valid)
