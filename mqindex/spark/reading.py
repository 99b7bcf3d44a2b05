"""What the data sources share: options, the schema asked for, and reading ranges of files as record batches.

Spark plans a read in a Python process beside the driver: there the directories are listed, once. A schema that the user
gives is the projection, because Spark does not push columns down to Python.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = [
    "ARROW_TYPES",
    "BATCH_ROWS",
    "MAX_OFFSET",
    "RangeReader",
    "SourceOptions",
    "arrow_schema",
    "ddl",
    "grouped",
    "inside",
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


class SourceOptions:
    """The options of a `load()`, which Spark hands over as text, by names without case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def paths(self) -> list[str]:
        """The paths of `load()`, absolute."""
        paths = json.loads(self._given["paths"]) if "paths" in self else [self._given.get("path", "")]
        if not all(paths):
            raise ValueError('path: expected a directory, as in .load("/data/store"), got none')
        return [os.path.abspath(path) for path in paths]

    def text(self, name: str) -> str | None:
        """An option as it is."""
        return self._given.get(name.lower())

    def integer(self, name: str, default: Any) -> Any:
        """An option that is a whole number."""
        text = self.text(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise ValueError(f"{name}: expected an integer, got {text!r}") from None

    def positive(self, name: str) -> int | None:
        """An option that is 1 or more; None: not given."""
        number: int | None = self.integer(name, None)
        if number is not None and number < 1:
            raise ValueError(f"{name}: expected 1 or more, got {number}")
        return number

    def boolean(self, name: str, default: bool = False) -> bool:
        """An option that is true or false."""
        text = (self.text(name) or str(default)).lower()
        if text not in ("true", "false"):
            raise ValueError(f"{name}: expected true or false, got {text!r}")
        return text == "true"


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


def inside(path: str, part: str) -> str:
    """A store's part, or the directory itself."""
    inner = os.path.join(path, part)
    return inner if os.path.isdir(inner) else path


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
