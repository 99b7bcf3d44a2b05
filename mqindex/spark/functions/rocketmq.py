"""Column functions over RocketMQ's index directories and keys.

A batch of keys goes to the kernels as the Arrow array that Spark hands over and comes back as the kernels' own
buffers: no Python object per row. Each worker process keeps the index files that it has mapped.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mqindex import rocketmq
from mqindex._native.numbers import period
from mqindex.columns.keys import text_of
from mqindex.columns.limits import whole_count, whole_number_from
from mqindex.errors import MQIndexError
from mqindex.files.paths import absolute
from mqindex.files.places.page_cache import PageCache, of_this_machine
from mqindex.files.places.place import Place
from mqindex.rocketmq import layout
from mqindex.rocketmq.kinds import index_paths, number_of
from mqindex.rocketmq.layout import MAX_TIMESTAMP
from mqindex.rocketmq.log.expiry import read_again
from mqindex.spark.functions.column_functions import by_value, column_function, files_state, register_function
from mqindex.spark.functions.kafka import register_kafka_functions
from mqindex.spark.geometry_named import BY_ARGUMENTS, BY_SQL, geometry_named
from mqindex.spark.missing_files import require_seen
from mqindex.spark.options import given
from mqindex.spark.store_paths import index_directory

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

OPEN_DIRECTORIES = 8


def select_phy_offset(
    index_dir: str | os.PathLike[str],
    *,
    topic: str | None = None,
    max_num: int = 64,
    begin: int = 0,
    end: int = MAX_TIMESTAMP,
    hash_slot_num: int | None = None,
    index_num: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Callable[[Column | str], Column]:
    """A column function: the physical offsets of each key, newest first, as the broker's query over all files.

    The result is `array<bigint>`; the offsets of a null key are null.

    Parameters
    ----------
    index_dir : path of a store, or of its directory of index files, that every worker sees; or a URL
    topic : str or None; None: each key is the whole `topic#key`
    max_num, begin, end : as of `mqindex.rocketmq.IndexService.query_offset`, times in ms since the epoch
    hash_slot_num, index_num : int or None; None: inferred from the files
    storage_options : of a URL, as of `mqindex.rocketmq.rebuild`

    Raises
    ------
    TypeError, ValueError : at once, of an argument
    FileNotFoundError, GeometryError : when it runs, as of `mqindex.rocketmq.IndexService.open`
    FileStateError : when it runs, a worker sees no index file where the driver saw some

    Notes
    -----
    Files that are added or replaced are seen by the next batch. What is read of a URL each host keeps, in the directory
    above Spark's own (`spark.local.dir`) or in TMPDIR: 8 GiB at most and no more than a quarter of what is free there;
    once more than a third of a file was asked for, all of it. Source: RocketMQ 4.9.3, `IndexService.queryOffset`.

    Examples
    --------
    >>> offsets = select_phy_offset(store, topic="LostTopic")
    >>> keys = spark.createDataFrame([("user-3",), ("no-such-key",)], "key string")
    >>> [row.found for row in keys.select(offsets("key").alias("found")).collect()]
    [[125657, 125657, 124833, 121465, 114877], []]
    >>> df.select("key", offsets("key").alias("phy_offsets"))  # doctest: +SKIP
    """
    lookup = Lookup(index_dir, topic, max_num, begin, end, hash_slot_num, index_num, storage_options)

    def select(keys: pa.Array) -> pa.Array:
        return lookup(keys)

    chosen: Callable[[Column | str], Column] = column_function("select_phy_offset", select, _offsets_type())
    return chosen


def key_hash(column: Column | str) -> Column:
    """The non-negative hash that an index file holds for each key (`topic#key`) of `column`, as int; null stays null.

    Source: RocketMQ 4.9.3, `IndexFile.indexKeyHashMethod`.

    >>> keys = spark.createDataFrame([("TopicTest#MessageKey",)], "key string")
    >>> keys.select(key_hash("key").alias("hash"), hash_slot("key", 5_000_000).alias("slot")).first()
    Row(hash=638347386, slot=3347386)
    """

    def hashes(keys: pa.Array) -> pa.Array:
        return _hashes(keys)

    hashed: Column = column_function("key_hash", hashes, _int_type())(column)
    return hashed


def hash_slot(column: Column | str, n: int) -> Column:
    """The slot of each key (`topic#key`) of `column` in an index file of `n` slots, as int; null stays null.

    `n` is a whole number from 1 to 2147483647, as a broker's. Source: RocketMQ 4.9.3, `IndexFile.putKey`.

    >>> keys = spark.createDataFrame([("TopicTest#MessageKey",)], "key string")
    >>> keys.select(hash_slot("key", 1000).alias("slot")).first()
    Row(slot=386)
    """
    count = whole_number_from(1, "n", n)

    def slot(keys: pa.Array) -> pa.Array:
        return _slots(keys, count)

    chosen: Column = column_function("hash_slot", slot, _int_type())(column)
    return chosen


def register_functions(spark: SparkSession) -> None:
    """SQL functions of both brokers: `key_hash`, `hash_slot`, `select_phy_offset`, and `offset_for_timestamp`."""

    def hashes(key: pa.Array) -> pa.Array:
        return _hashes(key)

    def slot(key: pa.Array, n: pa.Array) -> pa.Array:
        return by_value(n, key, lambda count, some: _slots(some, whole_number_from(1, "n", count)), pa.int32())

    def select(index_dir: pa.Array, key: pa.Array) -> pa.Array:
        return by_value(index_dir, key, lambda where, some: Lookup(where, how=BY_SQL)(some), _OFFSETS)

    register_function(spark, "key_hash", hashes, _int_type())
    register_function(spark, "hash_slot", slot, _int_type())
    register_function(spark, "select_phy_offset", select, _offsets_type())
    register_kafka_functions(spark)


_OFFSETS = pa.list_(pa.int64())


class Lookup:
    """Keys to lists of offsets, in a worker: `list<int64>` for an array of `n` strings, null for null.

    how : how the caller may set the geometry, for errors about it
    """

    def __init__(
        self,
        index_dir: str | os.PathLike[str],
        topic: str | None = None,
        max_num: int = 64,
        begin: int = 0,
        end: int = MAX_TIMESTAMP,
        hash_slot_num: int | None = None,
        index_num: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        *,
        how: str = BY_ARGUMENTS,
    ) -> None:
        self.how = how
        self.index_dir = absolute(given(index_dir, "index_dir", storage_options))  # a worker may have another directory
        self.geometry = layout.given_geometry(hash_slot_num, index_num)
        self.has_files = _has_files(self.index_dir)
        self.topic = None if topic is None else text_of("topic", topic)
        first, last = period(begin, end)
        self.limits = {"max_num": whole_count("max_num", max_num), "begin": first, "end": last}

    def __call__(self, keys: pa.Array) -> pa.Array:
        keys = _texts(keys)
        if isinstance(self.index_dir, Place):
            self.index_dir.storage.pages = _kept_pages()
        home, state = _state(self.index_dir)
        require_seen(home, bool(state) or not self.has_files)  # a broker never deletes the newest file
        with geometry_named(self.how):
            service = _opened(home, *self.geometry, state)
        hits = service.query_offsets(self.topic, keys.drop_null() if keys.null_count else keys, **self.limits)
        return pa.array(hits).cast(_OFFSETS) if not keys.null_count else _spread(hits, keys)


@functools.cache
def _kept_pages() -> PageCache | None:
    """In a worker Spark names the directories for its own files."""
    return of_this_machine([path for path in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if path])


def _state(index_dir: str) -> tuple[str, tuple[Any, ...]]:
    """The directory of index files, and a value that changes with them; elsewhere it is of one listing."""
    if not isinstance(index_dir, Place):
        home = index_directory(index_dir)
        return home, files_state(index_paths(home))
    storage: Any = index_dir.storage
    place = _home_elsewhere(index_dir, storage)
    files = [one for one in place.entries().items() if number_of(one[0]) is not None]
    return place, (storage, *files) if files else ()


@functools.lru_cache(maxsize=OPEN_DIRECTORIES)
def _home_elsewhere(index_dir: str, _: Any) -> Place:
    home = index_directory(index_dir)
    assert isinstance(home, Place)
    return home


def _has_files(index_dir: str) -> bool:
    """Whether this process sees index files there. A driver need not see any; elsewhere it does not look."""
    if isinstance(index_dir, Place):
        return False
    try:
        return bool(index_paths(index_directory(index_dir)))
    except (MQIndexError, OSError):
        return False


@functools.lru_cache(maxsize=OPEN_DIRECTORIES)
def _opened(index_dir: str, hash_slot_num: int | None, index_num: int | None, state: Any) -> rocketmq.IndexService:
    """One opened service per worker process for each state of a directory."""
    return read_again(partial(rocketmq.IndexService.open, index_dir, hash_slot_num=hash_slot_num, index_num=index_num))


def _spread(hits: Any, keys: pa.Array) -> pa.Array:
    """Lists for all keys from those of the keys that are not null."""
    valid = keys.is_valid().to_numpy(zero_copy_only=False)
    counts = np.zeros(len(keys), np.int64)
    counts[valid] = np.diff(hits.offsets)
    offsets = np.zeros(len(keys) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(hits.values), mask=pa.array(~valid))


def _texts(keys: pa.Array) -> pa.Array:
    """A column of keys; SQL's NULL alone has no type."""
    if pa.types.is_null(keys.type):
        return keys.cast(pa.string())
    if pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_decode()
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        raise TypeError(f"key: expected a string, got {keys.type}")
    return keys


def _hashes(keys: pa.Array) -> pa.Array:
    keys = _texts(keys)
    if not keys.null_count:
        return pa.array(rocketmq.key_hashes(keys))
    valid = keys.is_valid().to_numpy(zero_copy_only=False)
    hashes = np.zeros(len(keys), np.int32)
    hashes[valid] = rocketmq.key_hashes(keys.drop_null())
    return pa.array(hashes, mask=~valid)


def _slots(keys: pa.Array, n: int) -> pa.Array:
    hashes = _hashes(keys)
    slots = hashes.fill_null(0).to_numpy() % n
    return pa.array(slots.astype(np.int32), mask=hashes.is_null().to_numpy(zero_copy_only=False))


def _int_type() -> Any:
    from pyspark.sql.types import IntegerType

    return IntegerType()


def _offsets_type() -> Any:
    from pyspark.sql.types import ArrayType, LongType

    return ArrayType(LongType())
