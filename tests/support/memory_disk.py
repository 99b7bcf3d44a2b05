"""A place in memory for stores that are written thousands of times, where waiting for a disk would prove nothing."""

from __future__ import annotations

import os
import tempfile

__all__ = ["memory_disk"]

_MEMORY = "/dev/shm"
_ROOM = 256 << 20


def memory_disk() -> str:
    """A directory in memory, or the usual one for temporary files where there is none with room."""
    if os.access(_MEMORY, os.W_OK):
        room = os.statvfs(_MEMORY)
        if room.f_bavail * room.f_frsize > _ROOM:
            return _MEMORY
    return tempfile.gettempdir()
