"""`mqindex verify`."""

from __future__ import annotations

import shlex

import click

from mqindex.cli.kinds import require_store
from mqindex.cli.options import EngineOptions, StoreOptions, engine_options, json_option, store_options, subcommand
from mqindex.cli.output import print_json, print_line
from mqindex.cli.reports import counts, exit_code, print_actions, print_findings, print_settings, work_done

__all__ = ["command"]


@subcommand("verify", "mqindex verify /data/store --deep")
@click.argument("path", metavar="PATH")
@click.option("--deep", is_flag=True, help="Compare every entry with the commit log, not only the ends of each file.")
@engine_options
@store_options
@json_option
def command(*, path: str, deep: bool, engine: EngineOptions, options: StoreOptions, as_json: bool) -> int:
    """Check the index files of the store at PATH: headers, slots, chains, and their ends against the commit log.

    Nothing is written. Exit code 1: an error was found. What `mqindex repair` would do is said at the end.
    """
    from mqindex.rocketmq.verify import verify

    require_store(path)
    with engine.open() as chosen:
        report = verify(path, deep=deep, engine=chosen, **options)
    if as_json:
        print_json("verify", report.to_dict())
        return exit_code(report)
    print_findings(report.findings)
    print_line(f"{'clean' if report.ok else 'not clean'}: {work_done(report)}")
    print_settings(report)
    if report.findings:
        print_line(f"found: {counts(report.findings)}")
    if report.actions:
        print_line(f"`mqindex repair {shlex.quote(path)}` would:")
        print_actions(report.actions)
    elif not report.ok:
        print_line("`mqindex repair` can mend none of it")
    return exit_code(report)
