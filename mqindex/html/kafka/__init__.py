"""The page of the health of a Kafka log dir, of a partition, or of one file of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqindex.html.kafka.log_dir import log_dir_of
from mqindex.html.kafka.partition import partition_of
from mqindex.html.page import Facts, Page
from mqindex.html.parts import findings_of, reading_of, verdict_of
from mqindex.html.text import moment

if TYPE_CHECKING:
    from mqindex.kafka.health.log_dir_health import LogDirHealth
    from mqindex.report import Catalogue

__all__ = ["page_of"]

_KICKERS = {"log dir": "Kafka log dir", "partition": "Kafka partition", "file": "Kafka segment"}


def page_of(health: LogDirHealth, catalogue: Catalogue, repair: Sequence[str]) -> Page:
    """The page of what `mqindex.kafka.report` found; `repair`: the words of the command that would mend it."""
    facts, report = Facts(health.to_dict()), health.verify
    made = f"Made {moment(health.read.made_at)} by mqindex {health.read.version}"
    page = Page(_KICKERS[health.kind], report.path, made, verdict_of(report, repair))
    page.add([findings_of(report, catalogue)])
    if health.kind == "log dir":
        page.add([log_dir_of(facts)])
    if health.partitions:
        page.add(partition_of(facts, _in_detail(health)))
    page.add([reading_of(facts, report)])
    return page


def _in_detail(health: LogDirHealth) -> int:
    """Which partition is shown in detail: the one with the most errors, of several the largest."""
    return max(range(len(health.partitions)), key=lambda number: (health.partitions[number].errors, -number))
