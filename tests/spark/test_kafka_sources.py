"""Data sources of Kafka's files: what the golden partitions hold, in the schema asked for; ranges; damage."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import FormatError
from mqindex.kafka import LogSegment
from mqindex.spark.sources import kafka_log as kafka_log_source
from mqindex.spark.sources.kafka_index import KafkaIndexSource
from mqindex.spark.sources.kafka_log import KafkaLogSource
from tests.support.damaged_partition import DAMAGE, damaged_partition
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter


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
    with pytest.raises(Exception, match=r"schema: expected some of topic, .*got phy_offset"):
        registered.read.format("kafka_index").schema("phy_offset bigint").load(str(log_dir)).collect()


def log(spark: Any, schema: str | None = None, **options: Any) -> Any:
    reader = spark.read.format("kafka_log").options(**options)
    return reader if schema is None else reader.schema(schema)


def test_batches_are_those_of_the_broker(registered: Any, log_dir: Path) -> None:
    """Every field of a header that the broker's classes told."""
    frame = log(registered, rows="batches").load(str(log_dir))
    found = {(row.topic, row.base_offset): row.asDict() for row in frame.collect()}
    said = {}
    for name, topic in (("410-txn", "txn"), ("410-txn-open", "txn-open")):
        truth = PartitionCase(name).truth
        for segment in truth["segments"]:
            for fields in segment["batches"]:
                one = dict(zip(truth["batch_fields"], fields, strict=True))
                said[topic, one["baseOffset"]] = (segment["base"], one)
    assert found.keys() == said.keys()
    names = {
        "position": "position", "size": "size", "last_offset": "lastOffset", "max_timestamp": "maxTimestamp",
        "magic": "magic", "producer_id": "producerId", "producer_epoch": "producerEpoch", "crc": "crc",
        "base_sequence": "baseSequence", "leader_epoch": "leaderEpoch", "count": "count",
    }  # fmt: skip
    for key, row in found.items():
        base, one = said[key]
        assert (row["segment"], row["partition"]) == (base, 0)
        assert {ours: row[ours] for ours in names} == {ours: one[theirs] for ours, theirs in names.items()}
        assert bool(row["attributes"] & 0x20) == one["isControl"]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A partition of two segments: keys and values absent and empty, headers, a transaction that was aborted."""
    writer = PartitionWriter(tmp_path / "my-topic-3", 10, index_interval=0)
    writer.append([KafkaRecord(b"one", b"k"), KafkaRecord(None, None, FIRST_TIME + 5, [("h", b"\x00"), ("n", None)])])
    writer.append([KafkaRecord(b"", b"")], codec="gzip", append_time=FIRST_TIME + 9)
    writer.roll()
    writer.append([KafkaRecord(b"lost")], producer_id=4, producer_epoch=0, base_sequence=0, transactional=True)
    writer.marker(4)
    writer.close()
    return tmp_path / "my-topic-3"


def test_records_are_those_that_were_sent(registered: Any, written: Path) -> None:
    frame = log(registered).load(str(written)).orderBy("offset")
    assert frame.columns == [
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers", "is_transactional",
        "is_control",
    ]  # fmt: skip
    first, second, third, fourth, marker = frame.collect()
    assert tuple(first)[:5] == ("my-topic", 3, 10, FIRST_TIME, 0)
    assert (bytes(first.key), bytes(first.value), first.headers) == (b"k", b"one", [])
    assert (second.key, second.value, second.timestamp) == (None, None, FIRST_TIME + 5)
    assert [(one.key, one.value) for one in second.headers] == [("h", bytearray(b"\0")), ("n", None)]
    assert (third.key, third.value, third.timestamp, third.timestamp_type) == (b"", b"", FIRST_TIME + 9, 1)
    assert (bytes(fourth.value), fourth.is_transactional, fourth.is_control) == (b"lost", True, False)
    assert (marker.offset, marker.is_control) == (14, True)


def test_the_schema_of_the_user_is_the_projection(registered: Any, written: Path) -> None:
    schema = "sequence int, offset bigint NOT NULL, segment bigint, producer_id bigint, position bigint"
    rows = log(registered, schema).load(str(written)).orderBy("offset").collect()
    assert [(row.offset, row.segment, row.producer_id, row.sequence) for row in rows] == [
        (10, 10, -1, -1), (11, 10, -1, -1), (12, 10, -1, -1), (13, 13, 4, 0), (14, 13, 4, -1),
    ]  # fmt: skip
    topics = log(registered, "topic string").load(str(written)).collect()
    assert [row.topic for row in topics] == ["my-topic"] * 5
    with pytest.raises(Exception, match="schema: expected offset bigint, got int"):
        log(registered, "offset int").load(str(written)).collect()
    with pytest.raises(Exception, match="rows: expected records or batches, got 'keys'"):
        log(registered, rows="keys").load(str(written)).collect()


def test_start_and_end_limit_records(registered: Any, written: Path) -> None:
    frame = log(registered, "offset bigint", startOffset=11, endOffset=14).load(str(written))
    assert sorted(row.offset for row in frame.collect()) == [11, 12, 13]
    batches = log(registered, rows="batches", startOffset=11, endOffset=12).load(str(written))
    assert [(row.base_offset, row.last_offset) for row in batches.collect()] == [(10, 11)]


def test_one_log_is_a_partition_of_its_own(registered: Any, written: Path) -> None:
    rows = log(registered, "topic string, offset bigint").load(str(written / f"{13:020d}.log")).collect()
    assert sorted(map(tuple, rows)) == [("my-topic", 13), ("my-topic", 14)]


# What follows needs no session: a reader is what Spark would make of the source, in this process.


def offsets_of(path: Path, **options: str) -> tuple[int, list[int]]:
    """In how many tasks a partition is read, and the offsets found."""
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField("offset", LongType())])
    reader = KafkaLogSource({"path": str(path), **options}).reader(schema)
    tasks = reader.partitions()
    return len(tasks), [n for one in tasks for batch in reader.read(one) for n in batch.column(0).to_pylist()]


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """One segment of 400 batches of some 170 bytes, every one in the index, and a short one."""
    writer = PartitionWriter(tmp_path / "long-0", index_interval=0)
    for number in range(400):
        writer.append([KafkaRecord(b"v" * 100, timestamp=FIRST_TIME + number)])
    writer.roll()
    writer.append([KafkaRecord()])
    writer.close()
    return tmp_path / "long-0"


@pytest.mark.parametrize(("task_bytes", "tasks"), [(1 << 20, 1), (20_000, 5), (1000, 68)])
def test_ranges_cover_each_record_once(
    long: Path, task_bytes: int, tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", task_bytes)
    found, offsets = offsets_of(long)
    assert offsets == list(range(401))
    assert abs(found - tasks) <= 2


@pytest.mark.parametrize("damage", ["missing", "garbage", "shifted", "cut"])
def test_an_index_that_is_wrong_cuts_nothing_apart(long: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", 5000)
    index = long / f"{0:020d}.index"
    content = bytearray(index.read_bytes())
    if damage == "missing":
        index.unlink()
    else:
        for at in range(0, len(content), 8):
            wrong = 2**31 - 1 if damage == "garbage" else int.from_bytes(content[at + 4 : at + 8], "big") + 1
            content[at + 4 : at + 8] = wrong.to_bytes(4, "big")
        index.write_bytes(content[:-3] if damage == "cut" else content)
    assert offsets_of(long)[1] == list(range(401))


def test_zeros_behind_the_log_are_its_end(long: Path) -> None:
    with open(long / f"{400:020d}.log", "ab") as file:
        file.write(bytes(5000))
    assert offsets_of(long)[1] == list(range(401))


def test_damage_fails_the_query_unless_told_otherwise(long: Path) -> None:
    path = long / f"{0:020d}.log"
    with LogSegment.open(path) as segment:
        where = segment.translate_offset(300)
    assert where is not None
    content = bytearray(path.read_bytes())
    content[where.position + 8 : where.position + 12] = bytes(4)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"the log is damaged: .* at byte {where.position}: .*failOnDataLoss"):
        offsets_of(long)
    assert offsets_of(long, failOnDataLoss="false")[1] == [each for each in range(401) if each != 300]


def test_checksums_are_compared_unless_asked_not_to(long: Path) -> None:
    path = long / f"{400:020d}.log"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    assert len(offsets_of(long, checkCrc="false")[1]) == 401
    with pytest.raises(ValueError, match="the log is damaged: bad-crc"):
        offsets_of(long)
    assert len(offsets_of(long, failOnDataLoss="false")[1]) == 400


def test_a_log_dir_without_segments_has_no_rows(registered: Any, tmp_path: Path) -> None:
    """It failed in `zip()`."""
    (tmp_path / "meta.properties").touch()
    for partition in ("", "empty-0"):
        (tmp_path / partition).mkdir(exist_ok=True)
        for source in ("kafka_log", "kafka_index"):
            assert registered.read.format(source).load(str(tmp_path)).count() == 0


@pytest.mark.parametrize("source", ["kafka_log", "kafka_index"])
def test_what_is_nothing_of_kafka_is_refused(registered: Any, tmp_path: Path, source: str) -> None:
    (tmp_path / "notes.txt").write_text("Hello")
    for path, words in ((tmp_path, "neither a partition nor a log dir"), (tmp_path / "notes.txt", "no base offset")):
        with pytest.raises(Exception, match=words):
            registered.read.format(source).load(str(path)).count()


@pytest.fixture
def torn(long: Path) -> Path:
    """The partition `long` whose first segment ends in a part of its last batch."""
    path = long / f"{0:020d}.log"
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 20)
    return long


def test_a_torn_batch_before_the_partition_s_end_fails_the_query(torn: Path) -> None:
    """Its rows were missing in silence."""
    with LogSegment.open(torn / f"{0:020d}.log") as segment:
        batches = segment.batches()
        end = int(batches["position"][-1] + batches["size"][-1])
        left = segment.size - end
    said = f"the log is damaged: tail: .*{0:020d}.log at byte {end}: expected a whole batch, got a part of one"
    with pytest.raises(FormatError, match=f"{said}, {left} bytes; .*failOnDataLoss=false"):
        offsets_of(torn)
    assert offsets_of(torn, failOnDataLoss="false")[1] == [*range(399), 400]


def test_a_torn_batch_at_the_partition_s_end_is_what_a_broker_is_writing(torn: Path) -> None:
    (torn / f"{400:020d}.log").unlink()
    assert offsets_of(torn)[1] == list(range(399))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_log_source, "TASK_BYTES", 5000)
        assert offsets_of(torn)[1] == list(range(399))


def test_a_length_that_leads_out_of_a_task_s_range_is_damage(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked like a torn batch, and the rest of the range was missing in silence."""
    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", 20_000)
    (long / f"{400:020d}.log").unlink()
    path = long / f"{0:020d}.log"
    with LogSegment.open(path) as segment:
        where = segment.translate_offset(50)
    assert where is not None
    content = bytearray(path.read_bytes())
    content[where.position + 8 : where.position + 12] = (2**30).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"bad-length: .* field length at byte {where.position}"):
        offsets_of(long)


