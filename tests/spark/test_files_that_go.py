"""Files that a broker deletes between plan and task are left out, and said; a worker that sees none is named."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex.errors import FileStateError
from mqindex.rocketmq.log import log_files
from mqindex.spark.sources import commitlog_stream as log_stream
from mqindex.spark.sources import kafka_files
from mqindex.spark.sources import register as sources
from tests.support.dledger import to_dledger
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.small_store import make_small_store


def schema(column: str) -> StructType:
    return StructType([StructField(column, LongType())])


def found(reader: Any, parts: list[Any]) -> list[int]:
    return [n for part in parts for batch in reader.read(part) for n in batch.column(0).to_pylist()]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """Two partitions of three segments with two records and one entry of the index each."""
    for name in ("orders-0", "other-0"):
        writer = PartitionWriter(tmp_path / "kafka" / name, index_interval=0)
        for number in range(6):
            if number in (2, 4):
                writer.roll()
            writer.append([KafkaRecord(b"v")])
        writer.close()
    return tmp_path / "kafka"


def oldest(directory: Path) -> list[Path]:
    first = min(directory.iterdir()).name.partition(".")[0]
    return list(directory.glob(f"{first}*"))


@pytest.mark.parametrize("source", [sources.KafkaLogSource, sources.KafkaIndexSource])
def test_a_segment_that_is_deleted_meanwhile_is_left_out(
    source: Any, log_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reader = source({"path": str(log_dir)}).reader(schema("offset"))
    parts = reader.partitions()
    before = found(reader, parts)
    assert caplog.messages == []
    gone = oldest(log_dir / "orders-0")
    for path in gone:
        path.unlink()
    assert len(found(reader, parts)) == len(before) - len(before) // 6
    assert len(caplog.messages) == 1
    assert f"orders-0/{gone[0].name.partition('.')[0]}" in caplog.messages[0]
    assert "a broker deleted it before it was read; it is left out" in caplog.messages[0]
    shutil.rmtree(log_dir / "other-0")
    assert len(found(reader, parts)) == len(before) // 2 - len(before) // 6


def test_a_partition_that_is_deleted_while_it_is_listed_is_left_out(
    log_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    listed = kafka_files.partitions_at

    def then_delete(path: str) -> Any:
        names = listed(path)
        shutil.rmtree(log_dir / "other-0", ignore_errors=True)
        return names

    monkeypatch.setattr(kafka_files, "partitions_at", then_delete)
    reader = sources.KafkaLogSource({"path": str(log_dir)}).reader(schema("offset"))
    assert found(reader, reader.partitions()) == list(range(6))
    assert "other-0: a broker deleted it" in caplog.messages[0]


def test_an_index_file_that_is_deleted_meanwhile_is_left_out(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = sources.IndexSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    before = found(reader, parts)
    (gone,) = oldest(store / "index")
    gone.unlink()
    assert 0 < len(found(reader, parts)) < len(before)
    assert f"{gone}: a broker deleted it" in caplog.messages[0]


def test_files_of_queues_that_are_deleted_meanwhile_are_left_out(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = sources.ConsumeQueueSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    before = found(reader, parts)
    queue = store / "consumequeue" / "Topic0" / "0"
    (gone,) = oldest(queue)
    gone.unlink()
    assert 0 < len(found(reader, parts)) < len(before)
    assert f"{queue}/: a broker deleted it" in caplog.messages[0]
    caplog.clear()
    shutil.rmtree(store / "consumequeue" / "Topic1")
    assert len(found(reader, parts)) > 0
    assert any("Topic1" in said for said in caplog.messages)


def test_a_queue_file_that_is_cut_meanwhile_is_told(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader = sources.ConsumeQueueSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    before = found(reader, parts)
    (path,) = oldest(store / "consumequeue" / "Topic0" / "0")
    with path.open("r+b") as file:
        file.truncate(65)
    assert 0 < len(found(reader, parts)) < len(before)
    assert "of the queue offsets 0 to 12 only 3 units are left since the read was planned" in caplog.messages[0]


@pytest.mark.parametrize("cut", [None, 1000])
def test_a_log_file_in_the_middle_that_goes_meanwhile_is_an_error(
    store: Path, cut: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    reader = sources.CommitLogSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    path = sorted((store / "commitlog").iterdir())[1]
    if cut is None:
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.truncate(cut)
    with pytest.raises(FileStateError, match="a file of the log is gone, or shorter, since the read was planned"):
        found(reader, parts)
    left = sources.CommitLogSource({"path": str(store), "failOnDataLoss": "false"}).reader(schema("phy_offset"))
    assert {0, 4096} < set(found(left, parts))
    assert "shorter, since the read was planned: " in caplog.messages[0]


def test_a_log_file_that_is_missing_before_the_plan_is_an_error(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its messages were left out without a word."""

    def planned(**options: str) -> list[int]:
        reader = sources.CommitLogSource({"path": str(store), **options}).reader(schema("phy_offset"))
        return found(reader, reader.partitions())

    before = planned()
    files = sorted((store / "commitlog").iterdir())
    files[1].unlink()
    for options in ({}, {"startOffset": "3000", "endOffset": "3500"}):
        lost = "3000 to 3500" if options else "2048 to 4096"
        with pytest.raises(
            FileStateError, match=rf"^files are missing, or shorter, inside the log: {store}: .* phy offsets {lost};"
        ):
            planned(**options)
    assert planned(endOffset="2048") + planned(startOffset="4096") == planned(failOnDataLoss="false")
    assert planned(failOnDataLoss="false") == [at for at in before if not 2048 <= at < 4096]
    assert f"{store}: expected phy offsets 2048 to 4096; what is left is read" in caplog.messages[0]
    files[0].unlink()  # the oldest files are a broker's to delete
    assert planned() == [at for at in before if at >= 4096]


