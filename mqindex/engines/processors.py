"""How many processors this process may use: what the system schedules it on, and what its container is granted."""

from __future__ import annotations

import contextlib
import math
import os

_OWN_GROUP = "/proc/self/cgroup"
_GROUPS = "/sys/fs/cgroup"


def processors() -> int:
    """How many processors to share work among: at least one, at most what the limit of the control group allows."""
    return max(1, min(_scheduled(), math.ceil(_granted())))


def _scheduled() -> int:
    if hasattr(os, "process_cpu_count"):  # Python 3.13; it asks for the affinity where there is one
        count: int | None = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):  # not on macOS
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count()
    return count or 1


def _granted() -> float:
    """The least of the limits of this process's control group and those above it (cgroup v2, as containers set it)."""
    least = float(os.cpu_count() or 1)
    with contextlib.suppress(OSError, StopIteration):
        with open(_OWN_GROUP, encoding="utf-8", errors="surrogateescape") as lines:
            group = next(line[3:].rstrip("\n") for line in lines if line.startswith("0::"))
        while group:
            group = group.rstrip("/")  # the root itself comes last
            least = min(least, _limit(f"{_GROUPS}{group}/cpu.max"))
            group = os.path.dirname(group)
    return least


def _limit(path: str) -> float:
    """Microseconds of processor time in a period, as a number of processors; no file and "max" are no limit."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        with open(path, encoding="ascii") as file:
            quota, period = file.read().split()
        return int(quota) / int(period)
    return math.inf
