"""Columns of decoded frames: which a scan offers, and what each is for Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import ColumnScanner, columns_at
from mqindex.columns.columns import BinaryColumn, Column, Columns, StringColumn, chosen_columns
from mqindex.rocketmq.messages.property_map import property_map

BULKY_COLUMNS: Final = frozenset(("body", "properties"))
_TIMES: Final = ("store_timestamp", "born_timestamp")
_MAX_ROWS: Final = 65536  # of a batch
# With bodies or properties: so few that malloc has the memory of the batch before for the next one. Larger buffers are
# of new pages each time, and a fault for each page costs twice the copy.
_MAX_BULKY_ROWS, _MAX_BULKY_BYTES = 8192, 2 << 20

DEFAULT_COLUMNS: Final = (
    "topic",
    "queue_id",
    "queue_offset",
    "phy_offset",
    "size",
    "store_timestamp",
    "born_timestamp",
    "tags",
    "keys",
    "uniq_key",
    "sys_flag",
    "flag",
    "body_crc",
    "reconsume_times",
    "prepared_transaction_offset",
    "born_host",
    "store_host",
    "msg_id",
)
COLUMNS: Final = (*DEFAULT_COLUMNS, "body", "properties")


def require_columns(names: Iterable[str] | None) -> tuple[str, ...]:
    """The columns to make, in the caller's order; None: all but the bulky ones."""
    return DEFAULT_COLUMNS if names is None else chosen_columns(names, COLUMNS)


def column_scanner(
    buf: Any, file_start: int, start: int, stop: int, names: tuple[str, ...], *, check_crc: bool
) -> ColumnScanner:
    """The frames of a file that begin at the phy offsets [start, stop); `as_columns` of what it gives.

    Batches are smaller where bodies would make them too large.
    """
    bulky = not BULKY_COLUMNS.isdisjoint(names)
    rows, most = (_MAX_BULKY_ROWS, _MAX_BULKY_BYTES) if bulky else (_MAX_ROWS, 2**63 - 1)
    return ColumnScanner(buf, file_start, start, stop, names, check_crc=check_crc, max_frames=rows, max_bytes=most)


def as_columns(made: Mapping[str, Any], rows: int) -> Columns:
    """What a kernel made, for users."""
    return Columns({name: _column(name, column) for name, column in made.items()}, num_rows=rows)


def _column(name: str, column: Any) -> npt.NDArray[Any] | StringColumn:
    if isinstance(column, np.ndarray):
        return column
    return BinaryColumn(*column) if name == "body" else StringColumn(*column)


def typed(columns: Columns) -> Columns:
    """The columns with times as datetime64[ms], which Arrow has in UTC, and properties as maps."""
    made = {name: _typed(name, column) for name, column in columns.items()}
    return Columns(made, num_rows=len(columns))


def _typed(name: str, column: Column) -> Column:
    if name in _TIMES:
        return column.view("M8[ms]")  # type: ignore[union-attr]
    return property_map(column) if name == "properties" else column  # type: ignore[arg-type]


def no_messages(names: tuple[str, ...]) -> Columns:
    """All columns, without a row."""
    return as_columns(*columns_at(b"", 0, [], [], names))
