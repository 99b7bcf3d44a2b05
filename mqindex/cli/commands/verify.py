"""`mqindex verify`."""

from __future__ import annotations

import click

from mqindex.cli.brokers import VERIFIED, broker_of, unseen_kind
from mqindex.cli.kafka.kinds import LOG_DIR, OF_SEGMENT
from mqindex.cli.kinds import KINDS, require_home
from mqindex.cli.options import BrokerOptions, EngineOptions, cache_option, report_options, subcommand
from mqindex.cli.printing.findings import EXPLAINED, print_findings
from mqindex.cli.printing.output import command_line, print_fields, print_line, print_paragraph
from mqindex.cli.printing.reports import finished, print_actions, repairable
from mqindex.cli.trouble import Trouble
from mqindex.files.paths import absolute, parent_of
from mqindex.files.places.place import Place
from mqindex.report import Catalogue, Report
from mqindex.wording.reports import asked_options, counts, settings, work_done
from mqindex.wording.verdict import verdict


@subcommand("verify", "mqindex verify /data/store --deep", "mqindex verify /disk1/kafka /disk2/kafka")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option(
    "--deep", is_flag=True,
    help="Compare every index entry with the log, and every body or record with its checksum; of a result in an "
    "object store every file with its own.",
)  # fmt: skip
@cache_option(", of Kafka's logs with --deep")
@report_options(*VERIFIED)
def command(
    *,
    paths: tuple[str, ...],
    deep: bool,
    cache: str | bool | None,
    kind: str | None,
    engine: EngineOptions,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Check what is at PATH, of RocketMQ or Kafka: its indexes against its log, in both directions.

    RocketMQ: commit log, index files, consume queues, checkpoint and consumers' offsets. The log is read once; every
    unit of the queues is compared with it, and of index files the structure and the ends. Where PATH is a directory of
    index files or one file, each is checked against itself only. Kafka, where PATH is a partition or a log dir: every
    entry of every index, and the checksum of every batch; where it is a segment's .log: that, with the indexes beside
    it; where it is an index: that, against the log beside it, or by itself. Several log dirs of one Kafka broker
    give one report. Nothing is written but zone maps of a log, in the user's cache, which later scans read.
    The end says what `mqindex repair` would do. Exit code 1: an error was found.
    """
    for path in paths:
        found = (
            require_home(path, kind, *VERIFIED, options=options) if engine.sees(path) else unseen_kind(kind, options)
        )
        if len(paths) > 1 and found != LOG_DIR:
            raise Trouble(f"{path} is {KINDS[found]}: expected log dirs of one Kafka broker where several are given")
        if isinstance(cache, str):
            from mqindex.cli.places import require_outside  # here: a check without a cache writes nothing

            require_outside(cache, path)
    broker = broker_of(found)
    with engine.open() as chosen:
        report = broker.verify(
            found, path if len(paths) == 1 else paths, options, deep=deep, cache=cache, engine=chosen
        )
    home = parent_of(absolute(path)) if found in OF_SEGMENT else path
    repaired = map(repairable, [home] if len(paths) == 1 else paths)
    home = home if len(paths) == 1 else report.path
    copied = " (COPY: on this machine)" if isinstance(path, Place) else ""
    repair = "`, `".join(
        command_line("repair", one, *(["--deep"] if deep else []), *options.words()) for one in repaired
    )
    named, would = " ".join(paths), f"`{repair}`{copied}"
    return finished("verify", report, as_json, lambda: _print(report, named, home, broker.catalogue(), would))


def _print(report: Report, path: str, home: str, catalogue: Catalogue, repair: str) -> None:
    """`path`: what was verified; `home`: the store or partition that the command `repair` would repair."""
    found = f", {counts(report.findings)}" if report.findings else ""
    print_line(f"{path}: {'clean' if report.ok else 'not clean'}{found}")
    start = [] if report.start is None else verdict(report.start, home)
    print_fields([*start, ("checked", work_done(report)), *settings(report)])
    if report.findings or report.actions:
        print_line()
    print_findings(report.findings, catalogue, home)
    if report.findings:
        print_paragraph(EXPLAINED)
    if report.findings and report.actions:
        print_line()
    if report.actions:
        asked = asked_options(report)
        print_line(f"{repair}{', given what the warnings ask for,' if asked else ''} would:")
        print_actions(report.actions)
