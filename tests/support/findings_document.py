"""The page of all findings, `.github/FINDINGS.md`, made from the catalogues. To write it: run this module with -m."""

from __future__ import annotations

import re
from pathlib import Path

from mqindex.kafka import catalogue as kafka
from mqindex.report import catalogue_rows
from mqindex.rocketmq import catalogue as rocketmq

__all__ = ["PATH", "document"]

PATH = Path(__file__).parents[2] / ".github" / "FINDINGS.md"
_INTRODUCTION = """\
# What verify, repair and rebuild find

A finding has a severity, a kind, a place, what was expected and what is there. Only errors make a report not ok, and
the exit code 1. Where a kind has several severities or hints, the first one is the usual one; the others, after a
slash, are for other situations, for example while a broker is running. Words in italics are what each finding fills
in. This page is made from the catalogues `mqindex.rocketmq.catalogue` and `mqindex.kafka.catalogue`.
"""


def document() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for broker, rows in (
        ("RocketMQ", catalogue_rows(rocketmq.CATALOGUE)),
        ("Kafka", catalogue_rows(kafka.CATALOGUE)),
    ):
        parts.append(f"\n## {broker}\n\n| kind | severity | what it means | what to do |\n|---|---|---|---|\n")
        parts += [
            f"| `{kind}` | {severity} | {_cell(meaning)} | {_cell(hint)} |\n" for kind, severity, meaning, hint in rows
        ]
    return "".join(parts)


def _cell(text: str) -> str:
    return re.sub(r"\{(\w+)\}", r"*\1*", text).replace("|", "\\|")


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
