"""Which tests run in one process, and in which order, when pytest has several (`-n`, of pytest-xdist)."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

__all__ = ["FileScheduling", "priority"]

# What shares a Spark session or real brokers stays together, but for files that start their own.
TOGETHER = ("tests/peer/rocketmq/", "tests/spark/", "tests/peer/kafka/")
APART = ("tests/spark/test_connect.py", "tests/peer/rocketmq/test_start.py", "tests/spark/test_cluster.py")
# The longest begin first, and the many small ones fill up.
FIRST = (*TOGETHER, *APART, "tests/api/test_documents.py", "tests/faults/", "tests/powercut/", "tests/crash/")


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


class FileScheduling(LoadScopeScheduling):
    """A process that has little left to do gets the next group."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # `priority` is the order
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
