"""SQL over tables, in DuckDB.

Its times are microseconds in 64 bits. A time beyond them, as of a producer that gives nanoseconds for milliseconds, is
null there, and a UserWarning says so; what a query compares with a time, the table compares with all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from mqindex.tables import dataset, tables
from mqindex.tables.table import tell
from mqindex.tables.table_dataset import TableDataset
from mqindex.tables.table_scanner import TableScanner

_LEAST: Final = -9223372022400000  # ms
_MOST: Final = (2**63 - 2) // 1000


def relation_of(query: str, sources: Mapping[str, Any]) -> Any:
    """The answer of a query, as a DuckDB relation with a database of its own."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute("SET enable_progress_bar = false")  # it is written to stdout, among the rows
    database.execute("SET python_enable_replacements = false")  # else a variable of ours would be a table
    for name, source in sources.items():
        if isinstance(source, (str, os.PathLike)):
            _register(database, query.lower(), name, source)
        else:
            database.register(name, source)
    return database.sql(query)


def _register(database: Any, query: str, name: str, path: str | os.PathLike[str]) -> None:
    """The tables of a path that a query may name: the first one by `name`, all of them by `name.table`."""
    found = tables(path)
    database.execute(f"CREATE SCHEMA {_quoted(name)}")
    for number, table in enumerate(found):
        if table in query or (number == 0 and name.lower() in query):
            rows, registered = _WithTimesOfDuckDB.of(dataset(path, table)), f"{name}.{table}"
            database.register(registered, rows)
            database.execute(f"CREATE VIEW {_quoted(name)}.{table} AS FROM {_quoted(registered)}")
            if number == 0:
                database.register(name, rows)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def times_of_duckdb(rows: pa.Table) -> pa.Table:
    """The same rows; times in ms that DuckDB has not are null."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ms" and rows.num_rows:
            times = rows.column(number).cast("int64")
            least, most = (end.as_py() for end in pc.min_max(times).values())
            if least is not None and (least < _LEAST or most > _MOST):
                known = pc.and_(pc.greater_equal(times, _LEAST), pc.less_equal(times, _MOST))
                times = pc.if_else(known, rows.column(number), pa.scalar(None, field.type))
                rows = rows.set_column(number, field, times)
                tell([f"{field.name}: a time beyond the years that DuckDB has, -290307 to 294246, is null"])
    return rows


class _Scanner(TableScanner):
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in super().to_batches():
            yield from times_of_duckdb(pa.Table.from_batches([batch])).to_batches()


class _WithTimesOfDuckDB(TableDataset):
    """A table as DuckDB reads it."""

    _scanner_class = _Scanner

    @classmethod
    def of(cls, table: TableDataset) -> _WithTimesOfDuckDB:
        return cls(table.path, table.table, table._given, table._opened)
