"""Blocks that both brokers' pages have: the verdict, findings, what was read, counts over time, distributions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from mqindex.html import figures
from mqindex.html.earlier import changes_of
from mqindex.html.page import (
    ROWS,
    Actions,
    Block,
    Cell,
    Column,
    Commands,
    Facts,
    Fields,
    Figure,
    Findings,
    Note,
    Page,
    Section,
    Table,
    Tone,
    Verdict,
)
from mqindex.html.text import CUT, Name, count, days, moment, size, span, visible
from mqindex.report import Catalogue, Report
from mqindex.wording.findings import grouped
from mqindex.wording.reports import asked_options, beyond_repair, counts, settings, work_done
from mqindex.wording.text import printable, shell_command
from mqindex.wording.verdict import verdict

Path = Sequence[str | int]
Form = Callable[[Any], str]
Shown = tuple[str, Path, Form]
"""A column of a series: its title, where its values are, how they are shown."""
Listed = tuple[str, str, Form | None]
"""A column of a listing, or a tile: its title, where its value is, how numbers are shown; None: it is a text."""


def verdict_of(report: Report, repair: Sequence[str]) -> Verdict:
    """The first thing on a page. `repair`: the words of the command that would mend it."""
    answers = [] if report.start is None else verdict(report.start, report.path)
    blocks: list[Block] = []
    if left := beyond_repair(report.findings):
        blocks.append(
            Note(f"No repair mends these errors; the findings say what does. See to them first: {left}", "bad")
        )
    if report.actions:
        asked = asked_options(report)
        words = shell_command([*repair, *asked])
        says = "What to do: look at what a repair would do, then, with the broker stopped, repair"
        given = ". Nothing in the store shows some settings: FILE is the broker's broker.conf, V its version"
        blocks.append(Commands(says + given * bool(asked), [f"{words} --dry-run", words]))
        blocks.append(Actions("It would:", report.actions))
    return Verdict(*_headline(report), [*answers, ("checked", work_done(report))], blocks)


def _headline(report: Report) -> tuple[Tone, str]:
    found = counts(report.findings)
    if report.start is not None and report.start.starts is False:
        return "bad", f"A broker would not start: {found}" if found else "A broker would not start"
    if not report.ok:
        return "bad", f"Not clean: {found}"
    if any(one.severity == "warning" for one in report.findings):
        return "warn", f"Clean, with {found}"
    words = f"Clean, with {found}" if found else "Clean: nothing was found"
    if report.start is not None and report.start.starts is None:
        return "info", f"{words}; whether a broker starts is not known"
    return "good", words


def page_of(
    kicker: str, document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str],
    sections: Iterable[Section], earlier: Mapping[str, Any] | None,
) -> Page:  # fmt: skip
    """The page of a health report, its `to_dict()`, with these sections. `repair`: as of `verdict_of`; `earlier`: an
    earlier `to_dict()`, to compare with.
    """
    facts = Facts(document)
    made = f"Made {facts('read', 'made_at', form=moment)} by mqindex {facts.get('read', 'version')}"
    page = Page(kicker, report.path, made, verdict_of(report, repair))
    changes = [] if earlier is None else [changes_of(facts, Facts(earlier))]
    page.add([findings_of(report, catalogue), site_of(facts), *changes, *sections, reading_of(facts, report)])
    return page


def unread_page(path: str, sentence: str, made_at: int, version: str) -> Page:
    """The page of a path that could not be read: the sentence says why, and nothing else is known."""
    verdict = Verdict("bad", "Not known: not all of it can be read", [("what is wrong", sentence)])
    return Page("Report", path, f"Made {moment(made_at)} by mqindex {version}", verdict)


def site_of(facts: Facts) -> Section:
    """The host, the broker, the newest message, and how long the disk lasts."""
    growth, left = facts("site", "bytes_per_day", form=size), facts("site", "days_left", form=days)
    short = "too short to tell" if growth.value is None else left
    fields: list[tuple[str, Cell]] = [
        ("host", facts.get("site", "host") or "not known"),
        ("broker", facts.get("site", "broker") or "not known"),
        ("newest message", facts("site", "newest", form=moment)),
        ("its age", facts("site", "newest_age", form=span)),
        ("growth a day", "too short to tell" if growth.value is None else growth),
        ("disk free", facts("site", "disk_free", form=size)),
        ("days left", short),
    ]
    lead = (
        "Days until the disk is full: at the growth of the logs, if nothing is deleted; known after a day of messages."
    )
    return Section("site", "Host and disk", [Fields(fields, large=True)], lead)


def findings_of(report: Report, catalogue: Catalogue) -> Section:
    """All findings, gathered by kind."""
    groups = tuple(grouped(report.findings, catalogue, report.path))
    blocks: list[Block] = [Findings(groups)] if groups else []
    return Section("findings", "Findings", blocks, "Errors first. Warnings and infos change no exit code.")


def reading_of(facts: Facts, report: Report) -> Section:
    """What was read, how long it took, which settings were used, and where they came from."""
    fields: list[tuple[str, Cell]] = [
        ("made", facts("read", "made_at", form=moment)),
        ("by mqindex", facts.get("read", "version")),
        ("deep", "yes: the contents of every message too" if facts.get("read", "deep") else "no"),
        ("read of the log", facts("read", "bytes", form=size)),
        ("seconds", facts("read", "seconds")),
    ]
    used = [(name, value) for name, value in settings(report)]
    blocks: list[Block] = [Fields([*fields, *((name, str(value)) for name, value in used)])]
    if facts.get("read", "sampled"):
        caption = "What was looked at; where it is not all, the numbers are estimates"
        columns = [("part", "part", None), ("looked at", "seen", count), ("of", "total", count), ("what", "what", None)]
        blocks.append(listing(facts, ("read", "sampled"), caption, columns))
    return Section("read", "What was read", blocks, "Each setting with where it is known from.")


def name_of(text: Any) -> Name:
    """A name of the report's JSON, whose length is that of the whole.

    >>> name_of({"text": "Orders", "length": 6}), name_of({"text": "xx", "length": 5000}), name_of(None)
    ('Orders', 'xx… (5,000 characters)', 'not known')
    """
    if text is None:
        return Name("not known")
    if text["length"] <= len(text["text"]):
        return Name(visible(text["text"]))
    return Name(f"{printable(text['text'][:CUT])}… ({count(text['length'])} characters)")


def listing(
    facts: Facts, path: Path, caption: str, columns: Sequence[Listed], *,
    rows: Iterable[int] | None = None, bars: Collection[str] = (), whole: int | None = None, limit: int = ROWS,
) -> Table:  # fmt: skip
    """A row for each item of the list at `path`, or for those of these numbers. `bars`: the columns with bars.

    `whole`: how many items there are, if not all are in the list.
    """
    chosen = range(len(facts.get(*path))) if rows is None else rows
    return Table(
        caption,
        [Column(title, number=form is not None, bar=title in bars) for title, _, form in columns],
        [[_listed(facts, (*path, i, *where.split("/")), form) for _, where, form in columns] for i in chosen],
        count=whole,
        limit=limit,
    )


def tiles(facts: Facts, path: Path, columns: Sequence[Listed], *, large: bool = False) -> Fields:
    """Single values of what is at `path`, by the same columns."""
    shown = [(title, _listed(facts, (*path, *where.split("/")), form)) for title, where, form in columns]
    return Fields(shown, large=large)


def _listed(facts: Facts, path: Path, form: Form | None) -> Cell:
    if form is not None:
        return facts(*path, form=form)
    text = facts.get(*path)
    return text if isinstance(text, str) else name_of(text)


def times_of(series: Any) -> bool:
    """Whether a series of the report's JSON has anything to be drawn over time."""
    return bool(series and series["counts"] and figures.in_calendar(series["start"]))


