"""`mqindex report`."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, cast

import click

import mqindex
from mqindex.cli.brokers import REPORTED, broker_of, page_of, unseen_kind
from mqindex.cli.kafka.kinds import KINDS as KAFKA_KINDS
from mqindex.cli.kinds import require_home
from mqindex.cli.options import BrokerOptions, EngineOptions, out_file_option, report_options, subcommand
from mqindex.cli.places import appearing, require_no_broker_file, require_outside
from mqindex.cli.printing.output import print_json, print_line
from mqindex.cli.printing.reports import repairable
from mqindex.cli.trouble import Trouble, say, true_from_here
from mqindex.errors import GeometryError, TruncatedFileError, reason
from mqindex.files.paths import absolute
from mqindex.files.places.place import Place
from mqindex.files.results import output_place
from mqindex.files.results.whole_file import publish_content, require_new_file
from mqindex.wording.reports import counts
from mqindex.wording.text import size

if TYPE_CHECKING:
    from mqindex.html.page import Page

_MOST_BYTES: Final = 64 << 20  # of an earlier report


def _earlier(context: click.Context, option: click.Parameter, given: IO[bytes] | None) -> dict[str, Any] | None:
    """The document of an earlier report; what is none is refused before the work."""
    if given is None:
        return None
    with given:
        content = given.read(_MOST_BYTES + 1)
    try:
        found = json.loads(content) if len(content) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        found = None
    made_at = found["read"].get("made_at") if isinstance(found, dict) and isinstance(found.get("read"), dict) else None
    if not isinstance(made_at, int):
        raise click.BadParameter(f"expected what `mqindex report --json` printed, got another file: {given.name}")
    return cast("dict[str, Any]", found)


@subcommand(
    "report",
    "mqindex report /data/store --out store.html",
    "mqindex report /data/kafka --out kafka.html --deep",
)
@click.argument("path", metavar="PATH")
@out_file_option("Where the page goes: one HTML file, which needs no other and no network.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option(
    "--deep", is_flag=True,
    help="Compare every index entry with the log, and every body or record with its checksum.",
)  # fmt: skip
@click.option("--show-keys", is_flag=True, help="RocketMQ: name the most frequent keys, else only their hashes.")
@click.option(
    "--compare", "earlier", metavar="FILE", type=click.File("rb"), callback=_earlier,
    help="What an earlier report --json printed: the page says what has changed since.",
)  # fmt: skip
@report_options(*REPORTED)
def command(
    *,
    path: str,
    out: str | None,
    force: bool,
    deep: bool,
    show_keys: bool,
    earlier: dict[str, Any] | None,
    kind: str | None,
    engine: EngineOptions,
    options: BrokerOptions,
    as_json: bool,
) -> int:
    """Make a page of the health of what is at PATH: a RocketMQ store, a Kafka partition or log dir.

    The verdict first, as of `mqindex verify`, with what to do; then in pictures: what covers the log, the index, topics
    and queues over time, groups and their lag; Kafka's partitions. It is made in the pass that verify makes: of a large
    log, times, sizes, tags and keys are those of a sample, and the page says so. With --json the same numbers are
    printed as one object, with --out or without. Nothing but FILE is written. Exit code 1: an error was found; 2: some
    of it cannot be read, and the page says why.
    """
    if earlier is not None and out is None:
        raise click.UsageError("--compare is for a page: expected --out FILE", click.get_current_context(silent=True))
    if out is None and not as_json:
        raise click.UsageError("expected --out FILE for a page, or --json", click.get_current_context(silent=True))
    seen = engine.sees(path)
    if out is not None:
        _require_place(out, path, force=force)
        true_from_here(appearing(out))
    if seen and isinstance(path, Place):
        path.stat_now()  # of what cannot be reached there is no page
    unread = _PageOfReason(path, out if not seen or isinstance(path, Place) or os.path.lexists(path) else None, force)
    with unread:
        kind = require_home(path, kind, *REPORTED, options=options) if seen else unseen_kind(kind, options)
    _require_alike(kind, earlier)
    broker = broker_of(kind)
    with unread, engine.open() as chosen:
        health = broker.report(path, options, deep=deep, show_keys=show_keys, engine=chosen)
    document = health.to_dict()
    try:
        if out is not None:
            repair = ["mqindex", "repair", repairable(absolute(path)), *(["--deep"] if deep else []), *options.words()]
            page = page_of(kind)(document, health.verify, broker.catalogue(), repair, earlier)
            written = _write(out, page, force=force)
    finally:  # print the result of long work even if the page cannot be made or written
        if as_json:
            print_json("report", document)
        else:
            found = f", {counts(health.verify.findings)}" if health.verify.findings else ""
            print_line(f"{path}: {'clean' if health.ok else 'not clean'}{found}")
    if not as_json:
        print_line(f"wrote {out}: {written}")
    return 0 if health.ok else 1


def _require_alike(kind: str, earlier: dict[str, Any] | None) -> None:
    """Check before the work that an earlier report is of the same broker's files: RocketMQ's have a coverage."""
    if earlier is not None and (kind in KAFKA_KINDS) == ("coverage" in earlier):
        raise Trouble("--compare: expected a report of the same broker's files, got one of the other broker's")


def _require_place(out: str, path: str, *, force: bool) -> None:
    """Check before the work, not after it, that a page can be made and FILE be written; begin to load what makes it."""
    from mqindex.html.render import prepare, require_installed

    require_installed()
    require_outside(out, path)
    output_place.require_place(os.path.realpath(out))
    require_no_broker_file(out)
    require_new_file(out, overwrite=force)
    prepare()


@dataclass
class _PageOfReason:
    """If the block fails before it has a report of `path`, write a page that says why, and raise the error again."""

    path: str
    out: str | None
    force: bool

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.out is not None and isinstance(error, (Trouble, OSError, GeometryError, TruncatedFileError)):
            say(f"wrote {self.out}: {_write(self.out, _unread(self.path, error), force=self.force)}")


def _unread(path: str, error: Exception) -> Page:
    from mqindex.html.parts import unread_page

    return unread_page(absolute(path), reason(error), int(time.time() * 1000), mqindex.__version__)


def _write(out: str, page: Page, *, force: bool) -> str:
    """Write the page; returns its size, in words."""
    from mqindex.html.render import render

    content = render(page).encode()
    publish_content(out, content, overwrite=force)
    return size(len(content))
