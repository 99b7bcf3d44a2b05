"""`rocketmq_consumequeue`: every unit of every queue as the broker listed it, planned in pieces."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from mqindex.spark.sources import rocketmq_consumequeue as queue_source
from mqindex.spark.sources.rocketmq_consumequeue import ConsumeQueueSource
from tests.support.golden import case
from tests.support.small_store import make_small_store
from tests.unit.test_batch_queue_holes import write as write_batch_queue

Row = tuple[Any, ...]


def queues(spark: Any, **options: Any) -> Any:
    return spark.read.format("rocketmq_consumequeue").options(**options)


def schema(*names: str) -> Any:
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    kinds = {"string": StringType(), "int": IntegerType(), "bigint": LongType()}
    return StructType([StructField(name, kinds[queue_source.UNIT_COLUMNS[name]]) for name in names])


def said(name: str) -> list[Row]:
    """Every unit as the broker told it: with extension files their tags code."""
    rows = []
    for queue in case(name).truth["consumeQueues"]:
        for number, unit in enumerate(queue["units"], queue["min"]):
            phy_offset, size, code = unit[:3] if len(unit) == 3 else (*unit[:2], unit[3])
            rows.append((queue["topic"], queue["queueId"], number, phy_offset, size, code))
    return sorted(rows)


@pytest.mark.parametrize("name", ["basic-493", "tx-delay-lmq-493", "ipv6-batch-ext-493", "crc-v2-lmq-550"])
def test_units_are_those_of_the_broker(name: str, registered: Any, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    assert sorted(map(tuple, queues(registered).load(str(root)).collect())) == said(name)
    assert queues(registered).load(str(root / "consumequeue")).count() == len(said(name))


def test_times_of_extension_files_are_a_column(registered: Any, tmp_path: Path) -> None:
    root = case("ipv6-batch-ext-493").unpack(tmp_path)
    rows = queues(registered).schema("phy_offset bigint, store_timestamp bigint, batch_size int").load(str(root))
    expected = {
        (unit[0], unit[4] if len(unit) > 3 else None, None)
        for queue in case("ipv6-batch-ext-493").truth["consumeQueues"]
        for unit in queue["units"]
    }
    assert any(time is not None for _, time, _ in expected)
    assert set(map(tuple, rows.collect())) == expected


def test_topic_queue_and_offsets_limit_what_is_read(registered: Any, golden: Path) -> None:
    everything = said("basic-493")
    chosen = queues(registered, topic="BBTopic", queueId=1, startOffset=5, endOffset=20).load(str(golden))
    expected = [row for row in everything if row[:2] == ("BBTopic", 1)][5:20]
    assert sorted(map(tuple, chosen.collect())) == expected
    topic = queues(registered, topic="AaTopic").load(str(golden))
    assert sorted(map(tuple, topic.collect())) == [row for row in everything if row[0] == "AaTopic"]
    assert queues(registered, topic="NoSuchTopic").load(str(golden)).count() == 0


def test_only_the_queues_that_are_asked_for_are_opened(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def extents(directory: str) -> list[range]:
        opened.append(os.path.relpath(directory, golden / "consumequeue"))
        return [range(1)]

    monkeypatch.setattr(queue_source, "_extents", extents)
    options = {"path": str(golden), "topic": "BBTopic", "queueId": "1"}
    assert len(ConsumeQueueSource(options).reader(schema("phy_offset")).partitions()) == 1
    assert opened == ["BBTopic/1"]


@pytest.mark.parametrize("units", [1, 50, 1 << 20])
def test_pieces_cover_each_unit_once(golden: Path, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_source, "PARTITION_UNITS", units)
    reader = ConsumeQueueSource({"path": str(golden)}).reader(schema(*queue_source.UNIT_COLUMNS))
    pieces = reader.partitions()
    files = sum(1 for path in (golden / "consumequeue").rglob("*") if path.is_file())
    assert {1: len(pieces) == files, 50: 10 < len(pieces) < files, 1 << 20: len(pieces) == 1}[units]
    found = [
        row
        for piece in pieces
        for batch in reader.read(piece)
        for row in zip(*map(list, batch.to_pydict().values()), strict=True)
    ]
    assert sorted(found) == said("basic-493")


def test_units_join_with_their_messages(registered: Any, golden: Path) -> None:
    queues(registered).load(str(golden)).createOrReplaceTempView("units")
    registered.read.format("rocketmq_commitlog").load(str(golden)).createOrReplaceTempView("messages")
    joined = registered.sql(
        """SELECT count(*) AS n, count_if(u.topic <> m.topic OR u.queue_id <> m.queue_id
             OR u.queue_offset <> m.queue_offset OR u.size <> m.size) AS wrong
           FROM units u JOIN messages m USING (phy_offset)"""
    ).first()
    assert (joined.n, joined.wrong) == (len(said("basic-493")), 0)


def test_batch_queues_are_read_beside_the_others(registered: Any, tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    directory = root / "batchconsumequeue" / "Batches" / "3"
    directory.mkdir(parents=True)
    units = [(1000 * i, 900, 7, 1_700_000_000_000 + i, 4 * i, 4, -1, 0) for i in range(9)]
    data = b"".join(struct.pack(">qiqqqhii", *unit) for unit in units)
    (directory / f"{0:020d}").write_bytes(data.ljust(46 * 20, b"\0"))
    schema = (
        "topic string, queue_id int, queue_offset bigint, phy_offset bigint, store_timestamp bigint, batch_size int"
    )
    rows = queues(registered, topic="Batches").schema(schema).load(str(root)).orderBy("queue_offset").collect()
    assert list(map(tuple, rows)) == [("Batches", 3, 4 * i, 1000 * i, 1_700_000_000_000 + i, 4) for i in range(9)]
    assert queues(registered).load(str(root)).count() == len(said("basic-493")) + 9
    part = queues(registered, startOffset=8, endOffset=16).load(str(root / "batchconsumequeue")).collect()
    assert sorted(row.queue_offset for row in part) == [8, 12]


def test_queues_that_hold_nothing_are_an_empty_frame(registered: Any, tmp_path: Path) -> None:
    (tmp_path / "consumequeue").mkdir()
    assert queues(registered).load(str(tmp_path)).collect() == []
    with pytest.raises(Exception, match="gone"):
        queues(registered).load(str(tmp_path / "gone")).collect()
    with pytest.raises(Exception, match="queueId: expected an integer, got 'x'"):
        queues(registered, queueId="x").load(str(tmp_path)).collect()


def found(root: Path, column: str, **options: str) -> list[int]:
    """A column, as Spark would read it in its processes."""
    reader = ConsumeQueueSource({"path": str(root), **options}).reader(schema(column))
    return [n for part in reader.partitions() for batch in reader.read(part) for n in batch.column(0).to_pylist()]


def test_extensions_that_are_missing_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Their addresses were the tags codes, without a word."""
    root = case("ipv6-batch-ext-493").unpack(tmp_path)
    before = found(root, "tags_code")
    assert caplog.messages == []
    assert min(before) >= -(2**31)
    ext = root / "consumequeue_ext"
    for lose in (lambda: next(path for path in sorted(ext.rglob("*")) if path.is_file()).unlink(), lambda: rmtree(ext)):
        lose()
        caplog.clear()
        lost = sum(code < -(2**31) for code in found(root, "tags_code"))
        told = [re.fullmatch(r".*: the extensions of (\d+) units? are missing; .*", said) for said in caplog.messages]
        assert sum(int(one[1]) for one in told if one) == lost > 0
        assert all(said.startswith(f"{ext}/") for said in caplog.messages)


