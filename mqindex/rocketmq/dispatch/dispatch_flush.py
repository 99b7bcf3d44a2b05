"""A thread beside dispatch brings what it wrote to the disk, at the broker's times, and updates the checkpoint."""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqindex.errors import ClosedFileError
from mqindex.files import disk
from mqindex.files.few_threads import start
from mqindex.files.fork_lock import new_lock
from mqindex.files.paths import parent_of
from mqindex.files.results.whole_file import replace_content
from mqindex.rocketmq.metadata.checkpoint import Checkpoint

if TYPE_CHECKING:
    from mqindex.rocketmq.index.index_file import IndexFile
    from mqindex.rocketmq.index.index_service import IndexService
    from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable

THOROUGH_SECONDS = 60.0
"""Between two flushes of all queues (the broker's flushConsumeQueueThoroughInterval)."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def write_checkpoint(path: str, checkpoint: Checkpoint) -> None:
    """Exchange the checkpoint's file, durably."""
    replace_content(path, checkpoint.to_bytes())


class Stored(NamedTuple):
    """Of the last message dispatched; 0: none, or in no queue."""

    timestamp: int
    phy_offset: int


class DispatchFlush:
    """A thread that flushes index files when they are full, and all queues each `interval` seconds. `index` None: none.

    `stored`: gives the last message dispatched. An error of the thread is raised by `check` and `close`; but a
    checkpoint that it cannot write, on a disk that is full for a while, is written later.
    Source: RocketMQ 4.9.3 and 5.5.0 `IndexService.flush`, `FlushConsumeQueueService`, `StoreCheckpoint`.
    """

    def __init__(
        self,
        path: str,
        index: IndexService | None,
        queues: ConsumeQueueTable,
        stored: Callable[[], Stored],
        *,
        interval: float = THOROUGH_SECONDS,
    ) -> None:
        self._path, self._index, self._queues = path, index, queues
        self._stored, self._interval = stored, interval
        disk.remove_temporaries(parent_of(path), r"\.checkpoint")
        self._checkpoint = self._saved = (Checkpoint.read(path) or Checkpoint()).without_garbage()
        self._full: queue.SimpleQueue[IndexFile | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._stopped = False
        self._lock = new_lock()
        if index is not None:
            index.on_full = self._full.put
        self._runner = 0
        self._thread = start(self._run, "flush")

    @property
    def runs_here(self) -> bool:
        """Whether its thread is the one that asks."""
        return threading.get_ident() == self._runner

    def check(self) -> None:
        """Raise what went wrong."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Flush everything and write the checkpoint; the thread ends."""
        self._full.put(None)
        self._thread.join()
        self.flush()

    def flush(self) -> None:
        """Flush everything that was dispatched and write the checkpoint; the thread flushes full files."""
        self.check()
        with self._lock:
            for file in self._index.files[-1:] if self._index is not None else ():
                self._flush_index_file(file)
            self._flush_queues()
        if self._index is not None:
            disk.sync_directory(self._index.directory)
        disk.sync_directory(parent_of(self._path))

    def stop(self) -> None:
        """Something went wrong elsewhere: nothing more is flushed, and the checkpoint stays as it is."""
        self._stopped = True
        self._full.put(None)

    def abandon(self) -> None:
        """`stop`, and wait until the thread has ended."""
        self.stop()
        self._thread.join()

    def _run(self) -> None:
        self._runner = threading.get_ident()
        try:
            while True:
                try:
                    file = self._full.get(timeout=self._interval)
                    if file is None or self._stopped:
                        return
                    with self._lock:
                        self._flush_index_file(file)
                except queue.Empty:
                    with self._lock:
                        self._flush_queues()
        except BaseException as error:
            self._error = error

    def _flush_index_file(self, file: IndexFile) -> None:
        try:
            header = file.header
            if header.index_count == 1:
                return  # a flush would write a count that a broker's file without entries does not have yet
            file.flush()
            full = file.is_write_full()
        except ClosedFileError:
            if self._index is None or file in self._index.files:
                raise
            return  # it expired meanwhile: its entries lead nowhere
        if full:
            self._save(index_msg_timestamp=header.end_timestamp)

    def _flush_queues(self) -> None:
        stored = self._stored()  # read first: what is dispatched meanwhile may not be flushed
        self._queues.flush()
        if stored.timestamp:
            self._save(
                physic_msg_timestamp=stored.timestamp,
                logics_msg_timestamp=stored.timestamp,
                logics_physical_offset=stored.phy_offset or self._checkpoint.logics_physical_offset,
            )

    def _save(self, **fields: int) -> None:
        self._checkpoint = self._checkpoint._replace(**fields)
        if self._checkpoint == self._saved or self._stopped:
            return
        try:
            write_checkpoint(self._path, self._checkpoint)
        except OSError as error:
            if error.errno not in _NO_SPACE or not self.runs_here:
                raise
            return  # the file is as before, which costs the next start time only; the next interval tries again
        self._saved = self._checkpoint
