"""Columns of batches: NumPy arrays in shapes that every Arrow consumer takes without a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Self, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from mqindex._java_text import JAVA
from mqindex._native.arrow import export_stream
from mqindex._native.ragged import taken
from mqindex._needs import needed
from mqindex._words import plural
from mqindex.columns.limits import several_names
from mqindex.columns.ragged import Node, Ragged, joined_offsets
from mqindex.errors import CapacityError

Column: TypeAlias = "npt.NDArray[Any] | StringColumn | HeadersColumn | MapColumn"

_FORMATS = dict(zip(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"), "cCsSiIlLfg", strict=True))


class StringColumn(Ragged, Sequence["str | None"]):
    """A column of text: UTF-8 bytes one after the other, and where each string starts.

    Attributes
    ----------
    data : ndarray of uint8, shape (b,). Bytes as the file has them; those that are no UTF-8 are replaced on reading.
    offsets : ndarray of int64, shape (n + 1,); string i is `data[offsets[i]:offsets[i + 1]]`.
    valid : ndarray of bool, shape (n,), False where there is no string; None: all are there.

    Examples
    --------
    >>> text = StringColumn(np.frombuffer(b"onetwo", np.uint8), np.array([0, 3, 3, 6]), np.array([True, False, True]))
    >>> text.to_pylist()
    ['one', None, 'two']
    """

    __slots__ = ("data", "valid")

    _row = "string"
    _formats = "uU"  # of Arrow: with 32-bit offsets, with 64-bit ones

    def __init__(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_] | None = None
    ) -> None:
        super().__init__(offsets)
        self.data = data
        self.valid = valid

    @overload
    def __getitem__(self, i: int) -> str | None: ...
    @overload
    def __getitem__(self, i: slice) -> StringColumn: ...
    def __getitem__(self, i: int | slice) -> str | StringColumn | None:
        if isinstance(i, slice):
            return self._part(i)
        i = self._number(i)
        if self.valid is not None and not self.valid[i]:
            return None
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes().decode(errors=JAVA)

    def _part(self, part: slice) -> StringColumn:
        rows, items, offsets = self._rows(part)
        return type(self)(self.data[items], offsets, None if self.valid is None else self.valid[rows])

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """The rows with these numbers, in this order, copied."""
        data, offsets = np.ascontiguousarray(self.data), np.ascontiguousarray(self.offsets)
        return type(self)(*taken(data, offsets, rows), None if self.valid is None else self.valid[rows])

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The rows of several columns."""
        valid = None
        if any(part.valid is not None for part in parts):
            valid = np.concatenate([_validity(part) for part in parts])
        data = [part.data[part.offsets[0] : part.offsets[-1]] for part in parts]
        return cls(np.concatenate(data), joined_offsets(parts), valid)

    def to_pylist(self) -> list[str | None]:
        """Every string, None where there is none."""
        data, bounds = self.data.tobytes(), self.offsets.tolist()
        texts = (data[start:stop].decode(errors=JAVA) for start, stop in pairwise(bounds))
        if self.valid is None:
            return list(texts)
        return [text if there else None for text, there in zip(texts, self.valid.tolist(), strict=True)]

    def _node(self, name: str) -> Node:
        column = self.well_formed()
        bitmap, nulls = None, 0
        if column.valid is not None:
            bitmap = np.packbits(column.valid, bitorder="little")
            nulls = len(column) - int(np.count_nonzero(column.valid))
        large, offsets = column._arrow_offsets(len(column.data))
        return (
            self._formats[large],
            name,
            len(column),
            nulls,
            (bitmap, offsets, np.ascontiguousarray(column.data)),
            (),
        )

    def well_formed(self) -> StringColumn:
        """The same strings as `to_pylist` gives, all of them UTF-8: the column itself, if it is so."""
        return self if self._is_utf8() else self._replaced()

    def _is_utf8(self) -> bool:
        # Arrow consumers rely on it: all of the data is UTF-8, and no string starts inside a character.
        if len(self.data) == 0 or int(self.data.max()) < 0x80:
            return True
        starts = self.offsets[self.offsets < len(self.data)]
        if np.any(self.data[starts] & 0xC0 == 0x80):
            return False
        try:
            self.data.tobytes().decode()
        except UnicodeDecodeError:
            return False
        return True

    def _replaced(self) -> StringColumn:
        texts = [b"" if text is None else text.encode() for text in self.to_pylist()]
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return StringColumn(np.frombuffer(b"".join(texts), np.uint8), offsets, self.valid)

    def __repr__(self) -> str:
        return f"StringColumn({plural(len(self), 'string')}, {plural(len(self.data), 'byte')})"


