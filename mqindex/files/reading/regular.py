"""Opening what must be a file: a name may lead to something that never ends, or that blocks."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from mqindex.files import disk
from mqindex.files.places.place import Place


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], *, buffered: bool = True) -> Iterator[BinaryIO]:
    """A file to read as `regular` opens it; an `OSError` of the block that names no path, as of a read, names it.

    >>> with reading("/dev/zero") as file:
    ...     file.read()
    Traceback (most recent call last):
    OSError: [Errno 22] not a regular file: '/dev/zero'
    """
    if isinstance(path, Place):
        with path.opened() as elsewhere:
            yield elsewhere
        return
    with disk.named(path), open(path, "rb", buffering=-1 if buffered else 0, opener=regular) as file:
        yield file


@contextlib.contextmanager
def reading_text(path: str | os.PathLike[str], *, encoding: str = "utf-8", errors: str = "strict") -> Iterator[TextIO]:
    """The same for text."""
    if isinstance(path, Place):
        with path.opened() as elsewhere:
            yield io.TextIOWrapper(elsewhere, encoding=encoding, errors=errors)
        return
    with disk.named(path), open(path, encoding=encoding, errors=errors, opener=regular) as file:
        yield file


def regular(path: str, flags: int) -> int:
    """A descriptor, without waiting at a FIFO; sockets, devices and FIFOs are refused (`OSError`)."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # for a directory `open` raises its own error
            raise OSError(errno.EINVAL, "not a regular file", path)
    except OSError:
        os.close(fd)
        raise
    return fd
