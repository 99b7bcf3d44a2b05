"""Data source `rocketmq_index`: the entries of index files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from mqindex.errors import FileStateError
from mqindex.files import disk
from mqindex.files.paths import absolute
from mqindex.rocketmq import IndexFile, IndexService
from mqindex.rocketmq.index.compare import next_entry
from mqindex.rocketmq.log.expiry import read_again
from mqindex.spark.geometry_named import BY_OPTIONS, geometry_named
from mqindex.spark.missing_files import left_out
from mqindex.spark.sources.reading import BATCH_ROWS, FileSource, RangeReader
from mqindex.spark.store_paths import index_directory

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ENTRY_COLUMNS = {
    "file": "string",
    "number": "int",
    "key_hash": "int",
    "phy_offset": "bigint",
    "time_diff": "int",
    "store_timestamp": "bigint",
    "prev_index": "int",
}
PARTITION_ENTRIES = 1 << 22


@dataclass
class _EntryRange(InputPartition):
    """Entries [start, stop) of an index file."""

    path: str
    hash_slot_num: int
    index_num: int
    start: int
    stop: int
    root: str


class _IndexReader(RangeReader):
    def __init__(self, options: Mapping[str, str], schema: StructType, columns: Mapping[str, str]) -> None:
        super().__init__(options, schema, columns)
        self.geometry = {
            "hash_slot_num": self.options.integer("hashSlotNum", None, least=1),
            "index_num": self.options.integer("indexNum", None, least=1),
        }

    def plan(self) -> Iterator[_EntryRange]:
        with geometry_named(BY_OPTIONS):
            yield from self.once(self._ranges())

    def _ranges(self) -> Iterator[_EntryRange]:
        for path in self.paths:
            if disk.is_file(path):
                with IndexFile.open(path, **self.geometry) as file:
                    yield from _entry_ranges(file, path)
                continue
            with read_again(partial(IndexService.open, index_directory(path), **self.geometry)) as service:
                for file in service.files:
                    yield from _entry_ranges(file, path)

    def tables(self, partition: _EntryRange) -> Iterator[pa.Table]:
        slots, capacity = partition.hash_slot_num, partition.index_num
        try:
            with geometry_named(BY_OPTIONS):
                opened = IndexFile.open(partition.path, hash_slot_num=slots, index_num=capacity)
        except FileNotFoundError:
            left_out(partition.path, partition.root)
            return
        with opened as file:
            begin = file.header.begin_timestamp
            for start in range(partition.start, partition.stop, BATCH_ROWS):
                entries = dict(file.entries(start, min(start + BATCH_ROWS, partition.stop)))
                n = len(entries["key_hash"])
                if n < min(start + BATCH_ROWS, partition.stop) - start:
                    raise FileStateError(
                        "the index file has fewer entries than when the read was planned", path=partition.path,
                        expected=partition.stop - 1, got=start + n - 1,
                    )  # fmt: skip
                entries["number"] = np.arange(start, start + n, dtype=np.int32)
                entries["store_timestamp"] = begin + 1000 * entries["time_diff"].astype(np.int64)
                entries["file"] = pa.repeat(partition.path, n)
                yield pa.table(entries)


def _entry_ranges(file: IndexFile, root: str) -> Iterator[_EntryRange]:
    stop = next_entry(file)
    for start in range(1, stop, PARTITION_ENTRIES):
        end = min(start + PARTITION_ENTRIES, stop)
        yield _EntryRange(absolute(file.path), file.hash_slot_num, file.index_num, start, end, root)


class IndexSource(FileSource):
    """The entries of index files; `store_timestamp` is the time with which the broker's look-up compares an entry."""

    NAME = "rocketmq_index"
    OPTIONS = ("hashSlotNum", "indexNum")
    COLUMNS = ENTRY_COLUMNS
    READER = _IndexReader
