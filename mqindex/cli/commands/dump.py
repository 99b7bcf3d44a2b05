"""`mqindex dump`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mqindex.cli.broker import Listing
from mqindex.cli.brokers import DUMPED, broker_of
from mqindex.cli.kinds import require_kind
from mqindex.cli.options import BrokerOptions, path_options, subcommand
from mqindex.cli.printing.formats import FORMATS, first_rows
from mqindex.cli.printing.output import json_line
from mqindex.cli.trouble import say

if TYPE_CHECKING:
    from mqindex.kafka.partition.partition_log import IsolationLevel


@subcommand(
    "dump",
    "mqindex dump /data/store/index/20231114221320123 --format csv > entries.csv",
    "mqindex dump /data/kafka/orders-0 --records --json",
)
@click.argument("path", metavar="PATH")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    help="How it is written; --json is for json.  [default: table]",
)
@click.option("--records", is_flag=True, help="Kafka: every record of a log, decompressed, instead of every batch.")
@click.option(
    "--isolation-level",
    "isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Kafka: what a consumer of this level gets, no control batch and no aborted record.  [default: all]",
)
@click.option("--limit", type=click.IntRange(0), metavar="N", help="The first N only.")
@path_options(*DUMPED)
def command(
    *,
    path: str,
    form: str | None,
    records: bool,
    isolation: IsolationLevel | None,
    limit: int | None,
    kind: str | None,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Print every entry of an index, message of a commit log, unit of consume queues, or batch of a segment.

    RocketMQ: the table has the columns of a message that people look for, and times in UTC; csv, json and arrow, an
    Arrow IPC stream, and parquet have all but body and properties, and times in ms since the epoch; `mqindex messages`
    has these too. Kafka: of a log dir and a partition, every segment's batches; of an index, all places up to a tail of
    zeros. Exit code 1: the log is damaged in places, which
    stderr names, and json in objects with the one key `damage`; the rest was printed.
    """
    kind = require_kind(path, kind, *DUMPED)
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form}: expected one of the two", click.get_current_context())
    form = "json" if as_json else form or "table"
    listing = Listing(records, isolation, for_people=form == "table")
    FORMATS[form](first_rows(broker_of(kind).columns(kind, path, listing, options), limit), "dump")
    for sentence in listing.damage:
        say(sentence)
        if form == "json":
            sys.stdout.write(json_line("dump", {"damage": sentence}))
    return 1 if listing.damage else 0
