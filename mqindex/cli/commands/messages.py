"""`mqindex messages`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from itertools import chain
from typing import TYPE_CHECKING, Final

import click

from mqindex.cli.broker import Scanned, Selection
from mqindex.cli.brokers import SCANNED, broker_of
from mqindex.cli.keys import key_batches
from mqindex.cli.kinds import require_home
from mqindex.cli.options import BrokerOptions, cache_option, out_file_option, path_options, subcommand, time_option
from mqindex.cli.output_file import ENDINGS, Counted, written_to
from mqindex.cli.places import require_outside
from mqindex.cli.printing.formats import FORMATS, first_rows
from mqindex.cli.trouble import say
from mqindex.wording.text import deleted_meanwhile

if TYPE_CHECKING:
    from mqindex.cli.printing.formats import Columns
    from mqindex.kafka.partition.partition_log import IsolationLevel

FORMS: Final = {"table": "table", "csv": "csv", "ndjson": "json", "arrow": "arrow", "parquet": "parquet"}


@subcommand(
    "messages",
    "mqindex messages /data/store --topic OrderTopic --begin -2h",
    "mqindex messages /data/store --topic OrderTopic --key - --columns keys,body --format csv < order-ids.txt",
    "mqindex messages /data/kafka --topic orders --begin 2026-11-21T08:00Z --end 2026-11-21T09:00Z --out m.parquet",
    'mqindex messages /data/kafka/orders-0 --where "octet_length(value) > 100000" --limit 10',
)
@click.argument("path", metavar="PATH")
@click.option("--topic", metavar="T", help="Of this topic.")
@click.option(
    "--queue-id", "queue_ids", type=int, multiple=True, metavar="N", help="RocketMQ: of this queue; repeat it."
)
@click.option(
    "--partition", "partitions", multiple=True, metavar="P", help="Kafka: of this one, as orders-0; repeat it."
)
@time_option("--begin", "Stored at this time or later: -1h, 2026-11-21T08:00+08:00, ...")
@time_option("--end", "Stored before this time: begin <= t < end.")
@click.option(
    "--key", "keys", multiple=True, metavar="KEY", help="With this key; repeat it, or - for one a line on stdin."
)
@click.option("--tag", "tags", metavar="TAGS", help="RocketMQ: with these tags, as consumers say it: 'TagA || TagB'.")
@click.option("--offset", type=int, metavar="N", help="From this offset on; RocketMQ: the phy offset.")
@click.option("--limit", type=click.IntRange(0), metavar="N", help="The first N only.")
@click.option(
    "--columns", "names", metavar="NAME,...", help="These columns only.  [default: all; in a table: the main ones]"
)
@click.option("--where", metavar="SQL", help="Only where this is true, an expression of DuckDB over the columns.")
@click.option(
    "--isolation-level", "isolation", type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Kafka: what a consumer of this level gets.  [default: all records]",
)  # fmt: skip
@click.option(
    "--decode",
    is_flag=True,
    help="Kafka: what the records of __consumer_offsets, __transaction_state or __cluster_metadata say.",
)
@click.option("--format", "form", type=click.Choice(list(FORMS)), help="How it is written; --json is for ndjson.")
@out_file_option("Write a new file; its ending says the format: .csv, .ndjson, .arrow, .parquet.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@cache_option()
@path_options(*SCANNED)
def command(
    *,
    path: str,
    topic: str | None,
    queue_ids: tuple[int, ...],
    partitions: tuple[str, ...],
    begin: int | None,
    end: int | None,
    keys: tuple[str, ...],
    tags: str | None,
    offset: int | None,
    limit: int | None,
    names: str | None,
    where: str | None,
    isolation: IsolationLevel | None,
    decode: bool,
    form: str | None,
    out: str | None,
    force: bool,
    cache: str | bool | None,
    kind: str | None,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Print the messages of a RocketMQ store, or the records of a Kafka partition or log dir, in the log's order.

    PATH is a store, a commit log or one of its files; or a log dir, a partition or a segment; or a URL of one. All that
    is given must be true of a message. The log itself decides: no index and no queue is asked, so nothing is left out
    that they lack. The first search for a time or a topic reads the log once, and keeps which times and topics are
    where; later ones read what can match.

    Bodies are decompressed. A table has the main columns, times in UTC and the beginning of bodies; a byte that is no
    UTF-8 is \\xff there, the text \\\\xff; null is nothing, an empty text "". csv and ndjson have times in ms since the
    epoch; bytes that are no UTF-8 are in a field with _base64 after its name, the field itself is null then. In csv
    nothing is null and "" an empty text; DuckDB reads them so with allow_quoted_nulls=false.
    Exit code 1: there is no such message, or the log is damaged in places, which stderr names; the rest was printed.
    """
    kind = require_home(path, kind, *SCANNED, options=options)
    form = form_of(form, out, as_json)
    broker = broker_of(kind)
    columns = None if names is None else [name.strip() for name in names.split(",")]
    if columns is None and form == "table" and not decode:
        columns = list(broker.shown())
    wanted = None if not keys else tuple(chain.from_iterable(key_batches(keys, what=("key", "--key KEY"))))
    if isinstance(cache, str):
        require_outside(cache, path)
    if begin is not None and end is not None and begin > end:
        say("--begin is after --end: nothing is between them")
    selection = Selection(
        topic, queue_ids, partitions, begin, end, wanted, tags, offset, isolation, columns if where is None else None,
        cache, decode,
    )  # fmt: skip
    with contextlib.closing(broker.messages(path, selection, options)) as scan:
        counted = Counted()
        rows = counted.of(_rows(scan, columns, where, limit))
        with written_to(out, path, force=force, counted=counted), contextlib.closing(rows):
            FORMATS[FORMS[form]](rows, "messages")
        for one in (*scan.damage, *map(deleted_meanwhile, scan.expired)):
            say(str(one))
        if not counted.rows:
            say("; ".join(filter(None, (f"{path}: no such message", broker.other_topics(kind, path, topic)))))
        return 1 if scan.damage or not counted.rows else 0


def form_of(form: str | None, out: str | None, as_json: bool) -> str:
    """The format that was chosen, by its name or by the ending of the file's."""
    if as_json and form not in (None, "ndjson"):
        raise click.UsageError(f"--json and --format {form}: expected one of the two", click.get_current_context())
    if form is not None or as_json:
        return form or "ndjson"
    if out is None:
        return "table"
    ending = os.path.splitext(out)[1]
    if ending not in ENDINGS:
        raise click.UsageError(
            f"{out}: expected a name that ends in {', '.join(ENDINGS)}, or --format", click.get_current_context()
        )
    return ENDINGS[ending]


def _rows(scan: Scanned, columns: list[str] | None, where: str | None, limit: int | None) -> Generator[Columns]:
    """The batches that are printed, an empty one first."""
    if where is None:
        return first_rows(chain([scan.empty()], scan), limit)
    from mqindex.cli.arrow_rows import rows_where

    return rows_where(scan, where, columns, limit)
