"""The page of the health of a Kafka log dir, of a partition, or of one file of a segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.html.kafka.log_dir import log_dir_of
from mqindex.html.kafka.partition import partition_of
from mqindex.html.page import Facts, Page
from mqindex.html.parts import findings_of, reading_of, verdict_of
from mqindex.html.text import moment

if TYPE_CHECKING:
    from mqindex.report import Catalogue, Report

_KICKERS = {"log dir": "Kafka log dir", "partition": "Kafka partition", "file": "Kafka segment"}


def page_of(document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str]) -> Page:
    """The page of what `mqindex.kafka.report` found: its `to_dict()` and its `verify`.

    `repair`: the words of the command that would mend it.
    """
    facts = Facts(document)
    made = f"Made {facts('read', 'made_at', form=moment)} by mqindex {facts.get('read', 'version')}"
    page = Page(_KICKERS[document["kind"]], report.path, made, verdict_of(report, repair))
    page.add([findings_of(report, catalogue)])
    if document["kind"] == "log dir":
        page.add([log_dir_of(facts)])
    if partitions := document["partitions"]:  # in detail the one with the most errors, of several the largest
        page.add(partition_of(facts, max(range(len(partitions)), key=lambda at: (partitions[at]["errors"], -at))))
    page.add([reading_of(facts, report)])
    return page