def streamed(store: Path, **options: str) -> list[int]:
    """What a new stream reads, as Spark would."""
    reader = sources.CommitLogSource({"path": str(store), **options}).streamReader(schema("phy_offset"))
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    return found(reader, list(reader.partitions(start, reader.latestOffset())))


def batch(store: Path, **options: str) -> list[int]:
    reader = sources.CommitLogSource({"path": str(store), **options}).reader(schema("phy_offset"))
    return found(reader, reader.partitions())


@pytest.mark.parametrize("read", [batch, streamed])
def test_a_first_file_that_was_cut_to_nothing_has_not_expired(store: Path, read: Callable[..., list[int]]) -> None:
    """No broker starts on it; its messages were left out without a word."""
    before, first = read(store), min((store / "commitlog").iterdir())
    first.write_bytes(b"")
    with pytest.raises(FileStateError, match=r"phy offset(s 0 to 2048| 0, got 2048);"):
        read(store)
    left = [at for at in before if at >= 2048]
    assert read(store, failOnDataLoss="false") == left
    first.unlink()
    assert read(store) == left
    (store / "commitlog" / f"{20480:020d}").touch()  # the newest one is just made
    assert read(store) == left


@pytest.mark.parametrize("read", [batch, streamed])
def test_zeros_far_behind_the_end_are_of_the_log_only_where_it_ends_with_a_file(
    store: Path, read: Callable[..., list[int]]
) -> None:
    """Inside a file a broker goes on there, and deletes the other; the batch read failed, the stream said nothing."""
    before = read(store)
    (store / "commitlog" / f"{20480:020d}").write_bytes(bytes(2048))
    assert read(store) == before
    for path in sorted((store / "commitlog").iterdir())[3:5]:
        path.unlink()
    with pytest.raises(FileStateError, match=r"phy offset(s 6144 to 20480| 6144, got 20480);"):
        read(store)
    assert read(store, failOnDataLoss="false") == [at for at in before if at < 6144]


def test_two_logs_are_not_read_as_one(store: Path, tmp_path: Path) -> None:
    """Files of another broker that begin at the same offsets were left out without a word."""
    other = make_small_store(tmp_path / "other")
    with (other / "commitlog" / ("0" * 20)).open("r+b") as file:
        file.seek(56)
        file.write(bytes(8))  # another time

    def planned(*paths: Path) -> list[Any]:
        options = {"paths": json.dumps([str(path) for path in paths])} if len(paths) > 1 else {"path": str(paths[0])}
        return list(sources.CommitLogSource(options).reader(schema("phy_offset")).partitions())

    assert planned(store)
    with pytest.raises(FileStateError, match=r"^two files begin at one offset of the log: .*read each by itself"):
        planned(store, other)
    (tmp_path / "link").symlink_to(store)
    assert len(planned(store, tmp_path / "link")) == len(planned(store))


@pytest.mark.parametrize("start", [0, 3000])
def test_a_stream_does_not_read_two_logs_as_one(store: Path, tmp_path: Path, start: int) -> None:
    """It read what was left of them."""
    other = LogWriter(tmp_path / "other" / "commitlog", mapped_file_size=3000, start=start)
    other.write(*(LogMessage("Other", store_timestamp=number) for number in range(60)))
    paths = json.dumps([str(store), str(tmp_path / "other")])
    reader = sources.CommitLogSource({"paths": paths}).streamReader(schema("phy_offset"))
    with pytest.raises(FileStateError, match="of the log"):
        reader.initialOffset()
    with pytest.raises(FileStateError, match="of the log"):
        reader.partitions({"phy_offset": 0}, {"phy_offset": 6000})
    with pytest.raises(FileStateError, match="of the log"):
        sources.CommitLogSource({"paths": paths}).reader(schema("phy_offset")).partitions()