def series_table(facts: Facts, caption: str, path: Path, columns: Sequence[Shown]) -> Table:
    """The bins of the series at `path`, and more columns: a title, where its values are, how they are shown."""
    start, width = facts.get(*path, "start"), facts.get(*path, "width")
    rows: list[list[Cell]] = [
        [moment(start + i * width), *(facts(*where, i, form=form) for _, where, form in columns)]
        for i in range(len(facts.get(*path, "counts")))
    ]
    titles = (Column("from"), *(Column(title, number=True) for title, _, _ in columns))
    return Table(caption, titles, rows, limit=100)


def over_time(facts: Facts, path: Path, name: str, title: str, says: str, *, bytes_too: bool = True) -> Figure:
    """Counts of the series at `path` over time; its bytes are in the table."""
    series = facts.get(*path)
    columns: list[Shown] = [("count", (*path, "counts"), count)]
    if bytes_too:
        columns.append(("bytes", (*path, "bytes"), size))
    picture = figures.time_bars(name, series["start"], series["width"], [("s1", series["counts"])])
    return Figure(picture, title, says, data=series_table(facts, title, path, columns))


def histogram(
    facts: Facts, path: Path, name: str, title: str, says: str, *, form: Form = count,
    ideal: Path = (), what: str = "from",
) -> Figure:  # fmt: skip
    """The distribution at `path`, `form`: how its bounds are shown; `ideal`: where the expected counts are."""
    bounds, values = facts.get(*path, "bounds"), facts.get(*path, "counts")
    expected = facts.get(*ideal) if ideal else ()
    used = max((i + 1 for i, value in enumerate(values) if value), default=1)
    used = max([used, *(i + 1 for i, value in enumerate(expected) if value >= 1)])
    labels = [form(bound) for bound in bounds[:used]]
    picture = figures.bars(name, labels, values[:used], ideal=expected[:used])
    rows = [
        [facts(*path, "bounds", i, form=form), facts(*path, "counts", i), *([facts(*ideal, i)] if ideal else [])]
        for i in range(used)
    ]
    columns = [Column(what, number=True), Column("count", number=True)]
    legend = []
    if ideal:
        columns.append(Column("expected", number=True))
        legend = [("s1", "counted"), ("s2", "expected if keys fell at random")]
    return Figure(picture, title, says, legend, Table(title, columns, rows, limit=64))
