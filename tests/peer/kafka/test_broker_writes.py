"""A real Kafka broker writes; mqindex reads everything back equal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mqindex.kafka import OffsetIndex, TimeIndex, TransactionIndex
from tests.peer.kafka.conftest import Written
from tests.peer.kafka.workload import TOPICS

pytestmark = pytest.mark.peer


def test_the_indexes_of_a_clean_stop_pass_the_sanity_check(
    written: dict[str, Written], version: str, proven: Callable[[str], None]
) -> None:
    files = entries = 0
    for topic in TOPICS:
        partition = written[version].partition(topic)
        for suffix, kind in (("index", OffsetIndex), ("timeindex", TimeIndex), ("txnindex", TransactionIndex)):
            for path in partition.glob(f"*.{suffix}"):
                with kind.open(path) as index:
                    index.sanity_check()
                    files, entries = files + 1, entries + len(index)
    assert entries > 500
    proven(f"{files} index files of {entries} entries pass the broker's sanity check")
