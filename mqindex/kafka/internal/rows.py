"""Columns of decoded records: one row a record, and where each record is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Column, Columns, StringColumn

UNREADABLE: Final = "unreadable"
MARKER: Final = "marker"
NONE: Final = -1  # of a number

_PASSED: Final = ("partition", "offset", "timestamp")


def made(columns: Mapping[str, Column], records: Columns) -> Columns:
    """These columns, and before them those that say which record each row is of, as far as `records` has them."""
    passed = {f"record_{name}": records[name] for name in _PASSED if name in records}
    if "record_timestamp" in passed:
        passed["record_timestamp"] = times(passed["record_timestamp"])
    return Columns({**passed, **columns}, num_rows=records.num_rows)


def of_rows(kinds: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    """A column of each of `kinds`: str for text, "ms" for a time, a NumPy type for numbers, -1 where there is none."""
    made: dict[str, Column] = {}
    for name, kind in kinds.items():
        values = [row.get(name) for row in rows]
        if kind is str:
            made[name] = texts(values)
        else:
            numbers = np.array([NONE if value is None else value for value in values], np.int64)
            made[name] = times(numbers) if kind == "ms" else numbers.astype(kind)
    return made


def texts(values: Iterable[bytes | str | None]) -> StringColumn:
    """A column of texts, null where there is none."""
    data = [value.encode() if isinstance(value, str) else value for value in values]
    sizes = np.array([0, *(len(value or b"") for value in data)], np.int64)
    there = np.array([value is not None for value in data], np.bool_)
    return StringColumn(np.frombuffer(b"".join(filter(None, data)), np.uint8), np.cumsum(sizes), there)


def times(ms: npt.NDArray[Any]) -> npt.NDArray[np.datetime64]:
    """Milliseconds since the epoch as times; NaT where they are below 0, as where there is none."""
    if ms.dtype.kind == "M":
        return ms
    found = ms.astype("datetime64[ms]")
    found[ms < 0] = np.datetime64("NaT")
    return found


def pairs(records: Columns) -> Iterator[tuple[bytes | None, bytes | None]]:
    """The key and the value of each record."""
    return zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True)


def control(records: Columns) -> npt.NDArray[np.bool_]:
    """Which records are markers, as far as `records` says it."""
    flags: npt.NDArray[np.bool_] = (
        records["is_control"] if "is_control" in records else np.zeros(records.num_rows, np.bool_)
    )
    return flags