def test_an_index_that_is_cut_after_the_plan_gives_the_entries_that_are_left(long: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    for index, ending in (("offset", "index"), ("time", "timeindex")):
        schema = StructType([StructField("offset", LongType())])
        reader = KafkaIndexSource({"path": str(long / f"{0:020d}.{ending}"), "index": index}).reader(schema)
        tasks = reader.partitions()
        for left in (3, 0):
            with open(long / f"{0:020d}.{ending}", "r+b") as file:
                file.truncate(left * (8 if index == "offset" else 12))
            found = [batch.num_rows for task in tasks for batch in reader.read(task)]
            assert sum(found) == left


@pytest.mark.parametrize("option", ["startOffset", "endOffset"])
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_an_offset_of_more_than_64_bits_is_told(long: Path, option: str, number: int) -> None:
    """Arrow found no kernel, or there were no rows."""
    with pytest.raises(OverflowError, match=f"^{option}: expected 64 bits, got {number}$"):
        offsets_of(long, **{option: str(number)})


def test_a_length_that_leads_into_the_next_task_s_range_is_damage(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next task went on from its own border, and the batches between were missing in silence."""
    from pyspark.sql.types import LongType, StructField, StructType

    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", 20_000)
    (long / f"{400:020d}.log").unlink()
    path = long / f"{0:020d}.log"
    schema = StructType([StructField("base_offset", LongType())])
    reader = KafkaLogSource({"path": str(long), "rows": "batches", "checkCrc": "false"}).reader(schema)
    task = reader.partitions()[0]
    with LogSegment.open(path) as segment:
        starts = [at for at in segment.batches()["position"].tolist() if at < task.ranges[0].stop]
    at, content = starts[-2], bytearray(path.read_bytes())
    length = task.ranges[0].stop - at + 500
    content[at + 8 : at + 12] = length.to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(FormatError, match=f"a batch reaches into the next one: .* at byte {at}: .*got {length + 12}"):
        list(reader.read(task))
    with pytest.raises(FormatError, match=f"the log is damaged: bad-crc: .* at byte {at}"):
        offsets_of(long)


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("level", [{}, {"isolationLevel": "read_committed"}])
@pytest.mark.parametrize("task_bytes", [128 << 20, 500])
def test_damage_fails_the_query_or_is_left_out_and_nothing_else(
    tmp_path: Path, kind: str, level: dict[str, str], task_bytes: int, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(kafka_log_source, "TASK_BYTES", task_bytes)
    damage, path = DAMAGE[kind], damaged_partition(tmp_path / "d-0", kind)
    with pytest.raises(FormatError, match=f"the log is damaged: {damage.kind}: {path}"):
        offsets_of(tmp_path / "d-0", **level)
    assert offsets_of(tmp_path / "d-0", failOnDataLoss="false", **level)[1] == damage.left
    assert f"{damage.last}" in caplog.text and str(path) in caplog.text


@pytest.mark.parametrize("first", [b"\x55", b"\xd5"])
def test_offsets_that_cannot_be_in_a_segment_fail_the_query(long: Path, first: bytes) -> None:
    """No checksum covers them."""
    path = long / f"{0:020d}.log"
    with LogSegment.open(path) as segment:
        where = segment.translate_offset(50)
    assert where is not None
    content = bytearray(path.read_bytes())
    content[where.position : where.position + 1] = first
    path.write_bytes(content)
    with pytest.raises(
        FormatError, match=f"the offsets of a batch are not of this segment: .* at byte {where.position}"
    ):
        offsets_of(long, checkCrc="true")


def test_a_schema_that_names_a_column_twice_is_told(long: Path) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    twice = StructType([StructField("offset", LongType()), StructField("offset", LongType())])
    with pytest.raises(ValueError, match=r"^schema: expected each column once, got offset again$"):
        KafkaLogSource({"path": str(long)}).reader(twice)
