"""Spark's workers share no file: they read from a server and write to it, byte for byte what is rebuilt here."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from mqindex import kafka, rocketmq
from mqindex.files.places.place import Place, place_of
from tests.golden.test_kafka_elsewhere import written_now
from tests.golden.test_kafka_rebuild import options
from tests.peer.places.conftest import of_s3
from tests.peer.places.servers import CREDENTIAL, Server
from tests.support.big_log import write_big_log
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.nightly import some
from tests.support.spark_cluster import IsolatedCluster

RETRIES = {
    "spark.task.maxFailures": "4",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.2",
}
SPLITS = 4096  # bytes: many tasks
LONG = 1 << 30  # bytes of a log
GEOMETRY: Any = {"hash_slot_num": 500_000, "index_num": 500_000}  # so that it gives several index files


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


class Disturbed:
    """An engine, for stages of which a task goes wrong the first time; `trace` gets a file of each later attempt."""

    def __init__(self, engine: Any, wrong: dict[str, Callable[[], None]], trace: Place) -> None:
        self.engine, self.wrong, self.trace, self.progress = engine, wrong, trace, engine.progress

    def looks(self) -> int:
        return int(self.engine.looks())

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **options: Any) -> list[Any]:
        how = self.wrong.get(name)
        chosen = stage if how is None else partial(disturbed, stage, how, self.trace / how.__name__)
        found: list[Any] = self.engine.map(chosen, items, name=name, **options)
        return found

    def map_partitions(self, frame: Any, work: Callable[[int, Any], Any], *, name: str) -> Any:
        how = self.wrong.get(name)
        chosen = work if how is None else partial(disturbed_partition, work, how, self.trace / how.__name__)
        return self.engine.map_partitions(frame, chosen, name=name)


def disturbed(stage: Callable[[Any], Any], how: Callable[[], None], trace: Place, item: Any) -> Any:
    """A stage whose first attempt at the first task is disturbed when its work is done."""
    done = stage(item)
    disturb(how, trace)
    return done


def disturbed_partition(
    work: Callable[[int, Any], Any], how: Callable[[], None], trace: Place, number: int, batches: Any
) -> Any:
    done = work(number, batches)
    disturb(how, trace)
    return done


def disturb(how: Callable[[], None], trace: Place, partition: int = 0) -> None:
    """In the first attempt at a partition, here; later ones, also in a second run of its stage, leave a trace."""
    from pyspark import TaskContext

    context, home = TaskContext.get(), trace.parent
    assert context is not None and home is not None
    if context.partitionId() != partition:
        return
    begun = home + f"-begun-{trace.name}"
    try:
        begun.stat_now()
    except FileNotFoundError:
        begun.storage.put(begun.path, b"")
        how()
    else:
        trace.storage.put(trace.path, b"")


def kill_executor() -> None:
    with open(f"/proc/{os.getppid()}/stat", encoding="ascii") as file:  # of the process that forks Python workers
        os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


def straggle() -> None:
    time.sleep(10)


def rebuilt(spark: Any, url: str | list[str], out: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    return mqindex.spark.rebuild(spark, url, out, storage_options=options, split_size=SPLITS)


def rebuilt_disturbed(
    spark: Any, url: str, out: str, options: dict[str, Any], split_size: int = SPLITS, **more: Any
) -> Any:
    import mqindex.spark

    trace = place_of(f"{url}-trace", options)
    assert isinstance(trace, Place)
    wrong = {"read the log": kill_executor, "build the index": straggle}
    engine = Disturbed(mqindex.spark.SparkEngine(spark), wrong, trace)
    return rocketmq.rebuild(url, out, storage_options=options, split_size=split_size, engine=engine, **more)


def rebuilt_long(spark: Any, url: str, out: str, options: dict[str, Any]) -> Any:
    return rebuilt_disturbed(spark, url, out, options, 64 << 20, **GEOMETRY)


def optimized(spark: Any, url: str, out: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    return rocketmq.optimize(url, out, storage_options=options, engine=mqindex.spark.SparkEngine(spark))


def verified(spark: Any, url: str, options: dict[str, Any]) -> Any:
    import mqindex.spark

    return mqindex.spark.verify(spark, url, storage_options=options)


def require_same(server: Server, out: str, here: Path, report: Any) -> None:
    found = server.files(out)
    found.pop("mqindex.json", None)
    assert found == files_below(here)
    assert sorted(report.out_files) == sorted(f"{server.url}/{out}/{name}" for name in found)
    above = place_of(f"{server.url}/{out}".rpartition("/")[0], server.options)
    assert not [name for name in above.entries() if "mqindex-" in name]
    assert CREDENTIAL not in repr(report)


@pytest.mark.parametrize("name", some(["basic-493", "ipv6-batch-ext-493"], lambda name: name == "basic-493"))
def test_a_store_is_rebuilt_beside_itself(
    server: Server, isolated_cluster: IsolatedCluster, name: str, tmp_path: Path
) -> None:
    root = case(name).unpack(tmp_path)
    here = rocketmq.rebuild(root, tmp_path / "here")
    url, out = server.upload(root, f"plain/{name}"), f"plain/results/{name}"
    there = isolated_cluster.run(rebuilt, url, f"{server.url}/{out}", server.options)
    assert (there.messages, there.entries, there.units) == (here.messages, here.entries, here.units)
    require_same(server, out, tmp_path / "here", there)
    assert isolated_cluster.run(verified, url, server.options).ok


@of_s3
def test_several_stores_are_rebuilt_at_once(server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path) -> None:
    names = ("basic-493", "ipv6-batch-ext-493")
    (tmp_path / "here").mkdir()
    urls = []
    for name in names:
        root = case(name).unpack(tmp_path)
        rocketmq.rebuild(root, tmp_path / "here" / name)
        urls.append(server.upload(root, f"fleet/{name}/store"))
    gone = f"{server.url}/fleet/none/store"
    report = isolated_cluster.run(rebuilt, [*urls, gone], f"{server.url}/fleet/results", server.options)
    found = {name: data for name, data in server.files("fleet/results").items() if not name.endswith("mqindex.json")}
    assert found == files_below(tmp_path / "here")
    assert {name: one.ok for name, one in report.stores.items()} == {**dict.fromkeys(names, True), "none": False}
    assert CREDENTIAL not in repr(report)


def looked_up(spark: Any, url: str, options: dict[str, Any], keys: list[str], given: dict[str, int]) -> list[list[int]]:
    import mqindex.spark

    find = mqindex.spark.select_phy_offset(url, topic="TopicTest", storage_options=options, **given)
    frame = spark.createDataFrame([(number, key) for number, key in enumerate(keys)], "number int, key string")
    rows = frame.repartition(4).select("number", find("key").alias("found")).collect()
    return [row.found for row in sorted(rows, key=lambda row: row.number)]


def kept_here() -> int:
    """How many bytes of files elsewhere this machine keeps."""
    home = os.environ["SPARK_LOCAL_DIRS"].split(",")[0]
    while os.path.basename(home).split("-")[0] in ("blockmgr", "executor", "spark"):
        home = os.path.dirname(home)
    return sum(path.stat().st_blocks * 512 for path in Path(home).glob("mqindex-pages-*/*"))


@of_s3
def test_each_host_keeps_the_pages_of_look_ups(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    root = case("basic-493").unpack(tmp_path)
    keys = [f"k{n}" for n in range(100)] + [str(one["keys"]) for one in case("basic-493").truth["messages"][:100]]
    with rocketmq.IndexService.open(root / "index") as service:
        expected = service.query_offsets("TopicTest", keys).to_pylist()
        given = {"hash_slot_num": service.hash_slot_num, "index_num": service.index_num}
    url = server.upload(root, "looked-up/basic")
    for _ in range(2):
        assert isolated_cluster.run(looked_up, f"{url}/index", server.options, keys, given) == expected
    kept = isolated_cluster.on_each(kept_here)
    assert any(kept.values()), kept
    server.upload(root, "looked-up/basic")  # of a new version, as HDFS counts them
    assert isolated_cluster.run(looked_up, f"{url}/index", server.options, keys, given) == expected


@of_s3
def test_an_index_is_optimized_there(server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    here = rocketmq.optimize(root, tmp_path / "here")
    url, out = server.upload(root, "optimize/basic"), "optimize/results/basic"
    there = isolated_cluster.run(optimized, url, f"{server.url}/{out}", server.options)
    assert (there.files, there.entries) == (here.files, here.entries)
    require_same(server, out, tmp_path / "here", there)


@of_s3
def test_attempts_that_do_not_count_leave_nothing(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    """An executor is killed when it has written its part, and a slow attempt is overtaken by a second one."""
    root, out = case("basic-493").unpack(tmp_path), "disturbed/results/basic"
    rocketmq.rebuild(root, tmp_path / "here")
    url = server.upload(root, "disturbed/basic")
    with isolated_cluster.configured(RETRIES):
        there = isolated_cluster.run(rebuilt_disturbed, url, f"{server.url}/{out}", server.options)
    require_same(server, out, tmp_path / "here", there)
    assert set(server.files("disturbed/basic-trace")) == {"kill_executor", "straggle"}


@pytest.mark.nightly
def test_attempts_that_do_not_count_leave_nothing_of_a_long_log(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    root, out = tmp_path / "long", "long/results/long"
    write_big_log(root, total_bytes=LONG, queues=8, mapped_file_size=256 << 20)
    rocketmq.rebuild(root, tmp_path / "here", **GEOMETRY)
    url = server.upload(root, "long/long")
    with isolated_cluster.configured(RETRIES):
        there = isolated_cluster.run(rebuilt_long, url, f"{server.url}/{out}", server.options)
    require_same(server, out, tmp_path / "here", there)
    assert set(server.files("long/long-trace")) == {"kill_executor", "straggle"}


def entries_of(spark: Any, parts: int) -> Any:
    """Some entries, in no order, in several partitions."""
    rows = [(f"T#k{n}", n * 7919 % 1000, 1_700_000_000_000 + n, n) for n in range(500)]
    return spark.createDataFrame(rows, "key string, phy_offset bigint, store_timestamp bigint, seq int").repartition(
        parts, "key"
    )


def index_built(spark: Any, out: str, options: dict[str, Any] | None) -> Any:
    import mqindex.spark

    frame = entries_of(spark, 3)
    return mqindex.spark.build_index(frame, out, hash_slot_num=50, index_num=201, storage_options=options)


def parts_built(spark: Any, out: str, options: dict[str, Any] | None, more: int = 0) -> list[tuple[str, int]]:
    import mqindex.spark

    build = mqindex.spark.build_partition(out, hash_slot_num=50, index_num=101, storage_options=options)
    frame = (
        entries_of(spark, 3)
        .sortWithinPartitions("seq")
        .selectExpr("key", f"phy_offset + {more} AS phy_offset", "store_timestamp")
    )
    return [tuple(row) for row in frame.mapInArrow(build, "path string, entries bigint").collect()]


def index_disturbed(spark: Any, out: str, options: dict[str, Any]) -> Any:
    """Its driver is a process of its own: what is changed there ends with it."""
    from mqindex.spark import build

    trace, engine = place_of(f"{out}-trace", options), build.SparkEngine(spark)
    assert isinstance(trace, Place)
    wrong = {"sort the entries": kill_executor, "build the index": straggle}
    build.SparkEngine = lambda _: Disturbed(engine, wrong, trace)  # type: ignore[assignment,misc]
    return index_built(spark, out, options)


def parts_disturbed(spark: Any, out: str, options: dict[str, Any]) -> list[tuple[str, int]]:
    """Of one partition the executor is killed when it is built, of another one a second attempt is faster."""
    import mqindex.spark

    build = mqindex.spark.build_partition(out, hash_slot_num=50, index_num=101, storage_options=options)
    trace = place_of(f"{out}-trace", options)
    assert isinstance(trace, Place)

    def wrong(batches: Any) -> Any:
        built = list(build(batches))
        for partition, how in enumerate((kill_executor, straggle)):
            disturb(how, trace / how.__name__, partition)
        yield from built

    frame = entries_of(spark, 3).sortWithinPartitions("seq").select("key", "phy_offset", "store_timestamp")
    return [tuple(row) for row in frame.mapInArrow(wrong, "path string, entries bigint").collect()]


def parts_refused(spark: Any, out: str, options: dict[str, Any]) -> str:
    with pytest.raises(Exception, match="OutputExistsError") as refused:
        parts_built(spark, out, options, 1)
    return str(refused.value)


@of_s3
def test_a_data_frame_becomes_an_index_there(server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path) -> None:
    hashes = {n: rocketmq.key_hash(f"T#k{n}") for n in range(500)}
    order = sorted(range(500), key=lambda n: (n * 7919 % 1000, n))
    there = isolated_cluster.run(index_built, f"{server.url}/frames/index", server.options)
    require_index(server, "frames/index", there)
    with rocketmq.IndexService.open(
        f"{server.url}/frames/index/index", hash_slot_num=50, index_num=201, storage_options=server.options
    ) as service:
        found = [entry for file in service.files for entry in file.entries()["key_hash"].tolist()]
    assert found == [hashes[n] for n in order]


def require_index(server: Server, out: str, report: Any) -> None:
    found = server.files(out)
    found.pop("mqindex.json", None)
    assert sorted(report.out_files) == sorted(f"{server.url}/{out}/{name}" for name in found)
    assert (report.files, report.entries) == (3, 500)


@of_s3
def test_partitions_become_indexes_there(server: Server, isolated_cluster: IsolatedCluster) -> None:
    out = f"{server.url}/frames/parts"
    built = isolated_cluster.run(parts_built, out, server.options)
    files = server.files("frames/parts")
    assert sum(entries for _, entries in built) == 500
    assert {path for path, _ in built} == {f"{out}/{name}" for name in files if not name.endswith(".json")}
    assert {path.removeprefix(f"{out}/").partition("/")[0] for path, _ in built} == {f"part-{n}" for n in range(3)}
    assert isolated_cluster.run(parts_built, out, server.options) == built  # as a second attempt
    assert server.files("frames/parts") == files
    said = isolated_cluster.run(parts_refused, out, server.options)
    assert "the output exists and holds something else" in said
    assert CREDENTIAL not in said
    assert server.files("frames/parts") == files


@pytest.mark.nightly
def test_of_an_index_of_a_data_frame_only_attempts_that_count_are_there(
    server: Server, isolated_cluster: IsolatedCluster
) -> None:
    isolated_cluster.run(index_built, f"{server.url}/calm/index", server.options)
    with isolated_cluster.configured(RETRIES):
        there = isolated_cluster.run(index_disturbed, f"{server.url}/disturbed-frames/index", server.options)
    require_index(server, "disturbed-frames/index", there)
    assert server.files("disturbed-frames/index") == server.files("calm/index")
    assert set(server.files("disturbed-frames/index-trace")) == {"kill_executor", "straggle"}


@pytest.mark.nightly
def test_of_indexes_of_partitions_only_whole_ones_are_there(server: Server, isolated_cluster: IsolatedCluster) -> None:
    calm = isolated_cluster.run(parts_built, f"{server.url}/calm/parts", server.options)
    with isolated_cluster.configured(RETRIES):
        built = isolated_cluster.run(parts_disturbed, f"{server.url}/disturbed-frames/parts", server.options)
    assert [(path.rpartition("/parts/")[2], count) for path, count in built] == [
        (path.rpartition("/parts/")[2], count) for path, count in calm
    ]
    assert server.files("disturbed-frames/parts") == server.files("calm/parts")
    assert set(server.files("disturbed-frames/parts-trace")) == {"kill_executor", "straggle"}


def rows_there(spark: Any, url: str, options: dict[str, Any], geometry: tuple[int, int]) -> tuple[list[int], str]:
    """Of each source a checksum of all rows, and how Spark shows the reads."""
    from pyspark.sql import functions as F

    import mqindex.spark

    mqindex.spark.register(spark)
    sums, shown = [], ""
    for source, column in (
        ("rocketmq_commitlog", "phy_offset"), ("rocketmq_consumequeue", "phy_offset"), ("rocketmq_index", "key_hash"),
    ):  # fmt: skip
        reader = spark.read.format(source).option("storageOptions", json.dumps(options))
        if source == "rocketmq_index":
            reader = reader.option("hashSlotNum", geometry[0]).option("indexNum", geometry[1])
        frame = reader.load(url).selectExpr(f"sum({column}) AS total")
        plan = frame._jdf.queryExecution()
        shown += (
            plan.toString()
            + plan.logical().toString()
            + plan.explainString(spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted"))
        )
        sums.append(frame.first().total)
    find = mqindex.spark.select_phy_offset(
        url, topic="BBTopic", hash_slot_num=geometry[0], index_num=geometry[1], storage_options=options
    )
    found = spark.range(0, 20, 1, 2).select(find(F.concat(F.lit("user-"), "id")).alias("found"))
    shown += found._jdf.queryExecution().toString()
    sums.append(sum(sum(row.found) for row in found.collect()))
    return sums, shown


@of_s3
def test_the_sources_read_there(server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path) -> None:
    root, geometry = case("basic-493").unpack(tmp_path), case("basic-493").geometry
    url = server.upload(root, "sources/basic")
    sums, shown = isolated_cluster.run(rows_there, url, server.options, geometry)
    with rocketmq.CommitLog.open(root / "commitlog") as log:
        offsets = [int(at) for batch in log.scan() for at in batch["phy_offset"]]
    with rocketmq.IndexService.open(root / "index", hash_slot_num=geometry[0], index_num=geometry[1]) as service:
        hashes = [int(one) for file in service.files for one in file.entries()["key_hash"]]
        hits = service.query_offsets("BBTopic", [f"user-{n}" for n in range(20)])
    units = 0
    for directory in (root / "consumequeue").glob("*/*"):
        with rocketmq.ConsumeQueue.open(directory) as queue:
            units += int(queue.units(queue.min_offset_in_queue, queue.max_offset_in_queue)["phy_offset"].sum())
    assert sums == [sum(offsets), units, sum(hashes), int(hits.values.sum())]
    assert "rocketmq_commitlog" in shown
    assert CREDENTIAL not in shown


def kafka_there(spark: Any, url: str, options: dict[str, Any], times: list[int]) -> tuple[list[Any], str]:
    """Of each source of Kafka's files a sum over all rows, the offsets of times, and how Spark shows it all."""
    import mqindex.spark

    mqindex.spark.register(spark)
    found: list[Any] = []
    shown = ""
    for source, option, what, column in (
        ("kafka_log", "rows", "records", "offset"), ("kafka_log", "rows", "batches", "position"),
        ("kafka_index", "index", "offset", "position"), ("kafka_index", "index", "time", "timestamp"),
        ("kafka_index", "index", "transaction", "last_offset"),
    ):  # fmt: skip
        reader = spark.read.format(source).option(option, what).option("storageOptions", json.dumps(options))
        frame = reader.load(url).selectExpr(f"sum({column}) AS total")
        shown += frame._jdf.queryExecution().toString() + frame._jdf.queryExecution().logical().toString()
        found.append(frame.first().total)
    find = mqindex.spark.offset_for_timestamp(url, storage_options=options)
    asked = spark.createDataFrame([(ms,) for ms in times], "ms bigint").repartition(2)
    answered = asked.select("ms", find("ms").alias("offset"))
    shown += answered._jdf.queryExecution().toString()
    found.append(sorted((row.ms, row.offset) for row in answered.collect()))
    return found, shown


