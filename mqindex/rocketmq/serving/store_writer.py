"""The writing side of a store: its lock, the end of its log, and dispatch of what was appended, on request."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mqindex._native.owner import Owner
from mqindex.errors import FileStateError, GeometryError
from mqindex.files import disk
from mqindex.files.closable import Closable
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import join
from mqindex.files.places.place import require_here
from mqindex.files.results.whole_file import have_file
from mqindex.rocketmq.directories import store
from mqindex.rocketmq.directories.rocksdb import refuse_queues_in_rocksdb
from mqindex.rocketmq.dispatch.abort_mark import AbortMark
from mqindex.rocketmq.dispatch.dispatch_flush import DispatchFlush, Stored
from mqindex.rocketmq.dispatch.dispatched import dispatched_offset
from mqindex.rocketmq.dispatch.outputs import open_outputs
from mqindex.rocketmq.dispatch.reput import OnReput, Reput, ReputResult, Stop
from mqindex.rocketmq.index.index_service import IndexService
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.dledger import plain_log_files, refuse_entries_after
from mqindex.rocketmq.log.growing_log import GrowingLog, LogChangedError
from mqindex.rocketmq.log.log_files import last_file_with_frames
from mqindex.rocketmq.log.writing.log_recovery import recovered_end
from mqindex.rocketmq.log.writing.message_columns import MessageColumns, message_batches
from mqindex.rocketmq.log.writing.message_encoder import AppendMessageResult, NewMessage
from mqindex.rocketmq.log.writing.write_rules import flush_rules, write_rules
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.pipeline.parts import check_parts
from mqindex.rocketmq.pipeline.survey import (
    Survey,
    require_directories,
    require_lengths,
    require_log,
    require_read,
    survey,
    survey_in_place,
)
from mqindex.rocketmq.queue.batch.batch_consume_queue import batch_queue_end
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from mqindex.rocketmq.repair import repair_store
from mqindex.rocketmq.serving.put_message import QueueNumbers
from mqindex.rocketmq.settings import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, MULTI_DISPATCH, QUEUE_FILE_SIZE

_T = TypeVar("_T")


class PutMessagesResult(NamedTuple):
    """Where `MessageStore.put_messages` has put each message, in the order of the rows.

    Attributes
    ----------
    phy_offsets : ndarray of int64, shape (n,)
    sizes : ndarray of int32, shape (n,), bytes of the frames
    queue_offsets : ndarray of int64, shape (n,)

    Notes
    -----
    Source: RocketMQ 4.9.3 `AppendMessageResult`, of each message.
    """

    phy_offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]
    queue_offsets: npt.NDArray[np.int64]


class _LeftBehindError(FileStateError):
    """A message may be left that goes to a batch queue, or to a compacted topic: that takes a repair, or a broker."""


class StoreWriter(Closable):
    """Log, queues and index of one store, open for writing. Safe from several threads.

    A store whose last exit was not clean is repaired first. `abort` is there while it is open, as a broker's is.
    Source: RocketMQ 4.9.3 `DefaultMessageStore.load`, `start`, `shutdown`.
    """

    _thing = "store"
    _path_attribute = "_root"

    def __init__(self, options: StoreOptions, opened: ExitStack) -> None:
        self._root = options.root
        self._owner = Owner(options.root)
        self._mark = opened.enter_context(AbortMark(options.root))  # first: it is removed when all others are closed
        # threads that wait for the disk wait here
        self.log = opened.enter_context(CommitLog._of_store(options, flush="async"))
        found = survey_in_place(options)
        require_log(found)
        require_read(found)
        require_directories(found)
        require_lengths(found)
        refuse_queues_in_rocksdb(found.queues.rocksdb)  # no broker would read queues in files beside them
        rules, batch_topics, compacted = found.queues.rules, found.queues.batch_topics, found.queues.compacted
        self.index, self.queues = open_outputs(
            opened,
            options,
            found.geometry.value,
            file_size=rules.file_size,
            ext_directory=options.consume_queue_ext_directory,
        )
        with options.blaming(GeometryError, QUEUE_FILE_SIZE):
            for name in self.queues:
                self.queues[name]  # errors are raised here, before anything is written
        refuse_entries_after(options, _after_end(self.index, self.queues, self.log.max_phy_offset))
        first = partial(_first_to_dispatch, options, self.index, self.queues, found)
        if (batch_topics or compacted) and _are_left_behind(found, first(), self.log.max_phy_offset, compacted):
            raise _LeftBehindError("messages are left to dispatch, also to other places", path=options.root)
        self._mark.set()
        self.queues.truncate_dirty_logic_files(self.log.max_phy_offset)
        if self.log.min_phy_offset > 0:
            self.queues.correct_min_offset(self.log.min_phy_offset)
        self._reput = opened.enter_context(
            Reput(
                options.commitlog,
                self.index,
                self.queues,
                tags=found.tags.newest,
                rules=rules,
                start=first(),
                batch_topics=batch_topics,
            )
        )
        self._new_numbers = partial(
            QueueNumbers,
            self.queues,
            rules,
            multi_dispatch=options.value(MULTI_DISPATCH),
            batch_topics=batch_topics,
            compacted_topics=compacted,
        )
        self._numbers: QueueNumbers | None = None  # made after dispatch, so that no message is left uncounted
        self._rules = write_rules(options)
        self._sync = flush_rules(options).sync
        self._putting = new_lock()
        self._dispatching = new_lock()
        self._opened = opened
        self._failure: BaseException | None = None
        self._flush = DispatchFlush(join(options.root, "checkpoint"), self.index, self.queues, self._on_disk)

    @classmethod
    def open(cls, options: StoreOptions) -> StoreWriter:
        """Open a store, or make one."""
        require_here(options.root)
        write_rules(options)  # a wrong setting is told before anything is written
        flush_rules(options)
        disk.make_directories(options.root)
        have_file(join(options.root, "lock"), b"lock")  # never removed, so that all lock the same file
        with store.hold_lock(options.root):
            pass  # a store that is in use is refused before a repair of it begins
        if store.was_unclean(options.root):
            _mend(options)
        try:
            return cls._opened_once(options)
        except (LogChangedError, _LeftBehindError):
            _mend(options)
            return cls._opened_once(options)

    @classmethod
    def _opened_once(cls, options: StoreOptions) -> StoreWriter:
        with ExitStack() as opened:
            opened.enter_context(store.hold_lock(options.root))
            writer = cls(options, opened)
            writer._opened = opened.pop_all()
            return writer

    # ---- putting

    def put_message(self, message: NewMessage) -> AppendMessageResult:
        """Append one message; under synchronous flush, return when it is on the disk."""
        self._owner.require()
        with self._putting:
            numbers = self._numbers_now()
            try:
                numbered = numbers.number([message])
                result = self.log.append_message(numbered.messages[0], queue_offset=int(numbered.queue_offsets[0]))
                numbers.take(numbered)
            except BaseException:
                self._numbers = None  # it is unknown whether it was appended: the numbers are counted again
                raise
        self._wait_for_disk()
        return result

    def put_messages(self, messages: MessageColumns, *, whole: bool) -> PutMessagesResult:
        """Append many messages, all or none."""
        self._owner.require()
        with self._putting:
            numbers = self._numbers_now()
            try:
                if isinstance(messages, (list, tuple)) and all(isinstance(each, NewMessage) for each in messages):
                    numbered = numbers.number(messages)
                else:
                    numbered = numbers.number_columns(message_batches(messages, self._rules))
                result = self.log.append_messages(
                    numbered.messages, queue_offset=np.ascontiguousarray(numbered.queue_offsets), whole=whole
                )
                numbers.take(numbered)
            except BaseException:
                self._numbers = None
                raise
        self._wait_for_disk()
        return PutMessagesResult(*result, numbered.queue_offsets)

    def _numbers_now(self) -> QueueNumbers:
        """The numbers of queues, counted after everything in the log was dispatched."""
        self._require_sound()
        if self._numbers is None:
            self.dispatch()
            self._numbers = self._new_numbers()
        return self._numbers

    def _wait_for_disk(self) -> None:
        if self._sync:
            self.log.flush()

    # ---- dispatch

    def dispatch(self) -> ReputResult:
        """Write to queues and index what the log holds now."""
        self._owner.require()
        with self._dispatching:
            return self._whole(self._dispatch)

    def _dispatch(self) -> ReputResult:
        self._flush.check()
        return self._reput.run_once(stop=self.log.max_phy_offset)

    def _whole(self, call: Callable[[], _T]) -> _T:
        """Run a call that writes queues, index or checkpoint; after one that failed, nothing more is written."""
        self._require_sound()
        try:
            return call()
        except BaseException as error:
            self._failure = error
            self._flush.stop()
            raise

    def follow(self, stop: Stop, progress: OnReput | None) -> ReputResult:
        """Dispatch new messages until `stop` is set, then the rest."""
        return self._reput.follow(stop, progress=progress, turn=self.dispatch, lag=self._lag)

    def _lag(self) -> int:
        return max(self.log.max_phy_offset - self._reput.phy_offset, 0)

    # ---- to the disk

    def flush(self) -> None:
        """Dispatch everything that was put, bring it to the disk, and update the checkpoint."""
        self.dispatch()
        self._whole(self._to_disk)

    def _to_disk(self) -> None:
        self._flush.flush()
        self.log.flush()

    def _last_to_disk(self) -> None:
        self._flush.close()
        self.log.flush()

    def close(self) -> None:
        """`flush`, and leave the store as after a clean exit. Where something fails, or failed, `abort` stays.

        A forked child closes its descriptors and does nothing else.
        """
        if not self._owner.here:
            self._closed = True
            self._opened.close()
            return
        with self._putting:
            if self._closed:
                return
            with self._opened:
                try:
                    if self._failure is None:  # else its caller got the error
                        self.dispatch()
                        self._whole(self._last_to_disk)
                        self._mark.proven = True
                finally:
                    self._flush.abandon()
                    with self._dispatching:
                        self._closed = True

    @property
    def closed(self) -> bool:
        return self._closed

    def abandon(self) -> None:
        """Let everything go and write nothing more: `abort` stays, so that the next to open the store repairs it.

        Not where the thread itself lets go, nor in a forked child or a process that ends: its locks end with it.
        """
        if self._closed or not self._owner.here or sys.is_finalizing() or self._flush.runs_here:
            return
        with self._opened:
            self._flush.abandon()
            self._closed = True

    def _on_disk(self) -> Stored:
        """The last message dispatched, after the log has been synced up to it."""
        stored = Stored(self._reput.store_timestamp, self._reput.queued_phy_offset)
        self.log.flush()
        return stored

    def _require_sound(self) -> None:
        self._require_open()
        if self._failure is not None:
            raise FileStateError(
                f"an earlier call failed half-way ({self._failure}): queues and index may lack what the log has",
                path=self._root, hint="close the store and open it again, which repairs it; nothing in the log is lost",
            ) from self._failure  # fmt: skip


def _mend(options: StoreOptions) -> None:
    """Repair index and queues from the log.

    Where messages follow a hole in it, it is cut there first, as a broker does: no unit is written of what goes.
    """
    if any(map(disk.is_directory, (*options.commitlog, options.consume_queue, options.index))):
        found = survey(options)  # a writer has settings: those that are not given are the defaults
        geometry = dict(zip((MAX_HASH_SLOT_NUM, MAX_INDEX_NUM), found.geometry.value, strict=True))
        known = options.having(geometry | found.queues.rules.settings(), found.version.number)
        mend = partial(repair_store, known, check_parts(None), look_again=False)
        if found.spans and _has_hole(options):
            mend(dry_run=True)  # what refuses a repair does so before anything is cut
            with store.hold_lock(options.root):
                CommitLog._of_store(options).close()
        mend()


def _has_hole(options: StoreOptions) -> bool:
    """Whether a log file has messages after the end at which the log is cut."""
    files, _ = plain_log_files(options.commitlog)
    return recovered_end(files) < files[max(last_file_with_frames(files), 0)].start


def _after_end(index: IndexService | None, queues: ConsumeQueueTable, end: int) -> Iterator[int]:
    """The first phy offset after the log's end of each queue and index file that goes on there."""
    for name in queues:
        if queues[name].max_phy_offset > end:
            phy_offsets = queues[name].units()["phy_offset"]
            yield from phy_offsets[phy_offsets >= end][:1].tolist()
    for file in index or ():
        if file.header.end_phy_offset >= end and file.header.index_count > 1:
            phy_offsets = file.entries()["phy_offset"]
            yield from np.sort(phy_offsets[phy_offsets >= end])[:1].tolist()


