"""Many messages of one queue at once: units picked by a kernel, their frames decoded together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import columns_at
from mqindex.columns.columns import BinaryColumn, Columns, StringColumn
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.messages.log_columns import as_columns, no_messages
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.queue_units import QueueBounds, Taken
from mqindex.rocketmq.serving.get_message import GetMessageResult, GetMessageStatus, read_unit, refusal
from mqindex.rocketmq.serving.tag_filter import TagFilter

_Ints = npt.NDArray[np.int64]

_PLACES = ("queue_offset", "phy_offset", "size")
_SAID_BY_UNITS = frozenset(_PLACES)
_MOST = 1 << 18  # units picked in one step


class LogParts:
    """Where the files of a log begin, and where their data ends: int64[2, m]. Made anew where the log has grown."""

    def __init__(self) -> None:
        self._known: tuple[CommitLog | None, int, int, _Ints] = (None, 0, 0, np.empty((2, 0), np.int64))

    def of(self, log: CommitLog) -> _Ints:
        """The parts of this log as it is now."""
        known, count, end, parts = self._known
        if known is not log or count != len(log.files) or end != log.max_phy_offset:
            files, end = list(log.files), log.max_phy_offset
            parts = np.array([[file.start for file in files], [min(file.stop, end) for file in files]], np.int64)
            self._known = log, len(files), end, parts
        return parts


def get_messages(
    queue: ConsumeQueue | None,
    bounds: QueueBounds,
    log: CommitLog,
    parts: _Ints,
    offset: int,
    max_msg_nums: int,
    wanted: TagFilter,
    columns: tuple[str, ...],
    exact: bool = True,
    back_to_min: bool = False,
) -> GetMessageResult[Columns]:
    """Up to `max_msg_nums` messages, from as many files of the queue as needed. `parts`: `LogParts` of the log."""
    low, high, _ = bounds
    refused = refusal(queue, bounds, offset, back_to_min)
    if refused is not None or queue is None:
        assert refused is not None
        return GetMessageResult(*refused, low, high, _joined([], columns))
    status, found, at = GetMessageStatus.NO_MATCHED_MESSAGE, 0, offset
    hashes = None if wanted.tags is None else wanted.hashes
    batches: list[Columns] = []
    while at < high and found < max_msg_nums:
        taken = queue._take(at, high, min(max_msg_nums - found, high - at, _MOST), hashes, parts)
        at = taken.stop
        if taken.gone:
            status, taken = GetMessageStatus.MESSAGE_WAS_REMOVING, taken.where(taken.sizes > 0)
        for batch in _batches(log, taken, wanted, columns, exact):
            batches.append(batch)
            found += batch.num_rows
    if found:
        status = GetMessageStatus.FOUND
    return GetMessageResult(status, at, low, high, _joined(batches, columns))


def said_by_units(columns: tuple[str, ...]) -> bool:
    """Whether the units of a queue have all these columns, so that the log need not be read."""
    return _SAID_BY_UNITS.issuperset(columns)


def _batches(
    log: CommitLog, taken: Taken, wanted: TagFilter, columns: tuple[str, ...], exact: bool
) -> Iterator[Columns]:
    """What was taken, as columns."""
    if exact or not said_by_units(columns):
        yield from _columns(log, taken, wanted if exact else TagFilter(None), columns)
    elif len(taken.sizes):
        said: dict[str, npt.NDArray[Any]] = dict(zip(_PLACES, taken[:3], strict=True))
        yield Columns({name: said[name] for name in columns}, num_rows=len(taken.sizes))


def _columns(log: CommitLog, taken: Taken, wanted: TagFilter, columns: tuple[str, ...]) -> Iterator[Columns]:
    """The messages of the units; those of one file of the log are one part."""
    phys = taken.phy_offsets
    starts = np.array([file.start for file in log.files], np.int64)
    cuts = np.flatnonzero(np.diff(np.searchsorted(starts, phys, "right"))) + 1
    for rows in np.split(np.arange(len(phys)), cuts):
        if len(rows) == 0:
            continue
        yield _decoded(log, taken.where(rows), wanted, columns)


def _decoded(log: CommitLog, taken: Taken, wanted: TagFilter, columns: tuple[str, ...]) -> Columns:
    """The messages of units that are in one file of the log."""
    phys, sizes = taken.phy_offsets, taken.sizes
    file, buf = log._frames_at(phys, sizes)
    filtered = columns if "tags" in columns or not wanted.tags else (*columns, "tags")
    made, n = columns_at(buf, file.start, phys, sizes, filtered)
    if n < len(phys):
        read_unit(log, int(phys[n]), int(sizes[n]), int(taken.queue_offsets[n]))  # raises what is wrong with it
        return _decoded(log, taken, wanted, columns)  # for no message at all
    if wanted.tags:
        data, offsets, _ = made["tags"]
        kept = wanted.matching(data, offsets)
        if not kept.all():  # other tags of the same hash
            made, n = columns_at(buf, file.start, phys[kept], sizes[kept], columns)
    return as_columns({name: made[name] for name in columns}, n)


def _joined(parts: list[Columns], names: tuple[str, ...]) -> Columns:
    if not parts:
        return no_messages(names)
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
