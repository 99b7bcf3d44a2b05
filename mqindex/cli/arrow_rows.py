"""Rows of Arrow tables, as DuckDB gives them, for the formats of the shell."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from mqindex._needs import needing
from mqindex.cli.trouble import Trouble

if TYPE_CHECKING:
    from mqindex.cli.broker import Scanned

_ROWS = 1 << 16  # of one batch
_IN_PYTHON = "Python exception"  # what DuckDB says of an error in what reads for it


class ArrowRows(Mapping[str, Any]):
    """A table of Arrow as a batch: its columns by name. `len` is the number of rows."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getitem__(self, name: str) -> Any:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        rows: int = self._table.num_rows
        return rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def rows_where(scan: Scanned, where: str, columns: list[str] | None, limit: int | None) -> Generator[ArrowRows]:
    """The rows of a scan for which an SQL expression is true."""
    with needing("--where needs duckdb and pyarrow: pip install 'mqindex[sql]'", "duckdb", "pyarrow"):
        import duckdb
        import pyarrow as pa
    from mqindex.tables.duckdb_query import times_of_duckdb

    schema = pa.table(scan.empty()).schema
    batches = (batch for rows in scan for batch in times_of_duckdb(pa.table(rows).cast(schema)).to_batches())
    with engine_errors(f"--where {where}"), duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it is written to stdout, among the rows

        def answer() -> Iterator[ArrowRows]:
            rows = connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches)).filter(where)
            if columns is not None:
                rows = rows.select(*columns)
            yield from arrow_rows(rows if limit is None else rows.limit(limit))

        yield from interruptible(answer(), connection.interrupt)


def arrow_rows(relation: Any) -> Iterator[ArrowRows]:
    """The rows of a relation of DuckDB, an empty batch first."""
    import pyarrow as pa

    if relation is None:
        raise Trouble("the query has no answer: expected a statement with rows, as SELECT ...")
    reader = relation.to_arrow_reader(_ROWS)
    names = _each_once(reader.schema.names)
    yield ArrowRows(reader.schema.empty_table().rename_columns(names))
    for batch in reader:
        yield ArrowRows(pa.Table.from_batches([batch]).rename_columns(names))


def interruptible(batches: Iterator[ArrowRows], stop: Callable[[], None] | None = None) -> Generator[ArrowRows]:
    """The same, made in a thread of its own: a call into DuckDB takes no signal until it ends, a wait for it does.

    stop : ends such a call; then the thread has ended whenever this has. None: the process ends with the call.
    """
    asked: SimpleQueue[bool] = SimpleQueue()
    answers: SimpleQueue[tuple[ArrowRows | None, BaseException | None]] = SimpleQueue()

    def make() -> None:
        while asked.get():
            try:
                answers.put((next(batches, None), None))
            except BaseException as error:
                answers.put((None, error))

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            asked.put(True)
            batch, error = answers.get()
            if error is not None:
                raise error
            if batch is None:
                return
            yield batch
    finally:
        asked.put(False)
        while stop is not None and thread.is_alive():
            stop()  # again: DuckDB forgets one that comes before its query begins
            thread.join(0.1)


def _each_once(names: list[str]) -> list[str]:
    """Names of columns; one that was there has a number after it.

    >>> _each_once(["a", "b", "a", "a_1"])
    ['a', 'b', 'a_1', 'a_1_1']
    """
    found: list[str] = []
    for name in names:
        free, number = name, 0
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found


@contextlib.contextmanager
def engine_errors(asked: str) -> Iterator[None]:
    """What DuckDB raises, as one sentence; a signal that reached it, or what reads for it, as an interrupt."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError, OSError) as error:  # the last one of Arrow's reader, after the first rows
        lines = str(error).strip().splitlines() or [""]
        if lines[-1] == "KeyboardInterrupt" or "Query interrupted" in lines[0]:
            raise KeyboardInterrupt from None
        if not isinstance(error, duckdb.Error) and _IN_PYTHON not in lines[0]:
            raise
        raise Trouble(f"{asked}: {_sentence(lines)}") from None


def _sentence(lines: list[str]) -> str:
    """Without the picture of the query; of an error in what reads for DuckDB, that one's."""
    if _IN_PYTHON in lines[0]:
        return next((line.partition(": ")[2] or line for line in lines[1:] if line[:1].isalpha()), lines[-1])
    return lines[0]
