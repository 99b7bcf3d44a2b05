"""When what was written goes to the disk: group commit, and the thread of an asynchronous flush."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mqindex.errors import FileStateError
from mqindex.rocketmq.write_rules import FlushRules

__all__ = ["FlushThread", "GroupCommit"]

_PAGE = 4096
_LONGEST_GATHERING = 0.002


class GroupCommit:
    """Callers who wait for the disk share one sync: the first of them leads, the others find their bytes written.

    A leader gives the callers of the round before a moment to come back, as long as that is short against a sync: so
    eight callers in a loop make one sync of eight, and a lone one never waits.

    Parameters
    ----------
    sync : makes durable what is written, and tells up to which phy offset

    Notes
    -----
    After a sync that failed nobody knows which bytes the disk has, and a second one would not tell: every later call
    raises, and the log must be opened again. Safe from several threads.
    """

    def __init__(self, sync: Callable[[], int], flushed: int) -> None:
        self.flushed = flushed
        self._sync = sync
        self._lock = threading.Lock()
        self._done = threading.Condition(self._lock)
        self._came = threading.Condition(self._lock)
        self._leading = False
        self._waiting = 0
        self._expected = 1
        self._took = 0.0
        self._error: OSError | None = None

    def wait_for(self, phy_offset: int) -> None:
        """Return when the bytes below that offset are on the disk."""
        with self._lock:
            self._waiting += 1
            if self._waiting >= self._expected:
                self._came.notify()
            try:
                while self.flushed < phy_offset:
                    self.require_good()
                    if self._leading:
                        self._done.wait()
                    else:
                        self._lead()
            finally:
                self._waiting -= 1

    def require_good(self) -> None:
        """Raise if a sync has failed."""
        if self._error is not None:
            raise FileStateError(
                f"a flush failed, so nobody knows what the disk has: {self._error}",
                path=self._error.filename, hint="open the log again",
            ) from self._error  # fmt: skip

    def _lead(self) -> None:
        """With the lock: gather, sync without it, tell everyone."""
        self._leading = True
        try:
            self._gather()
            self._lock.release()
            start = time.perf_counter()
            try:
                flushed = self._sync()
            finally:
                self._took = time.perf_counter() - start
                self._lock.acquire()
            self.flushed = max(self.flushed, flushed)
            self._expected = self._waiting
        except OSError as error:
            self._error = error
            raise
        finally:
            self._leading = False
            self._done.notify_all()

    def _gather(self) -> None:
        stop = time.perf_counter() + min(self._took, _LONGEST_GATHERING)
        while self._waiting < self._expected:
            left = stop - time.perf_counter()
            if left <= 0 or not self._came.wait(left):
                return


class FlushThread:
    """Flushes now and then, as the broker's settings say: every interval at least so many pages, now and then all."""

    def __init__(self, group: GroupCommit, written: Callable[[], int], rules: FlushRules) -> None:
        self._group = group
        self._written = written
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
            written, now = self._written(), time.monotonic()
            pages = written // _PAGE - self._group.flushed // _PAGE
            all_of_it = now >= thorough + self._rules.thorough_interval
            if all_of_it:
                thorough = now
            if written > self._group.flushed and (all_of_it or pages >= self._rules.least_pages):
                try:
                    self._group.wait_for(written)
                except (OSError, FileStateError):
                    return  # the next append says it
