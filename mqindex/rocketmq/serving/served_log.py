"""The log that the queues of a store refer to, while a broker may be writing it and deleting its begin."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from mqindex.errors import FileStateError
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.options import StoreOptions
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_units import QueueBounds
from mqindex.rocketmq.serving.opening import open_log


class ServedLog:
    """The log of a store, opened again when its queues, or a failed read, show that it has changed.

    lock : held while another log is opened. written_here : nobody else may change the log. Safe from several threads.

    Attributes
    ----------
    log : CommitLog, as it was opened last.
    """

    def __init__(
        self, log: CommitLog, options: StoreOptions, lock: AbstractContextManager[Any], *, written_here: bool
    ) -> None:
        self.log = log
        self._options = options
        self._lock = lock
        self._written_here = written_here
        self._looked_for = -1  # where the log's end was looked for again
        self._corrected: set[QueueName] = set()

    def covering(self, bounds: QueueBounds) -> CommitLog:
        """The log, at least up to a queue's end: a running broker writes it first, so it is opened again if shorter."""
        log, wanted = self.log, bounds.max_phy_offset
        if wanted <= max(self._looked_for, log._most_phy_offset):
            return log
        with self._lock:
            if wanted > self._looked_for:
                self._looked_for = wanted
                self.log = open_log(self._options)
            return self.log

    def correct(self, queue: ConsumeQueue, name: QueueName) -> None:
        """Move the minimum of a queue to where the log still has its messages."""
        if name not in self._corrected:
            begin = self.log.min_phy_offset
            if begin > 0 and not self._written_here:
                queue.correct_min_offset(begin)
            self._corrected.add(name)

    def begin_later(self, log: CommitLog) -> None:
        """A broker has deleted the begin of this log: from now on the queues begin where the log does now."""
        if self._written_here:
            hint = "nobody else may delete there meanwhile: open the store again"
            raise FileStateError("the oldest file of a log that is written is gone", path=log.files[0].path, hint=hint)
        with self._lock:
            if self.log is log:
                self.log = open_log(self._options)
            self._corrected.clear()
