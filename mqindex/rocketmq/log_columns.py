"""Columns of decoded frames: which a scan offers, and how each is made of a structured array and the file's bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex._native.commit_log import gather
from mqindex._results import BinaryColumn, Columns, StringColumn
from mqindex.rocketmq.message import host_text

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "columns_of", "require_columns"]

_Frames: TypeAlias = npt.NDArray[Any]
_Column: TypeAlias = npt.NDArray[Any] | StringColumn
_Bytes: TypeAlias = npt.NDArray[np.uint8]

_HEX = np.array([f"{byte:02X}".encode() for byte in range(256)]).view(np.uint8).reshape(256, 2)
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


def _host(name: str) -> Callable[[Any, _Frames], _Column]:
    def column(buf: Any, frames: _Frames) -> _Column:
        hosts = list(_by_width(buf, frames, name))
        offsets = np.zeros(len(frames) + 1, np.int64)
        texts = []
        for rows, pieces in hosts:
            # The same few hosts come again and again: each is written out once.
            distinct, which = np.unique(pieces, axis=0, return_inverse=True)
            blobs = [host_text(host.tobytes()).encode() for host in distinct]
            lengths = np.array([len(blob) for blob in blobs], np.int32)
            offsets[rows + 1] = lengths[which]
            texts.append((rows, b"".join(blobs), np.cumsum(lengths, dtype=np.int64) - lengths, lengths, which))
        np.cumsum(offsets, out=offsets)
        data = np.empty(offsets[-1], np.uint8)
        for rows, blob, starts, lengths, which in texts:
            pieces, bounds, _ = gather(blob, starts[which], lengths[which])
            _place(data, offsets, rows, pieces, bounds)
        return StringColumn(data, offsets)

    return column


def _msg_id(buf: Any, frames: _Frames) -> _Column:
    ids = []
    offsets = np.zeros(len(frames) + 1, np.int64)
    for rows, hosts in _by_width(buf, frames, "store_host"):
        places = frames["phy_offset"][rows].astype(">i8").view(np.uint8).reshape(-1, 8)
        text = _HEX[np.concatenate([hosts, places], axis=1)].reshape(len(rows), -1)
        offsets[rows + 1] = text.shape[1]
        ids.append((rows, text))
    np.cumsum(offsets, out=offsets)
    data = np.empty(offsets[-1], np.uint8)
    for rows, text in ids:
        data[offsets[rows][:, None] + np.arange(text.shape[1])] = text
    return StringColumn(data, offsets)


def _by_width(buf: Any, frames: _Frames, name: str) -> Iterator[tuple[npt.NDArray[np.intp], _Bytes]]:
    """Rows with IPv4 hosts, then those with IPv6 hosts, and their addresses with the port behind."""
    lengths = frames[f"{name}_len"]
    for width in (4, 16):
        rows = np.flatnonzero(lengths == width)
        if len(rows):
            data, _, _ = gather(buf, frames[f"{name}_pos"][rows], np.full(len(rows), width + 4, np.int32))
            yield rows, data.reshape(len(rows), width + 4)


def _place(
    data: _Bytes,
    offsets: npt.NDArray[np.int64],
    rows: npt.NDArray[np.intp],
    pieces: _Bytes,
    bounds: npt.NDArray[np.int64],
) -> None:
    if len(rows) == len(offsets) - 1:
        data[:] = pieces
        return
    shift = np.repeat(offsets[rows] - bounds[:-1], np.diff(bounds))
    data[np.arange(len(pieces)) + shift] = pieces


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
    "born_host": _host("born_host"),
    "store_host": _host("store_host"),
    "msg_id": _msg_id,
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
