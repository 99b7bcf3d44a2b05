"""Whichever pass has filled the cache, and whatever is lost of indexes, queues and zone maps: no answer changes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqindex
from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.rocketmq.dispatch.follow import follow
from tests.support.golden import STORE_CASES, case
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.growing_store import Turns
from tests.support.lost_files import Lost, below
from tests.support.nightly import some
from tests.support.small_zones import small_zones

for needed in ("duckdb", "polars", "pyarrow"):
    pytest.importorskip(needed)
from tests.property.test_datasets import compare, damage_is_told  # noqa: E402  # it asks for them too

__all__ = ["damage_is_told", "small_zones"]  # fixtures
pytestmark = pytest.mark.usefixtures("small_zones")

FILTERS = 2  # of each combination
SAMPLED = {"clock-back-493", "rolls-493", "410-backwards", "410-txn"}
Pass = Callable[[Path, Path, Path], object]


def scanned(home: Path, cache: Path, out: Path) -> None:
    broker = rocketmq if (home / "commitlog").is_dir() else kafka
    with broker.scan(home, begin=0, cache=cache) as found:
        for _ in found:
            pass


STORE_PASSES: dict[str, Pass] = {
    "scan": scanned,
    "verify": lambda store, cache, out: rocketmq.verify(store, cache=cache, engine=LocalEngine(2)),
    "verify --deep": lambda store, cache, out: rocketmq.verify(store, deep=True, cache=cache, engine=LocalEngine(2)),
    "rebuild": lambda store, cache, out: rocketmq.rebuild(store, out, cache=cache, split_size=4096),
    "follow": lambda store, cache, out: follow(store, out, stop=Turns(200), cache=cache, engine=LocalEngine(1)),
}
PARTITION_PASSES: dict[str, Pass] = {
    "scan": scanned,
    "verify": lambda home, cache, out: kafka.verify(home, deep=True, cache=cache, engine=LocalEngine(2)),
    "rebuild": lambda home, cache, out: kafka.rebuild(home, out, cache=cache, engine=LocalEngine(2)),
}


def each(passes: dict[str, Pass], names: list[str]) -> list[Any]:
    return some(itertools.product(passes, names), lambda fill, name: name in SAMPLED)


@pytest.mark.parametrize(("fill", "name"), each(STORE_PASSES, STORE_CASES))
def test_a_store(fill: str, name: str, tmp_path: Path, rng: random.Random) -> None:
    store, cache = case(name).unpack(tmp_path), tmp_path / "zones"
    whole = mqindex.dataset(store, cache=False).to_table()
    STORE_PASSES[fill](store, cache, tmp_path / "out")
    assert below(cache)
    lost = Lost(rng, cache, index=[store / "index"], queue=[store / "consumequeue"])
    for state in lost.combinations():
        compare(mqindex.dataset(store, cache=cache), rng, whole=whole, filters=FILTERS, said=state)


@pytest.mark.parametrize(("fill", "name"), each(PARTITION_PASSES, PARTITION_CASES))
def test_a_partition(fill: str, name: str, tmp_path: Path, rng: random.Random) -> None:
    partition, cache = PartitionCase(name).closed(tmp_path), tmp_path / "zones"
    whole = mqindex.dataset(partition, cache=False).to_table()
    PARTITION_PASSES[fill](partition, cache, tmp_path / "out")
    assert below(cache) or not len(whole)
    lost = Lost(rng, cache, index=[*partition.glob("*.index")], times=[*partition.glob("*.timeindex")])
    for state in lost.combinations():
        compare(mqindex.dataset(partition, cache=cache), rng, whole=whole, filters=FILTERS, said=state)
