"""`rocketmq_commitlog` by topic, queue, time, key and tag: what matches of a full read, read from where it can be."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructType

from mqindex import rocketmq
from mqindex.errors import FormatError
from mqindex.rocketmq.scanning import matches as of_matches
from mqindex.spark.sources import commitlog_ranges
from mqindex.spark.sources.rocketmq_commitlog import CommitLogSource
from tests.support.golden import case
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

FILE_SIZE = 1 << 20
ZONE = 256 << 10
SCHEMA = StructType()
for name, kind in (
    ("topic", StringType()), ("queue_id", IntegerType()), ("phy_offset", LongType()), ("store_timestamp", LongType()),
    ("tags", StringType()), ("keys", StringType()), ("uniq_key", StringType()), ("body", BinaryType()),
):  # fmt: skip
    SCHEMA.add(name, kind)
Row = dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> LogWriter:
    """Three and a half files: a second between messages, some of them earlier than those before."""
    writer = LogWriter(tmp_path_factory.mktemp("store") / "commitlog", mapped_file_size=FILE_SIZE)
    source = random.Random(7)
    while writer.position < 7 * FILE_SIZE // 2:
        number = len(writer.frames)
        writer.write(
            LogMessage(
                f"Topic{number // 300}" if number % 10 else "Everywhere", body=b"%d" % number + bytes(1990),
                keys=f"k{number % 50} order {number}", uniq_key=f"U{number}", tags=f"Tag{number % 3}",
                queue_id=number % 4, store_timestamp=FIRST_TIME + 1000 * number - source.choice((0, 0, 0, 5500)),
            )
        )  # fmt: skip
    return writer


@pytest.fixture
def warm(written: LogWriter, tmp_path: Path) -> str:
    """A cache that has the zone maps of all files."""
    with rocketmq.scan(written.directories[0], topic="none", cache=tmp_path / "zones") as scanned:
        assert not list(scanned)
    return str(tmp_path / "zones")


def reader_of(writer: LogWriter, **options: Any) -> Any:
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in options.items()}
    return CommitLogSource({"path": str(writer.directories[0]), **given}).reader(SCHEMA)


def rows_of(reader: Any, parts: list[Any] | None = None) -> list[Row]:
    parts = reader.partitions() if parts is None else parts
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def planned_bytes(parts: list[Any]) -> int:
    whole = [[(part.start, part.stop)] if part.stretches is None else part.stretches for part in parts]
    return sum(stop - start for stretches in whole for start, stop in stretches)


def passes(row: Row, asked: dict[str, Any]) -> bool:
    """The same in plain Python."""
    topics, queues, keys = asked.get("topic"), asked.get("queueId"), asked.get("keys")
    words = {row["uniq_key"], *row["keys"].split(" ")}
    return (
        (topics is None or row["topic"] in topics)
        and (queues is None or row["queue_id"] in queues)
        and (keys is None or not words.isdisjoint(keys))
        and ("tags" not in asked or row["tags"] in asked["tags"].split(" || "))
        and asked.get("startTime", 0) <= row["store_timestamp"] < asked.get("endTime", 2**62)
        and asked.get("startOffset", 0) <= row["phy_offset"] < asked.get("endOffset", 2**62)
    )


def asked_at_random(source: random.Random, rows: list[Row]) -> dict[str, Any]:
    one, other = sorted(source.choices(rows, k=2), key=lambda row: int(row["phy_offset"]))
    every = {
        "topic": [one["topic"], other["topic"], "none"][: source.randint(1, 3)],
        "queueId": [1, 3][: source.randint(1, 2)],
        "startTime": one["store_timestamp"] + source.choice((-1, 0, 1)),
        "endTime": other["store_timestamp"] + source.choice((-1, 0, 1)),
        "keys": [one["uniq_key"], "k7", "absent", other["keys"].split(" ")[2]][: source.randint(1, 4)],
        "tags": source.choice(("Tag1", "Tag0 || Tag2")),
        "startOffset": one["phy_offset"],
        "endOffset": other["phy_offset"] + 1,
    }
    return {name: every[name] for name in source.sample(list(every), source.randint(1, 3))}


@pytest.mark.parametrize("cached", ["none", "warm"])
@pytest.mark.parametrize("split_size", [150_000, 64 << 20])
def test_rows_are_those_of_a_full_read_that_match(
    written: LogWriter, warm: str, cached: str, split_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commitlog_ranges, "SPLIT_SIZE", split_size)
    everything = rows_of(reader_of(written))
    assert len(everything) == len(written.frames)
    source = random.Random(split_size)
    for _ in range(60):
        asked = asked_at_random(source, everything)
        reader = reader_of(written, **asked, cache=warm if cached == "warm" else "none")
        assert rows_of(reader) == [row for row in everything if passes(row, asked)], asked


def test_a_narrow_period_plans_few_bytes(written: LogWriter, warm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = FIRST_TIME + 700_000
    period = {"startTime": start, "endTime": start + 10_000}
    cold = reader_of(written, **period, cache="none")
    assert planned_bytes(cold.partitions()) >= 7 * FILE_SIZE // 2
    reader = reader_of(written, **period, cache=warm)
    parts = reader.partitions()
    in_last = FILE_SIZE // 2  # of the newest file what comes after its last message is read, too: it may have more
    stretches = [stretch for part in parts for stretch in part.stretches]
    assert sum(stop - at for at, stop in stretches if at < 3 * FILE_SIZE) <= 2 * ZONE
    assert planned_bytes(parts) <= 2 * ZONE + in_last
    found = rows_of(reader, parts)
    assert found == rows_of(cold) and len(found) >= 8


def test_no_zone_map_is_made(written: LogWriter, tmp_path: Path) -> None:
    reader = reader_of(written, topic="Topic1", cache=str(tmp_path / "new"))
    assert len(rows_of(reader)) == 270
    assert not (tmp_path / "new").exists()


def test_what_was_written_since_the_zone_map_is_read(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=FILE_SIZE)
    writer.write(*(LogMessage("Early", body=bytes(1000)) for _ in range(400)))
    list(rocketmq.scan(tmp_path / "commitlog", topic="none", cache=tmp_path / "zones"))
    late = writer.write(*(LogMessage("Late", body=bytes(1000)) for _ in range(400)))
    assert late[-1] < FILE_SIZE
    reader = reader_of(writer, topic="Late", cache=str(tmp_path / "zones"))
    (part,) = parts = reader.partitions()
    assert part.stretches == [(late[0], FILE_SIZE)]
    assert [row["phy_offset"] for row in rows_of(reader, parts)] == late
    late += writer.write(*(LogMessage("Late", body=bytes(1000)) for _ in range(800)))
    assert late[-1] > FILE_SIZE
    assert [
        row["phy_offset"] for row in rows_of(reader_of(writer, topic="Late", cache=str(tmp_path / "zones")))
    ] == late


@pytest.mark.filterwarnings("ignore:zone map not used:UserWarning")
@pytest.mark.parametrize("damage", [b"", b"no zone map", None])
def test_a_cache_of_anything_changes_no_row(written: LogWriter, warm: str, damage: bytes | None) -> None:
    expected = rows_of(reader_of(written, topic="Topic2", cache="none"))
    for path in Path(warm).iterdir():
        data = path.read_bytes()
        path.write_bytes(data[:-9] + bytes(9) if damage is None else damage)
    assert rows_of(reader_of(written, topic="Topic2", cache=warm)) == expected


def test_bodies_are_taken_of_what_matches(written: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    columns_at = of_matches.columns_at

    def counted(window: Any, start: int, phys: Any, sizes: Any, names: Any) -> Any:
        taken.append(len(phys))
        return columns_at(window, start, phys, sizes, names)

    monkeypatch.setattr(of_matches, "columns_at", counted)
    assert len(rows_of(reader_of(written, keys=["U5", "U900"], cache="none"))) == 2
    assert sum(taken) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startTime": "1h"}, r"startTime: '1h' may be before or after now: expected -1h or \+1h"),
        ({"endTime": "noon"}, "endTime: 'noon': expected ms since the epoch, .*2026"),
        ({"keys": "[1]"}, r"keys: expected one text, or a JSON array of texts, .*got '\[1\]'"),
        ({"topic": "[T"}, r"topic: expected one text, or a JSON array of texts, .*got '\[T'"),
        ({"queueId": "[true]"}, r"queueId: expected a whole number, or a JSON array of some, .*got '\[true\]'"),
        ({"queueId": "a"}, "queueId: expected an integer, got 'a'"),
        ({"tags": "||"}, "tags: expected an expression like 'TagA"),
        ({"cache": ""}, "cache: expected a directory, or none"),
        ({"columns": "topic"}, "columns: expected none beside a schema, got topic"),
        ({"columns": "topic,bodies"}, "columns: expected some of topic, .*got 'bodies'"),
    ],
)
def test_what_is_no_value_of_an_option_is_named(written: LogWriter, options: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        reader_of(written, **options).partitions()


@pytest.mark.parametrize("option", ["startTime", "endTime", "cache"])
def test_a_stream_takes_no_times(written: LogWriter, option: str) -> None:
    source = CommitLogSource({"path": str(written.directories[0]), option: "5"})
    with pytest.raises(ValueError, match=f"{option}: expected none in a stream, got '5'"):
        source.streamReader(SCHEMA).initialOffset()


def test_a_stream_takes_the_messages_of_a_topic_and_a_key(written: LogWriter) -> None:
    given = {"path": str(written.directories[0]), "topic": "Topic1", "keys": '["k1", "k2"]'}
    reader = CommitLogSource(given).streamReader(SCHEMA)
    parts = reader.partitions(reader.initialOffset(), reader.latestOffset())
    asked = {"topic": ["Topic1"], "keys": ["k1", "k2"]}
    expected = [row for row in rows_of(reader_of(written)) if passes(row, asked)]
    assert rows_of(reader, list(parts)) == expected and expected


def test_options_of_a_load_and_the_columns_of_it(registered: Any, golden: Path) -> None:
    said = case("basic-493").truth["messages"]
    one = said[100]
    frame = (
        registered.read.format("rocketmq_commitlog")
        .options(columns="phy_offset, body,topic", topic=one["topic"], cache="none")
        .options(startTime=one["storeTimestamp"], endTime="2100-01-01")
        .load(str(golden))
    )
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("phy_offset", "bigint"), ("body", "binary"), ("topic", "string"),
    ]  # fmt: skip
    expected = [
        each["phyOffset"]
        for each in said
        if each["topic"] == one["topic"] and each["storeTimestamp"] >= one["storeTimestamp"]
    ]
    assert sorted(row.phy_offset for row in frame.collect()) == expected
    assert frame.count() == len(expected) < len(said)


def test_bodies_are_those_that_producers_sent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=FILE_SIZE)
    stored = [zlib.compress(b"sent"), b"plain", b"no stream"]
    at = writer.write(*(LogMessage(body=body, sys_flag=flag) for body, flag in zip(stored, (1, 0, 1), strict=True)))

    def bodies(**options: Any) -> list[Any]:
        return [row["body"] for row in rows_of(reader_of(writer, **options))]

    assert bodies(decompress="false") == stored and bodies(endOffset=at[2]) == [b"sent", b"plain"]
    with pytest.raises(FormatError, match=r"decompress.*decompress=false"):
        bodies()
    assert bodies(failOnDataLoss="false") == [b"sent", b"plain", None]
    assert "its body is null" in caplog.text
