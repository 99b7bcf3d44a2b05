"""The first screen of `mqindex info` of a partition or a log dir: signs of trouble, indexes, sizes, growth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from mqindex._words import plural
from mqindex.cli.printing.coverage_bar import coverage_bar
from mqindex.cli.printing.output import print_fields, print_line
from mqindex.cli.printing.progress import amount
from mqindex.wording.text import iso, size
from mqindex.wording.verdict import BEFORE_SEGMENTS, CLEAN_SHUTDOWN, LOCKS, STATES

Facts = dict[str, Any]
_LARGEST: Final = 5  # partitions


def print_screen(facts: Facts) -> None:
    """Print one screen with the facts of a partition or a log dir and its `glance`."""
    seen = facts["glance"]
    print_fields(
        [
            ("lock", LOCKS[facts["lock"]].format("log dir")),
            *([("state", STATES[facts["state"]])] if "state" in facts else []),
            *([("clean_shutdown", CLEAN_SHUTDOWN[facts["clean_shutdown"]])] if "clean_shutdown" in facts else []),
            *_transactions(seen.get("transactions")),
            *_open_in(facts.get("partitions", ())),
        ]
    )
    if facts["size"]:
        print_line()
        print_line("bytes of the log with an index, by which files are there")
        print_fields([_index(name, facts) for name in ("index", "timeindex")])
    print_line()
    print_fields([*(_partitions(facts) if "partitions" in facts else _extent(facts)), *_rates(seen)])


def _transactions(seen: Facts | None) -> list[tuple[str, object]]:
    if not (seen and seen["open"]):
        return []
    as_of = "" if seen["as_of_offset"] is None else f" as of offset {seen['as_of_offset']}"
    stop = f"consumers of committed records stop before offset {seen['last_stable_offset']}"
    named = [f"producer {each['producer_id']} from offset {each['first_offset']}" for each in seen["producers"]]
    more = ", ..." if len(named) > _LARGEST or seen["open"] > len(named) else ""
    return [
        ("open", f"{plural(seen['open'], 'transaction')}{as_of}: {stop}"),
        ("", f"{', '.join(named[:_LARGEST])}{more}"),
    ]


def _open_in(rows: Sequence[Facts]) -> list[tuple[str, object]]:
    """Of a log dir, by the newest snapshot of each partition."""
    held = [row for row in rows if row["open_transactions"]]
    if not held:
        return []
    held.sort(key=lambda row: -int(row["open_transactions"]))
    named = [f"{row['topic']}-{row['partition']} from offset {row['open_from']}" for row in held[:_LARGEST]]
    count = plural(sum(row["open_transactions"] for row in held), "transaction")
    where = f"{count} in {plural(len(held), 'partition')}, as of their newest snapshots"
    return [("open", f"{where}: {', '.join(named)}{', ...' if len(held) > _LARGEST else ''}")]


def _index(name: str, facts: Facts) -> tuple[str, str]:
    lost, whole = facts["glance"]["unindexed"][name], facts["size"]
    parts = [[0, whole - lost]]
    if "segments" in facts:
        ends = list(accumulate(row["size"] for row in facts["segments"]))
        rows = zip(facts["segments"], ends, strict=True)
        parts = [[end - row["size"], end] for row, end in rows if row[name] is not None]
    return name, f"{coverage_bar(parts, 0, whole)}{100 * (whole - lost) / whole:5.1f} %"


def _extent(facts: Facts) -> list[tuple[str, str]]:
    segments = plural(len(facts["segments"]), "segment")
    before, by = facts["start_before_segments"], facts["glance"]["retention_timestamp"]
    return [
        ("log", f"{size(facts['size'])} in {segments}"),
        ("offsets", _offsets(facts)),
        *([] if by is None else [("expiry", f"retention goes by {iso(by)} for the oldest segment")]),
        *_deleted(facts["glance"]["deleted"]),
        *([] if before is None else [("not here", BEFORE_SEGMENTS.format(before, facts["log_start_offset"] - 1))]),
    ]


def _deleted(seen: Facts | None) -> list[tuple[str, str]]:
    if seen is None:
        return []
    what = f"{size(seen['size'])} in {plural(seen['segments'], 'segment')}, from offset {seen['first_offset']} on"
    return [
        (
            "deleted",
            f"{what}: the broker removes them soon, or when it starts; `info` and `dump` read each .log.deleted",
        )
    ]


def _offsets(facts: Facts) -> str:
    begin, end = facts["log_start_offset"], facts["next_offset"]
    if begin is None:
        return "none: there is no log; is its volume mounted? A broker that starts makes an empty one"
    if end is None:
        return f"from {begin} on; where they end is not known"
    return f"none; the next is {end}" if begin == end else f"{begin} to {end}"


def _partitions(facts: Facts) -> list[tuple[str, str]]:
    rows: Sequence[Facts] = sorted(facts["partitions"], key=lambda row: -int(row["size"]))
    topics = plural(len({row["topic"] for row in rows}), "topic")
    segments = plural(sum(row["segments"] for row in rows), "segment")
    whole = f"{size(facts['size'])} in {segments} of {plural(len(rows), 'partition')} of {topics}"
    lines = [("logs", whole)]
    for row in rows[:_LARGEST]:
        state = f" ({STATES[row['state']]})" if row["state"] else ""
        words = f"{row['topic']}-{row['partition']}{state}: {size(row['size'])}"
        lines.append(("" if len(lines) > 1 else "largest", words))
    return lines


def _rates(seen: Facts) -> list[tuple[str, str]]:
    if "rates" not in seen:
        return []
    rates = seen["rates"]
    if rates is None:
        return [("growth", "too short to tell: it needs two records a day apart")]
    words = f"{amount(rates['bytes_a_day'], 'byte')} a day"
    if rates["records_a_day"] is not None:
        words += f", {amount(rates['records_a_day'], 'record')} a day"
    return [("growth", words), ("of", f"{iso(rates['first_timestamp'])} to {iso(rates['last_timestamp'])}")]
