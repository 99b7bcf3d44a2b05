"""Messages from every accepted form, as columns that are measured and ready to be encoded."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.log_writer import NUMBERS, TEXTS, Frames, RefusedError
from mqindex._native.numbers import milliseconds
from mqindex._native.pieces import (
    Pieces,
    batch_of_array,
    batches_of_stream,
    column_of_array,
    columns_of_stream,
    constant_piece,
    hosts_of,
    joined_pieces,
    pieces_of_offsets,
    pieces_of_sequence,
)
from mqindex._words import plural
from mqindex.columns.columns import StringColumn
from mqindex.columns.numbers import int64s, times
from mqindex.rocketmq.log.writing.message_encoder import NewMessage, properties_block, refused
from mqindex.rocketmq.log.writing.write_rules import WriteRules

MessageColumns: TypeAlias = Any
"""A mapping of names to columns or single values, a `Columns`, an Arrow, polars or pandas table, or a list of dicts or
of `NewMessage`s."""

COMPUTED_COLUMNS: Final = ("phy_offset", "size", "body_crc", "msg_id")  # of a scan; an append computes them anew
_INT32 = ("queue_id", "flag", "sys_flag", "reconsume_times")
_TIMES = ("born_timestamp", "store_timestamp")


class MessageBatches(list[tuple[int, Mapping[str, Any]]]):
    """The result of `message_batches`: (rows, columns) each, texts as `Pieces`, numbers as int64."""


def measured_frames(
    messages: MessageColumns, rules: WriteRules, *, queue_offset: npt.ArrayLike | None, now: int
) -> list[Frames]:
    """One `Frames` for each record batch. A message that no broker takes is an error before any write."""
    batches = message_batches(messages, rules)
    rows = sum(n for n, _ in batches)
    given = None if queue_offset is None else _numbers("queue_offset", queue_offset)
    if given is not None and len(given) != rows:
        if len(given) != 1:
            raise ValueError(f"queue_offset: expected one for each of {plural(rows, 'message')}, got {len(given)}")
        given = np.broadcast_to(given, rows)
    frames, first = [], 0
    for n, columns in batches:
        numbered = {} if given is None else {"queue_offset": np.ascontiguousarray(given[first : first + n])}
        frames.append(_measured(n, {**columns, **numbered}, rules, now, first))
        first += n
    return frames


def _measured(n: int, columns: Mapping[str, Any], rules: WriteRules, now: int, first: int) -> Frames:
    unknown = [name for name in columns if name not in (*TEXTS, *NUMBERS, *COMPUTED_COLUMNS)]
    if unknown:
        raise ValueError(
            f"messages: expected columns among {', '.join((*TEXTS, *NUMBERS))}, got {', '.join(map(str, unknown))}"
        )
    missing = [name for name in ("topic", "queue_offset") if columns.get(name) is None]
    if missing:
        raise ValueError(f"messages: expected a column {' and a column '.join(missing)}, got none")
    texts = tuple(
        _host_column(name, columns, rules) if "host" in name else _texts(name, columns.get(name), rules)
        for name in TEXTS
    )
    given = {"born_timestamp": now, "store_timestamp": now}
    numbers = tuple(_numbers(name, columns.get(name, given.get(name, 0))) for name in NUMBERS)
    try:
        return Frames(
            n, texts, numbers, separator=rules.separator, append_crc=rules.append_crc,
            long_topics=rules.long_topics, max_body=rules.max_body, max_frame=rules.max_frame,
        )  # fmt: skip
    except RefusedError as refusal:
        raise refused(refusal, rules, f"row {first + refusal.args[0]}") from None


def message_batches(messages: MessageColumns, rules: WriteRules) -> MessageBatches:
    """Split messages of every accepted form into columns; a `MessageBatches` stays as it is."""
    if isinstance(messages, MessageBatches):
        return messages
    if isinstance(messages, (list, tuple)):
        if messages and isinstance(messages[0], Mapping):
            return MessageBatches([_of_mapping(_of_rows(messages), rules)])
        return MessageBatches([(len(messages), _of_messages(messages))])
    if isinstance(messages, Mapping):
        return MessageBatches([_of_mapping(messages, rules)])
    if hasattr(messages, "__arrow_c_stream__"):
        return MessageBatches(batches_of_stream(messages.__arrow_c_stream__()))
    if hasattr(messages, "__arrow_c_array__"):
        return MessageBatches([batch_of_array(*messages.__arrow_c_array__())])
    raise TypeError(
        "messages: expected columns by name, a table, or a list of dicts or of NewMessage, "
        f"got {type(messages).__name__}"
    )


def _of_mapping(messages: Mapping[str, Any], rules: WriteRules) -> tuple[int, Mapping[str, Any]]:
    columns = {
        name: _texts(name, column, rules) if name in TEXTS else _numbers(name, column)
        for name, column in messages.items()
        if name in TEXTS or name in NUMBERS
    }
    lengths = {
        name: len(column)
        for name, column in columns.items()
        if not (name in TEXTS and isinstance(messages[name], (str, bytes, type(None))))
        and not (name in NUMBERS and np.ndim(messages[name]) == 0)
        and not (isinstance(column, Pieces) and column.constant)
    }
    if len(set(lengths.values())) > 1:
        raise ValueError(f"messages: expected columns of one length, got {lengths}")
    rest = {name: column for name, column in messages.items() if name not in columns}
    return next(iter(lengths.values()), 1), {**rest, **columns}


def _of_rows(rows: Sequence[Any]) -> Mapping[str, Any]:
    """Columns of dicts: what a row lacks, or has as None, is as in a `NewMessage` without it."""
    for row, message in enumerate(rows):
        if not isinstance(message, Mapping):
            raise TypeError(f"messages: expected dicts, got {type(message).__name__} in row {row}")
    columns: dict[str, Any] = {}
    now = time.time_ns() // 1_000_000
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if name in _TIMES:
            values = [now if value is None else milliseconds(name, value) for value in values]
        elif name in ("topic", "queue_offset"):  # for which nothing stands
            if None in values:
                raise ValueError(f"messages: expected the {name} of each, got none in row {values.index(None)}")
        elif name in NUMBERS:
            values = [0 if value is None else value for value in values]
        columns[name] = values
    return columns


def _of_messages(messages: Sequence[Any]) -> Mapping[str, Any]:
    for row, message in enumerate(messages):
        if not isinstance(message, NewMessage):
            raise TypeError(f"messages: expected NewMessage, got {type(message).__name__} in row {row}")
    columns: dict[str, Any] = {name: [getattr(message, name) for message in messages] for name in TEXTS}
    columns["born_host"] = [message.born_host or message.store_host for message in messages]
    now = time.time_ns() // 1_000_000
    for name in NUMBERS:
        if name != "queue_offset":
            given = (getattr(message, name) for message in messages)
            columns[name] = [now if number is None else number for number in given]
    return columns


def _host_column(name: str, columns: Mapping[str, Any], rules: WriteRules) -> Pieces:
    texts = columns.get(name)
    if texts is None and name == "born_host":
        name, texts = "store_host", columns.get("store_host")
    if texts is None:
        return constant_piece(rules.store_host)
    return hosts_of(name, _texts(name, texts, rules), rules.store_host)


def _texts(name: str, values: Any, rules: WriteRules) -> Pieces:
    if isinstance(values, Pieces):
        return values
    if values is None or isinstance(values, (str, bytes)):
        return constant_piece(values.encode(errors="replace") if isinstance(values, str) else values)
    if isinstance(values, StringColumn):
        valid = values.valid
        data, offsets = np.ascontiguousarray(values.data), np.ascontiguousarray(values.offsets, np.int64)
        return pieces_of_offsets(name, data, offsets, None if valid is None else np.ascontiguousarray(valid))
    if isinstance(values, (list, tuple)):
        return pieces_of_sequence(name, _blocks(values, rules) if name == "properties" else values)
    column = _arrow_column(name, values)
    if column is None:
        return _of_array(name, np.asarray(values), rules)
    if not isinstance(column, Pieces):
        raise TypeError(f"{name}: expected text or bytes, got numbers")
    return column


def _of_array(name: str, array: npt.NDArray[Any], rules: WriteRules) -> Pieces:
    if array.ndim == 2 and array.dtype == np.uint8:
        ends = np.arange(len(array) + 1, dtype=np.int64) * array.shape[1]
        return pieces_of_offsets(name, np.ascontiguousarray(array), ends, None)
    if array.ndim != 1 or array.dtype.kind not in "OUST":
        raise TypeError(f"{name}: expected text or bytes, got {array.ndim} dimensions of {array.dtype}")
    return pieces_of_sequence(name, _blocks(array.tolist(), rules) if name == "properties" else array.tolist())


def _blocks(values: Sequence[Any], rules: WriteRules) -> Sequence[Any]:
    """Properties as blocks: those that are blocks already, and mappings encoded."""
    if not any(isinstance(value, Mapping) for value in values):
        return values
    return [properties_block(value, rules) if isinstance(value, Mapping) else value for value in values]


def _numbers(name: str, values: Any) -> npt.NDArray[np.int64]:
    column = None if isinstance(values, np.ndarray) else _arrow_column(name, values)
    if column is not None:
        values = column
    elif isinstance(values, np.ndarray) and values.ndim == 0:
        values = values[None]
    elif not isinstance(values, (str, bytes, Iterable)):  # one for all rows
        values = [values]
    array = times(name, values) if name in _TIMES else int64s(name, values)
    if array.size and (int(array.max()) > _largest(name) or int(array.min()) < -_largest(name) - 1):
        raise ValueError(f"{name}: expected numbers up to {_largest(name)}, got {int(array.min())}..{int(array.max())}")
    return array


def _largest(name: str) -> int:
    return 2**31 - 1 if name in _INT32 else 2**63 - 1


def _arrow_column(name: str, values: Any) -> Pieces | npt.NDArray[np.int64] | None:
    """None: it is no Arrow array."""
    if hasattr(values, "__arrow_c_array__"):
        return column_of_array(name, *values.__arrow_c_array__())
    if not hasattr(values, "__arrow_c_stream__"):
        return None
    try:
        chunks = columns_of_stream(name, values.__arrow_c_stream__())
    except ImportError:  # pandas exports through pyarrow, which need not be there
        return None
    if all(isinstance(chunk, Pieces) for chunk in chunks):
        return joined_pieces([chunk for chunk in chunks if isinstance(chunk, Pieces)])
    return np.concatenate([np.asarray(chunk) for chunk in chunks])
