"""`mqindex repair`."""

from __future__ import annotations

import click

from mqindex.cli.kinds import require_store
from mqindex.cli.options import (
    EngineOptions,
    StoreOptions,
    engine_options,
    json_option,
    parts_option,
    store_options,
    subcommand,
)
from mqindex.cli.output import print_json, print_line
from mqindex.cli.reports import counts, exit_code, print_actions, print_findings, print_settings, work_done
from mqindex.cli.trouble import Interrupted
from mqindex.report import RepairReport

__all__ = ["command"]


@subcommand("repair", "mqindex repair /data/store --dry-run")
@click.argument("store", metavar="STORE")
@click.option("--deep", is_flag=True, help="Trust no surviving file before each of its entries agrees with the log.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@parts_option
@engine_options
@store_options
@json_option
def command(
    *,
    store: str,
    deep: bool,
    dry_run: bool,
    parts: list[str] | None,
    engine: EngineOptions,
    options: StoreOptions,
    as_json: bool,
) -> int:
    """Bring back, in place, what index and consume queues of STORE lack. The broker must be stopped.

    Files that verify stay untouched. What is replaced
    is kept in STORE/mqindex-backup-<UTC>. Interrupted, a second run finishes. Exit code 1: errors are left, such as
    damage of the log itself; with --dry-run: there is something to repair.
    """
    from mqindex.rocketmq.repair import repair

    if engine.sees(store):
        require_store(store)
    try:
        with engine.open() as chosen:
            report = repair(store, parts=parts, deep=deep, dry_run=dry_run, engine=chosen, **options)
    except KeyboardInterrupt:
        if dry_run:
            raise
        raise Interrupted("every file is the old or the new one; run it again to finish") from None
    if as_json:
        print_json("repair", report.to_dict())
    else:
        _print(report)
    return exit_code(report)


def _print(report: RepairReport) -> None:
    print_findings(report.findings)
    if report.actions:
        print_line("would:" if report.dry_run else "done:")
        print_actions(report.actions)
    else:
        print_line("nothing to do")
    if report.backup:
        print_line(f"replaced files are in {report.backup}")
    if report.dry_run:
        print_line(f"checked {report.path}; {report.seconds:.1f} s")
    else:
        print_line(f"repaired {report.path}: wrote {work_done(report)}")
    print_settings(report)
    if report.findings:
        print_line(f"found: {counts(report.findings)}")