def kafka_rebuilt(spark: Any, url: str, out: str, options: dict[str, Any], given: dict[str, Any]) -> Any:
    import mqindex.spark

    return kafka.rebuild(url, out, storage_options=options, engine=mqindex.spark.SparkEngine(spark), **given)


@of_s3
def test_partitions_of_kafka_are_read_and_rebuilt_there(
    server: Server, isolated_cluster: IsolatedCluster, tmp_path: Path
) -> None:
    chosen = PartitionCase("410-txn")
    directory = written_now(chosen.closed(tmp_path))
    url = f"{server.upload(directory.parent, 'kafka')}/{directory.name}"
    segments = chosen.truth["segments"]
    with kafka.PartitionLog.open(directory) as log:
        records = [rows for one in log.segments for rows in one.records(columns=["offset"])]
        positions = [at for one in log.segments for at in one.batches()["position"].tolist()]
        times = [entry[0] for said in segments for entry in said["timeIndex"]][::5]
        expected = sorted((ms, at.offset) for ms in times if (at := log.offset_for_timestamp(ms)))
    sums = [
        sum(int(rows["offset"].sum()) for rows in records), sum(positions),
        *(sum(entry[n] for said in segments for entry in said[kind])
          for kind, n in (("offsetIndex", 1), ("timeIndex", 0), ("txnIndex", 3))),
    ]  # fmt: skip
    found, shown = isolated_cluster.run(kafka_there, url, server.options, times)
    assert found == [*sums, expected]
    assert "kafka_log" in shown
    assert CREDENTIAL not in shown
    given = {**options(chosen)}
    del given["engine"]
    kafka.rebuild(directory, tmp_path / "here", **given)
    there = isolated_cluster.run(kafka_rebuilt, url, f"{server.url}/results/kafka", server.options, given)
    require_same(server, "results/kafka", tmp_path / "here", there)
