"""What the data sources share: known options, the requested schema, and reading ranges of files as record batches.

Spark plans a read in a Python process beside the driver: there the directories are listed, once. A schema that the user
gives, or the option `columns`, is the projection, because Spark does not push columns down to Python.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from mqindex.files.paths import real_path
from mqindex.files.places.place import Place
from mqindex.spark.options import COLUMNS, STORAGE_OPTIONS, SourceOptions
from mqindex.spark.parcels import parcels_of
from mqindex.spark.sources.sentence_first import sentence_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Item = TypeVar("Item")
BATCH_ROWS = 65536
MAX_OFFSET = 2**63 - 1


class FileSource(DataSource):
    """A data source of files: its name, its options besides the paths of `load()`, its columns and reader.

    A `load()` without a schema gives `COLUMNS`; a schema, or the option `columns`, may also name `MORE_COLUMNS`.
    """

    NAME: str
    OPTIONS: tuple[str, ...]
    COLUMNS: Mapping[str, str] = {}
    MORE_COLUMNS: Mapping[str, str] = {}
    READER: Callable[[Mapping[str, str], StructType, Mapping[str, str]], DataSourceReader]

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        with sentence_first():
            SourceOptions(options).require((*self.OPTIONS, COLUMNS, STORAGE_OPTIONS), self.name())

    @classmethod
    def name(cls) -> str:
        """See `DataSource.name`."""
        return cls.NAME

    def columns(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The columns of a `load()` without a schema, and those that a schema may also name."""
        return self.COLUMNS, self.MORE_COLUMNS

    @sentence_first()
    def schema(self) -> str:
        """See `DataSource.schema`."""
        default, more = self.columns()
        known = {**default, **more}
        chosen = SourceOptions(self.options).columns(known)
        return ", ".join(f"{name} {known[name]}" for name in (default if chosen is None else chosen))

    def known(self, schema: StructType) -> Mapping[str, str]:
        """All columns; a `ValueError` where the option `columns` says others than the user's schema."""
        default, more = self.columns()
        known = {**default, **more}
        chosen = SourceOptions(self.options).columns(known)
        if chosen is not None and chosen != schema.names:
            raise ValueError(f"{COLUMNS}: expected none beside a schema, got {', '.join(chosen)}")
        return known

    @sentence_first()
    def reader(self, schema: StructType) -> DataSourceReader:
        """See `DataSource.reader`."""
        return self.READER(self.options, schema, self.known(schema))


class RangeReader(DataSourceReader):
    """Plans ranges of files and reads each as record batches of the requested schema."""

    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        self.options = SourceOptions(options)
        self.paths = self.options.paths()
        self.schema = arrow_schema(schema, columns)
        self.parcels = parcels_of(self.paths)

    @sentence_first()
    def partitions(self) -> list[Any]:
        """See `DataSourceReader.partitions`."""
        elsewhere = any(isinstance(path, Place) for path in self.paths)
        return [Packed(self.parcels.pack(one)) if elsewhere else one for one in self.plan()]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """See `DataSourceReader.read`."""
        with sentence_first():
            if isinstance(partition, Packed):
                partition = self.parcels.unpack(partition.data)
            if type(partition) is not InputPartition:  # Spark makes one partition of no partition
                yield from record_batches(self.tables(partition), self.schema)

    def once(self, ranges: Iterable[Any]) -> Iterator[Any]:
        """The ranges, each with `path` and `start`; a `ValueError` where two of the given paths lead to one of them."""
        seen = set()
        for one in ranges:
            if len(self.paths) > 1:
                place = real_path(one.path), one.start
                if place in seen:
                    raise ValueError(f"path: expected each file once, got {one.path} again")
                seen.add(place)
            yield one

    @abstractmethod
    def plan(self) -> Iterable[InputPartition]:
        """The ranges to read."""

    @abstractmethod
    def tables(self, partition: Any) -> Iterator[pa.Table]:
        """The columns of a range, in tables of any size."""


@dataclass
class Packed(InputPartition):
    """A partition with places: Spark pickles each by itself, and their storages came with the reader."""

    data: bytes


@dataclass
class Ranges(InputPartition):
    """What one task reads: a part of a large file, or many small files."""

    ranges: list[Any] = field(default_factory=list)


def in_tasks(ranges: Iterable[Any], most: int) -> Iterator[Ranges]:
    """Neighbouring ranges, each with `start` and `stop`, that one task reads: at most `most` together."""
    return map(Ranges, grouped(ranges, lambda one: one.stop - one.start, most))


def record_batches(tables: Iterator[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Record batches as Spark accepts them for `schema`."""
    for table in tables:
        yield from table.select(schema.names).cast(schema).to_batches(BATCH_ROWS)


def grouped(items: Iterable[Item], weight: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Groups of neighbours that weigh at most `most` together; an item that weighs more is alone.

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


def arrow_schema(schema: StructType, columns: Mapping[str, str]) -> pa.Schema:
    """The schema that batches must have for Spark to accept them for `schema`."""
    if not schema.fields:
        raise ValueError(f"schema: expected some of {', '.join(columns)}, got no column")
    for number, one in enumerate(schema.fields):
        if one.name in schema.names[:number]:
            raise ValueError(f"schema: expected each column once, got {one.name} again")
        if one.name not in columns:
            raise ValueError(f"schema: expected some of {', '.join(columns)}, got {one.name}")
        kind = one.dataType.simpleString()
        if kind != columns[one.name]:
            raise ValueError(f"schema: expected {one.name} {columns[one.name]}, got {kind}")
    return to_arrow_schema(schema)
