"""Coverage: the log as a line, and what index and queues cover of it; its files over time."""

from __future__ import annotations

from collections.abc import Iterable

from mqindex.html.figures import LinePart, in_calendar, stretches, time_line
from mqindex.html.page import Block, Cell, Column, Facts, Figure, Note, Section, Table
from mqindex.html.parts import Listed, listing, tiles
from mqindex.html.text import count, moment, size, visible

_LINES = 60  # rows of a table below a picture
_LEGEND = (
    ("s1", "commit log"),
    ("s3", "index files"),
    ("s4", "consume queues"),
    ("bad", "damaged, or missing"),
    ("warn", "twice in the index, or wrong"),
)


def coverage_of(facts: Facts) -> Section:
    """The section of `coverage` in the report's JSON."""
    first: list[Listed] = [
        ("messages in the log", "messages", count), ("oldest message", "oldest", moment),
        ("newest message", "newest", moment),
        ("index entries missing", "missing_entries", count), ("units of queues missing", "missing_units", count),
    ]  # fmt: skip
    blocks: list[Block] = [tiles(facts, ("coverage",), first, large=True)]
    if facts.get("coverage", "end") > facts.get("coverage", "begin"):
        blocks.append(_line(facts))
    else:
        blocks.append(Note("The log holds no message."))
    if facts.get("coverage", "queues") is None:
        blocks.append(Note("The consume queues are in RocksDB, which is not read."))
    bad = facts.get("coverage", "bad_index_files")
    if bad:
        blocks.append(Note(f"These index files do not count, see the findings: {', '.join(map(visible, bad))}", "bad"))
    blocks += _times(facts)
    if facts.get("coverage", "stale"):
        blocks.append(_stale(facts))
    return Section(
        "coverage",
        "Coverage",
        blocks,
        "The commit log is a line of physical offsets. A message that index or queues do not cover is there, but "
        "a consumer or a query does not find it.",
    )


def _line(facts: Facts) -> Figure:
    cover = facts.get("coverage")
    begin, end = cover["begin"], cover["end"]
    log = [LinePart(one["begin"], one["end"], "s1", bool(i % 2)) for i, one in enumerate(cover["files"])]
    if cover["more_files"]:
        log = [LinePart(begin, end, "s1")]
    log += [LinePart(one["begin"], one["end"], "bad") for one in cover["damaged"]]
    files = [one for one in cover["index_files"] if one["begin"] is not None and one["end"] is not None]
    index = [LinePart(one["begin"], one["end"], "s3", bool(i % 2)) for i, one in enumerate(files)]
    index += [LinePart(one["begin"], one["end"], "warn") for one in cover["overlaps"]]
    index += [LinePart(one["begin"], one["end"], "bad") for one in cover["gaps"]]
    rows = [("commit log", log), ("index", index)]
    if cover["queues"] is not None:
        rows.append(("consume queues", list(_queue_stretches(cover["queues"]))))
    picture = stretches("coverage-line", rows, begin, end, size)
    says = "The log from its oldest byte to its newest message, file by file, and below it what covers it. "
    whole = not (cover["damaged"] or cover["gaps"] or cover["missing_units"] or cover["overlaps"])
    says += "Everything is covered." if whole else "The table names each place where something is wrong."
    return Figure(picture, "What covers the log", says, _LEGEND, _parts(facts))


def _queue_stretches(queues: Iterable[dict[str, int]]) -> Iterable[LinePart]:
    for one in queues:
        start = one["first"] if one["missing"] and one["first"] is not None else one["begin"]
        if start > one["begin"]:
            yield LinePart(one["begin"], start, "s4")
        yield LinePart(start, one["end"], "bad" if one["missing"] else "warn" if one["wrong"] else "s4")


