"""Batches of a segment's log as rows: what the kernels give, and what is made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Columns

_LONG = ("position", "base_offset", "last_offset", "base_timestamp", "max_timestamp", "producer_id")
BATCH: Final = np.dtype(
    [
        *((name, "=i8") for name in _LONG),
        ("size", "=i4"),
        ("leader_epoch", "=i4"),
        ("crc", "=u4"),
        ("count", "=i4"),
        ("base_sequence", "=i4"),
        ("attributes", "=i2"),
        ("producer_epoch", "=i2"),
        ("magic", "i1"),
    ]
)
"""One batch, in memory only. position: byte in the log; size: of the whole batch. Of magic 0 and 1 the offsets are the
(wrapper) message's, the count is 1, and what only magic 2 has is -1; so is a timestamp of magic 0."""

_CODEC, _LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40


def batch_rows(views: Iterable[memoryview | bytes]) -> npt.NDArray[Any]:
    """The packed rows of a `BatchScan`, or of `Recovered.transactional`, as one structured array of `BATCH`."""
    return np.frombuffer(b"".join(views), BATCH)


def batch_columns(rows: npt.NDArray[Any]) -> Columns:
    """Rows of `BATCH` as columns of the same names, and `delete_horizon`."""
    columns = {name: np.ascontiguousarray(rows[name]) for name in BATCH.names or ()}
    return Columns({**columns, "delete_horizon": delete_horizon(rows)}, num_rows=len(rows))


def codec_of(rows: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """The number of each batch's codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 are unknown."""
    return (rows["attributes"] & _CODEC).astype(np.int8)


def is_transactional(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which batches are part of a transaction."""
    return _flag(rows, _TRANSACTIONAL)


def is_control(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which batches hold a marker, not records of users."""
    return _flag(rows, _CONTROL)


def has_append_time(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which batches carry the broker's time instead of the producers'."""
    flags: npt.NDArray[np.bool_] = ((rows["attributes"] & _LOG_APPEND_TIME) != 0) & (rows["magic"] != 0)
    return flags


def delete_horizon(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """From which time on the cleaner may drop a batch's tombstones and marker; -1: it has not set one.

    It takes the place of the batch's base timestamp, which the times of its records still count from.
    Source: Kafka 4.4.0 `DefaultRecordBatch.deleteHorizonMs`.
    """
    horizon: npt.NDArray[np.int64] = np.where(_flag(rows, _DELETE_HORIZON), rows["base_timestamp"], -1)
    return horizon


def _flag(rows: npt.NDArray[Any], bit: int) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = ((rows["attributes"] & bit) != 0) & (rows["magic"] >= 2)
    return flags
