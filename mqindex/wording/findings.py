"""Findings for people: gathered by kind, each kind with its meaning, its first places, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from mqindex.files.paths import absolute
from mqindex.files.places.place import Place
from mqindex.report import Catalogue, Finding, Severity
from mqindex.wording.text import iso

_SHOWN = 4  # of a kind; one that is alone among them is shown rather than counted
_ORDER = ("error", "warning", "info")


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """All findings of one kind and severity.

    Attributes
    ----------
    severity, kind : str
    meaning : str, what they have in common; empty: nothing is known of the kind
    count : int, how many there are
    places : tuple of str, the first of them: where, what was expected and what is there, what to do if that differs
    hint : str or None, what to do where it is the same for all
    """

    severity: Severity
    kind: str
    meaning: str
    count: int
    places: tuple[str, ...]
    hint: str | None

    @property
    def title(self) -> str:
        """The kind, and how often if not once."""
        return self.kind if self.count == 1 else f"{self.kind}, {self.count} times"


def grouped(findings: Iterable[Finding], catalogue: Catalogue, root: str) -> Iterator[FindingGroup]:
    """One group for each kind and severity, the errors first; paths as seen from `root`.

    >>> from mqindex.report import Kind
    >>> stray = Kind("stray-file", "warning", "A file that the broker skips.", "delete it")
    >>> found = [stray.finding("/store/notes.txt"), Finding("error", "bad-slot", "/store/index/1", at=40, got=7)]
    >>> for one in grouped(found, {"stray-file": (stray,)}, "/store"):
    ...     one.title, one.meaning, one.places, one.hint
    ('bad-slot', '', ('index/1 at byte 40: got 7',), None)
    ('stray-file', 'A file that the broker skips.', ('notes.txt',), 'delete it')
    """
    findings = list(findings)
    order = {key: number for number, key in enumerate(dict.fromkeys(map(_key, findings)))}
    ranked = sorted(findings, key=lambda one: (_ORDER.index(one.severity), order[_key(one)]))
    for (severity, kind), group in groupby(ranked, _key):
        found = list(group)
        hints = list(dict.fromkeys(one.hint for one in found if one.hint))
        shown = found if len(found) <= _SHOWN + 1 else found[:_SHOWN]
        places = (_place(one, root, with_hint=len(hints) > 1) for one in shown)
        yield FindingGroup(
            severity=severity,
            kind=kind,
            meaning=catalogue[kind][0].meaning if kind in catalogue else "",
            count=len(found),
            places=tuple(places),
            hint=hints[0] if len(hints) == 1 else None,
        )


def _key(finding: Finding) -> tuple[Severity, str]:
    return finding.severity, finding.kind


def _place(finding: Finding, root: str, *, with_hint: bool) -> str:
    where = [
        "" if finding.path is None else shortened(finding.path, root),
        "" if finding.field is None else f"field {finding.field}",
        "" if finding.at is None else f"at byte {finding.at}",
    ]
    sizes = [
        "" if finding.expected is None else f"expected {_value(finding, finding.expected)}",
        "" if finding.got is None else f"got {_value(finding, finding.got)}",
    ]
    line = ": ".join(part for part in (" ".join(filter(None, where)), ", ".join(filter(None, sizes))) if part)
    return "; ".join(filter(None, [line, finding.hint])) if with_hint else line


def _value(finding: Finding, value: object) -> str:
    """A time also as people write it."""
    if type(value) is int and value > 0 and (finding.field or "").endswith("timestamp"):
        return f"{iso(value)} ({value})"
    return str(value)


def shortened(path: str, root: str) -> str:
    """A path as seen from `root`, which itself stays as it was given; a path elsewhere stays as it is.

    >>> shortened("/data/store/index/1", "/data/store"), shortened("/else", "/data/store"), shortened("/data/", "/data")
    ('index/1', '/else', '/data')
    """
    below = absolute(root).rstrip(os.sep) + os.sep
    full = path if isinstance(root, Place) else absolute(path)
    if full + os.sep == below:
        return root
    return full[len(below) :] if full.startswith(below) else path
