"""`mqindex rebuild`."""

from __future__ import annotations

import click

from mqindex.cli.brokers import HOMES, broker_of, library_of, unseen_kind
from mqindex.cli.findings import print_findings
from mqindex.cli.kinds import require_home
from mqindex.cli.options import BrokerOptions, EngineOptions, parts_option, report_options, subcommand
from mqindex.cli.output import print_line
from mqindex.cli.places import appearing, require_outside
from mqindex.cli.reports import finished, print_summary
from mqindex.cli.trouble import true_from_here
from mqindex.files.paths import absolute
from mqindex.files.results.output_place import require_new
from mqindex.report import Catalogue, RebuildReport
from mqindex.wording.reports import work_done


@subcommand(
    "rebuild", "mqindex rebuild /data/store --out /data/rebuilt", "mqindex rebuild /data/kafka --out /data/indexes"
)
@click.argument("store", metavar="PATH")
@click.option("--out", required=True, metavar="DIR", help="Where the result appears, complete.")
@click.option("--force", is_flag=True, help="If DIR exists, move it to DIR.backup-<UTC>.")
@parts_option
@report_options(*HOMES)
def command(
    *,
    store: str,
    out: str,
    force: bool,
    parts: list[str] | None,
    kind: str | None,
    engine: EngineOptions,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Build the indexes of the log at PATH anew, in DIR, byte for byte as the broker would have.

    PATH is a RocketMQ store, which gives DIR/index, DIR/consumequeue and, where topics have batch queues,
    DIR/batchconsumequeue; a Kafka partition, which gives DIR/<20 digits>.index and so on, as Kafka's recovery of every
    segment would write them; or a Kafka log dir, which gives DIR/<topic>-<n>/... It stays untouched. DIR must not exist
    or be empty, and appears only when it is complete.
    The space that this needs is shown first. Exit code 1: done, but the log is damaged in places.
    """
    if engine.sees(store):
        kind = require_home(store, kind, *HOMES, options=options)
        require_outside(out)
        require_new(absolute(out), overwrite=force)  # at once, and not when Spark has started
    kind = unseen_kind(kind, options)
    broker, library = broker_of(kind), library_of(kind)
    true_from_here(appearing(out, seen=engine.sees(store)))
    keywords = broker.keywords(store, options, parts)
    with engine.open() as chosen:
        report = library.rebuild(store, out, overwrite=force, engine=chosen, **keywords)
        if report.backup is not None:
            true_from_here(f"{out} is complete; {_moved(out, report.backup)}")
    return finished("rebuild", report, as_json, lambda: _print(report, broker.catalogue(), store, out))


def _moved(out: str, backup: str) -> str:
    return f"what was at {out} is now {backup}"


def _print(report: RebuildReport, catalogue: Catalogue, store: str, out: str) -> None:
    print_findings(report.findings, catalogue, store)
    print_line(f"rebuilt {out}: {work_done(report)}")
    if report.backup is not None:
        print_line(_moved(out, report.backup))
    print_summary(report)
