"""Findings on a terminal: one paragraph for each kind."""

from __future__ import annotations

from collections.abc import Iterable

from mqindex._words import plural
from mqindex.cli.printing.output import print_line, print_paragraph
from mqindex.report import REPAIRED, Catalogue, Finding
from mqindex.wording.findings import FindingGroup, grouped

# A kind's name is its anchor there.
EXPLAINED = (
    "each finding is explained, by its name, in https://github.com/mqindex/mqindex/blob/main/.github/docs/findings.md"
)


def print_findings(findings: Iterable[Finding], catalogue: Catalogue, root: str) -> None:
    """One paragraph for each kind, the errors first; paths as seen from `root`."""
    for group in grouped(findings, catalogue, root):
        _print_group(group)


def _print_group(group: FindingGroup) -> None:
    repaired = group.hint == REPAIRED
    title = f"{REPAIRED if repaired else group.severity}: {group.title}"
    print_paragraph(f"{title}. {group.meaning}" if group.meaning else title, style=group.severity)
    for place in filter(None, group.places):
        print_paragraph(place, indent=2)
    if len(group.places) < group.count:
        print_paragraph(f"and {plural(group.count - len(group.places), 'more', 'more')}: --json lists all", indent=2)
    if group.hint is not None and not repaired:
        print_paragraph(f"-> {group.hint}", indent=2)
    print_line()
