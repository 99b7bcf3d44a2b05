"""`build_index`: entries in any order and partitioning give the files of one uninterrupted broker."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqindex.errors import OutputExistsError
from mqindex.spark import build_index
from tests.reference.index_service import IndexService as Reference
from tests.support.golden import case
from tests.support.tree import index_bytes, scraps

COLUMNS = "topic string, key string, phy_offset bigint, store_timestamp bigint, seq int"


def random_entries(rng: Random, count: int) -> list[tuple[str, str, int, int, int]]:
    """Up to three keys a message, as (topic, key, phy_offset, store_timestamp, seq), in the broker's order."""
    entries: list[tuple[str, str, int, int, int]] = []
    phy_offset = 0
    while len(entries) < count:
        phy_offset += rng.randrange(100, 300)
        time = 1_700_000_000_000 + phy_offset * rng.choice([1, 7])
        entries += [
            (rng.choice("AB"), f"键-{rng.randrange(500)}", phy_offset, time, seq) for seq in range(rng.randrange(1, 4))
        ]
    return entries


def expected(entries: list[tuple[str, str, int, int, int]], slots: int, capacity: int) -> list[bytes]:
    service = Reference(slots, capacity)
    for topic, key, phy_offset, time, _ in entries:
        service.put(f"{topic}#{key}", phy_offset, time)
    return [file.flush() for file in service.files]


@pytest.mark.parametrize("capacity", [2, 20, 1001, 5000])
def test_files_are_those_of_a_broker_whatever_the_order_of_the_rows(
    spark: Any, rng: Random, tmp_path: Path, capacity: int
) -> None:
    entries = random_entries(rng, 60 if capacity == 2 else 3000)
    shuffled = rng.sample(entries, len(entries))
    frame = spark.createDataFrame(shuffled, COLUMNS).repartition(5)
    report = build_index(frame, tmp_path / "out", hash_slot_num=50, index_num=capacity)
    assert index_bytes(tmp_path / "out") == expected(entries, 50, capacity)
    assert (report.ok, report.entries, report.files) == (True, len(entries), -(-len(entries) // (capacity - 1)))
    assert report.messages == len({entry[2] for entry in entries})
    assert [Path(path).parent for path in report.out_files] == [tmp_path / "out" / "index"] * report.files
    assert scraps(tmp_path) == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index"]


def test_rows_of_a_commit_log_give_the_broker_s_files(registered: Any, golden: Path, tmp_path: Path) -> None:
    registered.read.format("rocketmq_commitlog").load(str(golden)).createOrReplaceTempView("messages")
    entries = registered.sql(
        """SELECT concat(topic, '#', key) AS key, phy_offset, store_timestamp, seq FROM (
             SELECT topic, phy_offset, store_timestamp, posexplode(concat(
               CASE WHEN uniq_key IS NULL THEN array() ELSE array(uniq_key) END,
               split(coalesce(keys, ''), ' '))) AS (seq, key) FROM messages WHERE (sys_flag & 12) <> 12)
           WHERE key <> ''"""
    )
    slots, capacity = case("basic-493").geometry
    build_index(entries, tmp_path / "out", hash_slot_num=slots, index_num=capacity)
    assert index_bytes(tmp_path / "out") == index_bytes(golden)


def test_full_key_and_no_seq_keep_the_order_of_the_partition(spark: Any, rng: Random, tmp_path: Path) -> None:
    entries = random_entries(rng, 500)
    rows = [(f"{topic}#{key}", phy_offset, time) for topic, key, phy_offset, time, _ in entries]
    frame = spark.createDataFrame(rows, "key string, phy_offset bigint, store_timestamp bigint").coalesce(1)
    build_index(frame, tmp_path / "out", hash_slot_num=50, index_num=100)
    assert index_bytes(tmp_path / "out") == expected(entries, 50, 100)


def test_no_rows_give_one_empty_file(spark: Any, tmp_path: Path) -> None:
    report = build_index(spark.createDataFrame([], COLUMNS), tmp_path / "out", hash_slot_num=5, index_num=9)
    assert (report.files, report.entries, report.messages) == (1, 0, 0)
    (content,) = index_bytes(tmp_path / "out")
    assert not any(content)


def test_output_that_exists_is_refused_or_moved_aside(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("k", 1, 1)], "key string, phy_offset bigint, store_timestamp bigint")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(OutputExistsError):
        build_index(frame, tmp_path / "out", hash_slot_num=5, index_num=9)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    report = build_index(frame, tmp_path / "out", hash_slot_num=5, index_num=9, overwrite=True)
    (backup,) = tmp_path.glob("out.backup-*")
    assert report.backup == str(backup)
    assert (backup / "mine").read_text() == "mine"
    assert len(index_bytes(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("key string, phy_offset bigint", "df: expected a column store_timestamp, got key, phy_offset"),
        ("key int, phy_offset bigint, store_timestamp bigint", "df: expected column key to be string, got int"),
        (
            "key string, phy_offset bigint, store_timestamp timestamp",
            "df: expected column store_timestamp to be an integer type, got timestamp",
        ),
    ],
)
def test_unfit_columns_are_named_before_any_work(spark: Any, tmp_path: Path, columns: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build_index(spark.createDataFrame([], columns), tmp_path / "out")


def test_null_key_is_an_error_that_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    rows = [("a", 1, 1), (None, 2, 2)]
    frame = spark.createDataFrame(rows, "key string, phy_offset bigint, store_timestamp bigint").coalesce(1)
    with pytest.raises(ValueError, match="key: null in row 1 of a batch"):
        build_index(frame, tmp_path / "out", hash_slot_num=5, index_num=9)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kinds", [("string", "binary"), ("binary", "string"), ("binary", "binary")])
def test_topic_and_key_may_be_binary(spark: Any, tmp_path: Path, kinds: tuple[str, str]) -> None:
    frame = spark.createDataFrame(
        [("T", "k", 1, 5)], "topic string, key string, phy_offset bigint, store_timestamp bigint"
    )
    topic, key = kinds
    mixed = frame.selectExpr(f"cast(topic AS {topic})", f"cast(key AS {key})", "phy_offset", "store_timestamp")
    build_index(mixed, tmp_path / "out", hash_slot_num=5, index_num=9)
    assert index_bytes(tmp_path / "out") == expected([("T", "k", 1, 5, 0)], 5, 9)
