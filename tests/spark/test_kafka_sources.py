"""Data sources of Kafka's files: what the golden partitions hold, in the schema asked for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_kafka import PartitionCase

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with transactions, and one that is about to be deleted."""
    root = tmp_path_factory.mktemp("log-dir")
    for name in ("410-txn", "410-txn-open"):
        where = PartitionCase(name).closed(root / "unpacked")
        where.rename(root / where.name)
    shutil.rmtree(root / "unpacked")
    (root / "gone-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    (root / "gone-0.0123456789abcdef0123456789abcdef-delete" / f"{0:020d}.log").write_bytes(b"nonsense")
    return root


def told(kind: str) -> list[tuple[Any, ...]]:
    """What the broker's classes read in the index files of the log dir: topic, partition, segment, number, entry."""
    rows = []
    for name, topic in (("410-txn", "txn"), ("410-txn-open", "txn-open")):
        for said in PartitionCase(name).truth["segments"]:
            for number, entry in enumerate(said[kind]):
                rows.append((topic, 0, said["base"], number, *entry))
    return sorted(rows)


@pytest.mark.parametrize(
    ("index", "truth"), [("offset", "offsetIndex"), ("time", "timeIndex"), ("transaction", "txnIndex")]
)
def test_index_entries_are_those_of_the_broker(registered: Any, log_dir: Path, index: str, truth: str) -> None:
    frame = registered.read.format("kafka_index").option("index", index).load(str(log_dir))
    found = sorted(tuple(row) for row in frame.collect())
    expected = told(truth)
    if index == "transaction":  # the broker's version stands first
        expected = [(*row[:4], *row[5:], row[4]) for row in expected]
        assert frame.columns[4:] == ["producer_id", "first_offset", "last_offset", "last_stable_offset", "version"]
    assert found == expected
    assert len(found) > 10


def test_one_partition_and_one_file_are_read_alone(registered: Any, log_dir: Path) -> None:
    reader = registered.read.format("kafka_index")
    whole = [row for row in told("timeIndex") if row[0] == "txn-open"]
    partition = log_dir / "txn-open-0"
    assert sorted(map(tuple, reader.option("index", "time").load(str(partition)).collect())) == whole
    file = registered.read.format("kafka_index").schema("timestamp bigint").load(str(partition / f"{0:020d}.timeindex"))
    assert sorted(row.timestamp for row in file.collect()) == [row[4] for row in whole if row[2] == 0]


def test_a_tail_of_zeros_holds_no_entries(registered: Any, tmp_path: Path) -> None:
    """An active segment's index, as a broker that runs has it."""
    place = tmp_path / "orders-7"
    place.mkdir()
    (place / f"{100:020d}.index").write_bytes(bytes.fromhex("0000000500001000") + bytes(10_485_752))
    (place / f"{100:020d}.log").write_bytes(b"")
    rows = registered.read.format("kafka_index").load(str(place)).collect()
    assert [tuple(row) for row in rows] == [("orders", 7, 100, 0, 105, 4096)]


def test_what_cannot_be_read_is_told(registered: Any, log_dir: Path) -> None:
    with pytest.raises(Exception, match="index: expected offset, time, transaction, got 'key'"):
        registered.read.format("kafka_index").option("index", "key").load(str(log_dir)).collect()
    with pytest.raises(Exception, match="schema: expected some of topic, .*got phy_offset"):
        registered.read.format("kafka_index").schema("phy_offset bigint").load(str(log_dir)).collect()
