"""Threads of which none runs a task any more when they are closed, also after a Ctrl-C at any moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Workers"]

Result = TypeVar("Result")


class Workers:
    """A `ThreadPoolExecutor` that waits for its tasks, not for its threads.

    A KeyboardInterrupt between the start of a thread and its note in the pool leaves one that no `shutdown` waits for.
    So each task is counted as it begins.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._changed = threading.Condition()
        self._running = 0
        self._over = False

    def submit(self, task: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Run a task in a thread, after those that were submitted before."""
        return self._pool.submit(self._run, task, *arguments)

    def close(self, *, cancel: bool) -> None:
        """Wait until no task runs. `cancel`: those that wait are not begun. May be called twice.

        A KeyboardInterrupt meanwhile is raised when none does: what the tasks write to is let go afterwards.
        """
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._wait(cancel=cancel)
                break
            except KeyboardInterrupt as another:
                interrupt = another
        if interrupt is not None:
            raise interrupt

    def _wait(self, *, cancel: bool) -> None:
        self._pool.shutdown(cancel_futures=cancel)
        with self._changed:
            self._over = True
            self._changed.wait_for(lambda: self._running == 0)

    def _run(self, task: Callable[..., Result], *arguments: Any) -> Result:
        with self._changed:
            if self._over:
                raise CancelledError
            self._running += 1
        try:
            return task(*arguments)
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
