"""Which tests run in one process, and in which order, when pytest has several (`-n`, of pytest-xdist)."""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

__all__ = ["FileScheduling", "priority"]

# What shares a Spark session or real brokers stays together; the longest begin first, the many small ones fill up.
TOGETHER = ("tests/peer/rocketmq/", "tests/peer/kafka/", "tests/spark/")
APART = ("tests/spark/test_connect.py", "tests/spark/test_cluster.py")  # each starts a Spark of its own
FIRST = (*TOGETHER, "tests/api/test_documents.py", "tests/faults/", "tests/powercut/", "tests/crash/")


def group(nodeid: str) -> str:
    """Tests of one group run in one process, in their order.

    >>> group("tests/unit/test_hash.py::test_empty"), group("tests/spark/test_build.py::test_ties")
    ('tests/unit/test_hash.py', 'tests/spark/')
    """
    file = nodeid.partition("::")[0]
    return next((room for room in TOGETHER if file.startswith(room) and file not in APART), file)


def priority(nodeid: str) -> int:
    """The lower, the earlier a test begins."""
    begins = (*APART, *FIRST)
    return next((at for at, start in enumerate(begins) if nodeid.startswith(start)), len(begins))


class FileScheduling(LoadScopeScheduling):
    """A process that has little left to do gets the next group."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # `priority` is the order
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)
