"""`BatchConsumeQueue`: the queue of a topic with `queue.type=BatchCQ`, one unit for each batch of messages (5.0.0+)."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from mqindex._native.numbers import milliseconds, whole_number
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.columns.numbers import Time
from mqindex.errors import MQIndexError
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import join
from mqindex.files.places.place import given_path, require_answer
from mqindex.files.reading.file_maps import FileMaps
from mqindex.rocketmq.directories.wrong_place import refuse_strangers
from mqindex.rocketmq.kinds import require_finished
from mqindex.rocketmq.layout import BATCH_UNIT_SIZE
from mqindex.rocketmq.log.log_files import LogFile, Skipped
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT, BatchUnits, are_valid
from mqindex.rocketmq.queue.queue_files import UnitFiles
from mqindex.rocketmq.queue.queue_names import name_problem
from mqindex.rocketmq.queue.queue_times import Boundary

"""The first broker that has them."""

_AT_ONCE = 1 << 16
_COLUMNS = [name for name in BATCH_UNIT.names or () if name != "reserved"]


class BatchUnit(NamedTuple):
    """One unit: the queue offsets [msg_base_offset, msg_base_offset + batch_size) are in the frame at phy_offset."""

    phy_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    msg_base_offset: int
    batch_size: int
    compacted_offset: int


class BatchConsumeQueue(Closable):
    """The units of one batch queue. Read-only; for several threads, and beside a broker that writes.

    A unit is where the one before it ends, so its place does not show the queue offsets in it; they ascend.

    Notes
    -----
    The end is where recovery finds it: the first unit that is not valid (phy_offset or msg_base_offset below 0, size
    or batch_size not above 0), searched in the last three files.
    Source: RocketMQ 5.3.3 `store/queue/BatchConsumeQueue`. Layout: `mqindex.rocketmq.layout`.

    Examples
    --------
    >>> import struct, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with open(os.path.join(directory, "0" * 20), "xb") as file:  # one unit: the queue offsets 16 to 19
    ...     size = file.write(struct.pack(">qiqqqhii", 0, 500, 0, 1604123001645, 16, 4, 0, 0).ljust(92, bytes(1)))
    >>> with BatchConsumeQueue.open(directory) as queue:
    ...     queue.get(17).msg_base_offset, queue.max_offset_in_queue
    (16, 20)
    """

    _thing = "queue"
    _path_attribute = "directory"

    def __init__(self, files: UnitFiles) -> None:
        self.directory = files.directory
        self._files = files
        self._lock = new_lock()
        self._end: int | None = None
        self._corrected = -1

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
    ) -> BatchConsumeQueue:
        """Open `<store>/batchconsumequeue/<topic>/<queueId>`, a path or a URL.

        Parameters
        ----------
        storage_options : for a URL, as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native

        Raises
        ------
        FileNotFoundError : there is no such directory
        BadMagicError : it only has files of another kind
        """
        where = given_path("directory", directory, storage_options)
        require_finished(where)
        refuse_strangers(where, "a batch consume queue", queues="batchconsumequeue")
        return cls._of(where)

    @classmethod
    def _of(cls, directory: str) -> BatchConsumeQueue:
        """`open` of a directory that is surely a queue's, also where all that is in it is strange."""
        return cls(UnitFiles(directory, BATCH_UNIT_SIZE, FileMaps("queue")))

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files (path, start, size), by start; a start is the queue's byte, 46 a unit."""
        self._look()
        return tuple(self._files.files)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What else is in the directory (path, reason)."""
        return tuple(self._files.skipped)

    @property
    def min_offset_in_queue(self) -> int:
        """The first queue offset, or what `correct_min_offset` made of it; -1: there is no unit."""
        first, end = self._bounds()
        return max(int(self._at(first)["msg_base_offset"]), self._corrected) if first < end else -1

    @property
    def max_offset_in_queue(self) -> int:
        """The queue offset that the next message will have; 0 for a queue without units."""
        first, end = self._bounds()
        if first >= end:
            return 0
        return _stop_of(self._at(end - 1))

    def units(self, start: int | None = None, stop: int | None = None) -> Columns:
        """The units that hold any of the queue offsets [start, stop).

        Returns
        -------
        Columns : phy_offset, tags_code, store_timestamp, msg_base_offset int64, size, compacted_offset int32,
            batch_size int16
        """
        start = None if start is None else whole_number("start", start)
        stop = None if stop is None else whole_number("stop", stop)
        first, end = self._bounds()
        low = first if start is None else max(self._holding(start, first, end), first)
        high = end if stop is None else self._first_from(stop, first, end)
        if start is not None and low < high and _stop_of(self._at(low)) <= start:
            low += 1
        rows = self._rows(low, high)
        return Columns({name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in _COLUMNS}, len(rows))

    def _runs(self) -> list[range]:
        """The queue offsets of files between which none is missing."""
        runs: list[range] = []
        for part in self._parts(*self._bounds()):
            start = runs.pop().start if runs and runs[-1].stop == part.start else part.start
            runs.append(range(start, part.stop))
        return [range(int(self._at(run[0])["msg_base_offset"]), _stop_of(self._at(run[-1]))) for run in runs]

    def _bounds(self) -> tuple[int, int]:
        """The numbers of the first unit, and after the last."""
        end = self._look()
        return min(self._files.first, end), end

    def _numbers(self, start: int, stop: int) -> tuple[int, int]:
        """Of the units whose frames begin in the phy offsets [start, stop), where these ascend."""
        first, end = self._bounds()
        return self._search("phy_offset", start, first, end), self._search("phy_offset", stop, first, end)

    def _blocks(self, low: int, high: int) -> Iterator[tuple[int, BatchUnits]]:
        """The stored units [low, high), some at a time: the number of the first of them, and these."""
        for part in self._parts(low, high):
            for at in range(part.start, part.stop, _AT_ONCE):
                yield at, self._rows(at, min(at + _AT_ONCE, part.stop))

    def _place(self, number: int) -> tuple[str, int]:
        """Where a unit is: a file, and a byte of it."""
        file = self._files.files[self._files.index_of(number)]
        return file.path, number * BATCH_UNIT_SIZE - file.start

    def get(self, queue_offset: int) -> BatchUnit | None:
        """The unit that holds `queue_offset`, with the columns of `units` as fields; None: it is not in the queue."""
        queue_offset = whole_number("queue_offset", queue_offset)
        first, end = self._bounds()
        number = self._holding(queue_offset, first, end)
        if not first <= number < end:
            return None
        unit = self._at(number)
        if queue_offset >= _stop_of(unit):
            return None
        return BatchUnit(*(int(unit[name]) for name in _COLUMNS))

    def get_offset_in_queue_by_time(self, ms: Time, *, boundary: Boundary = "lower") -> int:
        """The first queue offset of a unit by its time, as the broker answers.

        Parameters
        ----------
        ms : int, ms since the epoch, or an aware datetime or a datetime64
        boundary : "lower" or "upper", see Notes

        Notes
        -----
        The file is the last one that begins at that time or before, so equal times in an earlier file are not seen.
        In it the first ("lower") or last ("upper") unit of that time; if the search finds none, "lower" gives the next
        newer one and "upper" the minimum. At the time of the file's last unit or after it, that unit. Without any unit,
        the minimum.
        Source: RocketMQ 5.3.3 `BatchConsumeQueue.getOffsetInQueueByTime`, `binarySearchRight`,
        `DefaultMessageStore.getOffsetInQueueByTime`.
        """
        if boundary not in ("lower", "upper"):
            raise ValueError(f"boundary: expected 'lower' or 'upper', got {boundary!r}")
        ms = milliseconds("ms", ms)
        end = self._bounds()[1]
        parts = [(part.first + part.start, part.first + part.stop) for part in self._files.stretches(0, end)]
        if not parts:
            return -1
        begun = [(self._time(first), number) for number, (first, _) in enumerate(parts)]
        _, number = max((one for one in begun if one[0] <= ms), default=begun[0])
        low, high = parts[number][0], parts[number][1] - 1
        found = high if ms >= self._time(high) else self._by_time(ms, low, high, boundary == "lower")
        return max(int(self._at(found)["msg_base_offset"]) if found >= 0 else -1, self.min_offset_in_queue)

    def correct_min_offset(self, min_phy_offset: int) -> int:
        """Move the minimum to the first unit whose frame is not below `min_phy_offset`; returns it. Nothing is written.

        Source: RocketMQ 5.3.3 `BatchConsumeQueue.correctMinOffset`.
        """
        min_phy_offset = whole_number("min_phy_offset", min_phy_offset)
        first, end = self._bounds()
        kept = self._search("phy_offset", min_phy_offset, first, end)
        if kept > first:
            self._corrected = max(self._corrected, _stop_of(self._at(self._before(kept))))
        return self.min_offset_in_queue

    def close(self) -> None:
        """Close the files; may be called twice."""
        self._closed = True
        self._files.maps.close()

    def __repr__(self) -> str:
        return f"BatchConsumeQueue({self.directory!r}, {plural(len(self._files.files), 'file')})"

    def _look(self) -> int:
        """The number after the last unit, as it is now."""
        self._require_open()
        with self._lock:
            end = self._files.end(_check, self._end).number
            while self._files.is_full(end) and self._files.relist():
                end = self._files.end(_check, end or None).number
            self._end = end
            return end

    def _rows(self, start: int, stop: int) -> BatchUnits:
        """The units with the numbers [start, stop), copied."""
        parts = [_copied(part.buf, part.start, part.stop) for part in self._files.stretches(start, stop)]
        return np.concatenate(parts) if parts else np.empty(0, BATCH_UNIT)

    def _at(self, number: int) -> Any:
        rows = self._rows(number, number + 1)
        return rows[0] if len(rows) else np.zeros(1, BATCH_UNIT)[0]

    def _parts(self, low: int, high: int) -> list[range]:
        """The numbers in [low, high) of each file: those of a missing file are in none."""
        borders = [(file.start // BATCH_UNIT_SIZE, file.stop // BATCH_UNIT_SIZE) for file in self._files.files]
        return [part for start, stop in borders if (part := range(max(low, start), min(high, stop)))]

    def _search(self, name: str, value: int, low: int, high: int) -> int:
        """The first number in [low, high) whose field is `value` or more."""

        def field(number: int) -> int:
            return int(self._at(number)[name])

        parts = self._parts(low, high)
        begun = bisect_left(parts, value, key=lambda part: field(part.start))
        if begun:
            part = parts[begun - 1]
            found = bisect_left(part, value, key=field)
            if found < len(part):
                return part[found]
        return parts[begun].start if begun < len(parts) else high

    def _before(self, number: int) -> int:
        """The number of the unit before one: a file may be missing between them."""
        at = self._files.index_of(number - 1)
        return number - 1 if at < 0 else min(number, self._files.files[at].stop // BATCH_UNIT_SIZE) - 1

    def _time(self, number: int) -> int:
        return int(self._at(number)["store_timestamp"])

    def _by_time(self, ms: int, low: int, high: int, lower: bool) -> int:
        while low <= high:
            middle = (low + high) // 2
            time = self._time(middle)
            if middle in (low, high):
                if time >= ms:
                    return middle
                if middle == high:
                    return -1
                low = middle + 1
            elif lower:
                low, high = (middle + 1, high) if time < ms else (low, middle)
            else:
                low, high = (middle, high) if time <= ms else (low, middle - 1)
        return -1

    def _first_from(self, queue_offset: int, first: int, end: int) -> int:
        return self._search("msg_base_offset", queue_offset, first, end)

    def _holding(self, queue_offset: int, first: int, end: int) -> int:
        """The last unit that begins at `queue_offset` or before; below `first`: none."""
        return self._before(self._search("msg_base_offset", queue_offset + 1, first, end))


def batch_queue_end(home: str, topic: str, queue_id: int) -> int | None:
    """The queue offset that the next message of this queue below `home` will have; None: it is not there, or not read.

    A log does not tell it: its records have the queue offset of their first message.
    """
    if name_problem(topic, queue_id):
        return None
    place = join(home, topic, str(queue_id))
    try:
        with BatchConsumeQueue._of(place) as queue:
            return queue.max_offset_in_queue
    except (MQIndexError, OSError) as error:
        require_answer(error, place)
        return None


def _stop_of(unit: Any) -> int:
    """The queue offset after a unit."""
    return int(unit["msg_base_offset"]) + int(unit["batch_size"])


def _copied(buf: Any, start: int, stop: int) -> BatchUnits:
    """Copy units: slicing a mapping checks whether the file was cut, a view of it would read zeros."""
    return np.frombuffer(buf[start * BATCH_UNIT_SIZE : stop * BATCH_UNIT_SIZE], BATCH_UNIT)


def _check(buf: Any, start: int, stop: int) -> int:
    for at in range(start, stop, 4096):
        fine = are_valid(_copied(buf, at, min(at + 4096, stop)))
        if not fine.all():
            return at + int(np.argmin(fine))
    return stop
