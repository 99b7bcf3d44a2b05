"""A path that is not of what is asked for is refused by name; it was taken, and had no rows."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import LongType, StructField, StructType

from mqindex import rocketmq
from mqindex.errors import BadMagicError, FileStateError, GeometryError
from mqindex.rocketmq import IndexService
from mqindex.spark import SparkEngine, build, build_partition, offset_for_timestamp, select_partition, select_phy_offset
from mqindex.spark.functions import rocketmq as functions
from mqindex.spark.functions.rocketmq import Lookup
from mqindex.spark.sources import register as sources
from tests.support.kafka_writer import KafkaRecord, PartitionWriter
from tests.support.small_store import make_small_store

STORES = (sources.CommitLogSource, sources.ConsumeQueueSource, sources.IndexSource)
KAFKA = (sources.KafkaLogSource, sources.KafkaIndexSource)


def rows(source: Any, path: Path | str, **options: str) -> int:
    """How many rows a source reads of a path, as Spark would in its processes."""
    column = "phy_offset" if source in STORES else "offset"
    schema = StructType([StructField(column, LongType())])
    return sum(batch.num_rows for batch in read(source({"path": str(path), **options}).reader(schema)))


def stream(path: str, **options: str) -> Any:
    """A stream's reader: Spark tells an error of its first call, and not one of its making."""
    schema = StructType([StructField("phy_offset", LongType())])
    return sources.CommitLogSource({"path": path, **options}).streamReader(schema)


def read(reader: Any) -> Any:
    for part in reader.partitions():
        yield from reader.read(part)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    writer = PartitionWriter(tmp_path / "kafka" / "orders-0")
    writer.append([KafkaRecord(b"v")])
    writer.close()
    return tmp_path / "kafka" / "orders-0"


