"""`mqindex repair`."""

from __future__ import annotations

import click

from mqindex._words import plural
from mqindex.cli.brokers import HOMES, broker_of, library_of, unseen_kind
from mqindex.cli.kinds import require_home
from mqindex.cli.options import BrokerOptions, EngineOptions, parts_option, report_options, subcommand
from mqindex.cli.printing.findings import print_findings
from mqindex.cli.printing.output import print_line
from mqindex.cli.printing.reports import REMOVED_WHEN, finished, print_actions, print_summary, way_back
from mqindex.cli.rocketmq.kinds import STORE
from mqindex.cli.trouble import true_from_here
from mqindex.files.backups.backup import NO_BACKUP
from mqindex.report import Catalogue, RepairReport
from mqindex.wording.reports import work_done


@subcommand(
    "repair",
    "mqindex repair /data/store --dry-run",
    "mqindex repair /data/kafka/orders-0",
    here="only files here are repaired in place: `mqindex rebuild` builds the indexes of a URL anew, or copy it",
)
@click.argument("store", metavar="PATH")
@click.option("--deep", is_flag=True, help="Trust no surviving file before each of its entries agrees with the log.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option(
    "--cut-damaged",
    is_flag=True,
    help="Give up what is good behind damage of a log. Kafka: the next start cuts the log there then; --dry-run says "
    "how much. RocketMQ: it does so anyway, for damage of the newest file, and the repair follows.",
)
@click.option(
    "--replace-served",
    is_flag=True,
    help="RocketMQ: where queue offsets were given twice, drop messages that consumers get now, as verify says.",
)
@click.option(
    "--undo",
    metavar="BACKUP",
    is_flag=False,
    flag_value=NO_BACKUP,
    help="Put back what a repair moved to this backup, and do nothing else; without BACKUP: name those that are there.",
)
@parts_option
@report_options(*HOMES)
def command(
    *,
    store: str,
    deep: bool,
    dry_run: bool,
    cut_damaged: bool,
    replace_served: bool,
    undo: str | None,
    parts: list[str] | None,
    kind: str | None,
    engine: EngineOptions,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Restore, in place, what the indexes at PATH lack. The broker must be stopped.

    PATH is a RocketMQ store, whose index, consume queues and batch queues are repaired; or a Kafka partition or log
    dir, whose .index, .timeindex and .txnindex files are. Files without errors stay untouched, logs always. What is
    replaced is kept in mqindex-backup-<UTC>, in the store or the partition, and --undo puts it back. Interrupted, a
    second run finishes. Exit code 1: errors are left, such as damage of the log itself; with --dry-run: there is
    something to repair.
    """
    if engine.sees(store):
        kind = require_home(store, kind, *HOMES, options=options)
    kind = unseen_kind(kind, options)
    broker, library = broker_of(kind), library_of(kind)
    if replace_served and kind != STORE:
        raise click.UsageError("--replace-served is for RocketMQ's stores; PATH is of Kafka")
    if undo is not None and (deep or replace_served or cut_damaged or parts is not None or engine.engine != "local"):
        raise click.UsageError(
            "--undo takes a repair back as a whole: no --deep, --replace-served, --cut-damaged, --parts or --engine"
        )
    if not dry_run:
        true_from_here("every file is the old or the new one; run it again to finish")
    if undo is not None:
        report = library.undo_repair(store, undo, dry_run=dry_run)
        _tell(report, undone=True)
    else:
        keywords = broker.keywords(store, options, parts)
        if replace_served:
            keywords["replace_served"] = True
        with engine.open() as chosen:
            report = library.repair(
                store, deep=deep, dry_run=dry_run, cut_damaged=cut_damaged, engine=chosen, **keywords
            )
            _tell(report, undone=False)
    return finished("repair", report, as_json, lambda: _print(report, broker.catalogue(), undone=undo is not None))


def _tell(report: RepairReport, *, undone: bool) -> None:
    done = "all is done" if report.backup or undone else "nothing was changed"
    true_from_here(f"{done}; {way_back(report.path, report.backup)}" if report.backup else done)


def _print(report: RepairReport, catalogue: Catalogue, *, undone: bool) -> None:
    print_findings(report.findings, catalogue, report.path)
    if report.actions:
        print_line("would:" if report.dry_run else "done:")
        print_actions(report.actions)
    else:
        print_line("nothing to do")
    if report.backup:
        print_line(way_back(report.path, report.backup))
        print_line(REMOVED_WHEN)
    if undone and not report.dry_run:
        aside = len(report.actions) - report.files
        also = f", {aside} moved to the backup" if aside else ""
        print_line(f"put back in {report.path}: {plural(report.files, 'file')}{also}; {report.seconds:.1f} s")
    elif report.dry_run or not report.actions:
        print_line(f"checked {report.path}; {report.seconds:.1f} s")
    else:
        print_line(f"repaired {report.path}: wrote {work_done(report)}")
    print_summary(report)
