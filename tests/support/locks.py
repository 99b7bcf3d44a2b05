"""A lock that another process holds, as a broker holds that of its store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["can_lock", "held"]

LOCKS = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)"


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process holds the lock; its number."""
    path.touch()
    script = f"{LOCKS}; print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.stdin.close()


def can_lock(path: Path) -> bool:
    """Whether another process gets it."""
    return subprocess.run([sys.executable, "-c", LOCKS, str(path)], capture_output=True, check=False).returncode == 0
