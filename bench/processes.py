"""One contender run is one fresh process: its JSON line, its peak memory, its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

from bench.machine import ROOT

__all__ = ["ContenderError", "Outcome", "run"]

TIMEOUT = 1800.0
SAMPLE_SECONDS = 0.005


class ContenderError(RuntimeError):
    """A contender did not end with its JSON line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one process measured, and the most memory it had: resident in all, and private (0: not watched)."""

    measures: dict[str, dict[str, Any]]
    answer: dict[str, Any]
    peak_rss: int
    peak_private: int


def run(command: list[str], *, scratch: str, watch: bool = False) -> Outcome:
    """Run a contender to its end. `watch`: sample its private memory meanwhile, which costs a little time."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        environment = {**os.environ, "TMPDIR": scratch}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has it; without it each start compiles
        child = subprocess.Popen(
            command, stdout=output, stderr=errors, cwd=ROOT, env=environment, start_new_session=True
        )
        killer = threading.Timer(TIMEOUT, _kill, (child.pid,))
        killer.start()
        try:
            private = _watch(child.pid) if watch else 0
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            _kill(child.pid)
            raise
        finally:
            killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        return _outcome(command, child.returncode, _text(output), _text(errors), usage.ru_maxrss * 1024, private)


def _outcome(command: list[str], code: int, output: str, errors: str, resident: int, private: int) -> Outcome:
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if code or not lines:
        raise ContenderError(f"exit code {code}: {' '.join(command)}\n{(errors or output)[-2000:]}")
    said = json.loads(lines[-1])
    return Outcome(said["measures"], said["answer"], resident, private)


def _watch(pid: int) -> int:
    """The largest RssAnon + RssShmem seen until the process ends."""
    most = 0
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        most = max(most, _private(pid))
        time.sleep(SAMPLE_SECONDS)
    return most


def _private(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(("RssAnon:", "RssShmem:")))
    except OSError:
        return 0


def _kill(pid: int) -> None:
    # The process leads its own group, so that a JVM which it started ends with it.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read())
