"""Queue offsets by time: the broker's searches, step by step, because their answers depend on the steps.

Where times never decrease all of them find the right message or its neighbour; where a clock was set back, or messages
are gone, the result depends on which units are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from mqindex._native.consume_queue import decode_units
from mqindex.errors import FileStateError, FormatError, was_cut
from mqindex.files.paths import parent_of, status_of
from mqindex.files.places.place import Place
from mqindex.rocketmq.layout import QUEUE_UNIT_SIZE
from mqindex.rocketmq.queue.queue_files import UnitFiles

if TYPE_CHECKING:
    from mqindex.rocketmq.log.commit_log import CommitLog

Boundary = Literal["lower", "upper"]

_SYS_FLAG = 36
_BORN_IPV6 = 1 << 4
_STORE_TIMESTAMP = 56  # where the born host has 8 bytes


class _File(NamedTuple):
    """The units [first, stop) that can be read of one file."""

    path: str
    first: int
    stop: int


class _Units:
    """Where single units lead, and when those messages were stored."""

    def __init__(self, units: UnitFiles, log: CommitLog) -> None:
        self._units, self._log = units, log
        self.min_phy_offset = log.min_phy_offset

    def place(self, number: int) -> tuple[int, int]:
        """(phy_offset, size) of a unit; (-1, 0) where none can be read."""
        for part in self._units.stretches(number, number + 1):
            phys, sizes, _ = decode_units(part.buf, part.start, part.stop)
            return int(phys[0]), int(sizes[0])
        return -1, 0

    def time(self, number: int) -> int:
        """The store_timestamp of a unit's message, -1: it cannot be read."""
        return pickup_store_timestamp(self._log, *self.place(number))


def pickup_store_timestamp(log: CommitLog, phy_offset: int, size: int) -> int:
    """The store_timestamp that a message at this place would have; -1: the log does not hold these bytes.

    Source: RocketMQ 4.9.3 `CommitLog.pickupStoreTimestamp`, which does not check whether a message begins there.
    """
    try:
        file, mapped = log._map_at(phy_offset)
    except FormatError as error:
        if was_cut(error):
            raise
        return -1
    at = phy_offset - file.start
    if size < _STORE_TIMESTAMP + 8 or at + size > min(file.size, mapped.size):
        return -1
    buf = memoryview(mapped.window(at, at + size))
    born_ipv6 = int.from_bytes(buf[at + _SYS_FLAG : at + _SYS_FLAG + 4], "big") & _BORN_IPV6
    at += _STORE_TIMESTAMP + (12 if born_ipv6 else 0)
    return int.from_bytes(buf[at : at + 8], "big", signed=True)


def offset_by_time(units: UnitFiles, low: int, end: int, ms: int, log: CommitLog, boundary: Boundary | None) -> int:
    """The queue offset at a time, of the units [low, end); by a boundary one of them, or `end`."""
    files = [
        _File(file.path, first, max(min(file.stop // QUEUE_UNIT_SIZE, end), first))
        for file in units.files
        if (first := file.start // QUEUE_UNIT_SIZE) <= end
    ]
    if boundary is None:
        return _by_file_time(files, ms, low, _Units(units, log))
    return min(max(_by_boundary(files, ms, low, _Units(units, log), boundary), low), end)


def _by_file_time(files: Sequence[_File], ms: int, first: int, at: _Units) -> int:
    """RocketMQ 4.x: the file by its time of modification, in it the unit whose message is nearest in time.

    Source: RocketMQ 4.9.3 `ConsumeQueue.getOffsetInQueueByTime`, `MappedFileQueue.getMappedFileByTime`.
    """
    if not files:
        return 0
    if len(files) > 1 and isinstance(files[0].path, Place):
        raise FileStateError(
            "a broker of RocketMQ 4.x chooses a queue's file by its time of modification, which is not known elsewhere",
            path=parent_of(files[0].path), hint='pass boundary="lower" or boundary="upper"',
        )  # fmt: skip
    file = next((file for file in files if _modified(file.path) >= ms), files[-1])
    search = _Search(max(first, file.first), file.stop - 1)
    if file.first >= file.stop:
        return 0
    found = search.run(at, ms)
    if found is None:
        return 0
    if found < 0:
        found = search.nearest(ms)
    # a search that read no message at all gives the byte before the file
    return found if found >= 0 else (max(file.first * QUEUE_UNIT_SIZE - 1, 0)) // QUEUE_UNIT_SIZE


def _by_boundary(files: Sequence[_File], ms: int, first: int, at: _Units, boundary: Boundary) -> int:
    """RocketMQ 5.1.4 and later: the file by the times of its first or last message, in it the boundary of equal times.

    Source: RocketMQ 5.3.3 `ConsumeQueue.binarySearchInQueueByTime`, `MappedFileQueue.getConsumeQueueMappedFileByTime`.
    """
    lower = boundary == "lower"
    file = _file_by_last(files, ms, at) if lower else _file_by_first(files, ms, at)
    if file is None or file.first >= file.stop:
        return 0
    floor, ceiling = max(first, file.first), file.stop - 1
    if at.time(ceiling) < ms:
        return ceiling + 1 if lower else ceiling
    if floor > ceiling or at.time(floor) > ms:
        return file.first if lower else 0
    search = _Search(floor, ceiling)
    found = search.run(at, ms)
    if found is None:
        return 0
    if found < 0:
        found = search.right if lower else search.left
        return found if found >= 0 else (max(file.first * QUEUE_UNIT_SIZE - 1, 0)) // QUEUE_UNIT_SIZE
    step = -1 if lower else 1
    while floor <= found + step <= ceiling and at.time(found + step) == ms:
        found += step
    return found


class _Search:
    """One binary search over the units low..high. `left`, `right`: the nearest older and newer unit read, -1: none."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high
        self.left = self.right = -1
        self._left_time = self._right_time = -1

    def run(self, at: _Units, ms: int) -> int | None:
        """A unit of exactly this time, -1: there is none, None: a message could not be read."""
        low, high = self._low, self._high
        while high >= low:
            middle = (low + high) // 2
            phy_offset, _ = at.place(middle)
            if phy_offset < at.min_phy_offset:
                low, self.left = middle + 1, middle
                continue
            time = at.time(middle)
            if time < 0:
                return None
            if time == ms:
                return middle
            if time > ms:
                high, self.right, self._right_time = middle - 1, middle, time
            else:
                low, self.left, self._left_time = middle + 1, middle, time
        return -1

    def nearest(self, ms: int) -> int:
        """The neighbour that is nearer in time; the older one if both are equally near."""
        if self._left_time == -1:
            return self.right
        if self._right_time == -1:
            return self.left
        return self.right if abs(ms - self._left_time) > abs(ms - self._right_time) else self.left


def _file_by_last(files: Sequence[_File], ms: int, at: _Units) -> _File | None:
    for file in files[:-1]:
        if _positive(at.time(file.stop - 1)) >= ms:
            return file
    return files[-1] if files else None


def _file_by_first(files: Sequence[_File], ms: int, at: _Units) -> _File | None:
    for file in reversed(files):
        if _positive(at.time(file.first) if file.first < file.stop else -1) <= ms:
            return file
    return None


def _positive(time: int) -> int:
    return time if time > 0 else -1


def _modified(path: str) -> int:
    try:
        return status_of(path).st_mtime_ns // 1_000_000
    except FileNotFoundError:  # a broker has just deleted it
        return -1