def _parts(facts: Facts) -> Table:
    cover = facts.get("coverage")
    rows: list[list[Cell]] = [
        ["commit log", facts("coverage", "begin"), facts("coverage", "end"), "all", facts("coverage", "messages")]
    ]
    for part, what in (("damaged", "damaged"), ("gaps", "not in the index"), ("overlaps", "twice in the index")):
        for i, one in enumerate(cover[part]):
            number = facts("coverage", part, i, "entries") if part == "gaps" else None
            name = one["kind"] if part == "damaged" else "index"
            rows.append([name, facts("coverage", part, i, "begin"), facts("coverage", part, i, "end"), what, number])
    for i, one in enumerate(cover["queues"] or ()):
        if one["missing"] or one["wrong"]:
            for part in ("missing", "wrong"):
                if one[part]:
                    places = facts("coverage", "queues", i, "begin"), facts("coverage", "queues", i, "end")
                    rows.append(["consume queues", *places, f"units {part}", facts("coverage", "queues", i, part)])
    for i, one in enumerate(cover["index_files"]):
        row = [facts("coverage", "index_files", i, name) for name in ("begin", "end")]
        rows.append([f"index file {one['name']}", *row, "covered", facts("coverage", "index_files", i, "entries")])
    columns = (
        Column("part"),
        Column("from phy offset", number=True),
        Column("to", number=True),
        Column("what"),
        Column("count", number=True),
    )
    return Table("Stretches of the log", columns, rows, limit=_LINES)


def _times(facts: Facts) -> Iterable[Block]:
    """Times: offsets against time, and the time that each file spans."""
    cover, index = facts.get("coverage"), facts.get("index") or {"files": []}
    points = [(one["timestamp"], one["phy_offset"]) for one in cover["timeline"] if in_calendar(one["timestamp"])]
    if len(points) > 1:
        columns: list[Listed] = [("phy offset", "phy_offset", count), ("stored at", "timestamp", moment)]
        data = listing(facts, ("coverage", "timeline"), "Offsets and times", columns)
        picture = time_line("coverage-time", [("s1", points)], size)
        says = "Where the log was at which time. A steep line is much traffic, a flat one is a pause."
        yield Figure(picture, "Growth of the log", says, data=data)
    spans = [(one["first_timestamp"], one["last_timestamp"], one["name"]) for one in cover["files"]]
    rolls = [(one["begin_timestamp"], one["end_timestamp"], one["name"]) for one in index["files"]]
    rows = [("log files", _alternating(spans, "s1")), ("index files", _alternating(rolls, "s3"))]
    drawn = [part for _, parts in rows for part in parts]
    if drawn:
        low, high = min(part.start for part in drawn), max(part.stop for part in drawn)
        legend = [("s1", "commit log"), ("s3", "index")]
        says = (
            "The time that each file spans, from its first message to its last. The left edge is what retention left."
        )
        picture = stretches("coverage-files", rows, low, max(high, low + 1))
        yield Figure(picture, "Files over time", says, legend, _files(facts))


def _alternating(spans: Iterable[tuple[int | None, int | None, str]], tone: str) -> list[LinePart]:
    known = [(low, high) for low, high, _ in spans if low is not None and high is not None]
    inside = [(low, high) for low, high in known if in_calendar(low) and in_calendar(high) and low <= high]
    return [LinePart(low, high, tone, bool(i % 2)) for i, (low, high) in enumerate(inside)]


def _files(facts: Facts) -> Table:
    columns: list[Listed] = [
        ("log file", "name", None), ("begin", "begin", count), ("end", "end", count), ("size", "size", size),
        ("messages", "messages", count), ("first message", "first_timestamp", moment),
        ("last message", "last_timestamp", moment),
    ]  # fmt: skip
    whole = len(facts.get("coverage", "files")) + facts.get("coverage", "more_files")
    return listing(facts, ("coverage", "files"), "Files of the log", columns, whole=whole)


def _stale(facts: Facts) -> Table:
    columns: list[Listed] = [("kind", "kind", None), ("path", "path", None), ("at byte", "at", count)]
    return listing(facts, ("coverage", "stale"), "Stale: parts that belong to no message of the log", columns)