def _are_left_behind(found: Survey, start: int, end: int, compacted: frozenset[str]) -> bool:
    """Whether a batch queue lacks messages of the phy offsets [start, end), or some are of a compacted topic."""
    home, table = found.options.batch_consume_queue, found.queues.rules.table()
    with contextlib.closing(GrowingLog(found.options.commitlog, start, tags=found.tags.newest, queues=table)) as log:
        while log.phy_offset < end:
            at = log.phy_offset
            for _, units in log.read(end):
                names = table.names()
                last = dict(zip(units["queue"].tolist(), units["queue_offset"].tolist(), strict=True))
                for number, offset in last.items():
                    topic, queue_id = names[number]
                    if topic in compacted:
                        return True
                    if topic in found.queues.batch_topics and offset >= (batch_queue_end(home, topic, queue_id) or 0):
                        return True
            if log.phy_offset == at:
                break
    return False


def _first_to_dispatch(
    options: StoreOptions, index: IndexService | None, queues: ConsumeQueueTable, found: Survey
) -> int:
    """Where dispatch continues: after the queues' last message, as in the broker.

    An index that reaches further counts if the messages between go to no queue; otherwise they are dispatched again.
    """
    of_queues = dispatched_offset(options.commitlog, None, queues, tags=found.tags.newest, rules=found.queues.rules)
    of_both = dispatched_offset(options.commitlog, index, queues, tags=found.tags.newest, rules=found.queues.rules)
    if of_queues < of_both:
        log = GrowingLog(options.commitlog, of_queues, tags=found.tags.newest, queues=found.queues.rules.table())
        with contextlib.closing(log):
            while log.phy_offset < of_both:
                at = log.phy_offset
                if any(len(units) for _, units in log.read(of_both)):
                    return of_queues
                if log.phy_offset == at:
                    break
    return of_both
