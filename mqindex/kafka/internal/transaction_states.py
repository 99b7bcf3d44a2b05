"""`decode_transactions`: what `__transaction_state` says of transactional ids."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError
from mqindex.kafka.internal.cursor import Cursor
from mqindex.kafka.internal.layouts import TRANSACTION_KEY, TRANSACTION_VALUE
from mqindex.kafka.internal.rows import MARKER, UNREADABLE, control, made, of_rows, pairs

STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
"""By their number. Source: Kafka 4.4.0 `TransactionState`."""

_KINDS: Final = {
    "kind": str, "transactional_id": str, "producer_id": np.int64, "producer_epoch": np.int16, "state": str,
    "timeout_ms": np.int32, "partitions": str, "start_time": "ms", "update_time": "ms", "problem": str,
}  # fmt: skip


def decode_transactions(records: Columns) -> Columns:
    """What the records of `__transaction_state` say, a row each.

    Parameters
    ----------
    records : Columns with key and value, as for `decode_commits`.

    Returns
    -------
    Columns : kind text, transactional_id text, producer_id int64, producer_epoch int16, state text (as Ongoing,
        PrepareCommit, CompleteAbort), timeout_ms int32, partitions text (as "orders-0, orders-2"), start_time and
        update_time datetime64[ms], problem text. What a row has not is null, -1 or NaT.
        kind is "transaction"; "deleted": the transactional id expired; "other": of a version that is not known;
        "marker"; "unreadable": bytes that are none of this, and `problem` says why.

    Notes
    -----
    Source: Kafka 4.4.0 `TransactionLog`, `TransactionLogKey`, `TransactionLogValue`, versions 0 and 1.

    Examples
    --------
    >>> from mqindex.columns.columns import BinaryColumn
    >>> data = bytes.fromhex("0000" "0003" "746964"), bytes.fromhex("0000" "0000000000000007" "0001" "0000ea60" "01"
    ...     "00000001" "0006" "6f7264657273" "00000002" "00000000" "00000002" "0000018bcfe56c00" "0000018bcfe56800")
    >>> key, value = (BinaryColumn(np.frombuffer(each, np.uint8), np.array([0, len(each)])) for each in data)
    >>> found = decode_transactions(Columns({"key": key, "value": value}))
    >>> [found[name].to_pylist() for name in ("kind", "transactional_id", "state", "partitions")]
    [['transaction'], ['tid'], ['Ongoing'], ['orders-0, orders-2']]
    """
    rows = [
        {"kind": MARKER} if marker else _row(key, value)
        for (key, value), marker in zip(pairs(records), control(records).tolist(), strict=True)
    ]
    return made(of_rows(_KINDS, rows), records)


def _row(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    if key is None:
        return {"kind": UNREADABLE, "problem": "there is no key"}
    try:
        cursor = Cursor(key)
        version = cursor.number("int16")
        if version != TRANSACTION_KEY.last:
            return {"kind": "other"}
        row = cursor.read(TRANSACTION_KEY, version)
        if value is None:
            return {"kind": "deleted", **row}
        cursor = Cursor(value)
        row |= cursor.read(TRANSACTION_VALUE, cursor.number("int16"))
    except FormatError as error:
        return {"kind": UNREADABLE, "problem": str(error)}
    state = row["state"]
    known = 0 <= state < len(STATES)
    partitions = [
        b"%s-%d" % (each["topic"], number) for each in row["partitions"] or () for number in each["partitions"]
    ]
    return {
        **row, "kind": "transaction", "state": STATES[state] if known else f"state {state}",
        "partitions": b", ".join(partitions),
    }  # fmt: skip
