"""What has changed since an earlier report of the same place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqindex.html.page import Block, Cell, Column, Facts, Note, Section, Table, Tone
from mqindex.html.text import count, size, span
from mqindex.wording.text import iso

_COMPARED: list[tuple[str, tuple[str, str], Callable[[Any], str]]] = [
    ("end of the log", ("coverage", "end"), count),
    ("bytes of the logs", ("totals", "bytes"), size),
    ("messages", ("coverage", "messages"), count),
    ("records", ("totals", "records"), count),
    ("partitions", ("totals", "partitions"), count),
    ("index entries", ("index", "entries"), count),
    ("index entries missing", ("coverage", "missing_entries"), count),
    ("units of queues missing", ("coverage", "missing_units"), count),
    ("lag of all groups", ("groups", "lag"), count),
    ("disk free", ("site", "disk_free"), size),
]


def changes_of(facts: Facts, then: Facts) -> Section:
    """Numbers then and now, and the kinds of findings that are new or gone."""
    made = facts.get("read", "made_at"), then.get("read", "made_at")
    lead = f"Compared with the report of {iso(made[1])}, {span(made[0] - made[1])} before."
    if facts.get("verify", "path") != then.get("verify", "path"):
        lead += f" That one is of {then.get('verify', 'path')}."
    return Section("changes", "Since the earlier report", [_numbers(facts, then), *_findings(facts, then)], lead)


def _numbers(facts: Facts, then: Facts) -> Table:
    rows: list[list[Cell]] = []
    for title, path, form in _COMPARED:
        before, now = then.get(*path), facts.get(*path)
        if isinstance(before, int) and isinstance(now, int):
            rows.append([title, form(before), facts(*path, form=form), _difference(now - before, form)])
    columns = [Column("what"), *(Column(title, number=True) for title in ("then", "now", "change"))]
    return Table("Then and now", columns, rows)


def _difference(change: int, form: Callable[[Any], str]) -> str:
    return f"+{form(change)}" if change > 0 else form(change)


def _findings(facts: Facts, then: Facts) -> list[Block]:
    before, now = _kinds(then), _kinds(facts)
    new, gone = sorted(now - before), sorted(before - now)
    blocks: list[Block] = []
    if new:
        worst: Tone = "bad" if any(severity == "error" for severity, _ in new) else "warn"
        blocks.append(Note(f"New findings: {_named(new)}.", worst))
    if gone:
        blocks.append(Note(f"Findings that are gone: {_named(gone)}.", "good"))
    return blocks or [Note("No kind of finding is new, and none is gone.")]


def _kinds(facts: Facts) -> set[tuple[str, str]]:
    found = facts.get("verify", "findings") or []
    return {(str(one.get("severity")), str(one.get("kind"))) for one in found if isinstance(one, dict)}


def _named(kinds: list[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} ({severity})" for severity, kind in kinds)
