"""The thread of an asynchronous flush."""

from __future__ import annotations

import threading
import time

from mqindex._native.group_commit import GroupCommit
from mqindex.rocketmq.log.writing.write_rules import FlushRules

_PAGE = 4096


class FlushThread:
    """Flushes by the broker's settings: each interval if there are enough pages, and all at longer intervals."""

    def __init__(self, group: GroupCommit, rules: FlushRules) -> None:
        self._group = group
        self._rules = rules
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mqindex-flush", daemon=True)
        self._thread.start()

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
