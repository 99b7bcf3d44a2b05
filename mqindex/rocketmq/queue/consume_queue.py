"""`ConsumeQueue`: the units of one queue of one topic, which lead to its messages in the commit log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import are_sound, check_units, decode_units
from mqindex._native.numbers import int64, milliseconds, whole_number
from mqindex._native.owner import Owner
from mqindex._native.queue_view import QueueView
from mqindex._words import plural
from mqindex.columns.columns import Columns
from mqindex.columns.limits import whole_count, whole_number_from
from mqindex.errors import ReadOnlyFileError, require_switch
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import absolute, base_name, parent_of
from mqindex.files.places.place import given_path, require_here
from mqindex.files.reading.file_maps import FileMaps
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.directories.wrong_place import refuse_other_place
from mqindex.rocketmq.kinds import require_finished
from mqindex.rocketmq.layout import QUEUE_FILE_SIZE, QUEUE_UNIT_SIZE
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.log.log_files import LogFile, Skipped
from mqindex.rocketmq.queue.last_view import LastView
from mqindex.rocketmq.queue.queue_files import End, UnitFiles, file_size_of, given_file_size
from mqindex.rocketmq.queue.queue_tail import PutUnits, QueueTail
from mqindex.rocketmq.queue.queue_times import Boundary, offset_by_time
from mqindex.rocketmq.queue.queue_units import (
    QueueBounds,
    Taken,
    all_columns,
    count_blanks,
    last_end,
    take_units,
)
from mqindex.rocketmq.queue.tags_codes import TagsCodes, wanted_hashes

if TYPE_CHECKING:
    from mqindex.columns.numbers import Time
    from mqindex.rocketmq.log.commit_log import CommitLog
    from mqindex.rocketmq.queue.consume_queue_ext import ConsumeQueueExt

_T = TypeVar("_T")
_Ints = npt.NDArray[np.int64]


class ConsumeQueue(Closable):
    """One queue: unit `q` leads to the message of queue offset `q`.

    A queue that a broker is writing may be read meanwhile: `max_offset_in_queue` looks again each time. Readers may be
    in several threads, and beside one thread that writes. Of a store's queues one at a time may be open for writing, or
    the table of all (`ConsumeQueueTable`), in one process and beside no broker: another is a `StoreInUseError`.

    Attributes
    ----------
    files : tuple of LogFile (path, start, size), by start; a start is the queue's byte, 20 a unit.
    skipped : tuple of Skipped (path, reason), what else is in the directory.
    file_size : int, bytes of each file.

    Notes
    -----
    The end is where recovery finds it: the first unit that is not valid (phy_offset below 0 or size not above 0),
    looked for in the last three files. Blank units, with which a broker fills a queue that begins later, are not among
    the units. Source: RocketMQ 4.9.3 `store/ConsumeQueue`. Layout: `mqindex.rocketmq.layout`.

    Examples
    --------
    >>> import tempfile
    >>> from mqindex.rocketmq import tag_hash
    >>> with ConsumeQueue.open(tempfile.mkdtemp(), writable=True) as queue:
    ...     written = [queue.put_message_position_info(100 * q, 100, tag_hash("TagA"), q) for q in range(3)]
    ...     queue.max_offset_in_queue, queue.units(1)["phy_offset"].tolist(), queue.select(["TagB"]).tolist()
    (3, [100, 200], [])
    """

    _thing = "queue"
    _path_attribute = "directory"

    def __init__(
        self, units: UnitFiles, file_size: int, ext: ConsumeQueueExt | None, writable: bool, owns_maps: bool = True
    ) -> None:
        self.directory = units.directory
        self.file_size = file_size
        self.ext = ext
        self._units = units
        self._owns_maps = owns_maps
        self._owner = Owner(units.directory)
        self._held = ExitStack()  # the right to write there alone, where no table has it
        self._lock = new_lock()
        self._end: int | None = None  # as of the last look
        self._tail = QueueTail(units, file_size, units.end(check_units).number) if writable else None
        self._corrected = 0
        self._first: tuple[int, int] | None = None  # the first unit of all, and the first that is no blank
        self._codes = TagsCodes(ext)
        self._view = LastView(units)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        file_size: int | None = None,
        writable: bool = False,
        ext: ConsumeQueueExt | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> ConsumeQueue:
        """Open the queue in `<store>/consumequeue/<topic>/<queueId>`, a path or a URL.

        Parameters
        ----------
        file_size : int or None
            What every file is long (mappedFileSizeConsumeQueue, in whole units); None: as most files are, 6 000 000
            where there are none.
        writable : bool; True: also creates the directory.
        ext : ConsumeQueueExt or None
            Where the addresses lead that are in place of tags codes. None: they stay what they are.
        storage_options : for a URL, as of `obstore.store.from_url`, for `hdfs://` the configuration of hdfs-native

        Raises
        ------
        FileNotFoundError : there is no such directory, and it is not to be written
        BadMagicError : it is to be read, and is a store's root, a directory of queues, another part of a store, or
            nothing but files of others is in it
        GeometryError : it is to be written, and a file has another size
        StoreInUseError : it is to be written, and a broker or another writer has it
        """
        require_switch("writable", writable)
        where = given_path("directory", directory, storage_options)
        require_finished(where)
        with ExitStack() as held:
            if writable:
                require_here(where)
                disk.make_directories(where, inherit=True)
                held.enter_context(store.hold_part(_all_queues(where), "queue"))
            else:
                refuse_other_place(where, "consumequeue", has_files=False)
            queue = cls._of(where, FileMaps("queue"), file_size=file_size, writable=writable, ext=ext)
            queue._held = held.pop_all()
            return queue

    @classmethod
    def _of(
        cls,
        directory: str,
        maps: FileMaps,
        *,
        file_size: int | None,
        writable: bool,
        ext: ConsumeQueueExt | None,
        shared: bool = False,
    ) -> ConsumeQueue:
        """`open` with maps that may be `shared` with other queues, and then are not closed with this one."""
        given = given_file_size(file_size)
        units = UnitFiles(directory, QUEUE_UNIT_SIZE, maps)
        size = given or file_size_of(units.files, QUEUE_UNIT_SIZE) or QUEUE_FILE_SIZE
        return cls(units, size, ext, writable, not shared)

    # ---- what there is

    @property
    def files(self) -> tuple[LogFile, ...]:
        """The files, by start."""
        self._look()
        return tuple(self._units.files)

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What else is in the directory."""
        return tuple(self._units.skipped)

    @property
    def min_offset_in_queue(self) -> int:
        """The queue offset of the first unit, or what `correct_min_offset` made of it."""
        self._look()
        with self._lock:
            return self._min()

    @property
    def max_offset_in_queue(self) -> int:
        """The queue offset that the next unit will have; 0 for a queue without files."""
        return self._look()

    @property
    def min_logic_offset(self) -> int:
        """The byte of the queue at which its first unit is."""
        return self.min_offset_in_queue * QUEUE_UNIT_SIZE

    @property
    def max_phy_offset(self) -> int:
        """The phy offset after the last unit's message; -1: there is no unit."""
        return self.bounds().max_phy_offset

    def bounds(self) -> QueueBounds:
        """`min_offset_in_queue`, `max_offset_in_queue` and `max_phy_offset`, all of one look."""
        self._require_open()
        with self._lock:
            if self._tail is not None:
                return QueueBounds(self._min(), self._tail.end, self._tail.max_phy_offset)
            end = self._see()
            first = self._first_unit()
            behind = last_end(self._units, end) if first < end.number else -1
            return QueueBounds(max(first, self._corrected), end.number, behind)

    def _file_of(self, queue_offset: int) -> LogFile | None:
        """The file that has the place of a queue offset, as last listed; None: there is none."""
        return self._units.file_of(queue_offset)

    def _viewed(self, queue_offset: int, bounds: QueueBounds, parts: _Ints) -> QueueView | None:
        """The file of a queue offset, and the end of the queue, for calls while its bounds are these.

        None: they have changed, or it takes more than a look at the last file to see it. `parts` as for `take`.
        """
        if self._tail is not None or self.ext is not None or self.bounds() != bounds:
            return None
        with self._lock:
            end = self._see()
            if self._closed or end.number != bounds.max_offset:
                return None
            return self._view.of(queue_offset, bounds.min_offset, end, parts)

    # ---- reading

    def units(self, start: int | None = None, stop: int | None = None) -> Columns:
        """The units of the queue offsets [start, stop), as far as there are any.

        Returns
        -------
        Columns : queue_offset int64, phy_offset int64, size int32, tags_code int64
            Consecutive queue offsets, unless a file of the queue is missing. A tags code is the hash of TAGS, the time
            of delivery in the topic SCHEDULE_TOPIC_XXXX, or an address that leads nowhere.
        """
        offsets, phys, sizes, codes = all_columns(self._units, *self._range(start, stop))
        return Columns(
            {"queue_offset": offsets, "phy_offset": phys, "size": sizes, "tags_code": self._codes.resolved(codes)}
        )

    def select(self, tags: Iterable[str | int], start: int | None = None, stop: int | None = None) -> _Ints:
        """The queue offsets in [start, stop) that a broker's filter lets pass: ndarray of int64, shape (m,), ascending.

        Only hashes are compared: another tag may have the same, the message itself settles it. A unit whose address
        leads nowhere passes, as in the broker.

        Parameters
        ----------
        tags : strings, or their hashes (`tag_hash`)
        """
        wanted = wanted_hashes(tags)
        found = [
            part.first + self._codes.passing(part, wanted) for part in self._units.stretches(*self._range(start, stop))
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _take(self, start: int, stop: int, room: int, hashes: npt.NDArray[np.int32] | None, parts: _Ints) -> Taken:
        """The first `room` units that `select` gives of [start, stop), which is within the bounds.

        Parameters
        ----------
        hashes : int32[k], of tags; None: every unit passes
        parts : int64[2, m], where the files of the log begin and where what they hold ends
        """
        self._require_open()
        follows = self.ext is not None and hashes is not None
        taken = take_units(self._units, start, stop, room, hashes, parts, codes=follows)
        if hashes is None or taken.tags_codes is None:
            return taken
        return taken.where(self._codes.fitting(taken.tags_codes, hashes))

    def get_offset_in_queue_by_time(self, ms: Time, commit_log: CommitLog, *, boundary: Boundary | None = None) -> int:
        """The queue offset at a time, as the broker answers.

        Parameters
        ----------
        ms : int, ms since the epoch, or an aware datetime or a datetime64
        commit_log : CommitLog, which knows when messages were stored
        boundary : None, "lower" or "upper"
            None: the rule of RocketMQ 4.x, the message nearest in time in a file chosen by its time of modification,
            which a copy of the store has lost; several files elsewhere are a `FileStateError`. "lower", "upper": the
            rule since 5.1.4, the first message at or after that time, the last one at or before it; never an offset
            outside of the queue.
        """
        if boundary not in (None, "lower", "upper"):
            raise ValueError(f"boundary: expected None, 'lower' or 'upper', got {boundary!r}")
        ms = milliseconds("ms", ms)
        from mqindex.rocketmq.log.commit_log import CommitLog  # here: who reads units alone does not wait for it

        if not isinstance(commit_log, CommitLog):
            raise TypeError(f"commit_log: expected a CommitLog, got {commit_log!r:.80}")
        low, end = self.min_offset_in_queue, self._look()
        return offset_by_time(self._units, low, end, ms, commit_log, boundary)

    # ---- what a broker does to a queue

    def correct_min_offset(self, min_phy_offset: int) -> int:
        """Move the minimum to the first unit whose message is not below `min_phy_offset`, the log's; returns it.

        Nothing is written. Where no unit is left that leads into the log, the queue is empty and begins at its end:
        the rule of 5.0 and later; 4.9.3 leaves the minimum where it was.
        Source: RocketMQ 5.3.3 `ConsumeQueue.correctMinOffset`.
        """
        min_phy_offset = whole_number("min_phy_offset", min_phy_offset)
        end = self._look()
        with self._lock:
            self._view.forget()
            for part in self._units.stretches(self._min(), end):
                last, _, _ = decode_units(part.buf, part.stop - 1, part.stop)
                if int(last[0]) < min_phy_offset:
                    continue
                phys, _, _ = decode_units(part.buf, part.start, part.stop)
                self._corrected = part.first + part.start + int(np.argmax(phys >= min_phy_offset))
                return self._corrected
            self._corrected = max(end, self._corrected)
            return self._corrected

    def put_message_position_info(self, phy_offset: int, size: int, tags_code: int, queue_offset: int) -> bool:
        """Append one unit; False: it is there already, nothing was written.

        Parameters
        ----------
        phy_offset, size : int, bytes: where the message's frame begins, and its whole length
        tags_code : int, `tag_hash` of TAGS, 0 without; the time of delivery in SCHEDULE_TOPIC_XXXX
        queue_offset : int, the message's own

        Notes
        -----
        As in the broker, a message that ends where the last one does or before it is there already, and one whose
        queue offset lies before the end, unless that offset is 0; a queue offset after the end is ignored and the
        unit is written at the end; the first unit of all is preceded by blank units from the file's start on.
        Source: RocketMQ 4.9.3 `ConsumeQueue.putMessagePositionInfo`.
        """
        unit = np.zeros(1, UNIT)
        unit["phy_offset"], unit["size"] = whole_count("phy_offset", phy_offset), whole_number_from(1, "size", size)
        unit["tags_code"] = int64("tags_code", whole_number("tags_code", tags_code))
        unit["queue_offset"] = int64("queue_offset", whole_number("queue_offset", queue_offset))
        return self._put_units(unit).written == 1

    def _put_units(self, units: npt.NDArray[Any], *, fill_holes: bool = False) -> PutUnits:
        """Append units of this queue in the log's order, an array of `log_entries.UNIT` (`queue` is ignored).

        `fill_holes`: where the log lost messages, blanks are written for them, as `UnitPlaces` does.

        Returns
        -------
        PutUnits : counts of the units written, repeated (there already) and misplaced (written after a hole)

        Raises
        ------
        OSError : the disk is full; what was there is untouched, and the call may be repeated
        """
        units = np.ascontiguousarray(units)
        if not are_sound(units):
            raise ValueError("units: expected phy offsets of 0 or more and sizes above 0, a unit without them is none")
        return self._write(lambda tail: tail.put(units, fill_holes=fill_holes))

    def truncate_dirty_logic_files(self, phy_offset: int) -> None:
        """Cut off the units from the first one on that leads to `phy_offset` or after it, and zero their bytes.

        Files without a unit left are deleted, and blank units at the end. Source: RocketMQ 4.9.3
        `ConsumeQueue.truncateDirtyLogicFiles`, which moves the position of writing only, and keeps blanks.
        """
        cut = whole_number("phy_offset", phy_offset)
        self._write(lambda tail: tail.truncate(cut))

    def flush(self) -> None:
        """Return when all units are on the disk; after a failed sync every call is that `OSError`: open it again."""
        if self._tail is not None:
            self._write(QueueTail.flush)

    def close(self) -> None:
        """Let the files go; may be called twice and changes no byte."""
        self._closed = True
        with self._lock:
            self._view.forget()
            if self._owns_maps:
                self._units.maps.close()
            self._held.close()

    def __repr__(self) -> str:
        return f"ConsumeQueue({self.directory!r}, {plural(len(self._units.files), 'file')})"

    # ---- within

    def _write(self, call: Callable[[QueueTail], _T]) -> _T:
        if self._tail is None:
            self._require_open()
            raise ReadOnlyFileError("the queue is read-only", path=self.directory, hint="open it with writable=True")
        self._owner.require()
        with self._lock:
            self._require_open()  # still: another writer may have it now
            return call(self._tail)

    def _look(self) -> int:
        """The end as it is now."""
        self._require_open()
        if self._tail is not None:
            return self._tail.end
        with self._lock:
            return self._see().number

    def _see(self) -> End:
        end = self._units.end(check_units, self._end)
        while self._units.is_full(end.number) and self._units.relist():
            end = self._units.end(check_units, end.number or None)
        self._end = end.number
        return end

    def _min(self) -> int:
        return max(self._first_unit(), self._corrected)

    def _first_unit(self) -> int:
        if self._tail is not None:
            return self._tail.first
        if self._units.files and not disk.is_there(self._units.files[0].path):
            self._units.relist()  # a broker deletes what has expired
        end = self._end or 0
        if self._first is None or self._first[0] != self._units.first or self._first[1] >= end:
            first = self._units.first
            self._first = first, first + count_blanks(self._units, first, end)
        return min(self._first[1], end)

    def _range(self, start: int | None, stop: int | None) -> tuple[int, int]:
        low, end = self.min_offset_in_queue, self._look()
        first = low if start is None else max(whole_number("start", start), low)
        return first, end if stop is None else min(whole_number("stop", stop), end)


def _all_queues(directory: str) -> str:
    """What a writer of one queue holds: the directory of all queues of its store; outside of one, the queue's own."""
    above = parent_of(parent_of(absolute(directory)))
    return above if base_name(above) == "consumequeue" else directory
