"""The page of all findings, `.github/FINDINGS.md`, made from the catalogues. To write it: run this module with -m."""

from __future__ import annotations

from pathlib import Path

from mqindex.kafka.checks import catalogue as kafka
from mqindex.rocketmq.checks import catalogue as rocketmq

__all__ = ["PATH", "document"]

PATH = Path(__file__).parents[2] / ".github" / "FINDINGS.md"
_INTRODUCTION = """\
# What verify, repair and rebuild find

A finding has a severity, a kind, a place, what was expected and what is there. Only errors make a report not ok, and
the exit code 1. The severity here is the usual one: a finding may be milder or worse by its circumstances, beside a
broker that runs, for one. This page is made from the catalogues (`mqindex.rocketmq.checks.catalogue`,
`mqindex.kafka.checks.catalogue`); a test holds that both have every kind there is.
"""


def document() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for broker, rows in (("RocketMQ", rocketmq.rows()), ("Kafka", kafka.rows())):
        parts.append(f"\n## {broker}\n\n| kind | severity | what it means | what to do |\n|---|---|---|---|\n")
        parts += [
            f"| `{kind}` | {severity} | {_cell(meaning)} | {_cell(hint)} |\n" for kind, severity, meaning, hint in rows
        ]
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PATH.write_text(document(), encoding="utf-8")
