"""Output of Spark's launcher and Java process that is no problem: hidden from users who did not ask for it."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import warnings
from collections.abc import Iterable, Iterator
from typing import TextIO

_TIME = r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d "  # of Spark's own layout of a log line
_NOISE = re.compile(
    rf"{_TIME}(?:WARN|INFO|DEBUG|TRACE) |WARNING: |Using Spark's default log4j|Setting (?:default|Spark) log level"
    r"|To adjust logging level|Picked up (?:_JAVA_OPTIONS|JAVA_TOOL_OPTIONS)"
    rf"|{_TIME}ERROR SparkContext: Error initializing"  # Python gets it as an exception
)
_END_OF_LAUNCHER = re.compile(r'Exception in thread "main" (?:[\w.$]+: )?(.+)', re.DOTALL)
_OF_THE_LINE_BEFORE = re.compile(r"\s|Caused by: |(?:java|scala|org)\.[\w.$]+(?:Exception|Error)")


def troubles(lines: Iterable[str]) -> Iterator[str]:
    """The lines that report problems; the stack trace after a hidden line is hidden too.

    For a launcher that fails, its reason without the stack trace.

    >>> list(troubles(["26/11/22 17:27:49 WARN Utils: loopback", "26/11/22 17:27:50 ERROR Executor: out of memory"]))
    ['26/11/22 17:27:50 ERROR Executor: out of memory']
    """
    noise = False
    for line in lines:
        noise = bool(_NOISE.match(line)) or (noise and bool(_OF_THE_LINE_BEFORE.match(line)))
        if not noise:
            gives_up = _END_OF_LAUNCHER.match(line)
            noise = bool(gives_up)
            yield f"Spark's launcher: {gives_up[1]}" if gives_up else line


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """A Java process that is started meanwhile gets a stderr of which only lines about problems come to ours."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", module=r"pyspark\b")
        try:
            ours = os.dup(2)
        except OSError:  # stderr is closed
            yield
            return
        read, write = os.pipe()
        os.dup2(write, 2)
        os.close(write)
        passing = threading.Thread(
            target=_pass_on,
            args=(os.fdopen(read, errors="backslashreplace"), os.fdopen(os.dup(ours), "w")),
            daemon=True,
        )
        passing.start()
        try:
            yield
        finally:
            os.dup2(ours, 2)
            os.close(ours)


def _pass_on(lines: TextIO, out: TextIO) -> None:
    with lines, out, contextlib.suppress(OSError, ValueError):
        for line in troubles(lines):
            out.write(line)
            out.flush()
