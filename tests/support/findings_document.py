"""The page of all findings, `.github/FINDINGS.md`, made from the catalogues. To write it: run this module with -m."""

from __future__ import annotations

import re
from pathlib import Path

from mqindex.kafka import catalogue as kafka
from mqindex.report import Catalogue
from mqindex.rocketmq import catalogue as rocketmq

__all__ = ["PATH", "catalogue_rows", "document"]

PATH = Path(__file__).parents[2] / ".github" / "FINDINGS.md"
_INTRODUCTION = """\
# What verify, repair and rebuild find

A finding has a severity, a kind, a place, what was expected and what is there. Only errors make a report not ok, and
the exit code 1. Where a kind has several severities or hints, the first one is the usual one; the others, after a
slash, are for other situations, for example while a broker is running. Words in italics are what each finding fills
in. "Stops a start": whether a broker may not start with it, as its version, its settings and its last stop decide.
"Repaired by": the part of `mqindex repair` that mends it ("no": none does). This page
is made from the catalogues `mqindex.rocketmq.catalogue` and `mqindex.kafka.catalogue`.
"""

_COLUMNS = ("kind", "severity", "stops a start", "repaired by", "what it means", "what to do")


def catalogue_rows(catalogue: Catalogue) -> list[tuple[str, ...]]:
    """The cells of each kind, errors first, then by name."""
    rows = []
    for name, kinds in catalogue.items():
        each = [(kind.severity, "yes" if kind.stops_start else "no", kind.mended_by or "no") for kind in kinds]
        severities, stops, mended = (", ".join(dict.fromkeys(column)) for column in zip(*each, strict=True))
        hints = " / ".join(dict.fromkeys(kind.hint for kind in kinds if kind.hint))
        rows.append((name, severities, stops, mended, kinds[0].meaning, hints))
    return sorted(rows, key=lambda row: (("error", "warning", "info").index(row[1].split(",")[0]), row[0]))


def document() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for broker, rows in (
        ("RocketMQ", catalogue_rows(rocketmq.CATALOGUE)),
        ("Kafka", catalogue_rows(kafka.CATALOGUE)),
    ):
        parts.append(f"\n## {broker}\n\n| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n")
        parts += [f"| `{kind}` | {' | '.join(map(_cell, others))} |\n" for kind, *others in rows]
    return "".join(parts)


def _cell(text: str) -> str:
    return re.sub(r"\{(\w+)\}", r"*\1*", text).replace("|", "\\|")


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
