"""Spark: the rebuild on `local[2]`, the column function, and a plain-Python job over the same log."""

from __future__ import annotations

import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import memory
from bench.contenders.commit_log import add, rebuild_once
from bench.contenders.keys import TOPIC, arrow_keys
from bench.contenders.result import Result, checksum, repeat
from mqindex.rocketmq import IndexFile
from mqindex.spark import SparkEngine, select_phy_offset
from mqindex.spark.session import get_or_create

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["column", "plain", "rebuild"]

MESSAGE_MAGIC = 0xDAA320A7
PARTITIONS = 8


def session(scratch: str, memory_gib: int = 2, master: str = "local[2]") -> SparkSession:
    """The session that the shell makes, on two cores, with its scratch in the work directory."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--driver-memory {memory_gib}g --conf spark.local.dir={scratch} "
        f"--conf spark.sql.warehouse.dir={scratch}/warehouse pyspark-shell"
    )
    spark: SparkSession = get_or_create(master)
    return spark


def rebuild(*, store: str, small: str, slots: int, entries: int, warm: int, scratch: str, **spec: Any) -> Result:
    """`rebuild` with a `SparkEngine`; the session is warmed on a small log first."""
    result = Result()
    engine = SparkEngine(session(scratch))
    checked, out = "", os.path.join(scratch, "out")
    for keep in repeat(**spec):
        memory.warm(warm)
        report, seconds = rebuild_once(store if keep else small, out, slots, entries, engine)
        if keep:
            add(result, report, seconds)
            checked = checked or checksum(report.out_files)
        shutil.rmtree(out)
    result.answer(messages=report.messages, files=checked)
    return result


def column(*, keys: str, index: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """select_phy_offset on a cached column, an identity UDF on it, and the column alone: A B C in turn."""
    from pyspark.sql import functions as f

    spark = session(scratch, 4)
    wanted = arrow_keys(keys)
    frame = _cached(spark, wanted, scratch)
    directory = os.path.join(scratch, "index")
    os.mkdir(directory)
    os.link(index, os.path.join(directory, os.path.basename(index)))
    select = select_phy_offset(directory, topic=TOPIC, hash_slot_num=slots, index_num=entries)
    columns: dict[str, Callable[[], Column]] = {
        "floor": lambda: f.col("key"),
        "identity": lambda: _identity()("key"),
        "select": lambda: select("key"),
    }
    result = Result()
    for keep in repeat(**spec):
        for name, column_of in columns.items():
            with result.timed(name, len(wanted), keep=keep):
                frame.select(column_of().alias("x")).write.format("noop").mode("overwrite").save()
    found = frame.select(select("key").alias("x"))
    sums = found.select(f.size("x").alias("n"), f.aggregate("x", f.lit(0).cast("long"), lambda a, b: a + b).alias("s"))
    row = sums.agg(f.sum("n"), f.sum("s")).collect()[0]
    with IndexFile.open(index, hash_slot_num=slots, index_num=entries) as file:
        hits = file.select_phy_offsets(wanted, topic=TOPIC)
    if [row[0], row[1]] != [len(hits.values), int(hits.values.sum(dtype=np.int64))]:
        raise RuntimeError(f"the column function found {row}, the file itself {len(hits.values)} hits")
    result.answer(hits=row[0], sum=row[1])
    return result


def _cached(spark: SparkSession, keys: pa.StringArray, scratch: str) -> DataFrame:
    """A cached column of even partitions: reading it costs next to nothing, so that the UDFs are what is timed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = os.path.join(scratch, "keys")
    os.mkdir(folder)
    size = -(-len(keys) // PARTITIONS)
    for part in range(PARTITIONS):
        table = pa.table({"key": keys.slice(part * size, size)})
        pq.write_table(table, os.path.join(folder, f"{part}.parquet"), use_dictionary=False, compression="none")
    frame = spark.read.parquet(folder).repartition(PARTITIONS).cache()
    if frame.count() != len(keys):
        raise RuntimeError("keys were lost on the way to Spark")
    return frame


def _identity() -> Any:
    import pyarrow as pa
    from pyspark.sql import functions

    def identity(keys: Any) -> Any:
        return keys

    # Spark takes the kind of UDF from the hints, which must be types here, not their names.
    identity.__annotations__ = {"keys": pa.Array, "return": pa.Array}
    make: Any = functions
    return make.arrow_udf(identity, "string")


def plain(*, files: list[str], file_size: int, scratch: str) -> Result:
    """What one would write without mqindex: struct in a Python loop over each file, rows to Parquet."""
    result = Result()
    spark = session(scratch)

    spark.sparkContext.parallelize(range(4)).map(str).count()  # the session's Python workers are up
    out = os.path.join(scratch, "out")
    start = time.perf_counter()
    pairs = [(number * file_size, path) for number, path in enumerate(files)]
    rows = spark.sparkContext.parallelize(pairs, len(pairs)).flatMap(lambda pair: parse(*pair))
    spark.createDataFrame(rows, "key string, phy_offset long, store_timestamp long").write.parquet(out)
    seconds = time.perf_counter() - start
    entries = spark.read.parquet(out).count()
    result.add("rebuild", seconds, entries // 2)
    shutil.rmtree(out)
    result.answer(messages=entries // 2)
    return result


def parse(first: int, path: str) -> Iterator[tuple[str, int, int]]:
    """(topic#key, phy_offset, store_timestamp) of every UNIQ_KEY and key of one log file with IPv4 hosts."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at + 88 < len(data):
        size, magic = struct.unpack_from(">iI", data, at)
        if magic != MESSAGE_MAGIC:
            return
        (stored,) = struct.unpack_from(">q", data, at + 56)
        (body,) = struct.unpack_from(">i", data, at + 84)
        place = at + 88 + body
        topic = data[place + 1 : place + 1 + data[place]].decode()
        place += 1 + data[place]
        (length,) = struct.unpack_from(">h", data, place)
        text = data[place + 2 : place + 2 + length].decode()
        properties = dict(pair.split("\x01", 1) for pair in text.split("\x02") if pair)
        for key in [properties.get("UNIQ_KEY", ""), *properties.get("KEYS", "").split(" ")]:
            if key:
                yield f"{topic}#{key}", first + at, stored
        at += size
