"""A table over files: which columns it has, and how its rows are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Column, Columns, StringColumn
from mqindex.tables.bounds import Bounds
from mqindex.wording.text import deleted_meanwhile

BLOCK: Final = 1 << 16
"""Rows of a batch of small rows."""

_TIMES: Final = range(10**11, 10**14)  # from 1973 on: a number before is taken for seconds elsewhere

Options: TypeAlias = "Mapping[str, Any]"
Opened: TypeAlias = "Callable[[str, str, Options], Table]"  # of a path, its kind, and the options given
Read: TypeAlias = "Callable[[Sequence[str], Bounds], Iterator[Columns]]"


class Table(NamedTuple):
    """A table of a path.

    Attributes
    ----------
    empty : every column, without a row; the first one costs least to read
    read : the rows, as columns of these names or of more; rows that the bounds exclude may be left out
    """

    empty: Columns
    read: Read


def no_rows(kinds: Mapping[str, str]) -> Columns:
    """Columns without a row; a kind is a NumPy type, or "text".

    >>> no_rows({"topic": "text", "queue_id": "i4"})
    Columns(topic, queue_id; 0 rows)
    """
    return Columns({name: texts([]) if kind == "text" else np.empty(0, kind) for name, kind in kinds.items()}, 0)


def cheapest_first(columns: Columns, name: str) -> Columns:
    """The same columns, beginning with that one."""
    return columns.select([name, *(other for other in columns if other != name)])


def texts(values: Sequence[str | None]) -> StringColumn:
    """A column of text.

    >>> texts(["a", None]).to_pylist()
    ['a', None]
    """
    data = [b"" if value is None else value.encode(errors="replace") for value in values]
    valid = np.array([value is not None for value in values], np.bool_) if None in values else None
    return StringColumn(np.frombuffer(b"".join(data), np.uint8), np.cumsum([0, *map(len, data)], dtype=np.int64), valid)


def repeated(text: str | None, rows: int) -> StringColumn:
    """A column with the same text in every row.

    >>> repeated("ab", 2).to_pylist(), repeated(None, 1).to_pylist()
    (['ab', 'ab'], [None])
    """
    data = np.frombuffer((text or "").encode(errors="replace"), np.uint8)
    valid = np.zeros(rows, np.bool_) if text is None else None
    return StringColumn(np.tile(data, rows), np.arange(rows + 1, dtype=np.int64) * len(data), valid)


def named(rows: int, **values: str | int | None) -> dict[str, Column]:
    """Columns with the same value in every row: of text, or int32."""
    return {
        name: np.full(rows, value, np.int32) if isinstance(value, int) else repeated(value, rows)
        for name, value in values.items()
    }


def as_times(ms: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Times in ms since the epoch as datetime64[ms]; -1, which is none, as NaT."""
    times: npt.NDArray[Any] = np.where(ms == -1, np.datetime64("NaT", "ms").astype(np.int64), ms).view("M8[ms]")
    return times


def number_range(bounds: Bounds, name: str) -> tuple[int | None, int | None]:
    """[start, stop) of the whole numbers that a column may have; None: no end."""
    bound = bounds.get(name)
    least, most = (None, None) if bound is None else (bound.least, bound.most)
    return least if isinstance(least, int) else None, most + 1 if isinstance(most, int) else None


def period(bounds: Bounds, name: str) -> tuple[int | None, int | None]:
    """[begin, end) of the times that a column may have, in ms; None: no end, or one that no store has times beyond."""
    begin, end = number_range(bounds, name)
    return (
        begin if begin is not None and begin in _TIMES else None,
        end if end is not None and end in _TIMES else None,
    )


def may_have(bounds: Bounds, **values: object) -> bool:
    """Whether rows with these values may be asked for."""
    return all(bounds[name].allows(value) for name, value in values.items() if name in bounds)


def tell(sentences: Iterable[object]) -> None:
    """Warn of what was left out."""
    for sentence in sentences:
        warnings.warn(str(sentence), UserWarning, stacklevel=3)


def read_all(scan: Any) -> Iterator[Columns]:
    """The batches of a `Scan`; what it leaves out is told."""
    told = 0
    with scan:
        for batch in scan:
            tell(scan.damage[told:])
            told = len(scan.damage)
            yield batch
        tell((*scan.damage[told:], *map(deleted_meanwhile, scan.expired)))
