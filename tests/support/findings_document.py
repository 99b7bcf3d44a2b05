"""The page of all findings, `.github/docs/findings.md`, made from the catalogues. To write it: run this with -m.

A kind's name is the anchor of its paragraph.
"""

from __future__ import annotations

import re
from pathlib import Path

from mqindex.kafka import catalogue as kafka
from mqindex.report import Kind
from mqindex.rocketmq import catalogue as rocketmq

__all__ = ["PATH", "ROOT", "document", "sections"]

ROOT = Path(__file__).parents[2]
PATH = ROOT / ".github" / "docs" / "findings.md"
_INTRODUCTION = """\
# Findings

What verify, repair and rebuild find, each under the name of its kind, errors first. Only errors make a report not ok,
and the exit code 1. Where a kind has several severities or several arrows, the first is the usual one; the others are
for other situations, for example while a broker is running. After an arrow stands what follows or what to do; words in
italics are what each finding fills in. "May stop a start": a broker's version, its settings and its last stop decide
whether it starts with it. This page is made from `mqindex.rocketmq.catalogue` and `mqindex.kafka.catalogue`.
"""
_BROKERS = {"RocketMQ": rocketmq.CATALOGUE, "Kafka": kafka.CATALOGUE}
_BOTH = "Of both brokers"


def sections() -> dict[str, list[str]]:
    """The kinds of each heading: errors first, then by name. No kind is under two of them."""
    both = set.intersection(*map(set, _BROKERS.values()))
    of = {broker: set(catalogue) - both for broker, catalogue in _BROKERS.items()}
    return {heading: sorted(kinds, key=_rank) for heading, kinds in {**of, _BOTH: both}.items()}


def document() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for heading, kinds in sections().items():
        parts.append(f"\n## {heading}\n")
        for kind in kinds:
            parts.append(f"\n### {kind}\n")
            for broker, catalogue in _BROKERS.items():
                if kind in catalogue:
                    parts.append(_paragraph(catalogue[kind], f"{broker}: " if heading == _BOTH else ""))
    return "".join(parts)


def _rank(kind: str) -> tuple[int, str]:
    severities = [catalogue[kind][0].severity for catalogue in _BROKERS.values() if kind in catalogue]
    return min(map(("error", "warning", "info").index, severities)), kind


def _paragraph(kinds: tuple[Kind, ...], broker: str) -> str:
    says = [", ".join(dict.fromkeys(kind.severity for kind in kinds))]
    if any(kind.stops_start for kind in kinds):
        says.append("may stop a start")
    if any(kind.mended_by for kind in kinds):
        says.append(
            "`mqindex repair` mends it" + ("" if all(kind.mended_by for kind in kinds) else " in some situations")
        )
    hints = list(dict.fromkeys(f"→ {_filled(kind.hint)}" for kind in kinds if kind.hint))
    what = "\n- ".join(["\n", *hints]) if len(hints) > 1 else f" {hints[0]}" if hints else ""
    return f"\n*{broker}{'; '.join(says)}.* {kinds[0].meaning}{what}\n"


def _filled(hint: str) -> str:
    return re.sub(r"\{(\w+)\}", r"*\1*", hint)


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
