"""SQL over tables, in DuckDB."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import duckdb

from mqindex.tables import dataset, tables


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
            rows, registered = dataset(path, table), f"{name}.{table}"
            database.register(registered, rows)
            database.execute(f"CREATE VIEW {_quoted(name)}.{table} AS FROM {_quoted(registered)}")
            if number == 0:
                database.register(name, rows)


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
