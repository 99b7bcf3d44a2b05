"""Appending to a commit log: single messages, columns of them, and when an append returns."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.group_commit import GroupCommit
from mqindex._native.log_writer import Frames
from mqindex.errors import CapacityError, FileStateError
from mqindex.files.few_threads import start
from mqindex.files.fork_lock import new_lock
from mqindex.rocketmq.log.writing.log_writer import BLANK_SIZE, LogWriter
from mqindex.rocketmq.log.writing.message_columns import MessageColumns, measured_frames
from mqindex.rocketmq.log.writing.message_encoder import AppendMessageResult, NewMessage, encode_message
from mqindex.rocketmq.log.writing.write_rules import FlushRules, WriteRules

_BUFFER = 2 << 20  # of frames, half of it for each of two threads: it stays in their caches


class AppendMessagesResult(NamedTuple):
    """Where many messages are: phy offsets int64[n] and sizes int32[n], in the order of the rows."""

    phy_offsets: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]


class LogAppender:
    """The writing side of `CommitLog`. Safe from several threads; `close` releases `held`."""

    def __init__(self, writer: LogWriter, rules: WriteRules, flush: FlushRules, held: ExitStack) -> None:
        self.writer = writer
        self.rules = rules
        self.store_timestamp = 0  # of the newest message
        self._sync = flush.sync
        self._group = writer.group
        self._thread = None if flush.sync else FlushThread(self._group, flush)
        self._held = held.pop_all()  # now that it is whole
        self._buffer = memoryview(bytearray(_BUFFER))
        self._soiled = False
        self._owner = writer.owner
        self._closing = new_lock()
        self._closed = False

    def append_message(self, message: NewMessage, *, queue_offset: int) -> AppendMessageResult:
        """See `CommitLog.append_message`."""
        self._owner.require()
        writer = self.writer
        with writer.lock:
            if self._soiled or self._group.error:
                self._make_ready()
            now = time.time_ns() // 1_000_000
            at, left = writer.at, writer.left
            frame, stamp, store = encode_message(message, self.rules, queue_offset=queue_offset, phy_offset=at, now=now)
            if len(frame) + BLANK_SIZE > left:
                self._require_room(len(frame))
                at += left
                frame, _, _ = encode_message(message, self.rules, queue_offset=queue_offset, phy_offset=at, now=now)
            try:
                self._write_frame(frame)
            except BaseException:
                self._spoil()
                raise
            end = writer.commit()
            self.store_timestamp = stamp
        if self._sync:
            self._group.wait_for(end)
        msg_id = (store + at.to_bytes(8, "big")).hex().upper()
        return AppendMessageResult(at, len(frame), msg_id, stamp, queue_offset)

    def append_messages(
        self, messages: MessageColumns, *, queue_offset: npt.ArrayLike | None, whole: bool
    ) -> AppendMessagesResult:
        """See `CommitLog.append_messages`."""
        self._owner.require()
        now = time.time_ns() // 1_000_000
        parts = measured_frames(messages, self.rules, queue_offset=queue_offset, now=now)
        total, largest = (
            sum(part.total for part in parts),
            max((int(part.sizes.max()) for part in parts if len(part)), default=0),
        )
        self._require_room(total if whole else largest)
        if whole and total > self.rules.max_batch:
            raise CapacityError(
                "the messages of one request are more than a broker takes",
                expected=f"{self.rules.max_batch} bytes or less",
                got=total,
                hint="the limit is maxMessageSize of the broker",
            )
        with self.writer.lock:
            if self._soiled or self._group.error:
                self._make_ready()
            try:
                self._write_parts(parts, total if whole else 0, largest)
            except BaseException:
                self._spoil()
                raise
            end = self.writer.commit()
            self.store_timestamp = now
        if self._sync:
            self._group.wait_for(end)
        if len(parts) == 1:
            return AppendMessagesResult(parts[0].phy_offsets, parts[0].sizes)
        return AppendMessagesResult(
            np.concatenate([np.empty(0, np.int64), *(part.phy_offsets for part in parts)]),
            np.concatenate([np.empty(0, np.int32), *(part.sizes for part in parts)]),
        )

    @property
    def flushed(self) -> int:
        """The phy offset below which everything is on the disk."""
        return self._group.flushed

    def flush(self) -> int:
        """Bring everything that was appended to the disk; returns its end."""
        self._owner.require()
        end = self.writer.position
        try:
            self._group.wait_for(end)
        except OSError as error:
            error.filename = self.writer.path
            raise
        return end

    def close(self) -> None:
        """Flush, and release everything; in a forked child only the latter. May be called twice."""
        if not self._owner.here:
            self.writer.let_go()
            self._held.__exit__(None, None, None)
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
            try:
                if self._thread is not None:
                    self._thread.close()
                if self._soiled:
                    with self.writer.lock:
                        self._take_back()
                self.writer.end()
                self.flush()
            finally:
                self.writer.close()
                self._held.__exit__(None, None, None)

    def _make_ready(self) -> None:
        """Called only after a write or a flush failed."""
        if self._group.error:
            raise FileStateError(
                f"a flush failed, so it is not known what the disk has: {os.strerror(self._group.error)}",
                path=self.writer.path,
                hint="open the log again",
            )
        self._take_back()

    def _spoil(self) -> None:
        """A write failed half-way: take it back; where that fails too, the next append tries again."""
        self._soiled = True
        self._take_back()

    def _take_back(self) -> None:
        self.writer.take_back()
        self._soiled = False

    def _write_frame(self, frame: bytes) -> None:
        writer = self.writer
        if not writer.fits(len(frame)):
            writer.roll()
        if self._sync:
            writer.prepare(len(frame))
        writer.write(frame)

    def _write_parts(self, parts: list[Frames], together: int, largest: int) -> None:
        if together and not self.writer.fits(together):
            self.writer.roll()
        buffer = self._buffer if largest <= len(self._buffer) else memoryview(bytearray(largest))
        for part in parts:
            while part.encoded < len(part):
                if self.writer.write_frames(part, buffer, largest):
                    self.writer.roll()

    def _require_room(self, size: int) -> None:
        if size + BLANK_SIZE > self.writer.file_size:
            raise CapacityError(
                "the messages do not fit a file of the log",
                expected=f"{self.writer.file_size - BLANK_SIZE} bytes or less",
                got=size,
                hint="mappedFileSizeCommitLog of the broker is the limit",
            )


_PAGE = 4096


class FlushThread:
    """Flushes by the broker's settings: each interval if there are enough pages, and all at longer intervals."""

    def __init__(self, group: GroupCommit, rules: FlushRules) -> None:
        self._group = group
        self._rules = rules
        self._stop = threading.Event()
        self._thread = start(self._run, "flush")

    def close(self) -> None:
        """Stop, after the flush that runs."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        thorough = time.monotonic()
        while not self._stop.wait(self._rules.interval):
            written, now = self._group.written, time.monotonic()
            pages = written // _PAGE - self._group.flushed // _PAGE
            all_of_it = now >= thorough + self._rules.thorough_interval
            if all_of_it:
                thorough = now
            if written > self._group.flushed and (all_of_it or pages >= self._rules.least_pages):
                try:
                    self._group.wait_for(written)
                except OSError:
                    return  # the next append raises it
