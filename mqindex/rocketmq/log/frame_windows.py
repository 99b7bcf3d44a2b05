"""Frames of a log file through windows: a file of this machine is there as a whole, one elsewhere a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from mqindex._native.commit_log import find_frame
from mqindex.files.reading.mapped_file import MappedFile

if TYPE_CHECKING:
    from typing_extensions import Buffer

MARGIN = 64 << 10
"""Bytes after a window's frames, so that the last of them is whole, as most are."""
_FIRST = 192 << 10  # bytes of the first window; each following one is four times as long
_MAGIC_AT, _OWN_AT, _HEAD = 4, 28, 36  # in a frame: its magic code, its phy offset, and what comes after that
_MAGIC, _MAGICS = b"\xda\xa3\x20", (0xA7, 0xAB)
_BLANK = b"\xcb\xd4\x31\x94"


Fault: TypeAlias = tuple[int, str, str | None, Any, Any]
"""The phy offset of a bad frame, what is wrong, the field, expected, got."""


class Kernel(Protocol):
    """A walk over frames. `fault`: the first bad one; `end`: after the last good one; `blank`: the
    blank record that ends the file, -1: it was not met.
    """

    @property
    def fault(self) -> Fault | None: ...
    @property
    def end(self) -> int: ...
    @property
    def blank(self) -> int: ...


AnyKernel = TypeVar("AnyKernel", bound=Kernel)


class FrameWindows(Generic[AnyKernel]):
    """The walks, one a window, over the frames that begin in the phy offsets [at, stop) of a file.

    `make(buffer, at, stop)` begins one; whoever iterates runs each to its end before the next. Afterwards: `end`, after
    the last good frame, and `fault`, what is wrong with the next one.
    """

    def __init__(
        self, log: MappedFile, file_start: int, at: int, stop: int, make: Callable[[Buffer, int, int], AnyKernel]
    ) -> None:
        self._log, self._start, self._stop, self._make = log, file_start, stop, make
        self.end = at
        self.fault: Fault | None = None
        self.window: Buffer = b""  # the last one

    def __iter__(self) -> Iterator[AnyKernel]:
        for window, limit in (opened := _Windows(self._log, self._start, self.end, self._stop)):
            self.window, kernel = window, self._make(window, self.end, limit)
            yield kernel
            self.end = opened.at = kernel.end
            doubtful = kernel.fault[0] if kernel.fault is not None else kernel.blank
            if doubtful >= 0 and (missing := opened.missing(window, doubtful)):
                self.end = opened.at = doubtful
                opened.more = missing
            elif kernel.fault is not None:
                self.fault = kernel.fault
                return


def find_in(log: MappedFile, file_start: int, at: int, stop: int) -> int:
    """As `find_frame`, of the whole file."""
    for window, limit in (opened := _Windows(log, file_start, at, stop)):
        found = find_frame(window, file_start, opened.at, limit)
        opened.at, opened.more = opened.cut_frame(window, opened.at, limit if found < 0 else found)
        if found >= 0 and not opened.more:
            return found
    return -1


def frame_window(log: MappedFile, file_start: int, at: int) -> Buffer:
    """A buffer with the whole frame at a phy offset, whatever is there."""
    first = at - file_start
    window = log.window(first, first + MARGIN)
    missing = _Windows(log, file_start, at, at + 1).missing(window, at)
    return log.window(first, first + missing) if missing else window


class _Windows:
    """Buffers and limits, while `at`, which whoever iterates moves on, is before `stop`.

    Frames that begin before a limit are whole in its buffer, as far as they fit its margin. `more`: bytes that the next
    one has from `at` on at least.
    """

    def __init__(self, log: MappedFile, file_start: int, at: int, stop: int) -> None:
        self._log, self._start, self.at, self._stop = log, file_start, at, stop
        self.more = 0

    def __iter__(self) -> Iterator[tuple[Buffer, int]]:
        size = _FIRST
        while True:
            more, self.more = self.more, 0
            stop = max(min(self.at + size, self._stop) + MARGIN, self.at + more)
            first = self.at - self._start
            window = self._log.window(first, stop - self._start)
            with memoryview(window) as there:
                read = len(there)
            whole = read == self._log.size
            yield window, self._stop if whole else min(self._stop, max(self._start + read - MARGIN, self.at + 1))
            if self.at >= self._stop or (whole and not self.more):
                return
            self._log.release(self.at - self._start)
            size = min(max(4 * size, read - first), self._log.step)  # as much as others have read ahead, at least

    def missing(self, window: Buffer, at: int) -> int:
        """The bytes that the frame at `at` is said to have, where not all are in the window; 0: it is as it seems."""
        with memoryview(window) as there:
            first, left = at - self._start, self._log.size - (at - self._start)
            if len(there) == self._log.size:
                return 0
            head = bytes(there[first : first + _HEAD])
            if len(head) < _HEAD or head[4:8] == _BLANK:  # a blank must end with the file
                return min(left, MARGIN) if len(head) < _HEAD else left
            size = _size_of(head, at)
            return min(size, left) if first + size > len(there) else 0

    def cut_frame(self, window: Buffer, at: int, stop: int) -> tuple[int, int]:
        """The first frame that begins in [at, stop) and is not whole in the window, and its size; (stop, 0): none."""
        with memoryview(window) as there:
            if len(there) < self._log.size:
                some = bytes(there[at - self._start : stop - self._start + _HEAD])
                magic = some.find(_MAGIC)
                while magic >= 0:
                    first = at + magic - _MAGIC_AT
                    if at <= first < stop and (size := self.missing(window, first)):
                        return first, size
                    magic = some.find(_MAGIC, magic + 1)
        return stop, 0


def _size_of(head: bytes, at: int) -> int:
    """The size that a frame has in its head; 0: this is none."""
    is_frame = head[_MAGIC_AT : _MAGIC_AT + 3] == _MAGIC and head[_MAGIC_AT + 3] in _MAGICS
    if not is_frame or int.from_bytes(head[_OWN_AT:_HEAD], "big") != at:
        return 0
    return max(int.from_bytes(head[:4], "big", signed=True), 0)
