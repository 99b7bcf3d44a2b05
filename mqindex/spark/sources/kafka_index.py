"""Data source `kafka_index`: the entries of offset, time and transaction indexes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from mqindex.files import disk
from mqindex.kafka import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from mqindex.kafka.index.zero_tail import entries_before_zeros
from mqindex.kafka.layout import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, TRANSACTION_ENTRY_SIZE
from mqindex.spark.gone import left_out
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.kafka_files import PLACE, SegmentOf, segments_in, with_place
from mqindex.spark.sources.reading import BATCH_ROWS, FileSource, RangeReader, ddl, grouped

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["KafkaIndexSource"]

NUMBERED = {**PLACE, "number": "bigint"}
TASK_ENTRIES = 1 << 22


class KafkaIndexSource(FileSource):
    """The entries of index files, before their tails of zeros, as they are: whether they are right, `verify` tells.

    The option `index` says which files of a directory are read: `offset` (the default), `time` or `transaction`. A path
    may be a log dir, a partition, or one file, which says so itself. `segment` is the base offset.
    """

    OPTIONS = ("index",)

    @classmethod
    def name(cls) -> str:
        return "kafka_index"

    def schema(self) -> str:
        return ddl(_kind_of(SourceOptions(self.options)).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return _IndexReader(self.options, schema)


class _Kind(NamedTuple):
    """One kind of index: the file's extension, the columns, and how entries are read."""

    extension: str
    entry_size: int
    columns: dict[str, str]
    entries: Callable[[str, int, int, int], Mapping[str, Any]]


def _by_offset(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with OffsetIndex.open(path, base_offset=base_offset) as index:
        return dict(index.entries(start, stop))


def _by_time(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with TimeIndex.open(path, base_offset=base_offset) as index:
        return dict(index.entries(start, stop))


def _aborted(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with TransactionIndex.open(path, base_offset=base_offset) as index:
        rows = list(index.entries())[start:stop]
    table = np.array(rows, np.int64).reshape(-1, len(AbortedTxn._fields))
    return {name: table[:, i].copy() for i, name in enumerate(AbortedTxn._fields)}


_KINDS = {
    "offset": _Kind("index", OFFSET_ENTRY_SIZE, {**NUMBERED, "offset": "bigint", "position": "int"}, _by_offset),
    "time": _Kind("timeindex", TIME_ENTRY_SIZE, {**NUMBERED, "timestamp": "bigint", "offset": "bigint"}, _by_time),
    "transaction": _Kind(
        "txnindex",
        TRANSACTION_ENTRY_SIZE,
        {**NUMBERED, **{name: "int" if name == "version" else "bigint" for name in AbortedTxn._fields}},
        _aborted,
    ),
}


def _kind_of(options: SourceOptions) -> _Kind:
    """As the option says, else as the first path's name."""
    asked = options.one_of("index", list(_KINDS), None)
    if asked is not None:
        return _KINDS[asked]
    extension = os.path.basename(options.paths()[0]).partition(".")[2]
    return next((kind for kind in _KINDS.values() if kind.extension == extension), _KINDS["offset"])


@dataclass(frozen=True)
class _EntryRange:
    """Entries [start, stop) of an index file."""

    of: SegmentOf
    path: str
    start: int
    stop: int


@dataclass
class _EntryRanges(InputPartition):
    """What one task reads: a part of a long index, or many short ones."""

    ranges: list[_EntryRange] = field(default_factory=list)


class _IndexReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self.kind = _kind_of(SourceOptions(options))
        super().__init__(options, schema, self.kind.columns)

    def plan(self) -> Iterator[_EntryRanges]:
        for ranges in grouped(self._ranges(), lambda one: one.stop - one.start, TASK_ENTRIES):
            yield _EntryRanges(ranges)

    def _ranges(self) -> Iterator[_EntryRange]:
        for path in self.paths:
            for of in segments_in(path, self.kind.extension):
                index = of.file(self.kind.extension)
                if index is None:
                    continue
                try:
                    stop = entries_before_zeros(index, self.kind.entry_size)
                except FileNotFoundError:
                    left_out(index, of.root, _tells(of))
                    continue
                for start in range(0, stop, TASK_ENTRIES):
                    yield _EntryRange(of, index, start, min(start + TASK_ENTRIES, stop))

    def tables(self, partition: _EntryRanges) -> Iterator[pa.Table]:
        for one in partition.ranges:
            for start in range(one.start, one.stop, BATCH_ROWS):
                stop = min(start + BATCH_ROWS, one.stop)
                if not disk.exists(one.path):  # an index of transactions that is not there would have none
                    left_out(one.path, one.of.root, _tells(one.of))
                    break
                entries = self.kind.entries(one.path, one.of.base_offset, start, stop)
                n = len(next(iter(entries.values())))  # fewer where it was cut meanwhile
                yield with_place(one.of, pa.table({"number": np.arange(start, start + n), **entries}))


def _tells(of: SegmentOf) -> str:
    """The ending of the files that tell whether a segment was deleted: its log's, of which each has one."""
    return ".log" if of.file("log") is not None else ".index"
