"""`TableDataset`: a table as a `pyarrow.dataset.Dataset`, which engines ask for the columns and rows that they need."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from mqindex.tables.arrow_filter import tree_of
from mqindex.tables.bounds import Bounds, fields_of, hints_of
from mqindex.tables.table import Table
from mqindex.tables.table_scanner import TableScanner

_BATCH_SIZE: Final = 1 << 17  # rows; as Arrow's
_THROUGH: Final = "this table is read through `scanner` of its dataset, not as a part of another one"


class TableDataset(ds.UnionDataset):  # type: ignore[misc]
    """One table of a path; of messages and records as far as the first query found the log.

    Each `scanner` reads the columns that it is asked for, and skips what its filter excludes as far as the reader can
    prove it; then the whole filter is compared with every row. What a reader leaves out, as damage, is a UserWarning.

    Attributes
    ----------
    path, table : str
    schema : pyarrow.Schema. The first column is the one that costs least: engines read it to count rows.
    """

    _scanner_class = TableScanner
    """What `scanner` makes."""

    def __init__(self, path: str | os.PathLike[str], table: str, options: Mapping[str, Any], opened: Table) -> None:
        schema = pa.table(opened.empty).schema
        super().__init__(schema, [_unreadable(schema)])
        self.path, self.table = os.fspath(path), table
        self._given, self._opened, self._schema, self._filter = dict(options), opened, schema, None

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (self.path, self.table, self._given, self._filter)

    def __repr__(self) -> str:
        return f"TableDataset({self.path!r}, {self.table!r})"

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self._schema

    def scanner(self, columns: Any = None, filter: Any = None, batch_size: int = _BATCH_SIZE, **_: Any) -> TableScanner:
        """What reads the rows once.

        Parameters
        ----------
        columns : names, or a mapping of names to expressions; None: all
        filter : pyarrow.compute.Expression, optional
        batch_size : int, most rows of a batch. How Arrow would read ahead is passed over: nothing is.
        """
        wanted = _both(self._filter, filter)
        names = self._needed(columns, wanted)
        none = self._schema.empty_table().select(names)

        def read() -> Iterator[pa.RecordBatch]:
            return self._batches(names, {} if wanted is None else hints_of(tree_of(wanted)))

        return self._scanner_class(self._schema, read, none, columns, wanted, batch_size)

    def get_fragments(self, filter: Any = None) -> Iterator[Any]:
        """One, which may have rows that pass: the whole table."""
        yield _Fragment(self)

    def filter(self, expression: Any) -> TableDataset:
        """The same table with the rows that pass."""
        chosen = TableDataset(self.path, self.table, self._given, self._opened)
        chosen._filter = _both(self._filter, expression)
        return chosen

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """How many rows pass; of columns, the one that costs least is read, and those of the filter."""
        return self.scanner([], filter, **options).count_rows()

    def sort_by(self, sorting: Any, **options: Any) -> Any:
        """The rows in another order, in memory."""
        return self._in_memory().sort_by(sorting, **options)

    def join(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """A join with another dataset, in memory."""
        return self._in_memory().join(_in_memory(right_dataset), *arguments, **options)

    def join_asof(self, right_dataset: Any, *arguments: Any, **options: Any) -> Any:
        """A join by the nearest value, in memory."""
        return self._in_memory().join_asof(_in_memory(right_dataset), *arguments, **options)

    def replace_schema(self, schema: pa.Schema) -> TableDataset:
        """The same table; `ValueError`: of another schema. `scanner` gives columns under other names and types."""
        if not schema.equals(self._schema):
            raise ValueError(f"schema: expected that of the table {self.table}, got another one")
        return self

    def lazy(self) -> Any:
        """A `polars.LazyFrame` of the table; needs polars.

        It takes more from a query than `polars.scan_pyarrow_dataset(dataset)`: also which bytes are asked for, as keys
        of Kafka's records, and how many rows.
        """
        from mqindex.tables.polars_source import lazy_frame

        return lazy_frame(self)

    def _batches(self, names: Sequence[str], bounds: Bounds | None) -> Iterator[pa.RecordBatch]:
        """The rows that the bounds do not exclude, and maybe more; None: there are none."""
        schema = pa.schema([self._schema.field(name) for name in names])
        if bounds is None:
            return
        with closing(self._opened.read(names, bounds)) as parts:  # type: ignore[type-var]
            for part in parts:
                yield from pa.table(part.select(names)).cast(schema).to_batches()

    # ---- inside

    def _needed(self, columns: Any, wanted: Any) -> list[str]:
        """The columns to read, in the order of the schema; at least one, which tells the number of rows."""
        asked: set[str] | None = None
        if isinstance(columns, Mapping):
            asked = _fields(columns.values())
        elif columns is not None:
            asked = set(columns)
        of_filter = set() if wanted is None else _fields([wanted])
        if asked is None or of_filter is None:
            return list(self._schema.names)
        return [name for name in self._schema.names if name in asked | of_filter] or self._schema.names[:1]

    def _in_memory(self) -> ds.InMemoryDataset:
        return ds.InMemoryDataset(self.to_table())


class _Fragment:
    """What engines read that go by fragments."""

    partition_expression = pc.scalar(True)

    def __init__(self, dataset: TableDataset) -> None:
        self._dataset = dataset
        self.physical_schema = dataset.schema

    def scanner(self, schema: Any = None, **options: Any) -> TableScanner:
        return self._dataset.scanner(**options)

    def to_batches(self, schema: Any = None, **options: Any) -> Iterator[pa.RecordBatch]:
        return self._dataset.scanner(**options).to_batches()

    def to_table(self, schema: Any = None, **options: Any) -> pa.Table:
        return self._dataset.scanner(**options).to_table()

    def count_rows(self, **options: Any) -> int:
        return self._dataset.scanner([], **options).count_rows()


class _Unreadable(io.RawIOBase):
    """A file that says how the dataset is read, to what would read it as C++ datasets are."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, *_: Any) -> int:
        raise OSError(_THROUGH)

    def tell(self) -> int:
        raise OSError(_THROUGH)


def _unreadable(schema: pa.Schema) -> ds.FileSystemDataset:
    form = ds.IpcFileFormat()
    return ds.FileSystemDataset([form.make_fragment(pa.PythonFile(_Unreadable(), mode="r"))], schema, form)


def _opened_again(path: str, table: str, options: Mapping[str, Any], chosen: Any) -> TableDataset:
    from mqindex.tables import dataset

    again = dataset(path, table, **options)
    return again if chosen is None else again.filter(chosen)


def _in_memory(dataset: Any) -> Any:
    return dataset._in_memory() if isinstance(dataset, TableDataset) else dataset


def _both(one: Any, other: Any) -> Any:
    """Both filters in one; a constant may come as a scalar, as DataFusion's do."""
    other = pc.scalar(other) if isinstance(other, pa.Scalar) else other
    return other if one is None else one if other is None else one & other


def _fields(expressions: Any) -> set[str] | None:
    found = [fields_of(tree_of(one)) for one in expressions]
    return None if None in found else set().union(*(fields for fields in found if fields))
