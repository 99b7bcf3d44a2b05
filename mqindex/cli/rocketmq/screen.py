"""The first screen of `mqindex info STORE`: its state, its coverage, its sizes, rates and lag."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from mqindex._words import plural
from mqindex.cli.printing.coverage_bar import coverage_bar
from mqindex.cli.printing.output import print_fields, print_line
from mqindex.cli.printing.progress import amount
from mqindex.cli.rocketmq.glance import covered_share
from mqindex.wording.text import iso, size
from mqindex.wording.verdict import ABORT

Facts = dict[str, Any]
_GROUPS: Final = 5
_LONGEST_NAME: Final = 60
_COVERING: Final = {"index": "index", "queues": "consumequeue"}  # the parts of a store
_WHY_INDEX = ": messages without keys, or missing entries"


def print_screen(facts: Facts) -> None:
    """Print one screen with the facts of a store and its `glance`."""
    seen = facts["glance"]
    print_fields([*seen["start"]["words"].items(), ("abort", ABORT[facts["abort"]])])
    if seen["coverage"] is not None:
        print_line()
        print_line("covered, by headers and last units")
        print_fields(_coverage(facts, seen["coverage"]))
    print_line()
    print_fields([*_sizes(facts), *_rates(seen["rates"]), *_lag(facts, seen["lag"])])


def _coverage(facts: Facts, coverage: Facts) -> list[tuple[str, str]]:
    begin, end = coverage["log"]
    lines = []
    for name in ("log", "index", "queues"):
        stretches = [coverage["log"]] if name == "log" else coverage[name]
        if stretches is None:
            lines.append((name, _absent(facts.get(_COVERING[name])) or "not there"))
            continue
        if name == "log":
            words = f"{begin} to {end}"
        else:
            words = f"{100 * (covered_share(coverage, name) or 0):5.1f} %"
            if missing := _missing(stretches, begin, end):
                words += f", {plural(missing, 'gap')}{_WHY_INDEX if name == 'index' else ''}"
        lines.append((name, f"{coverage_bar(stretches, begin, end)}{words}"))
    return lines


def _missing(stretches: list[list[int]], begin: int, end: int) -> int:
    if not stretches:
        return int(end > begin)
    return len(stretches) - 1 + (stretches[0][0] > begin) + (stretches[-1][1] < end)


def _sizes(facts: Facts) -> list[tuple[str, str]]:
    lines = []
    for name, words in (("commitlog", _log), ("index", _index), ("consumequeue", _queues)):
        part = facts.get(name)
        lines.append((name, _absent(part) or words(part or {})))
    return lines


def _absent(part: Facts | None) -> str:
    if part is not None and part.get("rocksdb"):
        return "in RocksDB, which is not read"
    return "not there" if part is None else "cannot be read" if "error" in part else ""


def _log(part: Facts) -> str:
    return f"{size(part['max_phy_offset'] - part['min_phy_offset'])} in {plural(len(part['files']), 'file')}"


def _index(part: Facts) -> str:
    unread = sum("error" in file for file in part["files"])
    bad = f", {unread} cannot be read" if unread else ""
    return f"{plural(part['entries'], 'entry')}, {size(part['size'])} in {plural(len(part['files']), 'file')}{bad}"


def _queues(part: Facts) -> str:
    queues, topics = plural(len(part["queues"]), "queue"), plural(part["topics"], "topic")
    return f"{plural(part['units'], 'unit')} in {queues} of {topics}"


def _rates(rates: Facts | None) -> list[tuple[str, str]]:
    if rates is None:
        return [("growth", "too short to tell: it needs two messages a day apart")]
    first, last = rates["first_timestamp"], rates["last_timestamp"]
    words = f"{amount(rates['bytes_a_day'], 'byte')} a day"
    if rates["messages_a_day"] is not None:
        words += f", {amount(rates['messages_a_day'], 'message')} a day"
    span = timedelta(seconds=(last - first) // 1000)
    return [("growth", words), ("of", f"{iso(first)} to {iso(last)}, {span}")]


def _lag(facts: Facts, groups: list[Facts]) -> list[tuple[str, str]]:
    if (facts.get("consumer_offsets") or {}).get("rocksdb"):
        return [("lag", "not known: the groups are in RocksDB, which is not read")]
    if not groups:
        return [("lag", "no group of consumers is known")]
    lines: list[tuple[str, str]] = []
    for one in groups[:_GROUPS]:
        unknown = f", {plural(one['unknown'], 'queue')} of it not there" if one["unknown"] else ""
        behind = f"{plural(one['lag'], 'message')} behind" if one["lag"] else "nothing behind"
        lines.append(
            ("" if lines else "lag", f"{_name(one['group'])}: {behind} in {plural(one['queues'], 'queue')}{unknown}")
        )
    if len(groups) > _GROUPS:
        lines.append(("", f"and {plural(len(groups) - _GROUPS, 'group')} more, less behind"))
    return lines


def _name(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}... ({len(text)} characters)"
