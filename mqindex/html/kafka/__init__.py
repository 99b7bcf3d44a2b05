"""The page of the health of a Kafka log dir, of a partition, or of one file of a segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.html import parts
from mqindex.html.kafka.log_dir import log_dir_of
from mqindex.html.kafka.partition import partition_of
from mqindex.html.page import Facts, Page

if TYPE_CHECKING:
    from mqindex.report import Catalogue, Report

_KICKERS = {"log dir": "Kafka log dir", "partition": "Kafka partition", "file": "Kafka segment"}


def page_of(
    document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str],
    earlier: Mapping[str, Any] | None = None,
) -> Page:  # fmt: skip
    """The page of what `mqindex.kafka.report` found: its `to_dict()` and its `verify`.

    `repair`: the words of the command that would mend it. `earlier`: an earlier document, to compare with.
    """
    facts, sections = Facts(document), []
    if document["kind"] == "log dir":
        sections.append(log_dir_of(facts))
    if partitions := document["partitions"]:  # in detail the one with the most errors, of several the largest
        sections += partition_of(facts, max(range(len(partitions)), key=lambda at: (partitions[at]["errors"], -at)))
    return parts.page_of(_KICKERS[document["kind"]], document, report, catalogue, repair, sections, earlier)
