"""Dispatch: from a commit log into consume queues and index, once or following a log that grows.

```
commit log ── GrowingLog ──▶ entries ──▶ IndexService      (put as they come)
                         └─▶ units   ──▶ ConsumeQueueTable (gathered, grouped by queue, put in bulk)
```
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mqindex._native.consume_queue import gather_units, group_units
from mqindex.errors import OffsetOverflowError
from mqindex.files.closable import Closable
from mqindex.rocketmq.log.growing_log import SETTLE_SECONDS, GrowingLog
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.queue.queue_names import QueueName, name_problem
from mqindex.rocketmq.queue.queue_rules import QueueRules

if TYPE_CHECKING:
    from mqindex.rocketmq.index.index_service import IndexService
    from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable

__all__ = ["OnReput", "ProgressMeter", "Reput", "ReputProgress", "ReputResult", "Stop"]

_GATHERED = 1 << 15  # units put at a time, at least: so many that the cost of each queue is small
_PER_QUEUE = 64  # the same for each queue, where there are many
_MOST_GATHERED = 1 << 20
_LOG_PER_ENTRY = 1024  # bytes, about
_LONGEST_SLEEP = 0.004  # seconds between looks while nothing comes
_PATIENCE = 1.0  # seconds without a message until the sleeps get longer
_REPORT_EVERY = 1.0  # seconds between reports of progress
_FIRST_REPORT = 0.05  # seconds until the first


class ReputResult(NamedTuple):
    """What was dispatched: counts, the phy offsets [from_phy_offset, phy_offset), and the time of the last message."""

    messages: int
    entries: int
    units: int
    from_phy_offset: int
    phy_offset: int
    store_timestamp: int

    def since(self, before: ReputResult) -> ReputResult:
        """What was done after `before`."""
        return self._replace(
            messages=self.messages - before.messages,
            entries=self.entries - before.entries,
            units=self.units - before.units,
            from_phy_offset=before.phy_offset,
        )


@dataclass(frozen=True, slots=True)
class ReputProgress:
    """Where a follower is. `lag_bytes`: of log that was written but not dispatched yet, about."""

    phy_offset: int
    lag_bytes: int
    messages: int
    messages_per_second: float
    store_timestamp: int


OnReput = Callable[[ReputProgress], None]


class Stop(Protocol):
    """What ends following: a `threading.Event` does."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> object: ...


