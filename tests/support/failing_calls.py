"""One call of the system that fails: the n-th of those that touch a place, whichever it is."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

__all__ = ["FailingCall"]

CALLS = (
    "open", "stat", "lstat", "fstat", "scandir", "listdir", "mkdir", "rename", "replace", "link", "unlink", "rmdir",
    "chmod", "chown", "write", "pwrite", "ftruncate", "truncate", "posix_fallocate", "fsync", "fdatasync", "access",
)  # fmt: skip


class FailingCall:
    """While it is entered, call number `at` (1 first) that touches a path below one of `places` raises `failure`.

    Calls are known by their path, or by the path of their descriptor. `calls`: what was counted.
    """

    def __init__(self, places: tuple[str, ...], at: int, failure: str) -> None:
        self._places = tuple(os.path.realpath(place) for place in places)
        self._at, self._number = at, getattr(errno, failure)
        self._lock = threading.Lock()
        self._undo = contextlib.ExitStack()
        self._readlink = os.readlink
        self.calls: list[str] = []

    @property
    def struck(self) -> bool:
        """Whether there were as many calls."""
        return len(self.calls) >= self._at

    def __enter__(self) -> FailingCall:
        for name in CALLS:
            self._replace(os, name, getattr(os, name), name)
        self._replace(builtins, "open", builtins.open, "open")
        self._replace(io, "open", io.open, "open")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._undo.close()

    def _replace(self, module: Any, name: str, call: Any, told: str) -> None:
        def counted(*args: Any, **options: Any) -> Any:
            self._count(told, args)
            return call(*args, **options)

        setattr(module, name, counted)
        self._undo.callback(setattr, module, name, call)

    def _count(self, name: str, args: tuple[Any, ...]) -> None:
        if not any(path.startswith(self._places) for path in self._paths(args)):
            return
        with self._lock:
            self.calls.append(name)
            if len(self.calls) != self._at:
                return
        raise OSError(self._number, os.strerror(self._number))

    def _paths(self, args: tuple[Any, ...]) -> Iterator[str]:
        for given in args[:2]:
            if isinstance(given, str):
                yield os.path.abspath(given)
            elif isinstance(given, int) and not isinstance(given, bool) and given is args[0]:
                with contextlib.suppress(OSError):
                    yield self._readlink(f"/proc/self/fd/{given}") if sys.platform == "linux" else ""
