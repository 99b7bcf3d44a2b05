"""Data sources: commit logs and index files as DataFrames, planned in ranges, in the schema asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex.rocketmq import CommitLog, IndexService
from mqindex.rocketmq.messages.log_columns import COLUMNS, DEFAULT_COLUMNS
from mqindex.spark.sources import commitlog_ranges
from mqindex.spark.sources import rocketmq_commitlog as log_source
from mqindex.spark.sources.reading import arrow_schema
from tests.support.golden import case
from tests.support.small_store import make_small_store

OFFSET = "phy_offset bigint"


def offsets(frame: Any) -> list[int]:
    return sorted(row.phy_offset for row in frame.select("phy_offset").collect())


def said_offsets() -> list[int]:
    return [said["phyOffset"] for said in case("basic-493").truth["messages"]]


def log(spark: Any, schema: str | None = OFFSET, **options: Any) -> Any:
    reader = spark.read.format("rocketmq_commitlog").options(**options)
    return reader if schema is None else reader.schema(schema)


def test_messages_are_those_of_the_broker(registered: Any, golden: Path) -> None:
    rows = log(registered, schema=None).load(str(golden)).orderBy("phy_offset").collect()
    messages = case("basic-493").truth["messages"]
    assert [row.topic for row in rows] == [said["topic"] for said in messages]
    assert [row.phy_offset for row in rows] == [said["phyOffset"] for said in messages]
    assert [row.store_timestamp for row in rows] == [said["storeTimestamp"] for said in messages]
    assert [row.uniq_key for row in rows] == [said["uniqKey"] for said in messages]
    assert [row.msg_id for row in rows] == [said["msgId"] for said in messages]
    assert [row.tags for row in rows] == [(said["properties"] or {}).get("TAGS") for said in messages]


def test_columns_and_types_are_those_of_a_scan(golden: Path) -> None:
    assert tuple(log_source.MESSAGE_COLUMNS) == DEFAULT_COLUMNS
    assert set(log_source.MESSAGE_COLUMNS) | set(log_source.BULKY_COLUMNS) == set(COLUMNS)
    import pyarrow as pa
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

    with CommitLog.open(golden / "commitlog") as opened:
        table = pa.table(next(opened.scan(columns=list(COLUMNS))))
    kinds = {**log_source.MESSAGE_COLUMNS, **log_source.BULKY_COLUMNS}
    types = {"string": StringType(), "int": IntegerType(), "bigint": LongType(), "binary": BinaryType()}
    schema = StructType()
    for name, kind in kinds.items():
        schema.add(name, types[kind])
    assert [table.schema.field(name).type for name in kinds] == arrow_schema(schema, kinds).types


def test_schema_of_the_user_is_the_projection(registered: Any, golden: Path) -> None:
    frame = log(registered, "body binary, phy_offset bigint NOT NULL, properties string").load(str(golden))
    assert frame.columns == ["body", "phy_offset", "properties"]
    first = frame.orderBy("phy_offset").first()
    with CommitLog.open(golden / "commitlog") as opened:
        message = opened.get_message(0)
    assert (bytes(first.body), first.phy_offset) == (message.body, 0)
    with pytest.raises(Exception, match="schema: expected phy_offset bigint, got int"):
        log(registered, "phy_offset int").load(str(golden)).collect()
    with pytest.raises(Exception, match=r"schema: expected some of topic, .*got phyOffset"):
        log(registered, "phyOffset bigint").load(str(golden)).collect()


def test_offsets_limit_what_is_read(registered: Any, golden: Path) -> None:
    everything = said_offsets()
    start, stop = everything[100], everything[200] + 1
    frame = log(registered, startOffset=start, endOffset=stop, checkCrc="true").load(str(golden / "commitlog"))
    assert offsets(frame) == everything[100:201]
    with pytest.raises(Exception, match="startOffset: expected an integer, got 'x'"):
        log(registered, startOffset="x").load(str(golden)).collect()
    with pytest.raises(Exception, match="checkCrc: expected true or false, got '1'"):
        log(registered, checkCrc="1").load(str(golden)).collect()


@pytest.fixture(params=["true", "false"])
def push_down(request: pytest.FixtureRequest, registered: Any) -> Iterator[bool]:
    registered.conf.set("spark.sql.python.filterPushdown.enabled", request.param)
    yield request.param == "true"
    registered.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_one_frame_answers_many_queries_whether_push_down_is_on_or_off(
    registered: Any, golden: Path, push_down: bool
) -> None:
    everything = said_offsets()
    frame = log(registered).load(str(golden))
    assert offsets(frame.where(f"phy_offset = {everything[100]}")) == everything[100:101]
    assert offsets(frame) == everything
    low, high = frame.where(f"phy_offset < {everything[9]}"), frame.where(f"phy_offset >= {everything[9]}")
    assert offsets(low.union(high)) == everything


@pytest.mark.parametrize("value", ["true", "false"])
def test_push_down_as_an_option_is_refused_with_what_to_use(registered: Any, golden: Path, value: str) -> None:
    """PySpark keeps a pushed plan: `count()` after a filtered query of the same DataFrame gave the filter's rows."""
    words = r"filterPushdown: .*later queries.*: expected startOffset, .*startTime, endTime, topic"
    with pytest.raises(Exception, match=words):
        log(registered, filterPushdown=value).load(str(golden)).collect()


