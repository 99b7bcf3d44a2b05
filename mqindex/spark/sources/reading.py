"""What the data sources share: known options, the schema asked for, and reading ranges of files as record batches.

Spark plans a read in a Python process beside the driver: there the directories are listed, once. A schema that the user
gives is the projection, because Spark does not push columns down to Python.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from mqindex.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "ARROW_TYPES",
    "BATCH_ROWS",
    "MAX_OFFSET",
    "FileSource",
    "RangeReader",
    "arrow_schema",
    "ddl",
    "grouped",
]

Item = TypeVar("Item")
ARROW_TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "array<struct<key:string,value:binary>>": pa.list_(
        pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
    ),
}
BATCH_ROWS = 65536
MAX_OFFSET = 2**63 - 1


class FileSource(DataSource):
    """A data source with the options that it names, besides the paths of `load()`."""

    OPTIONS: tuple[str, ...]

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        SourceOptions(options).require(self.OPTIONS, self.name())


class RangeReader(DataSourceReader):
    """Plans ranges of files and reads each as record batches of the schema asked for."""

    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        self.options = SourceOptions(options)
        self.paths = self.options.paths()
        self.schema = arrow_schema(schema, columns)

    def partitions(self) -> list[Any]:
        """See `DataSourceReader.partitions`."""
        return list(self.plan())

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """See `DataSourceReader.read`."""
        if type(partition) is not InputPartition:  # Spark makes one partition of no partition
            yield from record_batches(self.tables(partition), self.schema)

    @abstractmethod
    def plan(self) -> Iterable[InputPartition]:
        """The ranges to read."""

    @abstractmethod
    def tables(self, partition: Any) -> Iterator[pa.Table]:
        """The columns of a range, in tables of any size."""


def record_batches(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """What Spark takes for `schema`."""
    for table in tables:
        yield from table.select(schema.names).cast(schema).to_batches(BATCH_ROWS)


def grouped(items: Iterable[Item], weight: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Neighbours that weigh at most `most` together; one that weighs more is alone.

    >>> list(grouped([2, 2, 5, 1], lambda item: item, 4))
    [[2, 2], [5], [1]]
    """
    group: list[Item] = []
    total = 0
    for item in items:
        if group and total + weight(item) > most:
            yield group
            group, total = [], 0
        group.append(item)
        total += weight(item)
    if group:
        yield group


def ddl(columns: Mapping[str, str]) -> str:
    """A schema in Spark's words."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def arrow_schema(schema: StructType, columns: Mapping[str, str]) -> pa.Schema:
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
