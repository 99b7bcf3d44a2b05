"""mqindex on PySpark 4.0 and newer, classic sessions and Spark Connect: an engine, data sources, column functions.

`rebuild`, `repair` and `verify` are those of RocketMQ's stores; for Kafka's partitions call
`mqindex.kafka.rebuild(..., engine=SparkEngine(spark))`. A path is a URL, as `s3://bucket/store` or `hdfs://host/store`,
with `storage_options`; or it must be visible to all workers, and means what they see there.

>>> import os
>>> from pyspark.sql import SparkSession
>>> import mqindex.spark
>>> spark = SparkSession.builder.master("local[2]").getOrCreate()
>>> store, out = os.path.abspath("store"), os.path.abspath("on-spark")
>>> mqindex.spark.rebuild(spark, store, out).entries
1466
>>> find = mqindex.spark.select_phy_offset(f"{out}/index", topic="LostTopic")
>>> keys = spark.createDataFrame([("ORD59361344",), ("no-such-key",)], "key string")
>>> [row.phy_offsets for row in keys.select(find("key").alias("phy_offsets")).collect()]
[[666], []]

`register` adds the data sources `rocketmq_commitlog`, `rocketmq_consumequeue`, `rocketmq_index`, `kafka_log` and
`kafka_index`, and the SQL functions `key_hash(key)`, `hash_slot(key, n)`, `select_phy_offset(index_dir, key)` and
`offset_for_timestamp(directory, timestamp)`. A schema is the projection: columns that it does not name are not decoded.

>>> mqindex.spark.register(spark)
>>> log = spark.read.format("rocketmq_commitlog").load(f"{store}/commitlog")
>>> log.where("keys = 'ORD59361344'").select("topic", "phy_offset", "size").collect()
[Row(topic='LostTopic', phy_offset=666, size=250)]
>>> units = spark.read.format("rocketmq_consumequeue").option("topic", "LostTopic").load(store)
>>> units.groupBy("queue_id").count().orderBy("queue_id").first()
Row(queue_id=0, count=160)

A file that is missing inside the log is an error; with `failOnDataLoss=false` what is left is read.

The commit log is also a stream: it follows the log over its files, and after a restart continues at its checkpoint.
`maxBytesPerTrigger` and `maxMessagesPerTrigger` (PySpark 4.2 and newer) limit a micro-batch. Where the log no longer
has what the checkpoint requires, the query fails, or with `failOnDataLoss=false` continues with what is left.

>>> stream = spark.readStream.format("rocketmq_commitlog").load(store)
>>> writer = stream.writeStream.format("parquet").option("checkpointLocation", "checkpoint")
>>> writer.trigger(availableNow=True).start("messages").awaitTermination()
>>> spark.read.parquet("messages").count()
610

Kafka's sources take log dirs, partitions and single files. `kafka_log` has records, or with `rows=batches` the headers
of batches; `kafka_index` has the option `index`: `offset`, `time` or `transaction`.

>>> from mqindex import kafka
>>> report = kafka.repair("orders-0", index_interval_bytes=1000, engine=mqindex.spark.SparkEngine(spark))
>>> report.ok, report.files
(True, 3)
>>> orders = os.path.abspath("orders-0")
>>> records = spark.read.format("kafka_log").schema("offset bigint, timestamp bigint").load(orders)
>>> records.where("offset = 628").collect()
[Row(offset=628, timestamp=1700000015023)]
>>> batches = spark.read.format("kafka_log").option("rows", "batches").load(orders)
>>> batches.groupBy("segment").count().orderBy("segment").first()
Row(segment=0, count=77)
>>> spark.read.format("kafka_index").option("index", "time").load(orders).count()
91
>>> find = mqindex.spark.offset_for_timestamp(orders)
>>> times = spark.createDataFrame([(1_700_000_015_000,), (9_999_999_999_999,)], "ms bigint")
>>> [row.offset for row in times.select(find("ms").alias("offset")).collect()]
[628, None]
>>> spark.stop()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex._room import open_room

if TYPE_CHECKING:
    from mqindex.spark.build import build_index, rebuild, repair, verify
    from mqindex.spark.engine import SparkEngine
    from mqindex.spark.functions.kafka import offset_for_timestamp
    from mqindex.spark.functions.partitions import build_partition, select_partition
    from mqindex.spark.functions.rocketmq import hash_slot, key_hash, select_phy_offset
    from mqindex.spark.sources.register import register

_HOME = {
    "SparkEngine": "mqindex.spark.engine",
    "build_index": "mqindex.spark.build",
    "build_partition": "mqindex.spark.functions.partitions",
    "hash_slot": "mqindex.spark.functions.rocketmq",
    "key_hash": "mqindex.spark.functions.rocketmq",
    "offset_for_timestamp": "mqindex.spark.functions.kafka",
    "rebuild": "mqindex.spark.build",
    "register": "mqindex.spark.sources.register",
    "repair": "mqindex.spark.build",
    "select_partition": "mqindex.spark.functions.partitions",
    "select_phy_offset": "mqindex.spark.functions.rocketmq",
    "verify": "mqindex.spark.build",
}

__all__ = [
    "SparkEngine",
    "build_index",
    "build_partition",
    "hash_slot",
    "key_hash",
    "offset_for_timestamp",
    "rebuild",
    "register",
    "repair",
    "select_partition",
    "select_phy_offset",
    "verify",
]


def _require_version() -> None:
    """Raise for older versions, which lack some calls and fail with errors that do not show this."""
    try:
        from pyspark import __version__ as version
    except ImportError:
        return  # the code that needs it raises
    if int(version.partition(".")[0]) < 4:
        raise ImportError(f"mqindex.spark needs PySpark 4.0 or newer, got {version}: pip install 'mqindex[spark]'")


_require_version()
open_room(__name__, _HOME, extra="spark")
