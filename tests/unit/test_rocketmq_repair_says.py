"""The errors that a repair reports are those that the next verify finds, whatever is damaged, and `ok` too."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import repair, verify
from tests.support.golden import case
from tests.support.kafka_log_dir import ONE
from tests.support.nightly import one_of
from tests.support.repair_says import check_repair, errors
from tests.support.rocketmq_damage import BATCH_DAMAGE, DAMAGE, EXT_DAMAGE
from tests.unit import test_batch_queues as batches

PAIRS = [
    ("index: noise", "queue: lost"),
    ("index: all lost", "config: a file"),
    ("queue: last zeros", "abort.bak: directory"),
    ("queue: other units", "log: body"),
    ("index: swapped", "checkpoint: noise"),
    ("queue: stranger", "compaction: stranger"),
    ("index: last lost", "config: consumers"),
    ("queue: swapped", "log: hole"),
]


def how(version: str) -> dict[str, Any]:
    return {"hash_slot_num": 100, "index_num": 400, "broker_version": version, "engine": ONE,
            "config": {"mappedFileSizeConsumeQueue": 1000, "mappedFileSizeCommitLog": 65536}}  # fmt: skip


def check(store: Path, **options: Any) -> None:
    check_repair(store, partial(verify, **options), partial(repair, **options))


@pytest.mark.parametrize(("name", "version"), one_of(2, DAMAGE, ["4.9.3", "5.3.3"]))
def test_of_every_damage(name: str, version: str, tmp_path: Path) -> None:
    store = case("basic-493").unpack(tmp_path)
    DAMAGE[name](store)
    check(store, **how(version))


@pytest.mark.parametrize("name", EXT_DAMAGE)
def test_of_every_damage_to_extension_files(name: str, tmp_path: Path) -> None:
    chosen = case("ipv6-batch-ext-493")
    store = chosen.unpack(tmp_path)
    EXT_DAMAGE[name](store)
    check(store, engine=ONE, broker_version="4.9.3", config=chosen.truth["config"])


@pytest.mark.parametrize("name", BATCH_DAMAGE)
def test_of_every_damage_to_batch_queues(name: str, tmp_path: Path) -> None:
    store = batches.make_store(tmp_path / "store", batches.mixed())
    BATCH_DAMAGE[name](store)
    check(store, engine=ONE, broker_version="5.5.1", config=batches.CONFIG)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_of_two_damages(one: str, other: str, tmp_path: Path) -> None:
    store = case("basic-493").unpack(tmp_path)
    DAMAGE[one](store)
    DAMAGE[other](store)
    check(store, **how("5.3.3"))


def test_of_a_part(tmp_path: Path) -> None:
    """What is left of the other part is said, and its exit code is 1: "repaired" was said of one part alone."""
    store = case("basic-493").unpack(tmp_path)
    DAMAGE["index: noise"](store)
    DAMAGE["queue: other units"](store)
    said = repair(store, parts=["index"], **how("4.9.3"))
    assert (errors(said), said.ok) == (errors(verify(store, **how("4.9.3"))), False)
