"""Rows and record batches, as the columns that an index is made of.

`df.mapInArrow` hands a function record batches, `rdd.mapPartitions` rows; the first element shows which.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mqindex._native.numbers import int64, whole_number
from mqindex.columns.numbers import int64s

ENTRY_COLUMNS = ("key", "phy_offset", "store_timestamp")
OF_KEYS = ("topic",)  # what entries may have besides
BATCH_ROWS = 65536
_TEXTS = ("topic", "key")
_END: Final = object()  # a first row may be None


def as_batches(
    elements: Iterator[Any], columns: tuple[str, ...], optional: tuple[str, ...] = ()
) -> tuple[bool, Iterator[pa.RecordBatch]]:
    """Record batches from either, and whether they were such already.

    `columns`: what each row must have, and the names of a plain tuple's fields; `optional`: what all rows may have.

    >>> as_batches(iter([("k", 7, 8)]), ENTRY_COLUMNS)[0]
    False
    """
    first = next(elements, _END)
    if first is _END:
        return True, iter(())
    whole = chain([first], elements)
    if isinstance(first, pa.RecordBatch):
        return True, whole
    return False, _batches(whole, columns, optional)


def index_keys(batch: pa.RecordBatch) -> pa.Array:
    """The keys as an index hashes them: `topic#key` where there is a column `topic`, else the column `key` as it is."""
    keys = _text_column(batch, "key")
    if "topic" not in batch.schema.names:
        return keys
    topics = _text_column(batch, "topic")
    kind = pa.string() if topics.type == keys.type == pa.string() else pa.large_binary()  # Arrow joins one type only
    return pc.binary_join_element_wise(topics.cast(kind), keys.cast(kind), pa.scalar("#", kind))


def only_key(batch: pa.RecordBatch) -> pa.Array:
    """The column `key`, or the only column, whatever its name."""
    return batch.column(0) if batch.num_columns == 1 else _column(batch, "key", nulls=True)


def int64_column(batch: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    """A column of integers without nulls; a `TypeError` names one of another type."""
    return int64s(name, _column(batch, name))


def _column(batch: pa.RecordBatch, name: str, *, nulls: bool = False) -> pa.Array:
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise ValueError(f"expected one column {name}, got the columns {', '.join(batch.schema.names)}")
    column = batch.column(place)
    if column.null_count and not nulls:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"{name}: null in row {row} of a batch, and an index has no entry without one")
    return column


def _text_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = _column(batch, name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_text(kind) for is_text in _IS_TEXT):
        raise TypeError(f"{name}: expected text, got {column.type}")
    return column


_IS_TEXT = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
)


# ---- rows


def _batches(rows: Iterator[Any], columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    alike, first = _alike(rows, columns, optional), 0
    while some := list(islice(alike, BATCH_ROWS)):
        names = [name for name in (*optional, *columns) if name in some[0]]
        yield pa.record_batch([_array(name, [row[name] for row in some], first) for name in names], names)
        first += len(some)


def _alike(rows: Iterator[Any], columns: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The fields of each row; an error where a row does not have the same of the columns as the first, and all due."""
    known, expected = {*columns, *optional}, {*columns}
    for at, row in enumerate(rows):
        fields = _fields(row, at, columns)
        found = known & fields.keys()
        if at == 0:
            expected |= found
        if found != expected:
            differs, due = (", ".join(name for name in _ORDER if name in some) for some in (found ^ expected, expected))
            got = ", ".join(map(str, fields)) or "none"
            raise ValueError(f"{differs}: expected the columns {due} in each row of a partition, got {got} in row {at}")
        yield fields


_ORDER = (*OF_KEYS, *ENTRY_COLUMNS)


def _fields(row: Any, at: int, columns: tuple[str, ...]) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if isinstance(row, tuple):
        names = getattr(row, "__fields__", None) or getattr(row, "_fields", None) or columns
        return dict(zip(names, row, strict=False))
    if row is None or isinstance(row, (str, bytes, bytearray)):
        return {columns[0]: row}
    raise TypeError(f"row {at}: expected a Row, a dict, a tuple or a key, got {type(row).__name__}, {row!r:.80}")


def _array(name: str, values: list[Any], first: int) -> pa.Array:
    """A column of rows, of which the first is number `first` of its partition. Arrow would cut a float."""
    if name in _TEXTS:
        return _texts(name, values, first)
    whole = [_integer(f"{name}, row {at}", value) for at, value in enumerate(values, first)]
    return pa.array(whole, pa.int64())


def _integer(place: str, value: Any) -> int:
    number: int = int64(place, whole_number(place, value))
    return number


def _texts(name: str, values: list[Any], first: int) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except (UnicodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        at = next(at for at, value in enumerate(values) if not _is_text(value))
        raise ValueError(f"{name}, row {first + at}: expected text in UTF-8, got {values[at]!r:.80}") from None


def _is_text(value: Any) -> bool:
    try:
        pa.array([value], pa.string())
    except (UnicodeError, pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True
