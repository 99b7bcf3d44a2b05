"""Work that is mostly Python: one thread of a process at a time.

Two threads take the interpreter's lock from each other at each call of the system, and need 1.3 to 1.7 times as long as
one. What waits for the disk, or computes without that lock, goes on beside it.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager

from mqindex.engines.engine import one_at_a_time
from mqindex.files.fork_lock import new_lock

_turn = new_lock()


def python_turn(*, mostly_python: bool) -> AbstractContextManager[object]:
    """Where a task is mostly Python, wait until no other such task of this process runs; for the block.

    >>> with python_turn(mostly_python=True):
    ...     sum(range(3))
    3
    """
    return _turn if mostly_python and one_at_a_time() else contextlib.nullcontext()
