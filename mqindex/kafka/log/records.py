"""Columns of records: which a segment offers, and how they are made of its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.guard import check_whole
from mqindex._native.kafka_log import batches_at
from mqindex._native.kafka_records import RecordColumns, compressed_part, first_offset, header_dtype, row_dtype
from mqindex.columns.columns import BinaryColumn, Column, Columns, HeadersColumn, StringColumn, chosen_columns
from mqindex.errors import FormatError, was_cut
from mqindex.kafka.log.batches import BATCH, batch_rows, codec_of, is_control, is_transactional
from mqindex.kafka.log.codecs import decompress

_Rows: TypeAlias = npt.NDArray[Any]
_ROW, _HEADER = row_dtype(), header_dtype()
_MAX_SEQUENCE: Final = 2**31 - 1
# Of one batch of columns: so little that malloc has the memory of the one before for the next. Larger buffers are of
# new pages each time, and a fault for each page costs twice the copy.
_MAX_ROWS, _MAX_COLUMN_BYTES = 16384, 2 << 20


class _Part:
    """Records that were copied, and their batches."""

    def __init__(self, taken: tuple[Any, ...], batches: _Rows) -> None:
        rows, self.keys, self.values, headers, self.header_keys, self.header_values = taken
        self.rows = np.frombuffer(rows, _ROW)
        self.headers = np.frombuffer(headers, _HEADER)
        numbers = self.rows["batch"]  # ascending
        first, last = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (0, -1)
        self.batches = batches[first : last + 1]
        self._numbers = numbers.astype(np.intp) - first

    def of_batch(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return column.take(self._numbers)


def _number(name: str) -> Callable[[_Part], Column]:
    return lambda part: np.ascontiguousarray(part.rows[name])


def _of_batch(name: str) -> Callable[[_Part], Column]:
    return lambda part: part.of_batch(part.batches[name])


def _flag(flags: Callable[[_Rows], npt.NDArray[np.bool_]]) -> Callable[[_Part], Column]:
    return lambda part: part.of_batch(flags(part.batches))


def _sequence(part: _Part) -> Column:
    base = part.batches["base_sequence"].astype(np.int64)
    found = part.of_batch(base - part.batches["base_offset"]) + part.rows["offset"] & _MAX_SEQUENCE
    if np.any(base < 0):
        found[part.of_batch(base < 0)] = -1
    sequences: npt.NDArray[np.int32] = found.astype(np.int32)
    return sequences


def _offsets(ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(ends) + 1, np.int64)
    offsets[1:] = ends
    return offsets


def _key(part: _Part) -> Column:
    return BinaryColumn(
        np.frombuffer(part.keys, np.uint8), _offsets(part.rows["key_end"]), np.ascontiguousarray(part.rows["has_key"])
    )


def _value(part: _Part) -> Column:
    return BinaryColumn(
        np.frombuffer(part.values, np.uint8),
        _offsets(part.rows["value_end"]),
        np.ascontiguousarray(part.rows["has_value"]),
    )


def _headers(part: _Part) -> Column:
    keys = StringColumn(np.frombuffer(part.header_keys, np.uint8), _offsets(part.headers["key_end"]))
    values = BinaryColumn(
        np.frombuffer(part.header_values, np.uint8),
        _offsets(part.headers["value_end"]),
        np.ascontiguousarray(part.headers["has_value"]),
    )
    return HeadersColumn(_offsets(part.rows["headers_end"]), keys, values)


COLUMNS: Final[dict[str, Callable[[_Part], Column]]] = {
    "offset": _number("offset"),
    "timestamp": _number("timestamp"),
    "timestamp_type": _number("timestamp_type"),
    "key": _key,
    "value": _value,
    "headers": _headers,
    "position": _of_batch("position"),
    "leader_epoch": _of_batch("leader_epoch"),
    "producer_id": _of_batch("producer_id"),
    "producer_epoch": _of_batch("producer_epoch"),
    "sequence": _sequence,
    "is_transactional": _flag(is_transactional),
    "is_control": _flag(is_control),
}


def require_columns(names: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to make, in the caller's order; None: all."""
    return tuple(COLUMNS) if names is None else chosen_columns(names, COLUMNS)


def read_records(
    batches: Iterable[tuple[Any, _Rows]],
    names: tuple[str, ...],
    *,
    max_rows: int = _MAX_ROWS,
    max_column_bytes: int = _MAX_COLUMN_BYTES,
    path: str | None = None,
) -> Iterator[Columns]:
    """Columns of the records of batches; `batches`: pairs of a log's bytes and an array of its batches."""
    columns = _record_columns(names, max_rows, max_column_bytes, path)
    for buffer, rows in batches:
        yield from _read(columns, buffer, rows, names, path)


