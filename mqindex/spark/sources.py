"""Data sources `rocketmq_commitlog` and `rocketmq_index`: files as DataFrames, in Arrow batches.

Spark plans a read in a Python process beside the driver: there the directories are listed, once. A schema that the user
gives is the projection, because Spark does not push columns down to Python.
"""

from __future__ import annotations

import json
import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from mqindex.rocketmq import CommitLog, IndexFile, IndexService
from mqindex.rocketmq.pipeline import SPLIT_SIZE
from mqindex.spark.functions import register_functions
from mqindex.spark.session import ensure_session, explained

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["CommitLogSource", "IndexSource", "register"]

MESSAGE_COLUMNS = {
    "topic": "string",
    "queue_id": "int",
    "queue_offset": "bigint",
    "phy_offset": "bigint",
    "size": "int",
    "store_timestamp": "bigint",
    "born_timestamp": "bigint",
    "tags": "string",
    "keys": "string",
    "uniq_key": "string",
    "sys_flag": "int",
    "flag": "int",
    "body_crc": "int",
    "reconsume_times": "int",
    "prepared_transaction_offset": "bigint",
    "born_host": "string",
    "store_host": "string",
    "msg_id": "string",
}
BULKY_COLUMNS = {"body": "binary", "properties": "string"}
ENTRY_COLUMNS = {
    "file": "string",
    "number": "int",
    "key_hash": "int",
    "phy_offset": "bigint",
    "time_diff": "int",
    "store_timestamp": "bigint",
    "prev_index": "int",
}
ARROW_TYPES = {"string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "binary": pa.binary()}
BATCH_ROWS = 65536
PARTITION_ENTRIES = 1 << 22
MAX_OFFSET = 2**63 - 1


def register(spark: SparkSession) -> None:
    """Make the data sources and SQL functions of this package known to a session, and examine it once.

    Data sources: `rocketmq_commitlog` (paths of stores or commit-log directories; options `startOffset`, `endOffset`,
    `checkCrc`, `filterPushdown`) and `rocketmq_index` (paths of stores, index directories or index files; options
    `hashSlotNum`, `indexNum`). SQL functions: `key_hash(key)`, `hash_slot(key, n)` and
    `select_phy_offset(index_dir, key)`, where a key is the whole `topic#key`.

    Examples
    --------
    >>> register(spark)  # doctest: +SKIP
    >>> log = spark.read.format("rocketmq_commitlog")  # doctest: +SKIP
    >>> log.schema("topic string, phy_offset bigint").load("/data/store").count()  # doctest: +SKIP
    1000000
    """
    ensure_session(spark)
    for source in (CommitLogSource, IndexSource):
        spark.dataSource.register(source)
    register_functions(spark)
    with explained(spark):  # Spark plans data sources in another process than those that run tasks
        spark.read.format(IndexSource.name()).load("/").schema  # noqa: B018


class CommitLogSource(DataSource):
    """The messages of a commit log; `body` and `properties` only where the schema names them.

    Damaged stretches are passed over, as in a rebuild; `verify` tells of them. To read a range of phy offsets, give
    `startOffset` and `endOffset`. `filterPushdown=true` takes the range from the query's filters on `phy_offset`
    (4.1 or newer, with `spark.sql.python.filterPushdown.enabled`); use that DataFrame for one query only.
    """

    @classmethod
    def name(cls) -> str:
        return "rocketmq_commitlog"

    def schema(self) -> str:
        return _ddl(MESSAGE_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        # A reader with pushFilters fails every query while push-down is off (4.1+), so only its planner gets one. And
        # Spark keeps the pushed plan for all later queries of the same DataFrame, with other filters or none: they
        # would silently read the first one's range. So it is for those who ask, one query to a load().
        asked = _boolean({name.lower(): value for name, value in self.options.items()}, "filterPushdown")
        kind = _PushDownLogReader if asked and _in_push_down_planner(sys._getframe(1).f_globals) else _LogReader
        return kind(self.options, schema)


class IndexSource(DataSource):
    """The entries of index files; `store_timestamp` is the time by which the broker's look-up judges an entry."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq_index"

    def schema(self) -> str:
        return _ddl(ENTRY_COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _IndexReader(self.options, schema)


@dataclass
class _LogRange(InputPartition):
    """Messages that begin in [start, stop)."""

    directories: list[str]
    start: int
    stop: int


@dataclass
class _EntryRange(InputPartition):
    """Entries [start, stop) of an index file."""

    path: str
    hash_slot_num: int
    index_num: int
    start: int
    stop: int


class _Reader(DataSourceReader):
    """Plans ranges of files and reads each as record batches of the schema asked for."""

    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        self.options = {name.lower(): value for name, value in options.items()}
        self.paths = _paths(self.options)
        self.schema = _arrow_schema(schema, columns)

    def partitions(self) -> list[Any]:
        return list(self.plan())

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        if getattr(partition, "stop", 0) > getattr(partition, "start", 0):  # Spark makes one partition of no partition
            for table in self.tables(partition):
                yield from table.select(self.schema.names).cast(self.schema).to_batches(BATCH_ROWS)

    @abstractmethod
    def plan(self) -> Iterable[InputPartition]: ...

    @abstractmethod
    def tables(self, partition: Any) -> Iterator[pa.Table]: ...


class _LogReader(_Reader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, {**MESSAGE_COLUMNS, **BULKY_COLUMNS})
        self.start, self.stop = (
            _integer(self.options, "startOffset", 0),
            _integer(self.options, "endOffset", MAX_OFFSET),
        )
        self.check_crc = _boolean(self.options, "checkCrc")

    def plan(self) -> Iterator[_LogRange]:
        directories = [_inside(path, "commitlog") for path in self.paths]
        with CommitLog.open(directories) as log:
            end = min(self.stop, log.max_phy_offset)  # fixed once; behind it are stale bytes, or a broker at work
            for file in log.files:
                start, stop = max(self.start, file.start), min(end, file.stop)
                while start < stop:
                    border = min(start - (start - file.start) % SPLIT_SIZE + SPLIT_SIZE, stop)
                    yield _LogRange(directories, start, border)
                    start = border

    def tables(self, partition: _LogRange) -> Iterator[pa.Table]:
        with CommitLog.open(partition.directories) as log:
            columns = self.schema.names
            for batch in log.scan(partition.start, partition.stop, columns=columns, check_crc=self.check_crc):
                yield pa.table(batch)


class _PushDownLogReader(_LogReader):
    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        for item in filters:
            bounds = _bounds(item)
            if bounds is None:
                yield item
            else:
                self.start, self.stop = max(self.start, bounds[0]), min(self.stop, bounds[1])


class _IndexReader(_Reader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema, ENTRY_COLUMNS)
        self.geometry = {
            "hash_slot_num": _integer(self.options, "hashSlotNum", None),
            "index_num": _integer(self.options, "indexNum", None),
        }

    def plan(self) -> Iterator[_EntryRange]:
        for path in self.paths:
            if os.path.isfile(path):
                with IndexFile.open(path, **self.geometry) as file:
                    yield from _entry_ranges(file)
                continue
            with IndexService.open(_inside(path, "index"), **self.geometry) as service:
                for file in service.files:
                    yield from _entry_ranges(file)

    def tables(self, partition: _EntryRange) -> Iterator[pa.Table]:
        slots, capacity = partition.hash_slot_num, partition.index_num
        with IndexFile.open(partition.path, hash_slot_num=slots, index_num=capacity) as file:
            begin = file.header.begin_timestamp
            for start in range(partition.start, partition.stop, BATCH_ROWS):
                entries = dict(file.entries(start, min(start + BATCH_ROWS, partition.stop)))
                n = len(entries["key_hash"])
                entries["number"] = np.arange(start, start + n, dtype=np.int32)
                entries["store_timestamp"] = begin + 1000 * entries["time_diff"].astype(np.int64)
                entries["file"] = pa.repeat(partition.path, n)
                yield pa.table(entries)


def _entry_ranges(file: IndexFile) -> Iterator[_EntryRange]:
    stop = min(file.header.index_count, file.index_num)
    for start in range(1, stop, PARTITION_ENTRIES):
        end = min(start + PARTITION_ENTRIES, stop)
        yield _EntryRange(os.path.abspath(file.path), file.hash_slot_num, file.index_num, start, end)


def _in_push_down_planner(caller: Mapping[str, Any]) -> bool:
    spec = caller.get("__spec__")
    name = getattr(spec, "name", None) or caller.get("__name__", "")
    return str(name).endswith("data_source_pushdown_filters")


def _bounds(item: Any) -> tuple[int, int] | None:
    """The phy offsets [start, stop) that a filter leaves; None: Spark must apply it itself."""
    limits = _LIMITS.get(type(item).__name__)
    value = getattr(item, "value", None)
    if limits is None or item.attribute != ("phy_offset",) or not isinstance(value, int):
        return None
    return limits(value)


_LIMITS: dict[str, Callable[[int], tuple[int, int]]] = {  # the classes are not in PySpark 4.0
    "EqualTo": lambda value: (value, value + 1),
    "EqualNullSafe": lambda value: (value, value + 1),
    "GreaterThan": lambda value: (value + 1, MAX_OFFSET),
    "GreaterThanOrEqual": lambda value: (value, MAX_OFFSET),
    "LessThan": lambda value: (0, value),
    "LessThanOrEqual": lambda value: (0, value + 1),
}


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = json.loads(options["paths"]) if "paths" in options else [options.get("path", "")]
    if not all(paths):
        raise ValueError('path: expected a directory, as in .load("/data/store"), got none')
    return [os.path.abspath(path) for path in paths]


def _inside(path: str, part: str) -> str:
    """A store's part, or the directory itself."""
    inner = os.path.join(path, part)
    return inner if os.path.isdir(inner) else path


def _integer(options: Mapping[str, str], name: str, default: Any) -> Any:
    text = options.get(name.lower())
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{name}: expected an integer, got {text!r}") from None


def _boolean(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name.lower(), "false").lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {text!r}")
    return text == "true"


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _arrow_schema(schema: StructType, columns: Mapping[str, str]) -> pa.Schema:
    """What the batches must look like for Spark to take them for `schema`."""
    fields = []
    for field in schema.fields:
        if field.name not in columns:
            raise ValueError(f"schema: expected some of {', '.join(columns)}, got {field.name}")
        kind = field.dataType.simpleString()
        if kind != columns[field.name]:
            raise ValueError(f"schema: expected {field.name} {columns[field.name]}, got {kind}")
        fields.append(pa.field(field.name, ARROW_TYPES[kind], field.nullable))
    return pa.schema(fields)
