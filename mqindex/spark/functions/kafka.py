"""The column function over Kafka's partitions."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mqindex.files.paths import absolute
from mqindex.spark.functions.column_functions import by_value, column_function, directory_state, register_function
from mqindex.spark.options import given

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from mqindex.kafka import PartitionLog

OPEN_PARTITIONS = 8


def offset_for_timestamp(
    directory: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
) -> Callable[[Column | str], Column]:
    """A column function: the offset of the first record at each time or later, as the broker's offsets-for-times.

    The result is `bigint`; null where there is no such record, and for a null.

    Parameters
    ----------
    directory : path of a partition's directory that every worker sees, or a URL; the column holds ms since the epoch
        (bigint)
    storage_options : of a URL, as of `mqindex.rocketmq.rebuild`

    Raises
    ------
    FormatError, ImportError : when it runs, as of `mqindex.kafka.PartitionLog.offset_for_timestamp`

    Notes
    -----
    Files that are added or replaced are seen by the next batch. Source: Kafka 4.1.0,
    `UnifiedLog.fetchOffsetByTimestamp`.

    Examples
    --------
    >>> offsets = offset_for_timestamp(orders)
    >>> times = spark.createDataFrame([(1_700_000_015_000,), (9_999_999_999_999,)], "ms bigint")
    >>> [row.offset for row in times.select(offsets("ms").alias("offset")).collect()]
    [628, None]
    """
    place = absolute(given(directory, "directory", storage_options))

    def find(timestamps: pa.Array) -> pa.Array:
        return _offsets(place, timestamps)

    chosen: Callable[[Column | str], Column] = column_function("offset_for_timestamp", find, _long_type())
    return chosen


def register_kafka_functions(spark: SparkSession) -> None:
    """The SQL function `offset_for_timestamp(directory, timestamp)`."""

    def find(directory: pa.Array, timestamp: pa.Array) -> pa.Array:
        return by_value(directory, timestamp, lambda where, some: _offsets(given(where, "directory"), some), pa.int64())

    register_function(spark, "offset_for_timestamp", find, _long_type())


def _offsets(directory: str, timestamps: pa.Array) -> pa.Array:
    """In a worker: an offset for each timestamp, null for null and for none."""
    if not pa.types.is_integer(timestamps.type) and timestamps.null_count < len(timestamps):
        hint = "; unix_millis makes one of a timestamp" if pa.types.is_timestamp(timestamps.type) else ""
        raise ValueError(f"timestamp: expected ms since the epoch, a bigint, got {timestamps.type}{hint}")
    asked = timestamps.cast(pa.int64())
    valid = asked.is_valid().to_numpy(zero_copy_only=False)
    log = _opened(directory, directory_state(directory))
    _, offsets = log.offsets_for_timestamps(asked.fill_null(0).to_numpy()[valid])
    found = np.full(len(asked), -1, np.int64)
    found[valid] = offsets
    return pa.array(found, mask=found < 0)


@functools.lru_cache(maxsize=OPEN_PARTITIONS)
def _opened(directory: str, state: Any) -> PartitionLog:
    """One opened log per worker process for each state of a partition."""
    from mqindex.kafka import PartitionLog
    from mqindex.kafka.kinds import is_partition

    if not is_partition(directory):
        raise ValueError(f"directory: expected a Kafka partition's, got {directory}")
    return PartitionLog.open(directory)


def _long_type() -> Any:
    from pyspark.sql.types import LongType

    return LongType()
