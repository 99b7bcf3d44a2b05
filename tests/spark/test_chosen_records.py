"""`kafka_log` by partition, time, offset and key: what matches of a full read, read from where it can be."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, StringType, StructType

from mqindex import kafka
from mqindex.spark.sources import kafka_log
from mqindex.spark.sources.kafka_log import KafkaLogSource
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

ZONE = 256 << 10
SCHEMA = StructType()
for name, kind in (
    ("topic", StringType()), ("partition", IntegerType()), ("offset", LongType()), ("timestamp", LongType()),
    ("timestamp_type", ByteType()), ("key", BinaryType()), ("value", BinaryType()), ("position", LongType()),
):  # fmt: skip
    SCHEMA.add(name, kind)
BATCHES = StructType().add("topic", StringType()).add("base_offset", LongType()).add("last_offset", LongType())
Row = dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions, two segments each: a second between records, some of them earlier, some without a time."""
    root: Path = tmp_path_factory.mktemp("kafka")
    for name in ("orders-0", "orders-1", "orders-2-0"):
        source, number = random.Random(name), 0
        writer = PartitionWriter(root / name, 100)
        for _ in range(2):
            for batch in range(60):
                records = []
                for _ in range(10):
                    number += 1
                    time = FIRST_TIME + 1000 * number - source.choice((0, 0, 0, 7500))
                    time = -1 if number % 97 == 0 else time
                    key = (
                        None if number % 7 == 0 else b"" if number % 11 == 0 else b"k%d,%d" % (number % 50, number % 3)
                    )
                    records.append(KafkaRecord(b"%d" % number + source.randbytes(1500), key, time))
                writer.append(records, codec=source.choice(("none", "gzip")) if batch % 5 == 0 else "none")
            writer.roll()
        writer.close()
    return root


@pytest.fixture
def warm(written: Path, tmp_path: Path) -> str:
    """A cache that has the zone maps of all segments."""
    with kafka.scan(written, begin=0, end=1, cache=tmp_path / "zones") as scanned:
        assert not list(scanned)
    return str(tmp_path / "zones")


def reader_of(root: Path, schema: StructType = SCHEMA, **options: Any) -> Any:
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    return KafkaLogSource({"path": str(root), **given}).reader(schema)


def rows_of(reader: Any, parts: list[Any] | None = None) -> list[Row]:
    parts = reader.partitions() if parts is None else parts
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def planned_bytes(parts: list[Any]) -> int:
    ranges = [one for part in parts for one in getattr(part, "ranges", ())]  # Spark makes one part of none
    whole = [((one.start, one.stop),) if one.stretches is None else one.stretches for one in ranges]
    return sum(stop - start for stretches in whole for start, stop in stretches)


def passes(row: Row, asked: dict[str, Any]) -> bool:
    """The same in plain Python."""
    names = f"{row['topic']}-{row['partition']}", row["topic"]
    keys, has_period = asked.get("keys"), "startTime" in asked or "endTime" in asked
    return (
        ("partitions" not in asked or any(name in asked["partitions"] for name in names))
        and (keys is None or (row["key"] is not None and row["key"].decode() in keys))
        and (not has_period or row["timestamp"] != -1)
        and asked.get("startTime", -(2**62)) <= row["timestamp"] < asked.get("endTime", 2**62)
        and asked.get("startOffset", 0) <= row["offset"] < asked.get("endOffset", 2**62)
    )


def asked_at_random(source: random.Random, rows: list[Row]) -> dict[str, Any]:
    some = [row for row in source.choices(rows, k=30) if row["timestamp"] != -1 and row["key"]][:2]
    one, other = sorted(some, key=lambda row: int(row["offset"]))
    every = {
        "partitions": source.choice((["orders-0"], ["orders"], ["orders-2", "orders-1"], ["orders-2-0"])),
        "startTime": one["timestamp"] + source.choice((-1, 0, 1)),
        "endTime": other["timestamp"] + source.choice((-1, 0, 1)),
        "startOffset": one["offset"],
        "endOffset": other["offset"] + 1,
        "keys": [one["key"].decode(), "", "absent"][: source.randint(1, 3)],
    }
    return {name: every[name] for name in source.sample(list(every), source.randint(1, 3))}


@pytest.mark.parametrize("cached", ["none", "warm"])
@pytest.mark.parametrize("task_bytes", [200_000, 128 << 20])
def test_rows_are_those_of_a_full_read_that_match(
    written: Path, warm: str, cached: str, task_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log, "TASK_BYTES", task_bytes)
    everything = rows_of(reader_of(written))
    assert len(everything) == 3600
    source = random.Random(task_bytes)
    for _ in range(60):
        asked = asked_at_random(source, everything)
        reader = reader_of(written, **asked, cache=warm if cached == "warm" else "none")
        assert rows_of(reader) == [row for row in everything if passes(row, asked)], asked


@pytest.mark.parametrize(
    "name", ["410-backwards", "410-append-time", "410-compacted", "282-magic0", "282-magic1-codecs"]
)
def test_times_that_go_back_lose_no_record(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_log, "TASK_BYTES", 20_000)
    partition, cache = PartitionCase(name).closed(tmp_path), str(tmp_path / "zones")
    everything = rows_of(reader_of(partition))
    list(kafka.scan(partition, begin=0, cache=cache))
    times = [row["timestamp"] for row in everything]
    source = random.Random(name)
    for _ in range(20):
        asked = {"startTime": source.choice(times) + source.randint(-1, 1), "endTime": source.choice(times)}
        asked = {one: asked[one] for one in source.sample(list(asked), source.randint(1, 2))}
        for kept in ("none", cache):
            found = rows_of(reader_of(partition, **asked, cache=kept))
            assert found == [row for row in everything if passes(row, asked)], (asked, kept)


