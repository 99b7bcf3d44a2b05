"""Rows and record batches, as the columns that an index is made of.

`df.mapInArrow` hands a function record batches, `rdd.mapPartitions` rows; the first element shows which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ENTRY_COLUMNS", "as_batches", "index_keys", "int64_column", "only_key"]

ENTRY_COLUMNS = ("key", "phy_offset", "store_timestamp")
BATCH_ROWS = 65536
_TYPES = {"topic": pa.string(), "key": pa.string(), "phy_offset": pa.int64(), "store_timestamp": pa.int64()}


def as_batches(elements: Iterator[Any], positions: tuple[str, ...]) -> tuple[bool, Iterator[pa.RecordBatch]]:
    """Record batches from either, and whether they were such already. `positions`: the names of a plain tuple's fields.

    >>> as_batches(iter([("k", 7, 8)]), ENTRY_COLUMNS)[0]
    False
    """
    first = next(elements, None)
    if first is None:
        return True, iter(())
    whole = chain([first], elements)
    if isinstance(first, pa.RecordBatch):
        return True, whole
    return False, _batches(whole, positions)


def index_keys(batch: pa.RecordBatch) -> pa.Array:
    """The keys as an index hashes them: `topic#key` where there is a column `topic`, else the column `key` as it is."""
    keys = _column(batch, "key")
    if "topic" in batch.schema.names:
        keys = pc.binary_join_element_wise(_column(batch, "topic"), keys, "#")
    return keys


def only_key(batch: pa.RecordBatch) -> pa.Array:
    """The column `key`, or the only column, whatever its name."""
    return batch.column(0) if batch.num_columns == 1 else _column(batch, "key", nulls=True)


def int64_column(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """A column of integers without nulls."""
    return np.asarray(_column(batch, name).cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)


def _column(batch: pa.RecordBatch, name: str, *, nulls: bool = False) -> pa.Array:
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise ValueError(f"expected one column {name}, got the columns {', '.join(batch.schema.names)}")
    column = batch.column(place)
    if column.null_count and not nulls:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"{name}: null in row {row} of a batch, and an index has no entry without one")
    return column


def _batches(rows: Iterator[Any], positions: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    while some := [_fields(row, positions) for row in islice(rows, BATCH_ROWS)]:
        names = [name for name in _TYPES if name in some[0]]
        yield pa.record_batch([pa.array([row[name] for row in some], _TYPES[name]) for name in names], names)


def _fields(row: Any, positions: tuple[str, ...]) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple):
        names = getattr(row, "__fields__", None) or getattr(row, "_fields", None) or positions
        return dict(zip(names, row, strict=False))
    return {positions[0]: row}
