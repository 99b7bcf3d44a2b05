"""Whether a broker holds a store or a log dir."""

from __future__ import annotations

import fcntl
import os

__all__ = ["lock_state"]


def lock_state(path: str) -> str:
    """Whether a broker holds a lock file, asked without holding it: "held", "free", "absent" or "unreadable"."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return "absent"
    except OSError:
        return "unreadable"
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0)  # a shared lock needs no right to write; closing ends it
        return "free"
    except OSError:
        return "held"
    finally:
        os.close(fd)