def test_a_narrow_period_plans_few_bytes(written: Path, warm: str) -> None:
    period = {"startTime": FIRST_TIME + 300_000, "endTime": FIRST_TIME + 310_000}
    cold = reader_of(written, **period, cache="none")
    every = sum(path.stat().st_size for path in written.rglob("*.log"))
    assert planned_bytes(cold.partitions()) == every > 5_000_000
    reader = reader_of(written, **period, cache=warm)
    parts = reader.partitions()
    assert planned_bytes(parts) <= 3 * 2 * ZONE  # in each partition, over a border of zones perhaps
    found = rows_of(reader, parts)
    assert found == rows_of(cold) and len(found) >= 20


def test_no_zone_map_is_made(written: Path, tmp_path: Path) -> None:
    assert rows_of(reader_of(written, startTime=FIRST_TIME, endTime=FIRST_TIME + 9000, cache=str(tmp_path / "new")))
    assert not (tmp_path / "new").exists()


@pytest.mark.filterwarnings("ignore:zone map not used:UserWarning")
@pytest.mark.parametrize("damage", [b"", None])
def test_a_cache_of_anything_changes_no_row(written: Path, warm: str, damage: bytes | None) -> None:
    period = {"startTime": FIRST_TIME + 300_000, "endTime": FIRST_TIME + 310_000}
    expected = rows_of(reader_of(written, **period, cache="none"))
    for path in Path(warm).iterdir():
        path.write_bytes(path.read_bytes()[:-9] + bytes(9) if damage is None else damage)
    assert rows_of(reader_of(written, **period, cache=warm)) == expected


def test_what_was_written_since_the_zone_map_is_read(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    writer = PartitionWriter(logs / "orders-0")
    writer.append([KafkaRecord(bytes(300_000), timestamp=FIRST_TIME)])
    list(kafka.scan(logs, begin=0, end=1, cache=tmp_path / "zones"))
    late = writer.append([KafkaRecord(b"late", timestamp=FIRST_TIME + 5)])
    writer.close()
    reader = reader_of(logs / "orders-0", startTime=FIRST_TIME + 5, cache=str(tmp_path / "zones"))
    parts = reader.partitions()
    assert [row["offset"] for row in rows_of(reader, parts)] == [late]
    assert planned_bytes(parts) < 200


def test_a_time_may_be_words(written: Path) -> None:
    named = {"startTime": "2023-11-14T22:15Z", "endTime": "2023-11-14T22:16Z"}
    start = 1_700_000_100_000
    assert rows_of(reader_of(written, **named)) == rows_of(reader_of(written, startTime=start, endTime=start + 60_000))
    assert len(rows_of(reader_of(written, **named, partitions="orders-1"))) > 50
    assert rows_of(reader_of(written, startTime="-1h")) == []


def test_one_key_may_have_commas_and_brackets(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "orders-0")
    writer.append(
        [KafkaRecord(b"1", b"a,b"), KafkaRecord(b"2", b"[a"), KafkaRecord(b"3", b"a"), KafkaRecord(b"4", b"b")]
    )
    writer.close()
    for keys, values in (("a,b", [b"1"]), ('["[a", "b"]', [b"2", b"4"]), ("a", [b"3"]), ("[]", [])):
        assert [row["value"] for row in rows_of(reader_of(tmp_path, keys=keys))] == values


def test_a_partition_may_be_in_one_of_several_log_dirs(written: Path, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "more" / "late-0")
    writer.append([KafkaRecord(b"late")])
    writer.close()
    paths = json.dumps([str(written), str(tmp_path / "more")])
    reader = KafkaLogSource({"paths": paths, "partitions": '["late-0", "orders-1"]'}).reader(SCHEMA)
    assert {(row["topic"], row["partition"]) for row in rows_of(reader)} == {("late", 0), ("orders", 1)}
    with pytest.raises(ValueError, match=r"partitions: expected partitions or topics of .*, got 'lat'; the nearest"):
        KafkaLogSource({"paths": paths, "partitions": "lat"}).reader(SCHEMA).partitions()


def test_batches_are_chosen_by_partitions_and_offsets(written: Path) -> None:
    asked = {"partitions": "orders", "startOffset": 205, "endOffset": 220}
    rows = rows_of(reader_of(written, BATCHES, rows="batches", **asked))
    assert [(row["base_offset"], row["last_offset"]) for row in rows] == [(200, 209), (210, 219)] * 2
    for name in ("startTime", "endTime", "keys"):
        with pytest.raises(ValueError, match=f"{name}: expected none in a read of batches, got '1'"):
            reader_of(written, BATCHES, rows="batches", **{name: "1"})


def test_options_of_a_load_and_the_columns_of_it(registered: Any, written: Path) -> None:
    frame = (
        registered.read.format("kafka_log")
        .options(columns="segment, offset", partitions='["orders-0", "orders-1"]', keys="k1,1", cache="none")
        .load(str(written))
    )
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("segment", "bigint"), ("offset", "bigint"),
    ]  # fmt: skip
    expected = rows_of(reader_of(written, partitions="orders", keys="k1,1"))
    assert sorted(row.offset for row in frame.collect()) == sorted(row["offset"] for row in expected)
    assert frame.count() == len(expected) > 8
