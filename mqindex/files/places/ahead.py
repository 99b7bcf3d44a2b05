"""Ranges of a file elsewhere that are read in order: some are asked for while those before them are used."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from mqindex.files.few_threads import started

IN_FLIGHT: Final = 4  # requests


class Ahead:
    """The bytes of each of the `ranges`, (start, stop), in their order. For one thread.

    `read` is called in threads; where the system allows none, when its bytes are taken.
    """

    def __init__(self, read: Callable[[int, int], memoryview], ranges: Sequence[tuple[int, int]]) -> None:
        self._read, self._left = read, deque(ranges)
        self._asked: deque[_Asked] = deque()
        self._ask()

    @property
    def at(self) -> int | None:
        """Where the next range begins; None: all were taken."""
        return self._asked[0].start if self._asked else None

    def take(self) -> tuple[int, memoryview]:
        """Wait for the next range: where it begins, and its bytes. After an error nothing else is asked for."""
        asked = self._asked.popleft()
        try:
            data = asked.bytes()
        except BaseException:
            self.close()
            raise
        self._ask()
        return asked.start, data

    def close(self) -> None:
        """Ask for nothing else, and wait for what was asked for."""
        self._left.clear()
        while self._asked:
            self._asked[-1].wait()
            self._asked.pop()

    def _ask(self) -> None:
        while self._left and len(self._asked) < IN_FLIGHT:
            self._asked.append(_Asked(self._read, *self._left.popleft()))


class _Asked:
    """One request."""

    def __init__(self, read: Callable[[int, int], memoryview], start: int, stop: int) -> None:
        self.start, self._stop, self._read = start, stop, read
        self._data: memoryview | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = started(self._run, f"ahead_{start}")

    def _run(self) -> None:
        try:
            self._data = self._read(self.start, self._stop)
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def bytes(self) -> memoryview:
        if self._thread is None:
            self._run()
        self.wait()
        error, self._error = self._error, None  # else it holds this frame, and what its traceback shows stays open
        if error is not None:
            raise error
        assert self._data is not None
        return self._data
