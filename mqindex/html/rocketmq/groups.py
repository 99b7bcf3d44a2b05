"""Consumer groups: who is behind, and by how much; delayed messages that are still to come."""

from __future__ import annotations

from mqindex.html import figures
from mqindex.html.page import Block, Cell, Column, Facts, Fields, Figure, Note, Section, Table
from mqindex.html.parts import Listed, listing, name_of
from mqindex.html.text import count

_RANKED = 15


def groups_of(facts: Facts) -> Section:
    """The section of `groups` in the report's JSON."""
    groups = facts.get("groups")
    blocks: list[Block] = []
    if groups["error"] is not None:
        blocks.append(Note(f"Nothing is known of consumers: {groups['error']}", "warn"))
    elif not groups["groups"]:
        blocks.append(Note("No consumer group has an offset in this store."))
    else:
        blocks.append(Fields([("messages not consumed, all groups", facts("groups", "lag"))], large=True))
        if groups["lag"] > 0:
            blocks.append(_ranked(facts))
        blocks += [_table(facts), _queues(facts)]
    if groups["delays"]:
        blocks.append(_delays(facts))
    lead = "From the broker's offset files, written every few seconds. A negative lag: the offset is beyond the queue."
    return Section("groups", "Consumer groups", blocks, lead)


def _ranked(facts: Facts) -> Figure:
    groups = [one for one in facts.get("groups", "groups")[:_RANKED] if one["lag"] > 0]
    labels = [f"{name_of(one['group'])} · {name_of(one['topic'])}" for one in groups]
    picture = figures.ranked("groups-lag", labels, [one["lag"] for one in groups], tone="s2")
    return Figure(picture, "Most behind", "Messages that each group has not consumed yet, by topic.")


def _table(facts: Facts) -> Table:
    whole = len(facts.get("groups", "groups")) + facts.get("groups", "more")
    columns: list[Listed] = [
        ("group", "group", None), ("topic", "topic", None), ("lag", "lag", count), ("queues", "queue_count", count),
        ("of unknown end", "unknown", count),
    ]  # fmt: skip
    return listing(facts, ("groups", "groups"), "Groups by lag", columns, whole=whole)


def _queues(facts: Facts) -> Table:
    groups = facts.get("groups", "groups")
    rows: list[list[Cell]] = [
        [
            name_of(one["group"]),
            name_of(one["topic"]),
            facts("groups", "groups", i, "queues", at, "queue_id", form=str),
            facts("groups", "groups", i, "queues", at, "offset"),
            facts("groups", "groups", i, "queues", at, "end"),
            facts("groups", "groups", i, "queues", at, "lag"),
        ]
        for i, one in enumerate(groups)
        for at in range(len(one["queues"]))
    ]
    numbers = (Column(title, number=True) for title in ("queue", "offset", "queue's end", "lag"))
    columns = (Column("group"), Column("topic"), *numbers)
    return Table("Queues of these groups, those of most lag first in each group", columns, rows)


def _delays(facts: Facts) -> Table:
    columns: list[Listed] = [
        ("delay level", "level", count), ("delivered up to", "offset", count), ("queue's end", "end", count),
        ("waiting", "waiting", count),
    ]  # fmt: skip
    return listing(facts, ("groups", "delays"), "Delayed messages", columns)
