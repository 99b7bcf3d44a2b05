"""The units of batch queues: their bytes, and those that dispatch writes for records of a log.

A record of many messages says in its properties how many (INNER_NUM) and which queue offset the first one has
(INNER_BASE); without both it is one message. Source: RocketMQ 5.5.0 `CommitLog.setBatchSizeIfNeeded`,
`BatchConsumeQueue.putBatchMessagePositionInfo`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._native.log_columns import columns_at
from mqindex._native.log_message import parse_properties
from mqindex.errors import FormatError
from mqindex.rocketmq.messages.message import read_message

BatchUnits = npt.NDArray[Any]

BATCH_UNIT = np.dtype(
    [
        ("phy_offset", ">i8"),
        ("size", ">i4"),
        ("tags_code", ">i8"),
        ("store_timestamp", ">i8"),
        ("msg_base_offset", ">i8"),
        ("batch_size", ">i2"),
        ("compacted_offset", ">i4"),
        ("reserved", ">i4"),
    ]
)
_OF_LOG = ("phy_offset", "size", "tags_code", "store_timestamp")
_NOT_COMPACTED = -1
_AT_ONCE = 2048  # records; their properties are up to 32 KiB each
_NUMBER = re.compile(r"[+-]?\d{1,20}")


def are_valid(rows: BatchUnits) -> npt.NDArray[np.bool_]:
    """Which of them a broker's recovery takes for units; it ends the queue at any other."""
    return (rows["phy_offset"] >= 0) & (rows["size"] > 0) & (rows["msg_base_offset"] >= 0) & (rows["batch_size"] > 0)


def batch_units(buf: Any, file_start: int, units: npt.NDArray[Any]) -> tuple[BatchUnits, npt.NDArray[np.bool_]]:
    """The units of a batch queue for units of a log (`UNIT`) whose records are in one file, and which are valid.

    A record whose INNER_NUM or INNER_BASE is no number, or an impossible one, gives a unit that is not valid, and
    belongs in no queue: a broker does not get beyond such a record, writes none, or ends its queue there later.

    Raises
    ------
    FormatError : a record is no longer there
    """
    rows = np.zeros(len(units), BATCH_UNIT)
    for name in _OF_LOG:
        rows[name] = units[name]
    rows["msg_base_offset"], rows["batch_size"], rows["compacted_offset"] = units["queue_offset"], 1, _NOT_COMPACTED
    for at, properties in _inner(buf, file_start, units):
        rows["msg_base_offset"][at], rows["batch_size"][at] = _numbers(properties)
    return rows, are_valid(rows)


def lives(rows: BatchUnits) -> list[BatchUnits]:
    """The units in up to three parts: before the queue offset is 0, from there up to the last such unit, and the rest.

    A topic that was deleted and created again begins at 0; where it was more than once, only the last time counts.
    """
    at_0 = np.flatnonzero(rows["msg_base_offset"] == 0)
    return [part for part in np.split(rows, at_0[[0, -1]] if len(at_0) else []) if len(part)]


def _inner(buf: Any, file_start: int, units: npt.NDArray[Any]) -> Iterator[tuple[int, dict[str, str]]]:
    """The records that say how many messages they hold: their place among `units`, and their properties."""
    for first in range(0, len(units), _AT_ONCE):
        some = units[first : first + _AT_ONCE]
        made, whole = columns_at(buf, file_start, some["phy_offset"], some["size"], ("properties",))
        if whole < len(some):
            raise _changed(buf, file_start, some[whole])
        data, offsets, _ = made["properties"]
        text, borders = bytes(data), offsets.tolist()
        for at in range(whole):
            block = text[borders[at] : borders[at + 1]]
            if b"INNER_NUM\1" in block and b"INNER_BASE\1" in block:
                properties = parse_properties(block)
                if "INNER_NUM" in properties and "INNER_BASE" in properties:
                    yield first + at, properties


def _changed(buf: Any, file_start: int, unit: Any) -> FormatError:
    at = int(unit["phy_offset"])
    got = read_message(buf, file_start, at).size  # or it says what else is wrong
    expected, where = int(unit["size"]), at - file_start
    return FormatError("the record has another size", at=where, field="total_size", expected=expected, got=got)


def _numbers(properties: dict[str, str]) -> tuple[int, int]:
    """The queue offset of the first message, and how many they are; -1: what is no such number."""
    base, count = (
        int(text) if _NUMBER.fullmatch(text) else -1 for text in (properties["INNER_BASE"], properties["INNER_NUM"])
    )
    possible = 0 <= base < 2**63 - 2**15 and 0 < count < 2**15
    return (base, count) if possible else (-1, -1)
