"""Dispatch gives the broker's index files and consume queues byte for byte, in however many turns."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mqindex.rocketmq import IndexService
from mqindex.rocketmq.dispatch.dispatched import dispatched_offset
from mqindex.rocketmq.dispatch.reput import Reput
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import Survey, survey
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from tests.support.golden import STORE_CASES, StoreCase
from tests.support.tree import index_bytes, queue_bytes

GoldenStore = Callable[[str], tuple[StoreCase, Path]]
EXT = "ipv6-batch-ext-493"  # its units hold addresses of extension files, which dispatch does not write
each_store = pytest.mark.parametrize("name", STORE_CASES)


@contextmanager
def dispatching(found: Survey, out: Path) -> Iterator[Reput]:
    """Dispatch into `out`, from where it stands on."""
    out.mkdir(exist_ok=True)
    slots, entries = found.geometry.value
    rules, log = found.queues.rules, found.options.commitlog
    with (
        IndexService.open(out / "index", hash_slot_num=slots, index_num=entries, writable=True) as index,
        ConsumeQueueTable.open(out / "consumequeue", file_size=rules.file_size, writable=True) as queues,
    ):
        start = dispatched_offset(log, index, queues, tags=found.tags.newest)
        with Reput(
            log, index, queues, tags=found.tags.newest, rules=rules, start=start, batch_topics=found.queues.batch_topics
        ) as reput:
            yield reput


def check_same(name: str, out: Path, root: Path) -> None:
    assert index_bytes(out) == index_bytes(root)
    mine, broker_s = queue_bytes(out), queue_bytes(root)
    assert mine.keys() == broker_s.keys()
    if name == EXT:
        mine, broker_s = (
            {path: [data[at : at + 12] for at in range(0, len(data), 20)] for path, data in files.items()}
            for files in (mine, broker_s)
        )
    assert mine == broker_s


@each_store
def test_files_are_the_broker_s(name: str, golden_store: GoldenStore, tmp_path: Path) -> None:
    chosen, root = golden_store(name)
    found = survey(store_options(root, broker_version=chosen.version))
    with dispatching(found, tmp_path / "out") as reput:
        done = reput.run_once()
    check_same(name, tmp_path / "out", root)
    assert done.messages == len(chosen.truth["messages"])
    assert done.entries == sum(said["indexCount"] - 1 for said in chosen.truth["indexFiles"])
    assert done.from_phy_offset == found.min_phy_offset


@each_store
def test_turns_that_end_anywhere_and_restarts_make_no_difference(
    name: str, golden_store: GoldenStore, tmp_path: Path, rng: random.Random
) -> None:
    chosen, root = golden_store(name)
    found = survey(store_options(root, broker_version=chosen.version))
    stops = sorted(rng.sample([message["phyOffset"] for message in chosen.truth["messages"]], 12))
    for restart in range(4):
        with dispatching(found, tmp_path / "out") as reput:
            for stop in stops[3 * restart : 3 * restart + 3]:
                assert reput.run_once(stop).phy_offset <= stop
    with dispatching(found, tmp_path / "out") as reput:
        reput.run_once()
    with dispatching(found, tmp_path / "out") as reput:
        assert reput.run_once()[:3] == (0, 0, 0)
    check_same(name, tmp_path / "out", root)
