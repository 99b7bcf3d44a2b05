"""Batches of a log through windows: a log of this machine is there as a whole, one elsewhere a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from mqindex._native.kafka_log import find_batch

MARGIN: Final = 64 << 10
"""Bytes after a window's batches, so that the last of them is whole, as most are."""
FIRST: Final = 192 << 10  # bytes of the first window; each following one is four times as long
STEP: Final = 32 << 20  # bytes of the longest, and between two checks whether a log of this machine was cut
CACHED: Final = 2 << 20  # bytes that a processor still has at hand when it copies what it compared checksums of
HEAD: Final = 61  # bytes of the longest head of a batch
_TAIL = 17  # so many bytes and fewer are no batch
LENGTH_AT: Final = 8  # where a batch has its length
LENGTH_END: Final = 12  # from where on that counts
_LEAST: Final = 14  # the least length of a batch

Window: TypeAlias = Callable[[int, int], memoryview]
"""The log from its first byte on, of which at least the bytes [start, stop) are there; it ends where these end."""
Found: TypeAlias = tuple[bytes | None, int, tuple[str, int, str, str, str] | None]


class BatchWindows:
    """The windows of a walk over the batches that begin in [at, stop): pairs of a buffer, and of a position before
    which they begin.

    Whoever iterates moves `at` on, behind the last good batch. The windows end at `stop`, or at what is no good batch,
    or is not whole in the log either; after `at` was moved on, they may be iterated again. `size`: of the log;
    `release`: gets the position before which nothing is read any more. `most`: bytes of the longest on this machine.
    """

    def __init__(
        self, window: Window, size: int, at: int, stop: int, release: Callable[[int], None], most: int = STEP
    ) -> None:
        self.window, self.size, self.at, self._stop, self._release = window, size, at, stop, release
        self._step, self._most = FIRST, most

    def __iter__(self) -> Iterator[tuple[memoryview, int]]:
        more = 0
        while True:
            log = self.window(self.at, max(min(self.at + self._step, self._stop) + MARGIN, self.at + more))
            limit = min(self._stop, self.at + (self._most if len(log) == self.size else self._step))
            yield log, limit
            more = missing(log, self.at, self.size) if self.at < limit else 0
            if self.at >= self._stop or (self.at < limit and not more):
                return
            self._release(self.at)
            self._step = min(4 * self._step, STEP)

    def whole(self) -> memoryview:
        """All of the log, from now on: what is bad is judged by all that follows."""
        self._release = keep
        return self.window(0, self.size)


def keep(at: int) -> None:
    """Release nothing."""


def find(window: Window, size: int, start: int, stop: int, column: str, target: int) -> Found:
    """As `find_batch`, of a log of `size` bytes."""
    step = FIRST
    while True:
        log = window(start, min(start + step, size))
        found: Found = find_batch(log, start, stop, column, target)
        row, end, _ = found
        if row is not None or end >= stop or not (more := missing(log, end, size)):
            return found
        start, step = end, max(min(4 * step, STEP), more)


def missing(log: memoryview, at: int, size: int) -> int:
    """The bytes that the batch at `at` is said to have, where a window has not all of them; 0: it is as it seems."""
    there, left = len(log) - at, size - at
    if there == left:
        return 0
    if there <= _TAIL:
        return min(left, HEAD)
    length = int.from_bytes(log[at + LENGTH_AT : at + LENGTH_END], "big", signed=True)
    wanted = LENGTH_END + length
    return wanted if length >= _LEAST and there < wanted <= left else 0
