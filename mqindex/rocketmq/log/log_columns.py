"""Columns of decoded frames: which a scan offers, and how each is made of a structured array and the file's bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.log_text import born_hosts, gather, msg_ids, store_hosts
from mqindex.columns.columns import BinaryColumn, Columns, StringColumn

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "columns_of", "require_columns"]

_Frames: TypeAlias = npt.NDArray[Any]
_Column: TypeAlias = npt.NDArray[Any] | StringColumn

_MAX_BATCH_BYTES = 64 << 20  # of frames, where bodies or properties are copied


def _number(name: str) -> Callable[[Any, _Frames], _Column]:
    return lambda buf, frames: np.ascontiguousarray(frames[name])


def _text(name: str, *, optional: bool = False) -> Callable[[Any, _Frames], _Column]:
    def column(buf: Any, frames: _Frames) -> _Column:
        data, offsets, valid = gather(buf, frames[f"{name}_pos"], frames[f"{name}_len"])
        return StringColumn(data, offsets, valid if optional else None)

    return column


def _body(buf: Any, frames: _Frames) -> _Column:
    data, offsets, _ = gather(buf, frames["body_pos"], frames["body_len"])
    return BinaryColumn(data, offsets)


def _made(
    kernel: Callable[[Any, _Frames], tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]],
) -> Callable[[Any, _Frames], _Column]:
    return lambda buf, frames: StringColumn(*kernel(buf, frames))


COLUMNS: Final[dict[str, Callable[[Any, _Frames], _Column]]] = {
    "topic": _text("topic"),
    "queue_id": _number("queue_id"),
    "queue_offset": _number("queue_offset"),
    "phy_offset": _number("phy_offset"),
    "size": _number("size"),
    "store_timestamp": _number("store_timestamp"),
    "born_timestamp": _number("born_timestamp"),
    "tags": _text("tags", optional=True),
    "keys": _text("keys", optional=True),
    "uniq_key": _text("uniq_key", optional=True),
    "sys_flag": _number("sys_flag"),
    "flag": _number("flag"),
    "body_crc": _number("body_crc"),
    "reconsume_times": _number("reconsume_times"),
    "prepared_transaction_offset": _number("prepared_transaction_offset"),
    "born_host": _made(born_hosts),
    "store_host": _made(store_hosts),
    "msg_id": _made(msg_ids),
    "body": _body,
    "properties": _text("properties"),
}
_BULKY = ("body", "properties")
DEFAULT_COLUMNS: Final = tuple(name for name in COLUMNS if name not in _BULKY)


def require_columns(names: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to make, in the caller's order; None: all but the bulky ones."""
    if names is None:
        return DEFAULT_COLUMNS
    if isinstance(names, str):
        raise TypeError("columns: expected a sequence of names, got one str")
    chosen = tuple(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in COLUMNS]
    if unknown:
        raise ValueError(f"columns: expected some of {', '.join(COLUMNS)}, got {', '.join(map(repr, unknown))}")
    return chosen


def columns_of(buf: Any, frames: _Frames, names: tuple[str, ...]) -> Iterator[Columns]:
    """Batches of the frames' columns; several where bodies would make one too large."""
    for part in _parts(frames) if any(name in _BULKY for name in names) else (frames,):
        yield Columns({name: COLUMNS[name](buf, part) for name in names}, num_rows=len(part))


def _parts(frames: _Frames) -> Iterator[_Frames]:
    number = np.cumsum(frames["size"], dtype=np.int64) // _MAX_BATCH_BYTES
    cuts = np.flatnonzero(np.diff(number)) + 1
    yield from np.split(frames, cuts)