class BinaryColumn(StringColumn):
    """A column of bytes that are no text: the same three arrays, values of type bytes, Arrow type binary.

    >>> BinaryColumn(np.frombuffer(b"\\x00\\xff", np.uint8), np.array([0, 2, 2])).to_pylist()
    [b'\\x00\\xff', b'']
    """

    __slots__ = ()

    _row = "value"
    _formats = "zZ"

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return self._part(i)
        i = self._number(i)
        return self._bytes(i) if self.valid is None or self.valid[i] else None

    def _bytes(self, i: int) -> bytes:
        return self.data[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def to_pylist(self) -> Any:
        """Every value, None where there is none."""
        there = [True] * len(self) if self.valid is None else self.valid.tolist()
        return [self._bytes(i) if there[i] else None for i in range(len(self))]

    def _is_utf8(self) -> bool:
        return True  # nothing is ever replaced


class _PairsColumn(Ragged):  # no Sequence: polars would require each pair to have values of one type
    """Rows of pairs: their keys, their values, and where each row begins."""

    __slots__ = ("keys", "values")

    _pair: ClassVar[str]  # as `repr` calls one
    _entry: ClassVar[str]  # as Arrow does

    def __init__(self, offsets: npt.NDArray[np.int64], keys: StringColumn, values: StringColumn) -> None:
        super().__init__(offsets)
        self.keys = keys
        self.values = values

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            _, items, offsets = self._rows(i)
            return type(self)(offsets, self.keys[items], self.values[items])
        i = self._number(i)
        return self[i : i + 1].to_pylist()[0]

    def take(self, rows: npt.NDArray[np.int64]) -> Self:
        """The rows with these numbers, in this order, copied."""
        items, offsets = self._items_of(rows)
        return type(self)(offsets, self.keys.take(items), self.values.take(items))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """The rows of several columns."""
        keys, values = [part.keys for part in parts], [part.values for part in parts]
        return cls(joined_offsets(parts), type(keys[0]).concat(keys), type(values[0]).concat(values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_pylist())

    def to_pylist(self) -> list[Any]:
        """Every row."""
        raise NotImplementedError

    def _pairs(self) -> Iterator[list[tuple[str, Any]]]:
        """The pairs of every row."""
        keys = (key or "" for key in self.keys.to_pylist())
        pairs: list[tuple[str, Any]] = list(zip(keys, self.values.to_pylist(), strict=True))
        return (pairs[start:stop] for start, stop in pairwise(self.offsets.tolist()))

    def _entries(self) -> Node:
        children = (self.keys._node("key"), self.values._node("value"))
        return ("+s", self._entry, len(self.keys), 0, (None,), children)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({plural(len(self), 'row')}, {plural(len(self.keys), self._pair)})"


class HeadersColumn(_PairsColumn):
    """A column of headers: for each row a list of (key, value), Arrow type list of structs.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,); the headers of row i are those from `offsets[i]` to `offsets[i + 1]`.
    keys : StringColumn. values : BinaryColumn.

    Examples
    --------
    >>> keys = StringColumn(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2]))
    >>> values = BinaryColumn(np.frombuffer(b"1", np.uint8), np.array([0, 1, 1]), np.array([True, False]))
    >>> HeadersColumn(np.array([0, 2, 2]), keys, values).to_pylist()
    [[('a', b'1'), ('b', None)], []]
    """

    __slots__ = ()

    _row, _pair, _entry = "headers", "header", "item"

    def to_pylist(self) -> list[list[tuple[str, bytes | None]]]:
        """The headers of every row."""
        return list(self._pairs())

    def _node(self, name: str) -> Node:
        large, offsets = self._arrow_offsets(len(self.keys))
        return ("+L" if large else "+l", name, len(self), 0, (None, offsets), (self._entries(),))


class MapColumn(_PairsColumn):
    """A column of maps from text to text: for each row a dict, Arrow type map.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,); the pairs of row i are those from `offsets[i]` to `offsets[i + 1]`.
    keys, values : StringColumn; no row has a key twice.

    Examples
    --------
    >>> keys = StringColumn(np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2]))
    >>> values = StringColumn(np.frombuffer(b"12", np.uint8), np.array([0, 1, 2]))
    >>> MapColumn(np.array([0, 2, 2]), keys, values).to_pylist()
    [{'a': '1', 'b': '2'}, {}]
    """

    __slots__ = ()

    _row, _pair, _entry = "map", "pair", "entries"

    def to_pylist(self) -> list[dict[str, str]]:
        """The map of every row."""
        return [dict(pairs) for pairs in self._pairs()]

    def _node(self, name: str) -> Node:
        if len(self.keys) >= 2**31:
            raise CapacityError("a map column has more pairs than Arrow's maps can have", expected=2**31 - 1)
        return ("+m", name, len(self), 0, (None, self.offsets.astype(np.int32)), (self._entries(),))


class Columns(Mapping[str, Any]):
    """Columns of equal length by name: a table, or one batch of rows of it.

    A column is an ndarray (times are datetime64[ms], NaT where there is none), a `StringColumn` of text, a
    `BinaryColumn` of bytes, a `HeadersColumn` or a `MapColumn`. `len` is the number of rows; iteration gives the names.
    It is an Arrow stream of one record batch: `pyarrow.table(batch)`, DuckDB and others take it as it is, without a
    copy; polars by `to_polars`.

    Attributes
    ----------
    num_rows : int, as `len`

    Examples
    --------
    >>> batch = Columns({"queue_id": np.array([0, 1]), "size": np.array([200, 300], np.int32)})
    >>> list(batch), len(batch), batch["size"].tolist()
    (['queue_id', 'size'], 2, [200, 300])
    >>> batch.take(batch["size"] > 250)["queue_id"].tolist(), Columns.concat([batch, batch])["queue_id"].tolist()
    ([1], [0, 1, 0, 1])
    """

    __slots__ = ("_columns", "num_rows")

    def __init__(self, columns: Mapping[str, Column], num_rows: int | None = None) -> None:
        self._columns = dict(columns)
        lengths = {len(column) for column in self._columns.values()}
        if num_rows is None:
            num_rows = max(lengths, default=0)
        if lengths - {num_rows}:
            raise ValueError(f"columns: expected {plural(num_rows, 'row')} each, got {sorted(lengths)}")
        self.num_rows = num_rows

    @classmethod
    def _of_length(cls, columns: dict[str, Column], num_rows: int) -> Self:
        """Columns of which the caller knows that each has `num_rows` rows."""
        made = cls.__new__(cls)
        made._columns, made.num_rows = columns, num_rows
        return made

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return self.num_rows

    def select(self, names: Iterable[str]) -> Columns:
        """Some of the columns, in this order."""
        return Columns._of_length({name: self._columns[name] for name in names}, self.num_rows)

    def take(self, rows: npt.ArrayLike) -> Columns:
        """Some of the rows, copied.

        Parameters
        ----------
        rows : bool[n], True for those to take, or int64[m], their numbers in the order wanted
        """
        wanted = np.asarray(rows)
        if wanted.dtype == np.bool_:
            if len(wanted) != self.num_rows:
                raise ValueError(f"rows: expected {plural(self.num_rows, 'bool')}, got {len(wanted)}")
            wanted = np.flatnonzero(wanted)
        numbers = wanted.astype(np.int64, casting="same_kind") if wanted.size else np.empty(0, np.int64)
        made: dict[str, Column] = {
            name: column[numbers] if isinstance(column, np.ndarray) else column.take(numbers)
            for name, column in self._columns.items()
        }
        return Columns._of_length(made, len(numbers))

    @staticmethod
    def concat(parts: Sequence[Columns]) -> Columns:
        """The rows of all parts, which have the same columns; one part at least."""
        if len(parts) == 1:
            return parts[0]
        made: dict[str, Column] = {}
        for name, first in parts[0]._columns.items():
            columns: Any = [part._columns[name] for part in parts]
            made[name] = np.concatenate(columns) if isinstance(first, np.ndarray) else type(first).concat(columns)
        return Columns._of_length(made, sum(part.num_rows for part in parts))

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`; needs pyarrow."""
        return needed("pyarrow").table(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; needs pandas and pyarrow. Text has pandas' str type, bytes and lists are objects."""
        needed("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A `polars.DataFrame`; needs polars."""
        # not DataFrame(self): polars takes a mapping column by column, and times without their zone
        return needed("polars").from_arrow(self).struct.unnest()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """One Arrow record batch."""
        children = [_node(name, column) for name, column in self._columns.items()]
        return export_stream(("+s", "", self.num_rows, 0, (None,), children))

    def __array__(self, dtype: object = None, copy: object = None) -> npt.NDArray[Any]:
        """Always a TypeError: `pandas.DataFrame(batch)` calls this, and would take the columns' names for rows."""
        raise TypeError("columns are no array: take one, batch[name]; for pandas, batch.to_pandas()")

    def __repr__(self) -> str:
        return f"Columns({', '.join(self._columns)}; {plural(self.num_rows, 'row')})"


def constant_text(text: str, rows: int) -> StringColumn:
    """A column that has one text in every row."""
    data = text.encode(errors="surrogateescape")
    return StringColumn(np.frombuffer(data * rows, np.uint8), np.arange(rows + 1) * len(data))


def chosen_columns(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """The columns that a caller asks for, each once, in the caller's order; `known`: those that there are.

    >>> chosen_columns(["key", "offset", "key"], ["offset", "key", "value"])
    ('key', 'offset')

    Raises
    ------
    TypeError : no names, or one str, whose letters are none
    ValueError : a name that is not known
    """
    chosen = tuple(dict.fromkeys(several_names("columns", names)))
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise ValueError(f"columns: expected some of {', '.join(known)}, got {', '.join(map(repr, unknown))}")
    return chosen


def _node(name: str, column: Column) -> Node:
    if not isinstance(column, np.ndarray):
        return column._node(name)
    if column.dtype.kind == "M":
        return _time_node(name, column)
    if column.dtype == np.bool_:
        return ("b", name, len(column), 0, (None, np.packbits(column, bitorder="little")), ())
    native = np.ascontiguousarray(column, None if column.dtype.isnative else column.dtype.newbyteorder("="))
    return (_FORMATS[native.dtype.str[1:]], name, len(column), 0, (None, native), ())


def _time_node(name: str, column: npt.NDArray[Any]) -> Node:
    stamps = np.ascontiguousarray(column.astype("M8[ms]", copy=False)).view(np.int64)
    absent = np.isnat(column)
    nulls = int(np.count_nonzero(absent))
    return (
        "tsm:UTC",
        name,
        len(stamps),
        nulls,
        (np.packbits(~absent, bitorder="little") if nulls else None, stamps),
        (),
    )


def _validity(column: StringColumn) -> npt.NDArray[np.bool_]:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid
