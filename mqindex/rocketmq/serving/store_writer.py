"""The writing side of a store: its lock, the end of its log, and dispatch of what was appended when somebody asks."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex.errors import ClosedFileError
from mqindex.files import disk
from mqindex.rocketmq import store
from mqindex.rocketmq.dispatch.dispatch_flush import DispatchFlush
from mqindex.rocketmq.dispatch.dispatched import dispatched_offset
from mqindex.rocketmq.dispatch.reput import OnReput, Reput, ReputProgress, ReputResult, Stop
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.growing_log import GrowingLog, LogChangedError
from mqindex.rocketmq.log.message_columns import MessageColumns, message_batches
from mqindex.rocketmq.log.message_encoder import AppendMessageResult, NewMessage
from mqindex.rocketmq.log.write_rules import flush_rules, write_rules
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.survey import Survey, survey
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.repair import repair
from mqindex.rocketmq.serving.put_message import QueueNumbers

__all__ = ["PutMessagesResult", "StoreWriter"]

_INTERVAL = 0.001  # seconds between looks of a follower
_TOLD = 1.0  # seconds between progress


class PutMessagesResult(NamedTuple):
    """Where many messages stand, in the order of the rows."""

    phy_offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]
    queue_offsets: npt.NDArray[np.int64]


class StoreWriter:
    """Log, queues and index of one store, open for writing. Safe from several threads.

    A store whose last exit was not clean is repaired first. `abort` stands while it is open, as a broker's does.
    Source: RocketMQ 4.9.3 `DefaultMessageStore.load`, `start`, `shutdown`.
    """

    def __init__(self, options: StoreOptions, opened: ExitStack, log: CommitLog, found: Survey) -> None:
        self.log = log
        self.index = opened.enter_context(
            IndexService.open(
                options.index,
                hash_slot_num=found.geometry.value[0],
                index_num=found.geometry.value[1],
                writable=True,
            )
        )
        self.queues = opened.enter_context(
            ConsumeQueueTable.open(
                options.consume_queue,
                file_size=found.queues.rules.file_size,
                writable=True,
                ext_directory=options.consume_queue_ext_directory,
            )
        )
        self.queues.truncate_dirty_logic_files(log.max_phy_offset)
        if log.min_phy_offset > 0:
            self.queues.correct_min_offset(log.min_phy_offset)
        rules, batch_topics = found.queues.rules, found.queues.batch_topics
        self._reput = opened.enter_context(
            Reput(
                options.commitlog,
                self.index,
                self.queues,
                tags=found.tags,
                rules=rules,
                start=_first_to_dispatch(options, self.index, self.queues, found),
                batch_topics=batch_topics,
            )
        )
        self._numbers = QueueNumbers(
            self.queues, rules, multi_dispatch=options.multi_dispatch is True, batch_topics=batch_topics
        )
        self._rules = write_rules(options)
        self._sync = flush_rules(options).sync
        self._putting = threading.Lock()
        self._dispatching = threading.Lock()
        self._root = options.root
        self._opened = opened
        self._closed = self._numbered = False
        self._flush = DispatchFlush(os.path.join(options.root, "checkpoint"), self.index, self.queues, self._on_disk)

    @classmethod
    def open(cls, options: StoreOptions) -> StoreWriter:
        """Open a store, or make one."""
        os.makedirs(options.root, exist_ok=True)
        path = os.path.join(options.root, "lock")
        with contextlib.suppress(FileExistsError), open(path, "x", encoding="ascii") as lock:
            lock.write("lock")  # as a broker's; it stays, so that everybody locks the same file
        with store.hold_lock(options.root):
            pass  # before a repair of a store that somebody holds begins
        if store.was_unclean(options.root):
            _mend(options)
        try:
            return cls._opened_once(options)
        except LogChangedError:
            _mend(options)
            return cls._opened_once(options)

    @classmethod
    def _opened_once(cls, options: StoreOptions) -> StoreWriter:
        with ExitStack() as opened:
            opened.enter_context(store.hold_lock(options.root))
            log = opened.enter_context(CommitLog.of_store(options, flush="async"))  # who waits for the disk, waits here
            writer = cls(options, opened, log, survey(options))
            opened.enter_context(_marked(options.root))  # last: an open that is refused leaves no mark
            writer._opened = opened.pop_all()
            return writer

    # ---- putting

    def put_message(self, message: NewMessage) -> AppendMessageResult:
        """Append one message; under synchronous flush, return when it is on the disk."""
        with self._putting:
            numbered = self._number_first().number([message])
            result = self.log.append_message(numbered.messages[0], queue_offset=int(numbered.queue_offsets[0]))
            self._numbers.take(numbered)
        self._wait_for_disk()
        return result

    def put_messages(self, messages: MessageColumns, *, whole: bool) -> PutMessagesResult:
        """Append many messages, all or none."""
        with self._putting:
            numbers = self._number_first()
            if isinstance(messages, (list, tuple)) and all(isinstance(each, NewMessage) for each in messages):
                numbered = numbers.number(messages)
            else:
                numbered = numbers.number_columns(message_batches(messages, self._rules))
            result = self.log.append_messages(
                numbered.messages, queue_offset=np.ascontiguousarray(numbered.queue_offsets), whole=whole
            )
            numbers.take(numbered)
        self._wait_for_disk()
        return PutMessagesResult(*result, numbered.queue_offsets)

    def _number_first(self) -> QueueNumbers:
        """The numbers of queues, which count what was never dispatched only after it was."""
        self._require_open()
        if not self._numbered:
            self.dispatch()
            self._numbered = True
        return self._numbers

    def _wait_for_disk(self) -> None:
        if self._sync:
            self.log.flush()

    # ---- dispatch

    def dispatch(self) -> ReputResult:
        """Give queues and index what the log holds by now."""
        with self._dispatching:
            self._require_open()
            self._flush.check()
            return self._reput.run_once(stop=self.log.max_phy_offset)

    def follow(self, stop: Stop, progress: OnReput | None) -> ReputResult:
        """Dispatch what comes until `stop` is set, then what is left."""
        before, meter, last = self._reput.result(), _Meter(progress), False
        while not last:
            last = stop.is_set()
            self.dispatch()
            meter.tell(self._reput, self.log, last=last)
            if not last:
                stop.wait(_INTERVAL)
        now = self._reput.result()
        return now._replace(
            messages=now.messages - before.messages,
            entries=now.entries - before.entries,
            units=now.units - before.units,
            from_phy_offset=before.phy_offset,
        )

    # ---- to the disk

    def flush(self) -> None:
        """Everything that was put is on the disk, dispatched, and in the checkpoint."""
        self.dispatch()
        self._flush.flush()
        self.log.flush()

    def close(self) -> None:
        """`flush`, and leave the store as after a clean exit. Where something fails, `abort` stays."""
        with self._putting:
            if self._closed:
                return
            with self._opened:
                try:
                    self.dispatch()
                    self._flush.close()
                    self.log.flush()
                except BaseException:
                    self._flush.abandon()
                    raise
                finally:
                    with self._dispatching:
                        self._closed = True

    def _on_disk(self) -> int:
        """The store time of the last message dispatched, once the log has it on the disk."""
        stored = self._reput.store_timestamp
        self.log.flush()
        return stored

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedFileError("the store is closed", path=self._root)


class _Meter:
    """Tells progress now and then."""

    def __init__(self, progress: OnReput | None) -> None:
        self._progress = progress
        self._told, self._messages = time.monotonic(), -1

    def tell(self, reput: Reput, log: CommitLog, *, last: bool) -> None:
        now, done = time.monotonic(), reput.result()
        if self._messages < 0:
            self._messages = done.messages
        seconds = now - self._told
        if self._progress is None or (seconds < _TOLD and not last):
            return
        rate = (done.messages - self._messages) / max(seconds, 1e-9)
        self._told, self._messages = now, done.messages
        behind = max(log.max_phy_offset - done.phy_offset, 0)
        self._progress(ReputProgress(done.phy_offset, behind, done.messages, rate, done.store_timestamp))


@contextlib.contextmanager
def _marked(root: str) -> Iterator[None]:
    """`abort` exists meanwhile, and stays where this does not end well."""
    path = os.path.join(root, "abort")
    with open(path, "ab"):  # empty, as of a 4.x broker
        pass
    disk.sync_directory(root)
    yield
    os.unlink(path)


def _mend(options: StoreOptions) -> None:
    """Make index and queues what the log says."""
    if any(map(os.path.isdir, (*options.commitlog, options.consume_queue, options.index))):
        repair(
            options.root,
            config=dict(options.settings),
            commitlog=options.commitlog,
            hash_slot_num=options.hash_slot_num,
            index_num=options.index_num,
            broker_version=options.broker_version,
        )


def _first_to_dispatch(options: StoreOptions, index: IndexService, queues: ConsumeQueueTable, found: Survey) -> int:
    """Where dispatch goes on: behind the queues' last message, as the broker does.

    An index that reaches further is believed where what lies between goes to no queue, and else passed over again.
    """
    of_queues = dispatched_offset(options.commitlog, None, queues, tags=found.tags, rules=found.queues.rules)
    of_both = dispatched_offset(options.commitlog, index, queues, tags=found.tags, rules=found.queues.rules)
    if of_queues < of_both:
        log = GrowingLog(options.commitlog, of_queues, tags=found.tags, queues=found.queues.rules.table())
        with contextlib.closing(log):
            while log.phy_offset < of_both:
                at = log.phy_offset
                if any(len(units) for _, units in log.read(of_both)):
                    return of_queues
                if log.phy_offset == at:
                    break
    return of_both
