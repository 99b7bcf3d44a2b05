"""Opening what must be a file: a name may lead to something that never ends, or that blocks."""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["regular"]


def regular(path: str, flags: int) -> int:
    """An `opener` for `open` that does not wait at a FIFO, and refuses sockets, devices and FIFOs (`OSError`).

    >>> open("/dev/zero", "rb", opener=regular)
    Traceback (most recent call last):
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # for a directory `open` raises its own error
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)
