"""Dispatch: from a commit log into consume queues and index, once or following a log that grows.

```
commit log ── GrowingLog ──▶ DispatchBuffer: entries ──▶ Dispatcher ──▶ IndexService
                                      units                  └─▶ ConsumeQueueTable
```

Where much of the log waits, a stretch is put by a thread of its own while the next one is read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mqindex._native.owner import Owner
from mqindex.engines.workers import Workers
from mqindex.files.closable import Closable
from mqindex.rocketmq.dispatch.dispatcher import DispatchBuffer, Dispatcher
from mqindex.rocketmq.dispatch.followed_zones import FollowedZones
from mqindex.rocketmq.log.growing_log import SETTLE_SECONDS, GrowingLog
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_rules import QueueRules
from mqindex.zones.cache import ZoneCache

if TYPE_CHECKING:
    from mqindex.rocketmq.index.index_service import IndexService
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable

_GATHERED = 1 << 14  # units of a stretch, at least: so many that the cost of each queue is small
_PER_QUEUE = 64  # the same for each queue, where there are many
_MOST_GATHERED = 1 << 20  # units or entries
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

    The log is only read, and may be another process's. What is passed over and what is refused: see `Dispatcher`.
    After an exception index and queues may differ: what was dispatched must be repaired.

    Parameters
    ----------
    directories : where the log's files are.
    index : writable, or None: no index. queues : writable, or None: no queues.
    tags : whether TAGS are indexed too. rules : which units there are.
    start : the phy offset of the first message to dispatch; see `dispatched_offset`.
    indexed : the index has the entries of all messages before this phy offset.
    batch_topics : topics whose queues are of the other kind, which is not written.
    cache : where zone maps of the log grow with it; the caller has them kept.

    Notes
    -----
    Source: RocketMQ 4.9.3 `DefaultMessageStore.ReputMessageService`.
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
        cache: ZoneCache | None = None,
    ) -> None:
        self._table = rules.table()
        self._log = GrowingLog(directories, start, tags=tags, queues=self._table if queues is not None else None)
        self.zones = FollowedZones(cache or ZoneCache(None), directories, self._table, self._log.require_unchanged)
        self._index = index
        self._dispatcher = Dispatcher(
            index, queues, self._table, start=start, indexed=indexed, batch_topics=batch_topics
        )
        self._read, self._spare = DispatchBuffer(), DispatchBuffer()
        self._putting = _Putting(self._dispatcher)
        self._start = start
        self._owner = Owner()

    @property
    def messages(self) -> int:
        """How many were dispatched."""
        return self._dispatcher.messages

    @property
    def phy_offset(self) -> int:
        """Everything before it was dispatched."""
        return self._dispatcher.phy_offset

    @property
    def store_timestamp(self) -> int:
        """Of the last message that was dispatched; 0: none."""
        return self._dispatcher.store_timestamp

    @property
    def queued_phy_offset(self) -> int:
        """The last message that was put into a queue."""
        return self._dispatcher.queued_phy_offset

    @property
    def refused(self) -> dict[QueueName, int]:
        """Units of queues that cannot be files."""
        return self._dispatcher.refused

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
        if self._index is not None:  # how many entries the bytes that wait give can only be estimated
            waiting = self._log.lag() if stop is None else stop - self.phy_offset
            self._index._expect(waiting // _LOG_PER_ENTRY)
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
            last, messages = stop.is_set(), self._log.messages
            (turn or self._look)()
            if last and turn is None:
                self._put()
            meter.report(last=last)
            if not (last or self._log.more):
                stop.wait(pace.sleep(busy=self._log.messages > messages, waiting=self._log.waiting))
        return self.result().since(before)

    def watch(self) -> None:
        """From now on what was dispatched by others must stay as it is in the log."""
        self._log.watch()

    def lag(self) -> int:
        """About how many bytes of log were written but not dispatched yet."""
        return self._log.lag() + self._log.phy_offset - self.phy_offset

    def result(self) -> ReputResult:
        """What was dispatched since this object was made."""
        done = self._dispatcher
        return ReputResult(done.messages, done.entries, done.units, self._start, done.phy_offset, done.store_timestamp)

    def close(self) -> None:
        """Release the log; queues and index stay open."""
        if self._owner.here:  # a child has no thread to wait for
            self._putting.close()
        self._log.close()

    # ---- one turn

    def _look(self) -> None:
        self._turn(None)

    def _turn(self, stop: int | None) -> None:
        """Dispatch what one look at the log gives. It is put in long stretches, or when nothing more is there."""
        log, messages, enough = self._log, self._log.messages, max(_GATHERED, _PER_QUEUE * len(self._table))
        for entries, units in log.read(stop):
            self._read.add(entries, units)
            self.zones.take(units)
            if len(self._read.units) >= min(enough, _MOST_GATHERED) or len(self._read.entries) >= _MOST_GATHERED:
                self._put_beside()
        self._read.end(log.messages - messages, log.last_message, log.phy_offset)
        if not log.more:
            self._put()

    def _put(self) -> None:
        """Put what was read; all is put afterwards."""
        self._putting.end()
        self._dispatcher.name_queues()
        self._dispatcher.put(self._read)
        self._read.clear()

    def _put_beside(self) -> None:
        """Have what was read put, while more is read."""
        self._putting.wait()
        self._dispatcher.name_queues()
        self._putting.begin(self._read)
        self._read, self._spare = self._spare, self._read
        self._read.clear()


class _Putting:
    """The thread that puts stretches, one after the other; it is there only while much of the log waits."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._workers: Workers | None = None
        self._error: BaseException | None = None  # nothing is put after a hole

    def begin(self, stretch: DispatchBuffer) -> None:
        """Put a stretch; the one before was waited for."""
        if self._workers is None:
            self._workers = Workers(1, "mqindex-put")
        self._workers.submit(self._put, stretch)

    def wait(self) -> None:
        """Return when what was begun is put; its error is raised here, each time."""
        if self._workers is not None and self._workers.pending:
            self._workers.next()
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """`wait`, and no thread is left."""
        self.wait()
        self.close()

    def close(self) -> None:
        """Return when nothing is being put any more; what became of it was not asked."""
        if self._workers is not None:
            self._workers.close(cancel=False)
            self._workers = None

    def _put(self, stretch: DispatchBuffer) -> None:
        try:
            self._dispatcher.put(stretch)
        except BaseException as error:
            self._error = error


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
