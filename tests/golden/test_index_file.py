"""`IndexFile` against every recorded `putKey` sequence and look-up of the real class."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import IndexFile
from tests.reference.index_file import IndexFile as TwinFile
from tests.support.golden import OracleCase, oracle_cases

pytestmark = pytest.mark.filterwarnings("ignore:begin .* is after end:UserWarning")  # the broker was asked so too

each_sequence = pytest.mark.parametrize("oracle", oracle_cases(), ids=lambda oracle: oracle.name)
HEADER = ("beginTimestamp", "endTimestamp", "beginPhyOffset", "endPhyOffset", "hashSlotCount", "indexCount")


def create(path: Path, said: dict[str, Any]) -> IndexFile:
    return IndexFile.create(
        path,
        hash_slot_num=said["slots"],
        index_num=said["entries"],
        end_phy_offset=said["seedPhy"],
        end_timestamp=said["seedTs"],
    )


def reopen(path: Path, oracle: OracleCase) -> IndexFile:
    path.write_bytes(oracle.bytes_after_flush)
    return IndexFile.open(path, hash_slot_num=oracle.said["slots"], index_num=oracle.said["entries"])


@each_sequence
def test_single_puts_leave_the_broker_s_bytes(oracle: OracleCase, tmp_path: Path) -> None:
    said, path = oracle.said, tmp_path / "index"
    with create(path, said) as index:
        for put in said["puts"]:
            assert index.put_key(put["key"], put["phy"], put["ts"]) is put["ok"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == said["sha256BeforeFlush"]
        index.flush()
        assert path.read_bytes() == oracle.bytes_after_flush
        assert tuple(index.header) == tuple(said["header"][name] for name in HEADER)
        assert index.is_write_full() == said["header"]["full"]
    assert path.read_bytes() == oracle.bytes_after_flush


@each_sequence
def test_bulk_put_leaves_the_broker_s_bytes(oracle: OracleCase, tmp_path: Path) -> None:
    said, path = oracle.said, tmp_path / "index"
    keys, phys, times = ([put[name] for put in said["puts"]] for name in ("key", "phy", "ts"))
    with create(path, said) as index:
        assert index.put_keys(keys, phys, times) == sum(put["ok"] for put in said["puts"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == said["sha256BeforeFlush"]


@each_sequence
def test_puts_into_a_file_that_was_closed_in_between_go_on(oracle: OracleCase, tmp_path: Path) -> None:
    said, path = oracle.said, tmp_path / "index"
    create(path, said).close()
    for first in range(0, len(said["puts"]), 7):
        puts = said["puts"][first : first + 7]
        geometry = {"hash_slot_num": said["slots"], "index_num": said["entries"]}
        with IndexFile.open(path, writable=True, **geometry) as index:
            stored = index.put_keys(*([put[name] for put in puts] for name in ("key", "phy", "ts")))
        assert stored == sum(put["ok"] for put in puts)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == said["sha256BeforeFlush"]


@each_sequence
def test_look_ups_are_answered_as_the_broker_did(oracle: OracleCase, tmp_path: Path) -> None:
    with reopen(tmp_path / "index", oracle) as index:
        for asked in oracle.said["select"]:
            window = {"begin": asked["begin"], "end": asked["end"]}
            found = index.select_phy_offset(asked["key"], max_num=asked["maxNum"], **window)
            assert found.tolist() == asked["phy"]
            assert index.is_time_matched(asked["begin"], asked["end"]) == asked["timeMatched"]


@each_sequence
def test_bulk_look_up_is_the_single_one(oracle: OracleCase, tmp_path: Path) -> None:
    keys = sorted({asked["key"] for asked in oracle.said["select"]}) * 3
    windows: dict[tuple[int, int, int], None] = defaultdict(None)
    for asked in oracle.said["select"]:
        windows[asked["maxNum"], asked["begin"], asked["end"]] = None
    with reopen(tmp_path / "index", oracle) as index:
        for most, begin, end in windows:
            hits = index.select_phy_offsets(keys, max_num=most, begin=begin, end=end)
            single = [index.select_phy_offset(key, max_num=most, begin=begin, end=end).tolist() for key in keys]
            assert hits.to_pylist() == single
            assert hits.offsets.tolist() == [sum(map(len, single[:i])) for i in range(len(single) + 1)]


@each_sequence
def test_entries_and_slots_are_the_file_s(oracle: OracleCase, tmp_path: Path) -> None:
    twin = TwinFile.load(oracle.bytes_after_flush, oracle.said["slots"], oracle.said["entries"])
    with reopen(tmp_path / "index", oracle) as index:
        columns = index.entries()
        names = ("key_hash", "phy_offset", "time_diff", "prev_index")
        assert list(zip(*(columns[name].tolist() for name in names), strict=True)) == list(twin.entries())
        assert index.slots().tolist() == [twin.slot(number) for number in range(twin.hash_slot_num)]


@each_sequence
def test_reading_changes_no_byte(oracle: OracleCase, tmp_path: Path) -> None:
    path = tmp_path / "index"
    with reopen(path, oracle) as index:
        index.select_phy_offset("any")
        index.entries()
    assert path.read_bytes() == oracle.bytes_after_flush
