"""Data source `kafka_index`: the entries of offset, time and transaction indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from mqindex.files import disk
from mqindex.files.paths import base_name
from mqindex.kafka import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from mqindex.kafka.index.index_entries import places_with_data
from mqindex.kafka.index.transaction_index import aborted_columns
from mqindex.kafka.layout import IndexKind
from mqindex.spark.missing_files import left_out
from mqindex.spark.options import SourceOptions
from mqindex.spark.sources.kafka_files import PLACE, SegmentOf, SegmentRange, segments_in, with_place
from mqindex.spark.sources.reading import BATCH_ROWS, FileSource, RangeReader, Ranges, in_tasks

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

NUMBERED = {**PLACE, "number": "bigint"}
TASK_ENTRIES = 1 << 22


class _Table(NamedTuple):
    """The rows for the entries of one kind of index: the columns, and how they are read."""

    kind: IndexKind
    columns: dict[str, str]
    entries: Callable[[str, int, int, int], Mapping[str, Any]]


def _by_offset(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with OffsetIndex.open(path, base_offset=base_offset) as index:
        return _left(index, start, stop)


def _by_time(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with TimeIndex.open(path, base_offset=base_offset) as index:
        return _left(index, start, stop)


def _left(index: OffsetIndex | TimeIndex, start: int, stop: int) -> Mapping[str, Any]:
    """Of the entries [start, stop) those that the file still has: a broker may have cut it since it was planned."""
    return dict(index.entries(min(start, len(index)), min(stop, len(index))))


def _aborted(path: str, base_offset: int, start: int, stop: int) -> Mapping[str, Any]:
    with TransactionIndex.open(path, base_offset=base_offset) as index:
        return aborted_columns(list(index.entries())[start:stop])


_TABLES = {
    "offset": _Table(IndexKind.OFFSET, {**NUMBERED, "offset": "bigint", "position": "int"}, _by_offset),
    "time": _Table(IndexKind.TIME, {**NUMBERED, "timestamp": "bigint", "offset": "bigint"}, _by_time),
    "transaction": _Table(
        IndexKind.TRANSACTION,
        {**NUMBERED, **{name: "int" if name == "version" else "bigint" for name in AbortedTxn._fields}},
        _aborted,
    ),
}


def _table_of(options: SourceOptions) -> _Table:
    """The table of the kind in the option, else in the first path's name."""
    asked = options.one_of("index", list(_TABLES), None)
    if asked is not None:
        return _TABLES[asked]
    ending = base_name(options.paths()[0]).partition(".")[2]
    return next((table for table in _TABLES.values() if table.kind == ending), _TABLES["offset"])


class _IndexReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.table = _table_of(self.options)

    def plan(self) -> Iterator[Ranges]:
        return in_tasks(self.once(self._ranges()), TASK_ENTRIES)

    def _ranges(self) -> Iterator[SegmentRange]:
        for path in self.paths:
            for of in segments_in(path, self.table.kind):
                index = of.file(self.table.kind)
                if index is None:
                    continue
                try:
                    filled = list(places_with_data(index, self.table.kind))
                except FileNotFoundError:
                    left_out(index, of.root, _proof(of))
                    continue
                for places in filled:
                    for start in places[::TASK_ENTRIES]:
                        yield SegmentRange(of, index, start, min(start + TASK_ENTRIES, places.stop))

    def tables(self, partition: Ranges) -> Iterator[pa.Table]:
        for one in partition.ranges:
            for start in range(one.start, one.stop, BATCH_ROWS):
                stop = min(start + BATCH_ROWS, one.stop)
                if not disk.exists(one.path):  # a missing index of transactions means that there are none
                    left_out(one.path, one.of.root, _proof(one.of))
                    break
                entries = self.table.entries(one.path, one.of.base_offset, start, stop)
                n = len(next(iter(entries.values())))  # fewer where it was cut meanwhile
                yield with_place(one.of, pa.table({"number": np.arange(start, start + n), **entries}))


def _proof(of: SegmentOf) -> str:
    """The ending of the file without which a segment counts as deleted: its log's, which each segment has."""
    return ".log" if of.file("log") is not None else ".index"


class KafkaIndexSource(FileSource):
    """The entries of index files, before their tails of zeros, as they are; `verify` checks whether they are right.

    The option `index` says which files of a directory are read: `offset` (the default), `time` or `transaction`. A path
    may be a log dir, a partition, or one file, whose name shows it. `segment` is the base offset.
    """

    NAME = "kafka_index"
    OPTIONS = ("index",)
    READER = _IndexReader

    def columns(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The columns of the kind of index that is read."""
        return _table_of(SourceOptions(self.options)).columns, {}
