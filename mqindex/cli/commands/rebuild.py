"""`mqindex rebuild`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mqindex.cli.brokers import HOMES, broker_of, library_of, unseen_kind
from mqindex.cli.kinds import require_home
from mqindex.cli.options import BrokerOptions, EngineOptions, cache_option, parts_option, report_options, subcommand
from mqindex.cli.places import appearing, require_outside
from mqindex.cli.printing.findings import print_findings
from mqindex.cli.printing.output import print_line
from mqindex.cli.printing.reports import finished, print_summary
from mqindex.cli.trouble import TROUBLE, Trouble, true_from_here
from mqindex.errors import MQIndexError
from mqindex.files.paths import absolute, join
from mqindex.files.results.output_place import require_new
from mqindex.report import Catalogue, RebuildReport
from mqindex.several import NOT_REBUILT
from mqindex.wording.reports import work_done


@subcommand(
    "rebuild",
    "mqindex rebuild /data/store --out /data/rebuilt",
    "mqindex rebuild /backup/broker-a/store /backup/broker-b/store --out /data/rebuilt",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="DIR", help="Where the result appears, complete.")
@click.option("--force", is_flag=True, help="If DIR exists, move it to DIR.backup-<UTC>.")
@parts_option
@cache_option(", of Kafka's logs from all their records", "the user's cache; of Kafka's logs: none")
@report_options(*HOMES)
def command(
    *,
    paths: tuple[str, ...],
    out: str,
    force: bool,
    parts: list[str] | None,
    cache: str | bool | None,
    kind: str | None,
    engine: EngineOptions,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Build the indexes of the log at PATH anew, in DIR, byte for byte as the broker would have.

    PATH is a RocketMQ store, which gives DIR/index, DIR/consumequeue and, where topics have batch queues,
    DIR/batchconsumequeue; a Kafka partition, which gives DIR/<20 digits>.index and so on, as Kafka's recovery of every
    segment would write them; or a Kafka log dir, which gives DIR/<topic>-<n>/... It stays untouched. DIR must not exist
    or be empty, and appears only when it is complete. Several PATHs of one kind of broker are one job and one report:
    each has its result in DIR/<name>, which is as DIR of one, and what is wrong with one holds up no other. The name is
    that of its directory; where all end alike, as broker-a/store and broker-b/store, that above it.
    The space that this needs is shown first. Exit code 1: done, but the log is damaged in places; 2: of one that was
    not rebuilt.
    """
    alone = paths[0] if len(paths) == 1 else None
    found = _kinds(paths, kind, engine, options)
    libraries = {library_of(each): path for each, path in found.items()}
    if len(libraries) > 1:
        raise Trouble(f"{' is of another broker than '.join(libraries.values())}: expected one broker's in one run")
    if engine.sees(paths[0]):
        require_outside(out)
        for path in paths if isinstance(cache, str) else ():
            require_outside(str(cache), path)
        if alone is not None:
            require_new(absolute(out), overwrite=force)  # at once, and not when Spark has started
    (library,), broker = libraries, broker_of(next(iter(found)))
    true_from_here(appearing(out, seen=engine.sees(paths[0])) if alone is not None else _each_appears(out))
    keywords = broker.keywords(alone, options, parts) | broker.zones(cache)
    with engine.open() as chosen:
        report = library.rebuild(alone or paths, out, overwrite=force, engine=chosen, **keywords)
        if report.backup is not None:
            true_from_here(f"{out} is complete; {_moved(out, report.backup)}")
    status = finished("rebuild", report, as_json, lambda: _print(report, broker.catalogue(), alone or "", out))
    return TROUBLE if any(one.kind == NOT_REBUILT for one in report.findings) else status


def _kinds(paths: Sequence[str], forced: str | None, engine: EngineOptions, options: BrokerOptions) -> dict[str, str]:
    """The kinds, each with a path of it. Of several paths one that has none is a finding later, unless none has one."""
    found, refused = dict[str, str](), list[Exception]()
    for path in paths:
        try:
            seen = require_home(path, forced, *HOMES, options=options) if engine.sees(path) else forced
            found[unseen_kind(seen, options)] = path
        except (Trouble, MQIndexError, OSError) as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _each_appears(out: str) -> str:
    return f"each result in {out} is complete, or not there"


def _moved(out: str, backup: str) -> str:
    return f"what was at {out} is now {backup}"


def _print(report: RebuildReport, catalogue: Catalogue, store: str, out: str) -> None:
    print_findings(report.findings, catalogue, store)
    for name, each in report.stores.items() or [("", report)]:
        place = join(out, name) if name else out
        failed = any(one.kind == NOT_REBUILT for one in each.findings)
        print_line(f"not rebuilt: {each.path}" if failed else f"rebuilt {place}: {work_done(each)}")
        if each.backup is not None:
            print_line(_moved(place, each.backup))
    print_summary(report)