def test_several_stores_are_one_log(registered: Any, tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    expected = offsets(log(registered).load(str(root)))
    files = sorted((root / "commitlog").iterdir())
    (tmp_path / "second").mkdir()
    for path in files[len(files) // 2 :]:
        path.rename(tmp_path / "second" / path.name)
    assert offsets(log(registered).load([str(root), str(tmp_path / "second")])) == expected


def test_temporary_view_reads_the_log(registered: Any, golden: Path) -> None:
    registered.sql(f"CREATE OR REPLACE TEMPORARY VIEW messages USING rocketmq_commitlog OPTIONS (path '{golden}')")
    assert registered.sql("SELECT count(*) FROM messages").collect()[0][0] == len(said_offsets())


def test_path_that_does_not_exist_is_named(registered: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="gone"):
        log(registered).load(str(tmp_path / "gone")).collect()
    with pytest.raises(Exception, match="path: expected a directory"):
        log(registered).load().collect()


@pytest.mark.parametrize("split_size", [300, 1000, 1 << 20])
def test_ranges_cover_each_message_once(tmp_path: Path, split_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one is all of the newest file, in which the log's end is looked for."""
    from pyspark.sql.types import LongType, StructField, StructType

    monkeypatch.setattr(commitlog_ranges, "SPLIT_SIZE", split_size)
    store = make_small_store(tmp_path / "store")
    schema = StructType([StructField("phy_offset", LongType())])
    reader = log_source.CommitLogSource({"path": str(store)}).reader(schema)
    *ranges, last = reader.partitions()
    assert all(one.stop - one.start <= min(split_size, 2048) for one in ranges)
    found = [
        [offset for batch in reader.read(one) for offset in batch.column(0).to_pylist()] for one in (*ranges, last)
    ]
    with CommitLog.open(store / "commitlog") as whole:
        assert last.start <= whole.max_phy_offset < last.stop
        assert sum(map(len, found[:-1])) and found[-1]
        assert [at for part in found for at in part] == [at for b in whole.scan() for at in b["phy_offset"].tolist()]


def test_log_without_messages_is_an_empty_frame(registered: Any, tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    assert offsets(log(registered).load(str(tmp_path))) == []


def test_index_entries_are_those_of_the_files(registered: Any, golden: Path) -> None:
    rows = registered.read.format("rocketmq_index").load(str(golden)).collect()
    found = Counter(tuple(row) for row in rows)
    expected: Counter[tuple[Any, ...]] = Counter()
    with IndexService.open(golden / "index") as service:
        for file in service.files:
            entries = {name: column.tolist() for name, column in file.entries().items()}
            for i, difference in enumerate(entries["time_diff"]):
                time = file.header.begin_timestamp + 1000 * difference
                expected[
                    file.path, i + 1, entries["key_hash"][i], entries["phy_offset"][i], difference, time,
                    entries["prev_index"][i],
                ] += 1  # fmt: skip
    assert found == expected
    assert len(rows) == sum(said["indexCount"] - 1 for said in case("basic-493").truth["indexFiles"])


def test_one_index_file_of_a_given_geometry(registered: Any, golden: Path) -> None:
    path = sorted((golden / "index").iterdir())[0]
    reader = registered.read.format("rocketmq_index").options(hashSlotNum=100, indexNum=400)
    numbers = [row.number for row in reader.schema("number int").load(str(path)).collect()]
    assert sorted(numbers) == list(range(1, 400))
