"""The page of a RocketMQ store's health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqindex.html import parts
from mqindex.html.page import Facts, Page
from mqindex.html.rocketmq.coverage import coverage_of
from mqindex.html.rocketmq.groups import groups_of
from mqindex.html.rocketmq.index import index_of
from mqindex.html.rocketmq.topics import topics_of

if TYPE_CHECKING:
    from mqindex.report import Catalogue, Report


def page_of(
    document: Mapping[str, Any], report: Report, catalogue: Catalogue, repair: Sequence[str],
    earlier: Mapping[str, Any] | None = None,
) -> Page:  # fmt: skip
    """The page of what `mqindex.rocketmq.report` found: its `to_dict()` and its `verify`.

    `repair`: the words of the command that would mend it. `earlier`: an earlier document, to compare with.
    """
    facts = Facts(document)
    made = {"coverage": coverage_of, "index": index_of, "topics": topics_of, "groups": groups_of}
    sections = [section(facts) for name, section in made.items() if facts.get(name) is not None]
    return parts.page_of("RocketMQ store", document, report, catalogue, repair, sections, earlier)
