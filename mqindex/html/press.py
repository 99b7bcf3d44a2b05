"""A press: a process that loads the drawing library while this one still reads, and then makes the page.

Loading takes longer than drawing. A process does not slow the pass down, as a thread with the interpreter's lock would,
and it ends when the pipe to this one ends, for whatever reason.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mqindex.html.drawing import NEEDS
from mqindex.html.render import prepare, render
from mqindex.report import Catalogue, Report

__all__ = ["Press", "require_installed"]

_PROGRAM = "import sys; from mqindex.html.press import serve; serve(sys.argv[1])"


def require_installed() -> None:
    """`ImportError` that says what to install, if it is missing; nothing is loaded."""
    for name in ("jinja2", "matplotlib"):
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"{NEEDS} (there is no {name})", name=name)


class Press:
    """`with Press("mqindex.html.rocketmq") as press: …; press.page(…)`: the room has the function `page_of`."""

    def __init__(self, room: str) -> None:
        self._room = room
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Press:
        if sys.executable and "matplotlib.backends.backend_svg" not in sys.modules:
            places = os.pathsep.join(place for place in sys.path if place)
            quiet = ["-B"] if sys.flags.dont_write_bytecode else []
            with contextlib.suppress(OSError):  # no process more: this one makes the page
                self._process = subprocess.Popen(
                    [sys.executable, "-P", *quiet, "-c", _PROGRAM, self._room],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": places},
                    start_new_session=True,  # Ctrl-C is for this one
                )
        return self

    def __exit__(self, *failed: object) -> None:
        if self._process is not None:
            self._process.communicate()

    def page(self, document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str]) -> bytes:
        """The page as a file's bytes. If the process could not make it, it is made here, or fails with its reason."""
        work = (document, report, catalogue, repair)
        if self._process is not None:
            made, _ = self._process.communicate(pickle.dumps(work))
            ended, self._process = self._process.returncode, None
            if ended == 0:
                return made
        return _made(self._room, work)


def serve(room: str) -> None:
    """The process: load, wait for the work, print the page. Without work it ends."""
    importlib.import_module(room)
    prepare()
    with contextlib.suppress(EOFError):
        work = pickle.load(sys.stdin.buffer)
        sys.stdout.buffer.write(_made(room, work))


def _made(room: str, work: tuple[Any, ...]) -> bytes:
    return render(importlib.import_module(room).page_of(*work)).encode()
