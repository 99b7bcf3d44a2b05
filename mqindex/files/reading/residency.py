"""The page cache: whether it holds a file, and the request that it shall."""

from __future__ import annotations

import contextlib
import mmap
import os

from mqindex.files.disk import named
from mqindex.files.reading.regular import regular

_ASKED = 16  # pages; a file of which a tenth is not in memory passes one time in five, one of which half is not, never
_STRIDE = 1_000_003  # to other pages, whatever the file's length
_AT_ONCE = 128 << 10  # bytes that Linux reads at most for one advice, unless a disk is set to more


class Residency:
    """The page cache's view of one file. It is a hint: some systems do not report it, and it may change soon."""

    def __init__(self, path: str) -> None:
        self._turn = 0
        with named(path):
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._pages = -(-os.fstat(self._fd).st_size // mmap.PAGESIZE)
            except OSError:
                self.close()
                raise

    def __call__(self) -> bool:
        """Whether a sample of pages, others each time, is all in memory; False too where that is not known."""
        nowait = getattr(os, "RWF_NOWAIT", None)  # Linux
        if nowait is None or self._fd < 0:
            return False
        step = max(self._pages // _ASKED, 1)
        self._turn = (self._turn + _STRIDE) % step
        byte = [bytearray(1)]
        try:
            for page in range(self._turn, self._pages, step):
                if os.preadv(self._fd, byte, page * mmap.PAGESIZE, nowait) != 1:
                    return False
            return True
        except OSError:  # EAGAIN: it would have to be read; EOPNOTSUPP: not on this file system
            return False

    def fileno(self) -> int:
        """The descriptor of the file, -1 after `close`."""
        return self._fd

    def close(self) -> None:
        """From now on the answer is False; may be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):
                os.close(fd)


def read_ahead(path: str, size: int) -> None:
    """Ask for the first `size` bytes of a file that will be read soon, and do not wait for them. Nothing ever fails."""
    advise = getattr(os, "posix_fadvise", None)  # not on macOS
    if advise is None:
        return
    with contextlib.suppress(OSError):
        fd = regular(path, os.O_RDONLY)
        try:
            for at in range(0, size, _AT_ONCE):
                advise(fd, at, min(_AT_ONCE, size - at), os.POSIX_FADV_WILLNEED)
        finally:
            os.close(fd)
