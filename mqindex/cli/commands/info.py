"""`mqindex info`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click

from mqindex._words import plural
from mqindex.cli.brokers import VERIFIED, broker_of
from mqindex.cli.kafka import kinds as kafka_kinds
from mqindex.cli.kinds import KINDS, require_kind
from mqindex.cli.options import BrokerOptions, path_options, subcommand
from mqindex.cli.printing.output import command_line, print_fields, print_json, print_line, print_table
from mqindex.cli.trouble import say
from mqindex.wording.text import iso, size
from mqindex.wording.verdict import ABORT, CLEAN_SHUTDOWN, DELETED, LOCKS, STATES

Facts = dict[str, Any]


@subcommand("info", "mqindex info /data/store/index/20231114221320123", "mqindex info /data/kafka/orders-0")
@click.argument("path", metavar="PATH")
@click.option("--all", "whole", is_flag=True, help="List every file, queue, offset, partition and segment.")
@path_options(*KINDS)
def command(*, path: str, whole: bool, kind: str | None, options: BrokerOptions, as_json: bool) -> int:
    """Say what PATH is, and what is in it.

    PATH is a RocketMQ store's root directory or something in it: the index, the commit log, the consume queues, one
    queue, the offsets of consumers, a table of config/, a checkpoint, or one file of these; or a Kafka log dir, a
    partition, or a .log, .index, .timeindex, .txnindex or .snapshot file. Of a store it is one screen: would a broker
    start, what index and queues cover of the log, sizes, growth, and how far groups of consumers are behind; of a
    partition or a log dir: what its indexes cover, sizes, growth. --all adds all parts, segments and partitions.
    Only headers and ends are read; `mqindex verify` reads everything.
    """
    kind = require_kind(path, kind, *KINDS)
    broker = broker_of(kind)
    facts: Facts = {"kind": kind, "path": path, **broker.facts(kind, path, options)}
    if as_json:
        print_json("info", facts)
    else:
        print_line(f"{facts['path']}: {KINDS[facts['kind']]}")
        if "glance" in facts:
            broker.screen(facts)
            print_line()
        if whole or "glance" not in facts:
            _print(facts, most=sys.maxsize if whole else _MOST_ROWS)
        else:
            print_line(f"`{command_line('info', path, '--all')}` lists {broker.LISTED}")
        if kind in VERIFIED:
            print_line(f"`{command_line('verify', path)}` says what is wrong: only headers and ends were read here")
    errors = list(dict.fromkeys(part["error"] for part in _parts(facts) if "error" in part))  # each once
    for error in errors:
        say(error)
    return 2 if errors else 0


def _parts(facts: Facts) -> Iterable[Facts]:
    below = [part for part in facts.values() if isinstance(part, dict)]
    return [facts, *below, *(file for part in [facts, *below] for file in part.get("files", ()))]


_PARTS = (  # of a store; of a segment
    "commitlog", "index", "consumequeue", "batchconsumequeue", "checkpoint", "consumer_offsets",
    "timeindex", "txnindex",
)  # fmt: skip
_WORDS: dict[str, dict[Any, str]] = {
    "state": {**STATES, "deleted": DELETED}, "clean_shutdown": CLEAN_SHUTDOWN, "abort": ABORT,
}  # fmt: skip
_LISTS = ("queues", "offsets", "partitions", "segments")
_MOST_ROWS = 100  # of each list, without --all


def _print(facts: Facts, *, most: int) -> None:
    """Fields, parts, files and lists; of each list at most so many rows, and then how many more there are."""
    print_fields(_fields(facts))
    for name in _PARTS:
        if isinstance(part := facts.get(name), dict):
            print_line()
            print_line(f"{name}  {part.get('path') or ', '.join(part.get('directories', ()))}".rstrip())
            _print(part, most=most)
    if files := facts.get("files"):
        print_line()
        _print_files(files[:most])
        _print_rest(len(files) - most)
    for name in _LISTS:
        if rows := facts.get(name, ()):
            print_line()
            print_table(list(rows[0]), [[_cell(name, cell) for name, cell in row.items()] for row in rows[:most]])
            _print_rest(len(rows) - most)


def _print_rest(rows: int) -> None:
    if rows > 0:
        print_line(f"... and {plural(rows, 'row')} more: --all lists them")


def _cell(name: str, cell: object) -> object:
    return "missing" if cell is None and name in ("index", "timeindex") else cell


_PRINTED_ELSEWHERE = (
    "kind", "path", "directories", "files", "entries", "capacity", "places", "full", "geometry_source", "error",
    "duplicates",
)  # fmt: skip


def _fields(facts: Facts) -> Iterable[tuple[str, object]]:
    for name, value in facts.items():
        if name in _PRINTED_ELSEWHERE or isinstance(value, dict):
            continue
        if name in _LISTS:
            yield name, len(value)
            continue
        if name == "largest_timestamp":
            yield "retention goes by", iso(value)
        elif name.endswith("_timestamp"):
            yield name, f"{value}  {iso(value)}"
        elif name == "size":
            yield name, size(value)
        elif name in _WORDS:
            yield name, _WORDS[name][value]
        elif name == "lock":
            yield name, LOCKS[value].format("log dir" if facts["kind"] in kafka_kinds.KINDS else "store")
        elif name == "strays":
            yield "skipped names", ", ".join(value) or None
        elif name in _PARTS:
            yield name, "not there"
        else:
            yield name, value
    yield from _sums(facts)


def _sums(facts: Facts) -> Iterable[tuple[str, object]]:
    if "geometry_source" in facts:
        yield "geometry", facts["geometry_source"]
    if "capacity" in facts:
        share = facts["entries"] / facts["capacity"] if facts["capacity"] else 1.0
        yield "entries", f"{facts['entries']} of {facts['capacity']} ({share:.1%}){', full' if facts['full'] else ''}"
    elif "places" in facts:
        zeros = facts["places"] - facts["entries"]
        yield "entries", f"{facts['entries']}, then {plural(zeros, 'place')} of zeros" if zeros else facts["entries"]
    elif "entries" in facts:
        files = f" in {plural(len(facts['files']), 'file')}" if "files" in facts else ""
        yield "entries", f"{facts['entries']}{files}"
    elif "files" in facts:
        yield "files", len(facts["files"])


def _print_files(files: list[Facts]) -> None:
    if "start" in files[0]:
        print_table(["start", "size", "path"], [(file["start"], file["size"], file["path"]) for file in files])
        return
    names = ["name", "entries", "begin_phy_offset", "end_phy_offset"]
    print_table(
        [*names, "begin", "end"],
        [(*(file.get(name) for name in names), _time(file, "begin"), _time(file, "end")) for file in files],
    )


def _time(file: Facts, end: str) -> str | None:
    moment = file.get(f"{end}_timestamp")
    return None if moment is None else iso(moment)
