"""Questions by key, place and time give the same of a URL as of the same files here; zone maps of its log too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.columns.columns import Columns
from tests.cli.conftest import Shell
from tests.support.elsewhere import Ways, memory
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

__all__ = ["memory"]  # a fixture

STORES = ("killed-lost-493", "clock-back-493", "crc-v2-lmq-550")
PARTITIONS = ("410-backwards", "410-txn-open", "282-magic0", "410-codecs")
Both = tuple[str, str]


@pytest.fixture(params=STORES)
def stores(request: pytest.FixtureRequest, memory: Ways, tmp_path: Path) -> Both:
    here = case(request.param).unpack(tmp_path)
    return str(here), memory.upload(here)


@pytest.fixture(params=PARTITIONS)
def partitions(request: pytest.FixtureRequest, memory: Ways, tmp_path: Path) -> Both:
    """Log dirs with one partition."""
    one = PartitionCase(request.param).closed(tmp_path)
    (tmp_path / "logs").mkdir()
    one.rename(tmp_path / "logs" / one.name)
    return str(tmp_path / "logs"), memory.upload(tmp_path / "logs")


def lists(columns: Columns) -> dict[str, list[Any]]:
    return columns.to_arrow().to_pydict()


def of_log(store: str) -> Columns:
    names = ["phy_offset", "topic", "keys", "store_timestamp"]
    return Columns.concat(list(rocketmq.scan(store, columns=names, cache=False)))


def test_keys_and_places(stores: Both, request: pytest.FixtureRequest) -> None:
    here, there = stores
    slots, entries = case(request.node.callspec.params["stores"]).geometry
    log = of_log(here)
    topic = log["topic"][0]
    keys = [*{key for text in log["keys"].to_pylist()[:200] if text for key in text.split(" ")}, "none", ""]
    places = [*log["phy_offset"][::7].tolist()[::-1], 1, 2**40]
    given = {"hash_slot_num": slots, "index_num": entries}  # which is not looked for in files elsewhere
    with rocketmq.MessageStore.open(here) as one, rocketmq.MessageStore.open(there, **given) as other:
        for exact in (True, False):
            expected = one.query_messages(topic, keys, exact=exact)
            assert lists(other.query_messages(topic, keys, exact=exact)) == lists(expected) and len(expected)
        assert lists(other.get_many(places)) == lists(one.get_many(places))
        assert len(other.get_many(places)) == len(places) - 2


def test_offsets_of_a_time(stores: Both, shell: Shell) -> None:
    here, there = stores
    times = sorted(of_log(here)["store_timestamp"].astype("i8").tolist())
    for moment in (0, times[len(times) // 2], times[-1] + 1):
        for rule in ("lower", "upper"):
            expected = rocketmq.offsets_for_time(here, moment, boundary=rule)  # type: ignore[arg-type]
            assert lists(rocketmq.offsets_for_time(there, moment, boundary=rule)) == lists(expected)  # type: ignore[arg-type]
            asked = ["--timestamp", str(moment), "--boundary", rule, "--json"]
            assert shell("query", there, *asked).out == shell("query", here, *asked).out


def test_offsets_of_a_time_in_partitions(partitions: Both, shell: Shell) -> None:
    here, there = partitions
    every = Columns.concat(list(kafka.scan(here, columns=["timestamp"], cache=False)))
    times = sorted(every["timestamp"].astype("i8").tolist())
    for moment in (0, times[len(times) // 2], times[-1] + 1, 9_000_000_000_000):
        assert lists(kafka.offsets_for_time(there, moment)) == lists(kafka.offsets_for_time(here, moment))
        for form in ("--json", "--csv"):
            asked = ["--timestamp", str(moment), form]
            assert shell("query", there, *asked).out == shell("query", here, *asked).out.replace(here, there)


def test_the_first_rows_of_a_dump(stores: Both, shell: Shell) -> None:
    here, there = stores
    for name in ("commitlog", "consumequeue"):
        for limit in ("0", "3"):
            asked = ["--limit", limit, "--json"]
            done = shell("dump", f"{there}/{name}", *asked)
            assert (done.status, done.out) == (0, shell("dump", f"{here}/{name}", *asked).out), done.err
            assert len(done.lines) == int(limit)


def test_the_first_rows_of_a_dump_of_partitions(partitions: Both, shell: Shell) -> None:
    here, there = partitions
    done = shell("dump", there, "--limit", "3", "--json")
    assert (done.status, done.out) == (0, shell("dump", here, "--limit", "3", "--json").out) and len(done.lines) == 3


def test_of_kafka_verify_and_rebuild_leave_zone_maps(partitions: Both, tmp_path: Path) -> None:
    _, there = partitions
    kafka.verify(there, deep=True, cache=tmp_path / "verified")
    kafka.rebuild(there, tmp_path / "out", cache=tmp_path / "rebuilt")
    for cache in (tmp_path / "verified", tmp_path / "rebuilt"):
        with kafka.scan(there, end=1, cache=cache) as found:
            assert not list(found) and found.bytes_read == 0 and found.files_read > 1


def test_verify_leaves_zone_maps(memory: Ways, tmp_path: Path) -> None:
    there = memory.upload(case("killed-lost-493").unpack(tmp_path))
    rocketmq.verify(there, cache=tmp_path / "verified")
    with rocketmq.scan(there, end=1, cache=tmp_path / "verified") as found:
        assert not list(found) and found.bytes_read == 0 and found.files_read > 1
    assert len(os.listdir(tmp_path / "verified")) == found.files_read
