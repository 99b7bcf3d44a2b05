"""Threads of which none runs a task any more when they are closed, also after a Ctrl-C at any moment."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any


class Workers:
    """A `ThreadPoolExecutor` that waits for its tasks, not for its threads or futures. One thread at a time calls it.

    A KeyboardInterrupt between the start of a thread and its note in the pool leaves one that no `shutdown` waits for.
    So each task is counted as it begins. One that arrives as the lock of a future is taken leaves it locked, and the
    future's task never ends. So what tasks come to is handed over by a queue.

    Where no thread can be started the tasks wait, and `next` runs them.

    Attributes
    ----------
    pending : int, tasks whose result was not asked for
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._changed = threading.Condition()
        self._running = 0
        self._over = False
        self._ended: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._threaded: bool | None = None  # None: not known yet
        self._waiting: deque[Callable[[], Any]] = deque()  # tasks without a thread
        self.pending = 0

    def submit(self, task: Callable[..., Any], *arguments: Any) -> None:
        """Run a task in a thread, after those that were submitted before."""
        self.pending += 1
        if self._threaded is not False:
            self._threaded = self._submitted(task, *arguments)
        if not self._threaded:
            self._waiting.append(partial(task, *arguments))

    def _submitted(self, task: Callable[..., Any], *arguments: Any) -> bool:
        try:
            self._pool.submit(self._run, task, *arguments)
        except RuntimeError:  # no thread more may be started; if there is one already, it has the task all the same
            if self._over:
                raise
            return self._threaded is True
        return True

    def next(self) -> Any:
        """Wait for a task, return its result or raise its exception: in the order of `submit` if there is one thread.

        It is asked for each task once at most, as `pending` counts.
        """
        if self._waiting:
            self.pending -= 1
            return self._waiting.popleft()()
        result, error = self._ended.get()  # an interrupt wakes it, and takes nothing out
        self.pending -= 1
        try:
            if error is not None:
                raise error
            return result
        finally:
            del error  # else it holds this frame, and what its traceback shows stays open

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
        while self._waiting and not cancel:
            self._waiting.popleft()()
        self._pool.shutdown(cancel_futures=cancel)
        with self._changed:
            self._over = True
            self._changed.wait_for(lambda: self._running == 0)

    def _run(self, task: Callable[..., Any], *arguments: Any) -> None:
        with self._changed:
            if self._over:
                raise CancelledError
            self._running += 1
        try:
            self._ended.put((task(*arguments), None))
        except BaseException as error:
            self._ended.put((None, error))
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
