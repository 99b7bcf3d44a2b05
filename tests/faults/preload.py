"""The library `shim.c`, compiled and loaded before libc: it counts this process's calls and lets some of them fail."""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FAILURES", "STACK", "Counted", "available", "environment", "faulty", "is_loaded"]

STACK = "MQINDEX_FAULTS_STACK"  # in the environment: the stack of the call that fails goes to stderr
SOURCE = Path(__file__).with_name("shim.c")
_ONCE, _SHORT, _FULL = 0, 1, 2
_SPECIAL = {
    "short": (0, _SHORT),  # a write takes half of its bytes
    "full": (errno.ENOSPC, _FULL),  # from this call on there is no space
}
_TAKE_SPACE = frozenset({"write", "copy", "fallocate", "create", "mkdir", "link", "symlink"})
_BY_PATH = frozenset(
    {"open", "create", "mkdir", "link", "symlink", "rename", "unlink", "rmdir", "stat", "chmod", "chown"}
)
# Which calls of `shim.c` a system can let fail so; None: every one.
FAILURES: dict[str, frozenset[str] | None] = {
    "EIO": None,
    "EACCES": _BY_PATH,
    "EMFILE": frozenset({"open", "create"}),
    "ENOLCK": frozenset({"lock"}),
    "ENOMEM": frozenset({"mmap"}),
    "ENOSPC": _TAKE_SPACE | {"ftruncate", "rename", "fsync", "msync"},
    "full": _TAKE_SPACE,
    "short": frozenset({"write", "copy"}),
}


@dataclass(frozen=True)
class Counted:
    """The calls below a directory, in order; `struck`: (name, path) of those that were made to fail."""

    calls: tuple[str, ...]
    struck: tuple[tuple[str, str], ...]


def available() -> bool:
    """Whether libraries can be loaded before libc here."""
    return sys.platform == "linux"


def environment(directory: Path) -> dict[str, str]:
    """What the environment of a process must be so that its calls can be made to fail; compiles into `directory`."""
    library = directory / "shim.so"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(library)]
    subprocess.run([*compiler, *flags, str(SOURCE), "-ldl", "-pthread"], check=True)
    earlier = os.environ.get("LD_PRELOAD")
    return {**os.environ, "LD_PRELOAD": f"{earlier}:{library}" if earlier else str(library)}  # a sanitizer is first


def _what_happens(failure: str) -> tuple[int, int]:
    return _SPECIAL[failure] if failure in _SPECIAL else (getattr(errno, failure), _ONCE)


class faulty:
    """While it runs, calls below `root` count, and call number `at` (0: none) fails. `counted` is there afterwards.

    failure : one of FAILURES, or the name of any other error
    second : the number and the failure of one more call
    """

    def __init__(self, root: Path, at: int = 0, failure: str = "EIO", second: tuple[int, str] = (0, "EIO")) -> None:
        self._library = ctypes.CDLL(None)
        self._library.mqi_faults_name.restype = self._library.mqi_faults_struck.restype = ctypes.c_char_p
        self._library.mqi_faults_name.argtypes = [ctypes.c_long]
        self._library.mqi_faults_disarm.restype = ctypes.c_long
        self._library.mqi_faults_arm.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self._library.mqi_faults_strike.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int]
        self._root = os.fsencode(os.path.realpath(root))
        self._strikes = (at, failure), second
        self._signal = 0
        if STACK in os.environ:
            faulthandler.register(signal.SIGUSR2)
            self._signal = signal.SIGUSR2

    def __enter__(self) -> faulty:
        for which, (at, failure) in enumerate(self._strikes):
            self._library.mqi_faults_strike(which, at, *_what_happens(failure))
        self._library.mqi_faults_arm(self._root, self._signal)
        return self

    def __exit__(self, *error: object) -> None:
        count = self._library.mqi_faults_disarm()
        calls = tuple(self._library.mqi_faults_name(number).decode() for number in range(count))
        paths = [os.fsdecode(self._library.mqi_faults_struck(which)) for which in range(2)]
        struck = ((calls[at - 1], path) for (at, _), path in zip(self._strikes, paths, strict=True) if path)
        self.counted = Counted(calls, tuple(struck))


def is_loaded() -> bool:
    """Whether this process has the library."""
    return hasattr(ctypes.CDLL(None), "mqi_faults_arm")