@pytest.mark.parametrize("source", STORES)
def test_a_directory_without_anything_of_a_store_is_no_empty_store(source: Any, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("localhost")
    (tmp_path / "empty").mkdir()
    for path, got in ((tmp_path, "none of it"), (tmp_path / "empty", "an empty directory")):
        with pytest.raises(BadMagicError, match=rf"^no .*: {path}: expected a store's root .*, got {got}$"):
            rows(source, path)
    with pytest.raises(BadMagicError, match="got a file"):
        rows(sources.CommitLogSource, tmp_path / "hosts")


@pytest.mark.parametrize("source", STORES)
def test_what_is_of_kafka_is_no_empty_store(source: Any, partition: Path) -> None:
    with pytest.raises(BadMagicError, match=r"got a Kafka partition$"):
        rows(source, partition)
    with pytest.raises(BadMagicError, match=r"got a Kafka log dir$"):
        rows(source, partition.parent)


@pytest.mark.parametrize("source", STORES)
def test_another_part_of_a_store_is_not_what_was_asked_for(source: Any, store: Path) -> None:
    own = {"rocketmq_commitlog": "commitlog", "rocketmq_index": "index", "rocketmq_consumequeue": "consumequeue"}
    queue = next((store / "consumequeue").iterdir()) / "0"
    assert rows(source, store) == rows(source, store / own[source.name()]) > 0
    for other in {store / "commitlog", store / "index", store / "consumequeue", queue} - {store / own[source.name()]}:
        with pytest.raises(BadMagicError, match=f"^no .*: {other}: expected"):
            rows(source, other)


def test_a_store_without_the_part_says_which(store: Path) -> None:
    for part in ("index", "consumequeue", "commitlog"):
        (store / part).rename(store.parent / part)
    for source, part in zip(STORES, ("commitlog", "consumequeue", "index"), strict=True):
        with pytest.raises(FileStateError, match=f"^the store has no {part}/: {store}"):
            rows(source, store)


def test_parts_that_are_empty_have_no_rows(tmp_path: Path) -> None:
    for source, part in zip(STORES, ("commitlog", "consumequeue", "index"), strict=True):
        (tmp_path / part).mkdir()
        assert rows(source, tmp_path / part) == rows(source, tmp_path) == 0


@pytest.mark.parametrize("left", ["index", "consumequeue"])
def test_a_log_whose_volume_is_not_mounted_has_not_no_rows(left: str, store: Path) -> None:
    """It read as 0 rows: the store has entries for the messages of its log."""
    for path in (store / "commitlog").iterdir():
        path.unlink()
    shutil.rmtree(store / ("index" if left == "consumequeue" else "consumequeue"))
    for path in (store, store / "commitlog"):
        said = rf"^the commit log is missing: {store}/commitlog: .* entries in {left}/.*; is its volume mounted\?"
        with pytest.raises(FileStateError, match=said):
            rows(sources.CommitLogSource, path)
        with pytest.raises(FileStateError, match=said):
            stream(str(path)).initialOffset()


def test_a_missing_directory_of_a_log_of_several_is_told(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "disk2"
    other.mkdir()
    paths = {"paths": json.dumps([str(store), str(other)])}
    expected = rows(sources.CommitLogSource, store)
    newest = sorted((store / "commitlog").iterdir())[2:]
    for path in newest:
        path.rename(other / path.name)
    assert rows(sources.CommitLogSource, store, **paths) == expected
    for path in other.iterdir():
        path.unlink()
    with pytest.raises(FileStateError, match=rf"^the commit log is missing: {other}: expected its share"):
        rows(sources.CommitLogSource, store, **paths)


def test_queues_in_rocksdb_are_not_read_as_none(tmp_path: Path) -> None:
    home = tmp_path / "consumequeue"
    home.mkdir()
    (home / "CURRENT").write_text("MANIFEST-000004\n")
    (home / "MANIFEST-000004").touch()
    with pytest.raises(FileStateError, match="the consume queues are in RocksDB"):
        rows(sources.ConsumeQueueSource, tmp_path)


@pytest.mark.parametrize("source", KAFKA)
def test_what_is_of_a_store_is_no_empty_log_dir(source: Any, store: Path) -> None:
    topic = store / "consumequeue" / "orders-0"  # called as a partition is
    next((store / "consumequeue").iterdir()).rename(topic)
    for path in (store, store / "commitlog", store / "consumequeue", topic, store / "index"):
        with pytest.raises(BadMagicError, match=f"^neither a partition nor a log dir: {path}: "):
            rows(source, path)


def test_a_file_of_another_kind_has_no_rows_silently(partition: Path) -> None:
    log = next(partition.glob("*.log"))
    for source, other, options in (
        (sources.KafkaLogSource, log.with_suffix(".index"), {}),
        (sources.KafkaIndexSource, log.with_suffix(".timeindex"), {"index": "offset"}),
        (sources.KafkaIndexSource, log, {}),
    ):
        with pytest.raises(BadMagicError, match=f"^not the file that is to be read: {other}: expected a \\."):
            rows(source, other, **options)


def test_look_ups_in_a_store_s_root_answer_from_its_index(store: Path, tmp_path: Path) -> None:
    """Every key had an empty list."""
    keys = pa.array([f"Topic{number % 3}#k{number}" for number in range(44)])
    with IndexService.open(store / "index") as service:
        expected = service.query_offsets(None, keys).to_pylist()
    assert any(expected)
    assert Lookup(str(store))(keys).to_pylist() == expected
    assert Lookup(store.as_uri())(keys).to_pylist() == expected
    with pytest.raises(BadMagicError, match=r"^no index directory: .*/commitlog: expected"):
        Lookup(str(store / "commitlog"))(keys)
    functions._opened.cache_clear()


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}"])
def test_file_urls_are_paths(store: Path, form: str) -> None:
    """They were looked for below the current directory."""
    expected = rows(sources.CommitLogSource, store)
    assert rows(sources.CommitLogSource, form.format(store)) == expected
    spaced = store.rename(store.parent / "my store")
    assert rows(sources.IndexSource, spaced.as_uri()) > 0


@pytest.mark.parametrize("url", ["ftp://host/store", "s3:/bucket/store", "dbfs:/store", "file://host/store"])
def test_other_schemes_are_refused_by_name(url: str) -> None:
    said = "a file:// URL with a host" if url.startswith("file") else f"{url.partition(':')[0]}://"
    for source in (*STORES, *KAFKA):
        with pytest.raises(ValueError, match=f"^path: {said} is not read by this version"):
            rows(source, url)
    with pytest.raises(ValueError, match="is not read by this version"):
        Lookup(url)


@pytest.mark.parametrize(
    ("source", "option", "meant"),
    [
        (sources.CommitLogSource, "startofset", "; did you mean startOffset?"),
        (sources.CommitLogSource, "isolationlevel", ""),
        (sources.ConsumeQueueSource, "queue", "; did you mean queueId?"),
        (sources.IndexSource, "hashslotnumber", "; did you mean hashSlotNum?"),
        (sources.KafkaLogSource, "isolation.level", "; did you mean isolationLevel?"),
        (sources.KafkaIndexSource, "startoffset", ""),
    ],
)
def test_unknown_options_are_refused(source: Any, option: str, meant: str, store: Path) -> None:
    """They were ignored. Spark hands names over in lower case."""
    known = ", ".join((*source.OPTIONS, "columns", "storageOptions"))
    with pytest.raises(ValueError) as caught:
        source({"path": str(store), option: "1"})
    assert str(caught.value) == f"{option}: {source.name()} has no such option: expected {known}{meant}"


def test_options_of_streams_are_refused_in_a_batch_read(store: Path) -> None:
    for name in ("maxBytesPerTrigger", "maxMessagesPerTrigger"):
        with pytest.raises(ValueError, match=f"^{name}: expected none in a batch read, got '1'$"):
            rows(sources.CommitLogSource, store, **{name.lower(): "1"})


PARTS = [
    (sources.ConsumeQueueSource, "store/consumequeue"),
    (sources.IndexSource, "store/index"),
    (sources.IndexSource, "store/index/20231114221320000"),
    (sources.KafkaLogSource, "kafka/orders-0"),
    (sources.KafkaIndexSource, f"kafka/orders-0/{0:020d}.index"),
]


@pytest.mark.parametrize(("source", "part"), PARTS)
def test_no_file_is_read_twice(source: Any, part: str, store: Path, tmp_path: Path) -> None:
    """Its rows came twice."""
    writer = PartitionWriter(tmp_path / "kafka" / "orders-0", index_interval=0)
    for _ in range(2):
        writer.append([KafkaRecord(b"v")])
    writer.close()
    path = tmp_path / part
    (tmp_path / "link").symlink_to(path.parent)
    for again in (path, path.parent, tmp_path / "link" / path.name):
        with pytest.raises(ValueError, match=f"^path: expected each file once, got {again}.* again$"):
            rows(source, "", paths=json.dumps([str(path), str(again)]))
    shutil.copytree(path.parent, tmp_path / "copy")
    both = rows(source, "", paths=json.dumps([str(path), str(tmp_path / "copy" / path.name)]))
    assert both == 2 * rows(source, path) > 0


def test_a_log_directory_given_twice_is_one(store: Path) -> None:
    paths = json.dumps([str(store), str(store / "commitlog")])
    assert rows(sources.CommitLogSource, "", paths=paths) == rows(sources.CommitLogSource, store)


@pytest.mark.parametrize("options", [{"hashSlotNum": "3", "indexNum": "400"}, {"hashSlotNum": "5000000000"}, {}])
def test_a_geometry_is_asked_for_by_the_names_of_the_options(store: Path, options: dict[str, str]) -> None:
    """The hint named options of the shell."""
    if not options:  # nothing shows the geometry
        for path in (store / "index").iterdir():
            path.write_bytes(path.read_bytes()[:40].ljust(path.stat().st_size, b"\xff"))
    with pytest.raises(GeometryError) as caught:
        rows(sources.IndexSource, store, **options)
    assert str(caught.value).endswith(
        "; the options hashSlotNum and indexNum are those of the broker: by default 5000000 and 20000000"
    )
    assert "hash_slot_num" not in str(caught.value)


def test_a_kafka_file_of_another_name_is_told_without_an_argument_of_python(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    path = tmp_path / "orders-0" / "copy.log"
    path.touch()
    with pytest.raises(BadMagicError, match=r"the name has no base offset: .*; name it as a broker does$"):
        rows(sources.KafkaLogSource, path)


def test_no_path_of_several_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path: expected a directory"):
        sources.CommitLogSource({"paths": "[]"}).reader(StructType([]))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("url", ["a\0b", "file:///a%00b"])
def test_a_path_with_a_nul_is_told(url: str) -> None:
    """It was an embedded null byte somewhere."""
    for source in (*STORES, *KAFKA):
        with pytest.raises(ValueError, match=r"^path: expected a path, got .*, which no file can have"):
            rows(source, url)
    with pytest.raises(ValueError, match=r"^index_dir: expected a path, got .*, which no file can have"):
        Lookup(url)


def test_an_empty_path_is_not_the_current_directory() -> None:
    for name, call in (
        ("index_dir", lambda: select_phy_offset("")),
        ("directory", lambda: offset_for_timestamp("")),
        ("out", lambda: build_partition("", hash_slot_num=5, index_num=9)),
    ):
        with pytest.raises(ValueError, match=f"^{name}: expected a path, got an empty one$"):
            call()


def test_a_path_is_of_the_driver_s_current_directory(store: Path) -> None:
    """A worker looked for it in its own one."""
    with contextlib.chdir(store.parent):
        look_up = Lookup("store", "Topic1")
    with contextlib.chdir("/"):
        assert look_up(pa.array(["k1"])).to_pylist() != [[]]


@pytest.mark.parametrize("wrong", [b"/data/store", None, 5])
def test_a_path_of_another_type_is_told_by_the_argument(wrong: Any) -> None:
    for function in (select_phy_offset, select_partition):
        with pytest.raises(TypeError, match=r"^index_dir: expected a str or a path, got "):
            function(wrong)
    with pytest.raises(TypeError, match=r"^directory: expected a str or a path, got "):
        offset_for_timestamp(wrong)
    with pytest.raises(TypeError, match=r"^out: expected a str or a path, got "):
        build_partition(wrong, hash_slot_num=5, index_num=9)


@pytest.mark.parametrize(
    "options", [{"maxBytesPerTrigger": "1m"}, {"endOffset": "5"}, {"failOnDataLoss": "no"}, {"startOffset": "latest"}]
)
def test_what_a_stream_refuses_is_told_by_its_first_call(store: Path, options: dict[str, str]) -> None:
    (name,) = options
    reader = stream(str(store), **options)
    for call in (reader.initialOffset, reader.latestOffset, lambda: reader.partitions({}, {})):
        with pytest.raises(ValueError, match=f"^{name}: expected"):
            call()


@pytest.mark.parametrize("name", ["startOffset", "endOffset"])
@pytest.mark.parametrize("source", [*STORES[:2], sources.KafkaLogSource])
def test_no_offset_is_negative(source: Any, name: str, store: Path, partition: Path) -> None:
    """Spark's Kafka source has -1 for the latest one; here it had no rows."""
    path = store if source in STORES else partition
    with pytest.raises(ValueError, match=f"^{name}: expected 0 or more, got -1"):
        rows(source, path, **{name: "-1"})
    with pytest.raises(ValueError, match=f"^{name}: expected an integer, got ' 1_0 '"):
        rows(source, path, **{name: " 1_0 "})


@pytest.mark.parametrize("source", STORES + KAFKA)
def test_a_schema_without_columns_is_refused(source: Any, store: Path, partition: Path) -> None:
    """It had no rows."""
    path = store if source in STORES else partition
    with pytest.raises(ValueError, match=r"^schema: expected some of .*, got no column"):
        source({"path": str(path)}).reader(StructType([]))


@pytest.mark.parametrize("name", ["consumequeue", "batchconsumequeue", "index"])
def test_a_topic_may_have_the_name_of_a_part(name: str, store: Path) -> None:
    before = rows(sources.ConsumeQueueSource, store / "consumequeue")
    shutil.copytree(store / "consumequeue" / "Topic0", store / "consumequeue" / name)
    here = rows(sources.ConsumeQueueSource, store / "consumequeue", topic="Topic0")
    assert rows(sources.ConsumeQueueSource, store / "consumequeue") == before + here > before


@pytest.mark.parametrize("wrong", [None, "local[2]", 5])
def test_what_is_no_session_and_no_frame_is_told(wrong: Any, store: Path, tmp_path: Path) -> None:
    """It was an `AttributeError`; and a path was of the argument `path`, which these have not."""
    calls: list[Callable[[], object]] = [
        lambda: build.verify(wrong, store),
        lambda: build.repair(wrong, store),
        lambda: build.rebuild(wrong, store, tmp_path / "out"),
        lambda: rocketmq.verify(store, engine=SparkEngine(wrong)),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=r"^spark: expected a SparkSession, got "):
            call()
    with pytest.raises(TypeError, match=r"^df: expected a DataFrame of Spark, got "):
        build.build_index(wrong, tmp_path / "out")
    with pytest.raises(ValueError, match=r"^store: ftp:// is not read by this version"):
        build.verify(wrong, "ftp://host/store")
    with pytest.raises(ValueError, match=r"^out: ftp:// is not read by this version"):
        build.rebuild(wrong, store, "ftp://host/out")
    assert not (tmp_path / "out").exists()
