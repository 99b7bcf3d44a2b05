"""Runs a call of the package in a process of its own that is killed, or given an I/O error, at its n-th system call.

One runner process forks a child for every attempt, so an attempt costs milliseconds. Counted are the calls that
change a file system: in the child they go through a wrapper.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import json
import mmap
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from mqindex.files import disk
from tests.support.imported import import_all
from tests.support.nightly import NIGHTLY

__all__ = ["CLEANUP", "Outcome", "Runner", "some_calls"]

CALLS = (
    "replace", "rename", "link", "fsync", "posix_fallocate", "ftruncate", "copy_file_range", "sendfile", "mkdir",
    "chmod", "chown", "unlink", "rmdir", "pwrite",
)  # fmt: skip
CLEANUP = frozenset({"unlink", "rmdir"})
FAILURES = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EACCES")}


@dataclass(frozen=True)
class Outcome:
    """How a call ended. `calls`: what was counted, in order (of a killed child: nothing)."""

    killed: bool
    signal: int
    calls: tuple[str, ...] = ()
    error: BaseException | None = None
    value: Any = None


def some_calls(source: random.Random) -> Iterator[int]:
    """Numbers of calls, from 1 on, for a test that tries each: one of twelve; all, in the nightly run."""
    step = 1 if NIGHTLY else 12
    return iter(range(1 + source.randrange(step), 1000, step))  # so one of any twelve that follow each other is tried


class Runner:
    """A process that waits for orders; `with` ends it."""

    def __enter__(self) -> Runner:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash_at"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def run(
        self,
        function: str,
        *args: Any,
        at: int = 0,
        failure: str = "kill",
        limit: int = 0,
        uid: int = 0,
        **options: Any,
    ) -> Outcome:
        """`module:function` with these arguments; at its call number `at` (0: never) the failure happens.

        failure : "kill", or the name of an error. limit : no file may grow beyond that many bytes (0: any).
        uid : whom the child becomes (0: nobody else).
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = function, args, options, at, failure, limit, uid
        print(b64encode(pickle.dumps(order)).decode(), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        if not answer["said"]:
            return Outcome(answer["signal"] == signal.SIGKILL and at > 0, answer["signal"])
        calls, error, value = pickle.loads(b64decode(answer["said"]))
        return Outcome(False, 0, tuple(calls), error, value)


class _Trap:
    """Counts calls and strikes at one of them."""

    def __init__(self, at: int, failure: str) -> None:
        self.at, self.failure = at, failure
        self.calls: list[str] = []
        self._lock = threading.Lock()

    def count(self, name: str, path: Any) -> None:
        if self.failure != "kill" and name in CLEANUP:
            return
        with self._lock:  # files are brought to the disk by several threads
            self.calls.append(name)
            struck = len(self.calls) == self.at
        if struck:
            if self.failure == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            number = FAILURES[self.failure]
            raise OSError(number, os.strerror(number), path if isinstance(path, str) else None)

    def set(self) -> None:
        for name in CALLS:
            if hasattr(os, name):
                setattr(os, name, self._wrapped(name, getattr(os, name)))
        disk.swap = self._wrapped("swap", disk.swap)
        os.open = self._opening(os.open)
        builtins.open = self._opening_stream(io.open)
        trap = self

        class Map(mmap.mmap):
            def flush(self, *args: int) -> None:
                trap.count("msync", None)
                super().flush(*args)

        mmap.mmap = Map  # type: ignore[misc]

    def _wrapped(self, name: str, call: Any) -> Any:
        def counted(*args: Any, **options: Any) -> Any:
            self.count(name, args[0])
            return call(*args, **options)

        return counted

    def _opening(self, call: Any) -> Any:
        def counted(path: Any, flags: int, *args: Any, **options: Any) -> Any:
            if flags & os.O_CREAT:
                self.count("create", path)
            return call(path, flags, *args, **options)

        return counted

    def _opening_stream(self, call: Any) -> Any:
        def counted(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if set(mode) & set("wxa"):
                self.count("create", file)
            return call(file, mode, *args, **options)

        return counted


def _attempt(order: Any, answer: int) -> None:
    function, args, options, at, failure, limit, uid = order
    module, name = function.split(":")
    call = getattr(importlib.import_module(module), name)
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    if uid:
        import_all()
        os.setuid(uid)
    trap = _Trap(at, failure)
    trap.set()
    value = error = None
    try:
        value = call(*args, **options)
    except BaseException as raised:
        error = raised
    os.write(answer, pickle.dumps((trap.calls, error, value)))


def main() -> None:
    for module in ("mqindex.rocketmq.repair", "mqindex.kafka.repair"):
        importlib.import_module(module)
    for line in sys.stdin:
        order = pickle.loads(b64decode(line))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _attempt(order, writing)
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        print(json.dumps({"signal": status & 0x7F, "said": b64encode(said).decode()}), flush=True)


if __name__ == "__main__":
    main()
