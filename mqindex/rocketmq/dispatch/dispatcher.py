"""What was read of a log, and how it is put into index and queues: in the log's order, in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import group_units
from mqindex.errors import OffsetOverflowError
from mqindex.rocketmq.log.log_entries import RUN_ENTRY, UNIT, copy_rows
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem

if TYPE_CHECKING:
    from mqindex._native.log_extract import QueueTable
    from mqindex.rocketmq.index.index_service import IndexService
    from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable


class DispatchBuffer:
    """Entries and units that follow each other in a log, copied into memory that is used again.

    Attributes
    ----------
    messages : of how many messages all were added, counted since the last `clear`. last_message : the last of them.
    phy_offset : all of those before it were added, here or before; None: as far as before.
    """

    def __init__(self) -> None:
        self._entries, self._units = _Rows(RUN_ENTRY), _Rows(UNIT)
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._entries.used = self._units.used = self.messages = 0
        self.last_message = -1
        self.phy_offset: int | None = None

    def add(self, entries: npt.NDArray[Any], units: npt.NDArray[Any]) -> None:
        """The entries and units that follow."""
        self._entries.add(entries)
        self._units.add(units)

    def end(self, messages: int, last_message: int, phy_offset: int) -> None:
        """Those of so many more messages were added, the last of all at `last_message`: of all before `phy_offset`."""
        self.messages += messages
        self.last_message, self.phy_offset = last_message, phy_offset

    @property
    def entries(self) -> npt.NDArray[Any]:
        """Array of `RUN_ENTRY`."""
        return self._entries.rows

    @property
    def units(self) -> npt.NDArray[Any]:
        """Array of `UNIT`."""
        return self._units.rows


class _Rows:
    """Rows of one type, one behind the other; `used` of them count."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._room = np.empty(0, dtype)
        self.used = 0

    def add(self, rows: npt.NDArray[Any]) -> None:
        end = self.used + len(rows)
        if end > len(self._room):
            room = np.empty(2 * end, self._room.dtype)
            copy_rows(room[: self.used], self.rows)
            self._room = room
        copy_rows(self._room[self.used : end], rows)
        self.used = end

    @property
    def rows(self) -> npt.NDArray[Any]:
        return self._room[: self.used]


class Dispatcher:
    """Puts stretches of a log into index and queues. For one thread at a time.

    Entries below the end of the last index file are passed over as by the broker; units that a queue has already are
    passed over by the queue, and where the log lost messages, it gets blanks, as from a rebuild. Units of queues that
    cannot be files are counted in `refused`.

    Parameters
    ----------
    index : writable, or None: no index. queues : writable, or None: no queues.
    table : numbers the queues of units.
    indexed : the index has the entries of all messages before this phy offset.
    batch_topics : topics whose queues are of the other kind, which is not written.

    Attributes
    ----------
    messages, entries, units : counts of what was put.
    phy_offset : everything before it was put.
    store_timestamp : of the last message put. queued_phy_offset : the last one that is in a queue.

    Notes
    -----
    Source: RocketMQ 4.9.3 `CommitLogDispatcherBuildConsumeQueue`, `CommitLogDispatcherBuildIndex`.
    """

    def __init__(
        self,
        index: IndexService | None,
        queues: ConsumeQueueTable | None,
        table: QueueTable,
        *,
        start: int,
        indexed: int,
        batch_topics: frozenset[str],
    ) -> None:
        self._index, self._queues, self._table = index, queues, table
        end = index.files[-1].header.end_phy_offset if index is not None and index.files else 0
        self._skip = max(end, indexed)
        self._sorted = np.empty(0, UNIT)
        self._names: list[QueueName] = []
        self._numbered: list[ConsumeQueue | None] = []
        self._number_of: dict[QueueName, int] = {}
        self._twins: dict[int, int] = {}
        self._batch_topics = batch_topics
        self.refused: dict[QueueName, int] = {}
        self.messages = self.entries = self.units = 0
        self.phy_offset = start
        self.store_timestamp = self.queued_phy_offset = 0

    def name_queues(self) -> None:
        """Take over the queues that the table has met since: before the stretch that has their units is put.

        Two that differ in their bytes may have the same name.
        """
        known = len(self._names)
        if len(self._table) == known:
            return
        self._names = self._table.names()
        self._numbered += [None] * (len(self._names) - known)
        for number, name in enumerate(self._names[known:], known):
            if (first := self._number_of.setdefault(name, number)) != number:
                self._twins[number] = first

    def put(self, stretch: DispatchBuffer) -> None:
        """Put what follows. After an exception index and queues may differ."""
        self._put_entries(stretch.entries)
        self._put_units(stretch.units)
        if stretch.messages:
            self._have_index_file(stretch.last_message)
        self.messages += stretch.messages
        if stretch.phy_offset is not None:
            self.phy_offset = stretch.phy_offset

    def _put_entries(self, entries: npt.NDArray[Any]) -> None:
        if self._index is None or not len(entries):
            return
        if entries["phy_offset"][0] < self._skip:
            entries = entries[np.searchsorted(entries["phy_offset"], self._skip) :]
        self.entries += self._index._put_run(entries)
        if self._queues is None and len(entries):
            self.store_timestamp = int(entries["store_timestamp"][-1])

    def _have_index_file(self, last_message: int) -> None:
        """A message makes the broker create the file that its keys would go to, even if it has none."""
        if self._index is None:
            return
        files = self._index.files
        if not files or (files[-1].is_write_full() and last_message > files[-1].header.end_phy_offset):
            self._index._create_index_file()

    def _put_units(self, units: npt.NDArray[Any]) -> None:
        if self._queues is None or not len(units):
            return
        for number, first in self._twins.items():
            units["queue"][units["queue"] == number] = first
        if len(self._sorted) < len(units) and len(self._names) > 1:
            self._sorted = np.empty(2 * len(units), UNIT)
        grouped, offsets = group_units(units, len(self._names), self._sorted)
        counts = np.diff(offsets)
        for number in np.flatnonzero(counts).tolist():
            queue = self._queue(number, int(counts[number]))
            if queue is not None:
                self._put_into(queue, number, grouped[offsets[number] : offsets[number + 1]])
        self.store_timestamp, self.queued_phy_offset = int(units["store_timestamp"][-1]), int(units["phy_offset"][-1])

    def _put_into(self, queue: ConsumeQueue, number: int, units: npt.NDArray[Any]) -> None:
        try:
            self.units += queue._put_units(units, fill_holes=True).written
        except OffsetOverflowError:  # queue offsets that no broker gives: the message is in no queue
            self._refuse(self._names[number], len(units))

    def _refuse(self, name: QueueName, units: int) -> None:
        self.refused[name] = self.refused.get(name, 0) + units

    def _queue(self, number: int, units: int) -> ConsumeQueue | None:
        queue = self._numbered[number]
        if queue is None:
            name = self._names[number]
            if self._queues is None or name[0] in self._batch_topics or name_problem(*name) is not None:
                self._refuse(name, units)
                return None
            queue = self._numbered[number] = self._queues.find_or_create(*name)
        return queue
