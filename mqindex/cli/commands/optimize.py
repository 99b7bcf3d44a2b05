"""`mqindex optimize`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from mqindex._words import plural
from mqindex.cli.kinds import require_kind
from mqindex.cli.options import EngineOptions, engine_options, json_option, storage_option, subcommand
from mqindex.cli.places import appearing, require_outside
from mqindex.cli.printing.output import print_line
from mqindex.cli.printing.reports import finished, print_summary, way_back
from mqindex.cli.rocketmq.kinds import INDEX_DIR, INDEX_FILE, STORE
from mqindex.cli.trouble import true_from_here
from mqindex.files.paths import absolute, parent_of
from mqindex.files.places.place import Place
from mqindex.files.results.output_place import require_new
from mqindex.report import RebuildReport
from mqindex.wording.reports import work_done


@subcommand(
    "optimize",
    "mqindex optimize /data/store --out /data/cold",
    "mqindex optimize /data/store --out /data/store --force",
)
@click.argument("index", metavar="INDEX")
@click.option("--out", required=True, metavar="DIR", help="Where the result appears, complete, as DIR/index.")
@click.option("--force", is_flag=True, help="If DIR exists, move it to DIR.backup-<UTC>; DIR is the store: in place.")
@click.option("--hash-slot-num", type=click.IntRange(1), metavar="N", help="Another maxHashSlotNum for the new files.")
@click.option("--index-num", type=click.IntRange(1), metavar="N", help="Another maxIndexNum for them.")
@storage_option
@engine_options
@json_option
def command(
    *,
    index: str,
    out: str,
    force: bool,
    hash_slot_num: int | None,
    index_num: int | None,
    engine: EngineOptions,
    as_json: bool,
) -> int:
    """Write RocketMQ's index files at INDEX anew, so that mqindex reads one page of a cold file instead of six.

    INDEX is a store, a directory of index files, or one such file. The entries of each slot are placed side by side;
    brokers serve and continue such files, with the same answers, from a third of the pages. In DIR/mqindex-index each
    gets a fence, and all get one key filter, which mqindex uses until something is written after them. DIR must not
    exist or be empty, and appears only when it is complete. Where DIR is the store of INDEX itself, --force exchanges
    the files in place: the broker must be stopped, the old files go to mqindex-backup-<UTC> there, and `mqindex repair
    --undo` puts them back. Exit code 0: done.
    """
    from mqindex import rocketmq

    place, elsewhere = os.path.realpath(out), isinstance(out, Place) or isinstance(index, Place)
    in_place = not elsewhere and os.path.commonpath([os.path.realpath(index), place]) == place
    if engine.sees(index):
        require_kind(index, None, STORE, INDEX_DIR, INDEX_FILE)
        if not in_place:  # else another message follows
            require_outside(out)
            require_new(absolute(out), overwrite=force)  # at once, and not when Spark has started
    files = f"every file in {out} is the old or the new one; run it again to finish"
    true_from_here(files if in_place else appearing(out, seen=engine.sees(index)))
    with engine.open() as chosen:
        report = rocketmq.optimize(
            index, out, hash_slot_num=hash_slot_num, index_num=index_num, overwrite=force, engine=chosen
        )
        if report.backup is not None:
            true_from_here("; ".join(("all is done", *_old_files(report, out))))
        elif in_place:
            true_from_here("nothing was changed")
    return finished("optimize", report, as_json, lambda: _print(report, out))


def _old_files(report: RebuildReport, out: str) -> Iterator[str]:
    """Where they are, if any index file was replaced."""
    if report.backup is None or not report.files:
        return
    in_place = parent_of(report.backup) == absolute(out)
    yield way_back(out, report.backup) if in_place else f"what was at {out} is now {report.backup}"


def _print(report: RebuildReport, out: str) -> None:
    for words in _old_files(report, out):
        print_line(words)
    if report.files:
        print_line(f"optimized {out}: wrote {work_done(report)}")
    else:
        beside = f"wrote fences and the key filter, {plural(len(report.out_files), 'file')}" if report.out_files else ""
        print_line(f"the index files of {out} are optimized already: {beside or 'nothing to do'}")
    print_summary(report)
