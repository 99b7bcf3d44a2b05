"""The page of a RocketMQ store's health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.html.page import Facts, Page
from mqindex.html.parts import findings_of, reading_of, verdict_of
from mqindex.html.rocketmq.coverage import coverage_of
from mqindex.html.rocketmq.groups import groups_of
from mqindex.html.rocketmq.index import index_of
from mqindex.html.rocketmq.topics import topics_of
from mqindex.html.text import moment

if TYPE_CHECKING:
    from mqindex.report import Catalogue, Report


def page_of(document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str]) -> Page:
    """The page of what `mqindex.rocketmq.report` found: its `to_dict()` and its `verify`.

    `repair`: the words of the command that would mend it.
    """
    facts = Facts(document)
    made = f"Made {facts('read', 'made_at', form=moment)} by mqindex {facts.get('read', 'version')}"
    page = Page("RocketMQ store", report.path, made, verdict_of(report, repair))
    page.add([findings_of(report, catalogue)])
    if facts.get("coverage") is not None:
        page.add([coverage_of(facts)])
    if facts.get("index") is not None:
        page.add([index_of(facts)])
    if facts.get("topics") is not None:
        page.add([topics_of(facts)])
    page.add([groups_of(facts), reading_of(facts, report)])
    return page
