"""Where the crash tests keep their stores."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = "/dev/shm"
ROOM = 256 << 20


def _memory_is_there() -> bool:
    if not os.access(MEMORY, os.W_OK):
        return False
    room = os.statvfs(MEMORY)
    return room.f_bavail * room.f_frsize > ROOM


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a killed process loses nothing that it wrote, synced or not.

    So waiting for a disk, at every one of thousands of kills, would prove nothing. What a power cut may take is put
    there by the tests themselves.
    """
    if not _memory_is_there():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="mqindex-crash-", dir=MEMORY) as directory:
        yield Path(directory)
