"""`decode_markers`: what control records say, of transactions and of KRaft's own log."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.kafka.internal.cursor import Cursor
from mqindex.kafka.internal.layouts import (
    END_OF_TRANSACTION,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Layout,
)
from mqindex.kafka.internal.rows import UNREADABLE, control, made, of_rows, pairs

_TYPES: Final[tuple[tuple[str, Layout], ...]] = (
    ("abort", END_OF_TRANSACTION),
    ("commit", END_OF_TRANSACTION),
    ("leader-change", LEADER_CHANGE),
    ("snapshot-header", SNAPSHOT_HEADER),
    ("snapshot-footer", SNAPSHOT_FOOTER),
    ("kraft-version", KRAFT_VERSION),
    ("kraft-voters", KRAFT_VOTERS),
)
"""By the number in a marker's key. Source: Kafka 4.4.0 `ControlRecordType`."""

_KINDS: Final = {
    "kind": str, "coordinator_epoch": np.int32, "leader": np.int32, "voters": str, "kraft_version": np.int16,
    "last_contained_time": "ms", "problem": str,
}  # fmt: skip


def decode_markers(records: Columns) -> Columns:
    """What control records say, a row for each of `records`; null in the rows of other records.

    Parameters
    ----------
    records : Columns with key, value and is_control, as for `decode_commits`; without is_control all are markers.

    Returns
    -------
    Columns : kind text, coordinator_epoch int32, leader int32, voters text (as "1, 2, 3"), kraft_version int16,
        last_contained_time datetime64[ms], problem text. What a row has not is null, -1 or NaT.
        kind is "commit" or "abort", the end of a transaction; "leader-change", "kraft-version", "kraft-voters",
        "snapshot-header", "snapshot-footer" of `__cluster_metadata`; "other": of a type that is not known;
        "unreadable": bytes that are none of this, and `problem` says why.

    Notes
    -----
    Source: Kafka 4.4.0 `ControlRecordType`, `EndTransactionMarker`, `ControlRecordUtils`.

    Examples
    --------
    >>> from mqindex.columns.columns import BinaryColumn
    >>> data = bytes.fromhex("0000" "0001"), bytes.fromhex("0000" "00000003")
    >>> key, value = (BinaryColumn(np.frombuffer(each, np.uint8), np.array([0, len(each)])) for each in data)
    >>> found = decode_markers(Columns({"key": key, "value": value}))
    >>> found["kind"].to_pylist(), found["coordinator_epoch"].tolist()
    (['commit'], [3])
    """
    flags = control(records).tolist() if "is_control" in records else [True] * records.num_rows
    rows = [_row(key, value) if flag else {} for (key, value), flag in zip(pairs(records), flags, strict=True)]
    return made(of_rows(_KINDS, rows), records)


def _row(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    try:
        cursor = Cursor(key or b"")
        cursor.number("int16")  # the version of the key; later ones may only add to it
        number = cursor.number("int16")
        if not 0 <= number < len(_TYPES):
            return {"kind": "other"}
        kind, layout = _TYPES[number]
        cursor = Cursor(value or b"")
        version = cursor.number("int16")
        if layout is not END_OF_TRANSACTION:
            cursor.at = 0  # there the version is the structure's first field
        row = cursor.read(layout, min(version, layout.last))
    except FormatError as error:
        return {"kind": UNREADABLE, "problem": str(error)}
    if "voters" in row:
        row["voters"] = ", ".join(str(voter["id"]) for voter in row["voters"])
    return {**row, "kind": kind}
