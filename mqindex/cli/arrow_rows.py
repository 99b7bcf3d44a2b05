"""Rows of Arrow tables, as DuckDB gives them, for the formats of the shell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mqindex._needs import needing
from mqindex.cli.trouble import Trouble

if TYPE_CHECKING:
    from mqindex.cli.broker import Scanned

_ROWS = 1 << 16  # of one batch


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


def rows_where(scan: Scanned, where: str, columns: list[str] | None, limit: int | None) -> Iterator[ArrowRows]:
    """The rows of a scan for which an SQL expression is true."""
    with needing("--where needs DuckDB: pip install 'mqindex[sql]'", "duckdb", "pyarrow"):
        import duckdb
        import pyarrow as pa
    schema = pa.table(scan.empty()).schema
    batches = (batch for columns in scan for batch in pa.table(columns).cast(schema).to_batches())
    try:
        with duckdb.connect() as connection:
            rows = connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches)).filter(where)
            if columns is not None:
                rows = rows.select(*columns)
            yield from arrow_rows(rows if limit is None else rows.limit(limit))
    except duckdb.Error as error:
        raise Trouble(f"--where {where}: {sentence_of(error)}") from None


def arrow_rows(relation: Any) -> Iterator[ArrowRows]:
    """The rows of a relation of DuckDB, an empty batch first."""
    import pyarrow as pa

    reader = relation.to_arrow_reader(_ROWS)
    yield ArrowRows(reader.schema.empty_table())
    for batch in reader:
        yield ArrowRows(pa.Table.from_batches([batch]))


def sentence_of(error: Exception) -> str:
    """What DuckDB says, in one line and without the picture of the query."""
    return str(error).partition("\n")[0]