class Reput(Closable):
    """Dispatches a log's messages to queues and index, in the log's order. For one thread.

    The log is only read, and may be another process's. Entries below the end of the last index file are passed over
    as by the broker; units that a queue has already are passed over by the queue. Units of queues that cannot be files
    are counted in `refused`. After an exception index and queues may differ: what was dispatched must be repaired.

    Parameters
    ----------
    directories : where the log's files are.
    index : writable, or None: no index. queues : writable, or None: no queues.
    tags : whether TAGS are indexed too. rules : which units there are.
    start : the phy offset of the first message to dispatch; see `dispatched_offset`.
    indexed : the index has the entries of all messages before this phy offset.
    batch_topics : topics whose queues are of the other kind, which is not written.

    Notes
    -----
    Source: RocketMQ 4.9.3 `DefaultMessageStore.ReputMessageService`, `CommitLogDispatcherBuildConsumeQueue`,
    `CommitLogDispatcherBuildIndex`.
    """

    def __init__(
        self,
        directories: Sequence[str | os.PathLike[str]],
        index: IndexService | None,
        queues: ConsumeQueueTable | None,
        *,
        tags: bool,
        rules: QueueRules,
        start: int,
        indexed: int = 0,
        batch_topics: frozenset[str] = frozenset(),
    ) -> None:
        self._table = rules.table()
        self._log = GrowingLog(directories, start, tags=tags, queues=self._table if queues is not None else None)
        self._index, self._queues = index, queues
        end = index.files[-1].header.end_phy_offset if index is not None and index.files else 0
        self._skip = max(end, indexed)
        self._units = np.empty(2 * _GATHERED, UNIT)
        self._sorted = np.empty(0, UNIT)
        self._gathered = 0
        self._names: list[QueueName] = []
        self._numbered: list[ConsumeQueue | None] = []
        self._number_of: dict[QueueName, int] = {}
        self._twins: dict[int, int] = {}
        self._batch_topics = batch_topics
        self.refused: dict[QueueName, int] = {}
        self.messages = self.entries = self.units = 0
        self.from_phy_offset = start
        self.store_timestamp = self.queued_phy_offset = 0  # of the last message dispatched, the last put into a queue

    @property
    def phy_offset(self) -> int:
        """Everything before it was dispatched."""
        return self._log.phy_offset

    def run_once(self, stop: int | None = None) -> ReputResult:
        """Dispatch what the log holds now. `stop`: where the log is known to end; None: it is found.

        Returns
        -------
        ReputResult : what this call did.

        Raises
        ------
        LogChangedError : the log does not hold any more what was dispatched from it.
        """
        before = self.result()
        self._expect(self._log.lag() if stop is None else stop - self.phy_offset)
        self._turn(stop)
        while self._log.settle():
            self._turn(stop)
        return self.result().since(before)

    def follow(
        self,
        stop: Stop,
        *,
        interval: float = 0.001,
        progress: OnReput | None = None,
        turn: Callable[[], object] | None = None,
        lag: Callable[[], int] | None = None,
    ) -> ReputResult:
        """Dispatch whatever comes until `stop` is set; then all that was read is dispatched.

        interval : seconds between looks at the log; a few ms where nothing came for a while.
        progress : is called about once a second, and at the end.
        turn, lag : for a caller that knows where the log ends: a function that dispatches what came, and one that gives
            the bytes that wait for it.
        """
        before, last = self.result(), False
        pace = _Pace(interval)
        meter = ProgressMeter(self, progress, lag or self.lag)
        while not last:
            last, messages = stop.is_set(), self.messages
            (turn or self._look)()
            if last and turn is None:
                self._put_units()
            meter.report(last=last)
            if not (last or self._log.more):
                stop.wait(pace.sleep(busy=self.messages > messages, waiting=self._log.waiting))
        return self.result().since(before)

    def watch(self) -> None:
        """From now on what was dispatched by others must stay as it is in the log."""
        self._log.watch()

    def lag(self) -> int:
        """About how many bytes of log were written but not dispatched yet."""
        return self._log.lag()

    def result(self) -> ReputResult:
        """What was dispatched since this object was made."""
        return ReputResult(
            self.messages, self.entries, self.units, self.from_phy_offset, self.phy_offset, self.store_timestamp
        )

    def close(self) -> None:
        """Release the log; queues and index stay open."""
        self._log.close()

    # ---- one turn

    def _expect(self, waiting: int) -> None:
        """So many bytes of log wait to be dispatched; how many entries that is can only be estimated."""
        if self._index is not None:
            self._index.expect(waiting // _LOG_PER_ENTRY)

    def _look(self) -> None:
        self._turn(None)

    def _turn(self, stop: int | None) -> None:
        """Dispatch one stretch of the log. Units are put when there are many, or nothing more is there."""
        messages = self._log.messages
        for entries, units in self._log.read(stop):
            self._put_entries(entries)
            self._gather(units)
        self.messages += self._log.messages - messages
        if not self._log.more or self._gathered >= self._enough():
            self._put_units()
        if self._log.messages > messages:
            self._have_index_file()

    def _put_entries(self, entries: npt.NDArray[Any]) -> None:
        if self._index is None or not len(entries):
            return
        if entries["phy_offset"][0] < self._skip:
            entries = entries[np.searchsorted(entries["phy_offset"], self._skip) :]
        self.entries += self._index.put_run(entries)
        if self._queues is None and len(entries):
            self.store_timestamp = int(entries["store_timestamp"][-1])

    def _have_index_file(self) -> None:
        """A message makes the broker create the file that its keys would go to, even if it has none."""
        if self._index is None:
            return
        files = self._index.files
        if not files or (files[-1].is_write_full() and self._log.last_message > files[-1].header.end_phy_offset):
            self._index.create_index_file()

    def _enough(self) -> int:
        return min(max(_GATHERED, _PER_QUEUE * len(self._table)), _MOST_GATHERED)

    def _gather(self, units: npt.NDArray[Any]) -> None:
        if self._gathered + len(units) > len(self._units):
            self._units = np.resize(self._units, 2 * (self._gathered + len(units)))
        self._gathered = gather_units(self._units, self._gathered, units)

    def _put_units(self) -> None:
        if self._queues is None or not self._gathered:
            return
        units = self._units[: self._gathered]
        self._number_queues()
        for number, first in self._twins.items():
            units["queue"][units["queue"] == number] = first
        if len(self._sorted) < len(units) and len(self._names) > 1:
            self._sorted = np.empty(len(self._units), UNIT)
        grouped, offsets = group_units(units, len(self._names), self._sorted)
        counts = np.diff(offsets)
        for number in np.flatnonzero(counts).tolist():
            queue = self._queue(number, int(counts[number]))
            if queue is not None:
                self._put_into(queue, number, grouped[offsets[number] : offsets[number + 1]])
        self._gathered = 0  # not before every queue has its own
        self.store_timestamp, self.queued_phy_offset = int(units["store_timestamp"][-1]), int(units["phy_offset"][-1])

    def _put_into(self, queue: ConsumeQueue, number: int, units: npt.NDArray[Any]) -> None:
        try:
            self.units += queue.put_units(units).written
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

    def _number_queues(self) -> None:
        """Take over what the table has met since. Two that differ in their bytes may have the same name."""
        known = len(self._names)
        if len(self._table) == known:
            return
        self._names = self._table.names()
        self._numbered += [None] * (len(self._names) - known)
        for number, name in enumerate(self._names[known:], known):
            if (first := self._number_of.setdefault(name, number)) != number:
                self._twins[number] = first


class _Pace:
    """How long to sleep between looks: `interval` while messages come, and longer when none did for a while.

    `waiting`: a last frame was seen; it is read again as soon as it counts if it has not changed by then.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._busy = time.monotonic()

    def sleep(self, *, busy: bool, waiting: bool) -> float:
        now = time.monotonic()
        if busy or waiting:
            self._busy = now
        if waiting:
            return min(self._interval, SETTLE_SECONDS)
        return self._interval if now - self._busy < _PATIENCE else max(self._interval, _LONGEST_SLEEP)


class ProgressMeter:
    """Reports progress soon, then about once a second. `lag`: bytes of log that wait to be dispatched."""

    def __init__(self, reput: Reput, progress: OnReput | None, lag: Callable[[], int]) -> None:
        self._reput, self._progress, self._lag = reput, progress, lag
        self._reported, self._messages = time.monotonic(), reput.messages
        self._next = self._reported + _FIRST_REPORT

    def report(self, *, last: bool = False) -> None:
        """Report, unless it is too early; the last time always."""
        now = time.monotonic()
        if self._progress is None or (now < self._next and not last):
            return
        reput = self._reput
        rate = (reput.messages - self._messages) / max(now - self._reported, 1e-9)
        self._reported, self._messages, self._next = now, reput.messages, now + _REPORT_EVERY
        self._progress(ReputProgress(reput.phy_offset, self._lag(), reput.messages, rate, reput.store_timestamp))