def _record_columns(
    names: tuple[str, ...], max_rows: int = _MAX_ROWS, max_bytes: int = _MAX_COLUMN_BYTES, path: str | None = None
) -> RecordColumns:
    return RecordColumns(
        keys="key" in names, values="value" in names, headers="headers" in names, max_rows=max_rows,
        max_bytes=max_bytes, path=path,
    )  # fmt: skip


def _read(
    columns: RecordColumns, buffer: Any, rows: _Rows, names: tuple[str, ...], path: str | None
) -> Iterator[Columns]:
    number = 0
    while number < len(rows):
        number, full = columns.add(buffer, rows, number)
        if full:
            yield _made(columns, rows, names)
        elif number < len(rows):
            payload = payload_of(buffer, rows, number, path=path) or b""
            while not columns.add_payload(payload, rows, number):
                yield _made(columns, rows, names)
            number += 1
    if len(columns):
        yield _made(columns, rows, names)


def readable_records(
    batches: Iterable[tuple[Any, _Rows]],
    names: tuple[str, ...],
    left_out: Callable[[FormatError, Any], None],
    *,
    path: str | None = None,
) -> Iterator[Columns]:
    """The same without batches whose records cannot be read; each of them is given to `left_out`, with its row."""
    columns = _record_columns(names, path=path)  # one for all: its buffers begin as large as those before
    for buffer, given in batches:
        rows = given
        while len(rows):
            done = 0
            try:
                for made in _read(columns, buffer, rows, names, path):
                    yield made
                    done += made.num_rows
                break
            except FormatError as error:
                if was_cut(error) or error.at is None:
                    raise
                bad = int(np.searchsorted(rows["position"], error.at))
                before, columns = 0, _record_columns(names, path=path)
                for made in _read(columns, buffer, rows[:bad], names, path):
                    before += made.num_rows  # those that were given already come again, in the same parts
                    if before > done:
                        yield made
                left_out(error, rows[bad])
                rows = rows[bad + 1 :]


def records_from(offset: int, buffer: Any, rows: _Rows, names: tuple[str, ...], *, path: str | None = None) -> Columns:
    """The records from an offset on, of a few batches, at once."""
    wanted = names if "offset" in names else (*names, "offset")
    unbounded = 2**40
    parts = read_records([(buffer, rows)], wanted, max_rows=unbounded, max_column_bytes=unbounded, path=path)
    columns = next(parts, None)
    if columns is None:
        return no_records(names)
    reached = columns["offset"] >= offset
    first = int(reached.argmax()) if reached.any() else len(reached)
    return Columns({name: columns[name][first:] for name in names}, num_rows=columns.num_rows - first)


def no_records(names: tuple[str, ...]) -> Columns:
    """All columns, without a row."""
    return _made(RecordColumns(), np.empty(0, BATCH), names)


def _made(columns: RecordColumns, rows: _Rows, names: tuple[str, ...]) -> Columns:
    part = _Part(columns.take(), rows)
    return Columns({name: COLUMNS[name](part) for name in names}, num_rows=len(part.rows))


def payload_of(buffer: Any, rows: _Rows, number: int, *, path: str | None = None) -> bytes | None:
    """What the compressed batch `rows[number]` decompresses to; None: it is not compressed.

    Raises
    ------
    FormatError : it does not decompress.
    """
    codec = int(codec_of(rows[number : number + 1])[0])
    if codec == 0:
        return None
    start, stop = compressed_part(buffer, rows, number, path=path)
    with memoryview(buffer) as view, view[start:stop] as stored:
        try:
            payload = decompress(codec, stored, magic=int(rows["magic"][number]))
        except FormatError as error:
            check_whole(buffer)
            error.path, error.at = path, int(rows["position"][number])
            raise
        check_whole(buffer)
    return payload


def first_offset_at(buffer: Any, position: int, *, path: str | None = None) -> int:
    """The first offset of the batch at a position; of a compressed message that of the first one inside."""
    batch = batch_rows([batches_at(buffer, np.array([position], np.int64))])
    if not len(batch):
        raise ValueError(f"position: expected that of a batch, got {position}")
    payload = None if batch["magic"][0] >= 2 else payload_of(buffer, batch, 0, path=path)
    return int(batch["base_offset"][0]) if payload is None else first_offset(payload, batch, 0, path=path)