def test_a_file_that_is_missing_inside_a_queue_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = make_small_store(tmp_path / "store", count=130)
    before = found(root, "queue_offset", topic="Topic0")
    queue = root / "consumequeue" / "Topic0" / "0"
    sorted(queue.iterdir())[1].unlink()
    assert found(root, "queue_offset", topic="Topic0") == [n for n in before if not 12 <= n < 24]
    assert found(root, "queue_offset", topic="Topic0", startOffset="15", endOffset="20") == []
    assert caplog.messages == [f"{queue}: no file holds the queue offsets {lost}" for lost in ("12 to 24", "15 to 20")]
    caplog.clear()
    assert found(root, "queue_offset", topic="Topic0", endOffset="12") == before[:12]
    min(queue.iterdir()).unlink()  # the oldest ones are a broker's to delete
    assert found(root, "queue_offset", topic="Topic0") == [n for n in before if n >= 24]
    assert caplog.messages == []


def test_what_is_no_queue_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = make_small_store(tmp_path / "store")
    before = found(root, "phy_offset")
    os.makedirs(os.fsencode(root / "consumequeue") + b"/Caf\xe9/0")
    assert found(root, "phy_offset") == before
    (said,) = caplog.messages
    assert said.endswith("consumequeue/Caf\\xe9: a name that is no UTF-8 text; it is left out")


def test_a_file_that_is_missing_inside_a_batch_queue_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It was read as fewer rows without a word, and with it what is before it."""
    (tmp_path / "consumequeue").mkdir()
    queue = tmp_path / "batchconsumequeue" / "T" / "0"
    units = write_batch_queue(queue, 38)
    before = found(tmp_path, "queue_offset")
    assert before == [start for start, _ in units]
    assert caplog.messages == []
    (queue / f"{46 * 10:020d}").unlink()
    low, high = units[10][0], units[15][0]
    assert found(tmp_path, "queue_offset") == [n for n in before if not low <= n < high]
    assert caplog.messages == [f"{queue}: no file holds the queue offsets {low} to {high}"]
    assert found(tmp_path, "queue_offset", startOffset=str(low - 1), endOffset=str(high + 1)) == [before[9], high]
    caplog.clear()
    assert found(tmp_path, "queue_offset", endOffset=str(low)) == before[:10]
    assert caplog.messages == []


def test_a_batch_queue_s_file_that_goes_after_the_plan_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "consumequeue").mkdir()
    queue = tmp_path / "batchconsumequeue" / "T" / "0"
    units = write_batch_queue(queue, 38)
    reader = ConsumeQueueSource({"path": str(tmp_path)}).reader(schema("queue_offset"))
    (part,) = reader.partitions()
    for number, lost in ((10, (units[10][0], units[15][0])), (0, (units[0][0], units[5][0]))):
        (queue / f"{46 * number:020d}").unlink()
        caplog.clear()
        sum(batch.num_rows for batch in reader.read(part))
        assert f"{queue}: no file holds the queue offsets {lost[0]} to {lost[1]}" in caplog.messages
