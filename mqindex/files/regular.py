"""Opening what must be a file: a name may lead to something that never ends, or for which one waits."""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["regular"]


def regular(path: str, flags: int) -> int:
    """An `opener` for `open`: no FIFO is waited for, and no socket, device or FIFO is read (`OSError`).

    >>> open("/dev/zero", "rb", opener=regular)
    Traceback (most recent call last):
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a directory `open` says so itself
        return fd
    os.close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)
