"""Files made without a name: a run that fails leaves nothing."""

from __future__ import annotations

import errno
import os

_NAMELESS = getattr(os, "O_TMPFILE", None)  # Linux
_NO_SUCH_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)  # of the file system; of the kernel
_NO_SUCH_LINKS = (errno.ENOENT, errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP)  # without /proc, for one


def open_nameless(directory: str) -> int | None:
    """A new empty file in the file system of that directory, to read and write; None: it has no such files."""
    if _NAMELESS is None:
        return None
    try:
        return os.open(directory, _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno in _NO_SUCH_FILES:
            return None
        raise


def link_into_place(fd: int, path: str) -> bool:
    """Give the file its name, which must be unused (`FileExistsError`); False: the system cannot.

    Its directory is not synced.
    """
    try:
        # With a directory given, the call follows the link to the file; without one it would link the link.
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)
    except OSError as error:
        if error.errno in _NO_SUCH_LINKS:
            return False
        raise OSError(error.errno, error.strerror, path) from None
    return True
