"""`rocketmq_commitlog` as a stream: every message once, in micro-batches of the asked size, over restarts and files."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from mqindex.errors import FileStateError
from mqindex.spark.sources import commitlog_stream as log_stream
from mqindex.spark.sources.commitlog_stream import LogStreamReader
from tests.spark.test_sources import log, offsets, said_offsets
from tests.support.log_writer import LogMessage, LogWriter

LIMITS = bool(find_spec("pyspark.sql.streaming.datasource"))
needs_limits = pytest.mark.skipif(not LIMITS, reason="PySpark 4.2 brought limits")
FILE = 4096


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return LogWriter(tmp_path / "store" / "commitlog", mapped_file_size=FILE)


class Stream:
    """A query from a log to Parquet files, with its checkpoint: it may be run again and again."""

    def __init__(self, spark: Any, place: Path, store: Path) -> None:
        self.spark, self.place, self.store = spark, place, store

    def start(self, schema: str | None = "phy_offset bigint, topic string", **options: Any) -> Any:
        reader = self.spark.readStream.format("rocketmq_commitlog").options(**options)
        frame = (reader if schema is None else reader.schema(schema)).load(str(self.store))
        self.schema = frame.schema
        return frame.writeStream.format("parquet").option("checkpointLocation", str(self.place / "checkpoint"))

    def run(self, **options: Any) -> list[int]:
        """Read all that is there, and end; the messages of each micro-batch that had some."""
        query = self.start(**options).trigger(availableNow=True).start(str(self.place / "out"))
        query.awaitTermination(120)
        assert not query.isActive
        counts = [progress["numInputRows"] for progress in query.recentProgress]
        return [count for count in counts if count]

    def read(self) -> list[int]:
        return offsets(self.spark.read.schema("phy_offset bigint").parquet(str(self.place / "out")))

    def wait_for(self, expected: list[int]) -> None:
        deadline = time.monotonic() + 600
        while self.read() != expected:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.fixture
def stream(registered: Any, tmp_path: Path) -> Callable[..., Stream]:
    return lambda store=tmp_path / "store": Stream(registered, tmp_path, store)


def messages(count: int, first: int = 0) -> list[LogMessage]:
    return [
        LogMessage(f"Topic{i % 3}", tags="t", body=bytes(i % 90), queue_offset=i) for i in range(first, first + count)
    ]


def test_stream_reads_what_a_batch_reads(registered: Any, golden: Path, stream: Callable[..., Stream]) -> None:
    everything = stream(golden)
    everything.run(schema=None)
    batch = log(registered, schema=None).load(str(golden))
    assert everything.schema == batch.schema
    streamed = registered.read.parquet(str(everything.place / "out"))
    assert sorted(map(tuple, streamed.collect())) == sorted(map(tuple, batch.collect()))


def test_restart_reads_what_came_since_over_new_files(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    following = stream()
    written: list[int] = []
    for count in (40, 0, 100):
        written += writer.write(*messages(count, len(written)))
        following.run()
        assert following.read() == written
    assert len(list(writer.directories[0].iterdir())) > 4


def test_batch_that_was_not_committed_is_the_same_batch_again(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    written = writer.write(*messages(30))
    crashed = stream()
    crashed.run()
    for name in ("checkpoint/commits/0", "out/_spark_metadata/0"):
        (crashed.place / name).unlink()
        (crashed.place / name).with_name(".0.crc").unlink()
    assert crashed.read() != written, "the batch is as if it had not been"
    written += writer.write(*messages(20, 30))
    crashed.run()
    assert crashed.read() == written
    offsets_told = [(crashed.place / "checkpoint" / "offsets" / name).read_text() for name in ("0", "1")]
    assert [f'"phy_offset":{end}' in told.replace(" ", "") for told, end in zip(
        offsets_told, (written[30], writer.position), strict=True)] == [True, True]  # fmt: skip


@needs_limits
def test_micro_batches_are_as_large_as_was_asked(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    written = writer.write(*messages(100))
    limited = stream()
    assert limited.run(maxMessagesPerTrigger=30) == [30, 30, 30, 10]
    assert limited.read() == written
    more = writer.write(*messages(50, 100))
    counts = limited.run(maxBytesPerTrigger=1500)
    assert len(counts) >= (writer.position - more[0]) // 1500
    assert max(counts) < 1500 // 100
    assert limited.read() == written + more


@needs_limits
def test_two_limits_hold_together(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    written = writer.write(*messages(40))
    assert max(stream().run(maxMessagesPerTrigger=15, maxBytesPerTrigger=10 * FILE)) == 15
    assert stream().read() == written


def test_limits_are_refused_where_pyspark_has_none(writer: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_stream, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"maxMessagesPerTrigger: expected PySpark 4\.2 or newer"):
        LogStreamReader({"path": str(writer.directories[0]), "maxMessagesPerTrigger": "15"}, StructType())


def test_stream_begins_where_it_is_told_and_reads_the_columns_asked_for(
    registered: Any, writer: LogWriter, stream: Callable[..., Stream]
) -> None:
    written = writer.write(*messages(60))
    late = stream()
    late.run(startOffset=written[33] - 1, schema="body binary, phy_offset bigint")
    assert late.read() == written[33:]
    rows = registered.read.parquet(str(late.place / "out")).orderBy("phy_offset").collect()
    assert [bytes(row.body) for row in rows] == [message.body for message in messages(60)[33:]]


def test_running_query_follows_the_log(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    written = writer.write(*messages(5))
    live = stream()
    query = live.start().trigger(processingTime="50 milliseconds").start(str(live.place / "out"))
    try:
        for _ in range(4):
            live.wait_for(written)
            written += writer.write(*messages(25, len(written)))
            writer.create_next_file()
        live.wait_for(written)
    finally:
        query.stop()
    written += writer.write(*messages(3, len(written)))
    live.run()
    assert live.read() == written


def test_messages_that_expired_unread_are_an_error_or_passed_over(
    writer: LogWriter, stream: Callable[..., Stream]
) -> None:
    written = writer.write(*messages(10))
    late = stream()
    late.run()
    written += writer.write(*messages(100, 10))
    gone = sorted(writer.directories[0].iterdir())[:2]
    for path in gone:
        path.unlink()
    with pytest.raises(Exception, match=r"messages that the stream has not read are gone: .*failOnDataLoss=false"):
        late.run()
    assert late.read() == written[:10]
    late.run(failOnDataLoss="false")
    assert late.read() == written[:10] + [offset for offset in written[10:] if offset >= 2 * FILE]


@needs_limits
def test_gap_of_any_size_is_one_step(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    writer.write(*messages(10))
    late = stream()
    late.run()
    (path,) = writer.directories[0].iterdir()
    path.unlink()
    far = LogWriter(writer.directories[0], mapped_file_size=FILE, start=FILE * 1_000_000)
    written = far.write(*messages(20))
    assert late.run(failOnDataLoss="false", maxBytesPerTrigger=2000)
    assert late.read()[10:] == written


def test_log_that_was_cut_is_an_error(writer: LogWriter, stream: Callable[..., Stream]) -> None:
    written = writer.write(*messages(10))
    cut = stream()
    cut.run()
    path = writer.path(0)
    path.write_bytes(path.read_bytes()[: written[5]].ljust(FILE, b"\0"))
    with pytest.raises(Exception, match="the log ends before the stream's offset"):
        cut.run()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"endOffset": "5"}, "endOffset: expected none in a stream, got '5'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss: expected true or false, got 'maybe'"),
        pytest.param({"maxBytesPerTrigger": "0"}, "maxBytesPerTrigger: expected 1 or more, got 0", marks=needs_limits),
    ],
)
def test_options_that_make_no_sense_are_named(writer: LogWriter, options: dict[str, str], words: str) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    from mqindex.spark.sources.commitlog_stream import LogStreamReader

    schema = StructType([StructField("phy_offset", LongType())])
    with pytest.raises(ValueError, match=words):
        LogStreamReader({"path": str(writer.directories[0]), **options}, schema)


def test_file_that_goes_between_planning_and_reading_is_an_error(writer: LogWriter) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    from mqindex.spark.sources.commitlog_stream import LogStreamReader

    writer.write(*messages(60))
    schema = StructType([StructField("phy_offset", LongType())])
    reader = LogStreamReader({"path": str(writer.directories[0])}, schema)
    start = reader.initialOffset()
    first, *_ = reader.partitions(start, reader.latestOffset())
    reader.stop()
    sorted(writer.directories[0].iterdir())[0].unlink()
    with pytest.raises(FileStateError, match="a file that the stream reads is gone"):
        list(reader.read(first))


def test_golden_offsets_are_one_stream(golden: Path, stream: Callable[..., Stream]) -> None:
    whole = stream(golden / "commitlog")
    whole.run()
    assert whole.read() == said_offsets()
