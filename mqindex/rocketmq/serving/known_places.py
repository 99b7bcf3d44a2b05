"""Places of messages from the units of a queue, kept for repeated requests to the same queue."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.queue_view import QueueViews
from mqindex.columns.columns import Columns
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.queue.consume_queue import ConsumeQueue
from mqindex.rocketmq.queue.queue_names import QueueName
from mqindex.rocketmq.queue.queue_units import QueueBounds
from mqindex.rocketmq.serving.get_message import GetMessageResult, GetMessageStatus
from mqindex.rocketmq.serving.tag_filter import tag_filter


class KnownPlaces:
    """Answers of `get_messages` that need neither the queue nor the log again.

    Attributes
    ----------
    answer : the kernel's own `QueueViews.answer`, of the queues that are remembered; None: the queue must be read.
    close : forget all, for good.
    """

    def __init__(self) -> None:
        self._views = QueueViews(GetMessageResult, GetMessageStatus.FOUND, Columns._of_length)
        self.answer, self.close = self._views.answer, self._views.close

    def remember(
        self,
        queue: ConsumeQueue | None,
        name: QueueName,
        bounds: QueueBounds,
        log: CommitLog,
        parts: npt.NDArray[np.int64],
        tags: str | None,
        answer: GetMessageResult[Any],
    ) -> None:
        """Remember a queue: the next request is likely to be for its next places, with the same filter.

        parts : int64[2, m], `LogParts` of the log. answer : what the queue has just given.
        """
        if queue is None or answer.status is not GetMessageStatus.FOUND:
            return
        view = queue._viewed(min(answer.next_begin_offset, bounds.max_offset - 1), bounds, parts)
        if view is not None:
            wanted = tag_filter(tags)
            self._views.remember(log, name, view, tags, None if wanted.tags is None else wanted.hashes)
