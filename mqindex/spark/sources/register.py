"""The data sources: files as DataFrames, in Arrow batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqindex.spark.functions.rocketmq import register_functions
from mqindex.spark.session import ensure_session, explained
from mqindex.spark.sources.kafka_index import KafkaIndexSource
from mqindex.spark.sources.kafka_log import KafkaLogSource
from mqindex.spark.sources.rocketmq_commitlog import CommitLogSource
from mqindex.spark.sources.rocketmq_consumequeue import ConsumeQueueSource
from mqindex.spark.sources.rocketmq_index import IndexSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the data sources and SQL functions of this package with a session, and check the session once.

    Data sources, of paths of stores or log dirs, or of what is in them:

    - `rocketmq_commitlog`: messages, in batch and as a stream. Options `topic`, `queueId`, `keys`, `tags`,
      `startOffset`, `checkCrc`, `decompress`, `failOnDataLoss`; in batch `endOffset`, `startTime`, `endTime`, `cache`;
      as a stream `maxBytesPerTrigger`, `maxMessagesPerTrigger` (PySpark 4.2 or newer).
    - `rocketmq_consumequeue`: units of consume queues. Options `topic`, `queueId`, `startOffset`, `endOffset`.
    - `rocketmq_index`: entries of index files, also of one. Options `hashSlotNum`, `indexNum`.
    - `kafka_log`: records of Kafka's segments, or with `rows=batches` their batches. Options `isolationLevel`,
      `partitions`, `startOffset`, `endOffset`, `checkCrc`, `failOnDataLoss`; of records also `startTime`, `endTime`,
      `keys`, `cache`.
    - `kafka_index`: entries of Kafka's index files, of log dirs, partitions or one file. Option `index`: `offset`,
      `time` or `transaction`.

    Each takes `columns`, names with commas between, in place of a schema: PySpark prunes no columns of its sources in
    Python. `topic`, `queueId`, `partitions` and `keys` are one value, or a JSON array of several. Times are ms since
    the epoch, a date as 2026-11-21T08:00+08:00 (without a zone: UTC), now, or -1h (before now); `startTime` is
    inclusive, `endTime` exclusive.

    A path may be a URL; `storageOptions`, a JSON object, are its `storage_options`. Only a log of this machine is a
    stream. Errors are: a path of something else, two paths that lead to one file, a commit log without messages where
    the index or queues have entries for some, and an option that a source does not have; Spark's error has the
    sentence before the traceback. Another part of a store that is empty has no rows.

    Options limit what is read; a filter of a query, which Spark applies to the rows, never does. There is no option
    `filterPushdown`: PySpark keeps a pushed filter for later queries of the same DataFrame, which would lack rows.

    SQL functions: `key_hash(key)`, `hash_slot(key, n)` and `select_phy_offset(index_dir, key)`, where a key is the
    whole `topic#key`; `offset_for_timestamp(directory, timestamp)` of a Kafka partition.

    Examples
    --------
    >>> register(spark)
    >>> log = spark.read.format("rocketmq_commitlog")
    >>> log.schema("topic string, phy_offset bigint").load(store).count()
    610
    """
    ensure_session(spark)
    for source in (CommitLogSource, ConsumeQueueSource, IndexSource, KafkaLogSource, KafkaIndexSource):
        spark.dataSource.register(source)
    register_functions(spark)
    with explained(spark):  # Spark plans data sources in another process than those that run tasks
        spark.read.format(IndexSource.name()).load("/").schema  # noqa: B018
