"""`mqindex sql`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from mqindex._needs import needing
from mqindex.cli.commands.messages import FORMS, form_of
from mqindex.cli.options import STORAGE_OPTION, json_option, out_file_option, placed, subcommand
from mqindex.cli.output_file import Counted, written_to
from mqindex.cli.printing.formats import FORMATS
from mqindex.cli.trouble import Trouble
from mqindex.files import disk
from mqindex.files.places.place import is_url

_NAMED: Final = "expected NAME=PATH, as orders=/data/kafka/orders-0"


@subcommand(
    "sql",
    'mqindex sql "SELECT topic, count(*) FROM store GROUP BY topic" store=/data/store',
    "mqindex sql \"SELECT * FROM o WHERE timestamp >= '2026-11-21 08:00Z'\" o=/data/kafka/orders-0 --out o.parquet",
    'mqindex sql "SELECT queue_id, max(queue_offset) FROM s.units GROUP BY queue_id" s=/data/store',
)
@click.argument("query", metavar="QUERY")
@click.argument("named", nargs=-1, metavar="NAME=PATH...")
@click.option("--format", "form", type=click.Choice(list(FORMS)), help="How it is written; --json is for ndjson.")
@out_file_option("Write a new file; its ending says the format: .csv, .ndjson, .arrow, .parquet.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@STORAGE_OPTION
@json_option
def command(
    *,
    query: str,
    named: tuple[str, ...],
    form: str | None,
    out: str | None,
    force: bool,
    storage_options: dict[str, str] | None,
    as_json: bool,
) -> int:
    """Ask the files of brokers in SQL, with DuckDB: QUERY names each PATH by its NAME.

    NAME alone is the messages of a store or the records of a log dir, a partition or a segment. Their other tables are
    NAME.units, NAME.index_entries, NAME.consumer_offsets, NAME.files; NAME.batches, NAME.offset_index, NAME.time_index,
    NAME.transactions, NAME.producers, NAME.segments, and of what brokers keep for themselves NAME.commits,
    NAME.transaction_states, NAME.metadata, NAME.markers. A PATH may be a URL. What a query asks of topic, queue,
    partition, time, offset and key decides what is read. Bodies, keys and values are bytes, for DuckDB a BLOB:
    body::VARCHAR is text. csv and ndjson are as of `mqindex messages`: bytes that are no UTF-8 are in a field with
    _base64 after its name.
    Exit code 1: there is no row.
    """
    form = form_of(form, out, as_json)
    paths = {name: placed(path, storage_options) for name, path in map(_pair, named)}
    with needing("`mqindex sql` needs duckdb and pyarrow: pip install 'mqindex[sql]'", "duckdb", "pyarrow"):
        import duckdb  # noqa: F401  # they are there
        import pyarrow as pa  # noqa: F401
    from mqindex.cli.arrow_rows import ArrowRows, arrow_rows, engine_errors, interruptible
    from mqindex.tables import sql

    def answer() -> Iterator[ArrowRows]:
        yield from arrow_rows(sql(query, **paths))

    counted = Counted()
    with written_to(out, *paths.values(), force=force, counted=counted), engine_errors(f"{query!r:.200}"):
        FORMATS[FORMS[form]](counted.of(interruptible(answer())), "sql")
    return 0 if counted.rows else 1


def _pair(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name.isidentifier() or not path:
        raise click.UsageError(f"{text!r}: {_NAMED}", click.get_current_context())
    if not is_url(path) and not disk.is_there(path):
        raise Trouble(f"no such file or directory: {path}")
    return name, path
