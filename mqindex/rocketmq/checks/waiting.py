"""Waiting with a broker that writes: what is in its log already reaches its queues and its index a moment later."""

from __future__ import annotations

import time

from mqindex.engines import Engine
from mqindex.engines.tasks import run_one
from mqindex.rocketmq.pipeline.log_end import frames_end_now
from mqindex.rocketmq.pipeline.survey import Survey

_WAIT, _BETWEEN_LOOKS, _LOOKS = 10, 0.1, 30  # seconds; looks without progress: a broker may be short of processors


class Waiting:
    """Another look is worth it while a broker writes, and while less is missing from time to time; ten seconds long.

    found : a store whose log's end was fixed, so that what is missing cannot get more.
    """

    def __init__(self, engine: Engine, found: Survey) -> None:
        self._engine, self._found = engine, found
        self._until = time.monotonic() + _WAIT
        self._least: int | None = None
        self._looks = 0

    def waits(self, missing: int) -> bool:
        """Wait a moment; False, at once: nothing is missing, nobody writes, or it has been waited for long enough."""
        if not missing or time.monotonic() >= self._until:
            return False
        if self._least is None and not run_one(self._engine, _is_written, self._found, "look for a writer"):
            return False
        if self._least is None or missing < self._least:
            self._least, self._looks = missing, _LOOKS
        if not self._looks:
            return False
        self._looks -= 1
        time.sleep(_BETWEEN_LOOKS)
        return True


def _is_written(found: Survey) -> bool:
    """A task: whether a broker holds the store's lock, or the log has grown since its end was fixed."""
    return found.is_in_use() or (bool(found.spans) and frames_end_now(found) > found.spans[-1].stop)