def test_files_that_expire_while_a_task_lists_them_are_no_hole(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reader = sources.CommitLogSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    before = found(reader, parts)
    paths, take = sorted((store / "commitlog").iterdir())[:2], log_files._take

    def expire(entry: Any, files: Any, skipped: Any) -> None:
        if entry.path == str(paths[1]):
            for path in paths:
                path.unlink(missing_ok=True)
        take(entry, files, skipped)

    monkeypatch.setattr(log_files, "_take", expire)
    assert found(reader, parts[1:]) == [at for at in before if at >= 4096]
    assert [said.count("phy offsets 2048 to 4096 are left out") for said in caplog.messages] == [1]


def test_a_log_of_dledger_beside_an_empty_one_is_refused(store: Path) -> None:
    """A broker makes commitlog/ whether it uses that or not; the read had no rows."""
    to_dledger(store)
    (store / "commitlog").mkdir()
    with pytest.raises(FileStateError, match=r"^a DLedger log, which mqindex does not read"):
        sources.CommitLogSource({"path": str(store)}).reader(schema("phy_offset")).partitions()


def test_the_last_log_file_before_one_made_in_advance_is_missed(store: Path) -> None:
    last, made_in_advance = sorted((store / "commitlog").iterdir())[-2:]
    assert not made_in_advance.read_bytes().strip(bytes(1))
    last.unlink()
    reader = sources.CommitLogSource({"path": str(store)}).reader(schema("phy_offset"))
    with pytest.raises(FileStateError, match=f"phy offsets {int(last.name)} to {int(made_in_advance.name)}"):
        found(reader, reader.partitions())
    for start in (last.name, str(int(last.name) + 1)):  # no message is left to read
        reader = sources.CommitLogSource({"path": str(store), "startOffset": start}).reader(schema("phy_offset"))
        with pytest.raises(FileStateError, match=f"phy offsets {int(start)} to {int(made_in_advance.name)}"):
            found(reader, reader.partitions())


def test_an_index_file_that_is_made_anew_meanwhile_is_an_error(store: Path) -> None:
    reader = sources.IndexSource({"path": str(store)}).reader(schema("phy_offset"))
    parts = reader.partitions()
    with min((store / "index").iterdir()).open("r+b") as file:
        file.seek(36)
        file.write(bytes((0, 0, 0, 2)))
    with pytest.raises(FileStateError, match="fewer entries than when the read was planned"):
        found(reader, parts)


def test_a_queue_that_is_deleted_while_it_is_listed_is_left_out(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mqindex.spark.sources import rocketmq_consumequeue as queue_source

    listed = queue_source.list_queues

    def then_delete(home: str) -> Any:
        names = listed(home)
        shutil.rmtree(store / "consumequeue" / "Topic1", ignore_errors=True)
        return names

    monkeypatch.setattr(queue_source, "list_queues", then_delete)
    reader = sources.ConsumeQueueSource({"path": str(store)}).reader(schema("phy_offset"))
    assert len(found(reader, reader.partitions())) > 0


def test_a_stream_says_what_it_goes_on_without(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = {"path": str(store), "failOnDataLoss": "false"}
    reader = log_stream.LogStreamReader(options, schema("phy_offset"))
    parts = list(reader.partitions({"phy_offset": 0}, {"phy_offset": 6000}))
    (gone,) = oldest(store / "commitlog")
    gone.unlink()
    assert min(found(reader, parts)) >= 2048
    assert "a file that the stream reads is gone" in caplog.messages[0]
    strict = log_stream.LogStreamReader({"path": str(store)}, schema("phy_offset"))
    with pytest.raises(FileStateError, match="a file that the stream reads is gone"):
        found(strict, parts)


def empty(path: Path) -> None:
    for one in path.rglob("*"):
        if one.is_file():
            one.unlink()


PLACES: list[tuple[Any, str, str]] = [
    (sources.CommitLogSource, "phy_offset", "store/commitlog"),
    (sources.IndexSource, "phy_offset", "store/index"),
    (sources.ConsumeQueueSource, "phy_offset", "store/consumequeue"),
    (sources.KafkaLogSource, "offset", "kafka/orders-0"),
    (sources.KafkaIndexSource, "offset", "kafka/orders-0"),
]


@pytest.mark.parametrize("hide", [shutil.rmtree, empty])
@pytest.mark.parametrize(("source", "column", "place"), PLACES)
def test_a_worker_that_does_not_see_the_files_is_named(
    source: Any, column: str, place: str, hide: Callable[[Path], None], store: Path, log_dir: Path
) -> None:
    path = store.parent / place
    reader = source({"path": str(path)}).reader(schema(column))
    parts = reader.partitions()
    hide(path)
    with pytest.raises(
        FileStateError, match=rf"^the worker on {socket.gethostname()} does not see it as the others do: {path}"
    ):
        found(reader, parts)


def test_a_worker_without_one_of_the_log_s_volumes_is_named(tmp_path: Path) -> None:
    """The oldest file there counted as deleted by a broker: its task gave no rows, and succeeded."""
    writer = LogWriter(tmp_path / "a", tmp_path / "b", mapped_file_size=2048)
    writer.write(*(LogMessage("T", body=bytes(100)) for _ in range(60)))
    paths = json.dumps([str(tmp_path / "a"), str(tmp_path / "b")])
    reader = sources.CommitLogSource({"paths": paths}).reader(schema("phy_offset"))
    first, *_ = reader.partitions()
    assert found(reader, [first])
    empty(tmp_path / "a")
    with pytest.raises(FileStateError, match=rf"^the worker on {socket.gethostname()} does not see it as the others"):
        found(reader, [first])
