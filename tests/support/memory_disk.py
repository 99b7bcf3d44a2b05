"""Where tests keep their files: in memory, because most of the time they would wait for a disk.

Nothing is proven by that wait: a killed process loses nothing that it wrote, synced or not, and what a power cut may
take is taken by the tests themselves (tests/crash, tests/powercut).
"""

from __future__ import annotations

import os
import tempfile

__all__ = ["memory_disk"]

_MEMORY = "/dev/shm"
_ROOM = 2 << 30


def memory_disk() -> str:
    """A directory in memory, or the usual one for temporary files where there is none with room."""
    if os.access(_MEMORY, os.W_OK):
        room = os.statvfs(_MEMORY)
        if room.f_bavail * room.f_frsize > _ROOM:
            return _MEMORY
    return tempfile.gettempdir()
