"""Locks of objects that are read by several threads, and by forked children too."""

from __future__ import annotations

import os
import threading
from typing import TypeVar
from weakref import WeakSet

_L = TypeVar("_L", threading.Lock, threading.RLock)

_locks: WeakSet[threading.Lock | threading.RLock] = WeakSet()


def new_lock() -> threading.Lock:
    """A lock that a forked child finds open: the thread that held it at the fork is not in the child."""
    return _known(threading.Lock())


def new_rlock() -> threading.RLock:
    """The same, for a thread that takes it again while it has it."""
    return _known(threading.RLock())


def _known(lock: _L) -> _L:
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # type: ignore[union-attr]


os.register_at_fork(after_in_child=_open_all)
