"""Work that is mostly Python: one thread of a process at a time.

Two threads take the interpreter's lock from each other at each call of the system, and need 1.3 to 1.7 times as long as
one. What waits for the disk, or computes without that lock, goes on beside it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from contextlib import AbstractContextManager

__all__ = ["one_at_a_time", "python_turn"]

_turn = threading.Lock()


def one_at_a_time() -> bool:
    """Whether this interpreter runs Python in one thread at a time."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def python_turn(*, mostly_python: bool) -> AbstractContextManager[object]:
    """Where a task is mostly Python, wait until no other such task of this process runs; for the block.

    >>> with python_turn(mostly_python=True):
    ...     _turn.locked()
    True
    """
    return _turn if mostly_python and one_at_a_time() else contextlib.nullcontext()
