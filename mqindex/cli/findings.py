"""Findings for people: gathered by kind, each kind with its meaning, its first places, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby

from mqindex._words import plural
from mqindex.cli.output import print_line, print_paragraph
from mqindex.cli.text import iso
from mqindex.report import Catalogue, Finding

__all__ = ["print_findings", "shortened"]

_SHOWN = 4  # of a kind; one that is alone among them is shown rather than counted
_ORDER = ("error", "warning", "info")


def print_findings(findings: Iterable[Finding], catalogue: Catalogue, root: str) -> None:
    """A paragraph a kind, the errors first; paths as seen from `root`."""
    order = {key: number for number, key in enumerate(dict.fromkeys(map(_key, findings)))}
    ranked = sorted(findings, key=lambda one: (_ORDER.index(one.severity), order[_key(one)]))
    for (severity, kind), group in groupby(ranked, _key):
        _print_kind(severity, kind, list(group), catalogue, root)


def _key(finding: Finding) -> tuple[str, str]:
    return finding.severity, finding.kind


def _print_kind(severity: str, kind: str, found: list[Finding], catalogue: Catalogue, root: str) -> None:
    title = f"{severity}: {kind}" if len(found) == 1 else f"{severity}: {kind}, {len(found)} times"
    meaning = catalogue[kind][0].meaning if kind in catalogue else ""
    print_paragraph(f"{title}. {meaning}" if meaning else title, style=severity)
    hints = list(dict.fromkeys(one.hint for one in found if one.hint))
    shown = found if len(found) <= _SHOWN + 1 else found[:_SHOWN]
    for one in shown:
        line = _place(one, root)
        if one.hint and len(hints) > 1:
            line = f"{line}; {one.hint}" if line else one.hint
        if line:
            print_paragraph(line, indent=2)
    if len(shown) < len(found):
        print_paragraph(f"and {plural(len(found) - len(shown), 'more', 'more')}: --json lists all", indent=2)
    if len(hints) == 1:
        print_paragraph(f"-> {hints[0]}", indent=2)
    print_line()


def _place(finding: Finding, root: str) -> str:
    where = [
        "" if finding.path is None else shortened(finding.path, root),
        "" if finding.field is None else f"field {finding.field}",
        "" if finding.at is None else f"at byte {finding.at}",
    ]
    sizes = [
        "" if finding.expected is None else f"expected {_value(finding, finding.expected)}",
        "" if finding.got is None else f"got {_value(finding, finding.got)}",
    ]
    return ": ".join(part for part in (" ".join(filter(None, where)), ", ".join(filter(None, sizes))) if part)


def _value(finding: Finding, value: object) -> str:
    """A time also as people write it."""
    if type(value) is int and value > 0 and (finding.field or "").endswith("timestamp"):
        return f"{iso(value)} ({value})"
    return str(value)


def shortened(path: str, root: str) -> str:
    """A path as seen from `root`, which itself stays as it was given; one that lies elsewhere stays as it is.

    >>> shortened("/data/store/index/1", "/data/store"), shortened("/else", "/data/store"), shortened("/data/", "/data")
    ('index/1', '/else', '/data')
    """
    below = os.path.abspath(root).rstrip(os.sep) + os.sep
    full = os.path.abspath(path)
    if full + os.sep == below:
        return root
    return full[len(below) :] if full.startswith(below) else path
