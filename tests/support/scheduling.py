"""Which tests run in one process, and in which order, when pytest has several (`-n`, of pytest-xdist)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

__all__ = ["FileScheduling", "give_way", "priority", "turn"]

# What shares a Spark session or real brokers stays together, but for files that start their own.
TOGETHER = ("tests/spark/", "tests/peer/rocketmq/", "tests/peer/kafka/", "tests/peer/places/")
APART = (
    "tests/peer/rocketmq/test_offsets_given_again.py",
    "tests/peer/rocketmq/test_compacted.py",
    "tests/peer/rocketmq/test_start.py",
)
# What others must answer begins first, the longest before the rest, and the many small ones fill up.
FIRST = (
    "tests/spark/",
    "tests/peer/rocketmq/",
    "tests/peer/places/",
    "tests/peer/rocketmq/test_offsets_given_again.py",
    "tests/peer/kafka/",
    "tests/api/test_documents.py",
    "tests/peer/rocketmq/test_compacted.py",
    "tests/peer/rocketmq/test_start.py",
    "tests/faults/",
    "tests/powercut/",
    "tests/crash/",
)
WAITING = 3  # groups that wait for others, at a time: with more, what they wait for itself waits for a processor
GIVES_WAY = 10  # as `nice` counts


def group(nodeid: str) -> str:
    """Tests of one group run in one process, in their order.

    >>> group("tests/unit/test_hash.py::test_empty"), group("tests/spark/test_build.py::test_ties")
    ('tests/unit/test_hash.py', 'tests/spark/')
    """
    file = nodeid.partition("::")[0]
    return next((room for room in TOGETHER if file.startswith(room) and file not in APART), file)


def priority(nodeid: str) -> int:
    """The lower, the earlier a test begins."""
    begins = [at for at, start in enumerate(FIRST) if nodeid.startswith(start)]
    return max(begins, default=len(FIRST))  # the last: a file that is apart has its own place


def waits(nodeid: str) -> bool:
    """Whether a test, or a group of them, waits for others most of the time."""
    return priority(nodeid) < len(FIRST)


def give_way(item: pytest.Item) -> None:
    """What Spark starts must answer within 10 s: a process takes less from the first test on that is none of Spark's.

    So all of Spark's tests run one after the other, in a process that has what it asks for of the processors.
    """
    if not item.get_closest_marker("spark"):
        os.setpriority(os.PRIO_PROCESS, 0, max(GIVES_WAY, os.getpriority(os.PRIO_PROCESS, 0)))


@contextmanager
def turn(item: pytest.Item) -> Iterator[None]:
    """As many tests as there are processors compute at a time: of more, all together take a fifth longer.

    Those that wait for others, for brokers or Spark, are beside them.
    """
    if waits(item.nodeid):
        yield
        return
    taken = _free_turn()
    try:
        yield
    finally:
        fcntl.flock(taken, fcntl.LOCK_UN)  # also for a child that has inherited it


def _free_turn() -> int:
    turns = _turns()
    for fd in turns:
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    mine = turns[os.getpid() % len(turns)]
    fcntl.flock(mine, fcntl.LOCK_EX)
    return mine


@cache
def _turns() -> list[int]:
    """Any files do, as long as all processes of this checkout take the same ones."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in modules[: os.cpu_count()]]


class FileScheduling(LoadScopeScheduling):
    """A process that has little left to do gets the next group, and of those that wait there are three at a time."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # `priority` is the order
        super().__init__(config, log)

    def _assign_work_unit(self, node: WorkerController) -> None:
        others = [groups for other, groups in self.assigned_work.items() if other is not node]
        busy = [group for groups in others for group, tests in groups.items() if not all(tests.values())]
        if sum(map(waits, busy)) >= WAITING:
            first = next((group for group in self.workqueue if not waits(group)), None)
            if first is not None:
                self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
