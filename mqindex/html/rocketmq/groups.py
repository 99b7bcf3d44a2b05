"""Consumer groups: who is behind, and by how much; delayed messages that are still to come."""

from __future__ import annotations

from mqindex.html import figures
from mqindex.html.page import Block, Cell, Column, Facts, Fields, Figure, Note, Section, Table
from mqindex.html.parts import name_of

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
    groups = facts.get("groups", "groups")
    rows: list[list[Cell]] = [
        [
            name_of(one["group"]),
            name_of(one["topic"]),
            facts("groups", "groups", i, "lag"),
            facts("groups", "groups", i, "queue_count"),
            facts("groups", "groups", i, "unknown"),
        ]
        for i, one in enumerate(groups)
    ]
    columns = (
        Column("group"),
        Column("topic"),
        Column("lag", number=True),
        Column("queues", number=True),
        Column("of unknown end", number=True),
    )
    return Table("Groups by lag", columns, rows, count=len(groups) + facts.get("groups", "more"))


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
    columns = (
        Column("group"),
        Column("topic"),
        Column("queue", number=True),
        Column("offset", number=True),
        Column("queue's end", number=True),
        Column("lag", number=True),
    )
    return Table("Queues of these groups, those of most lag first in each group", columns, rows)


def _delays(facts: Facts) -> Table:
    rows = [
        [facts("groups", "delays", i, name) for name in ("level", "offset", "end", "waiting")]
        for i in range(len(facts.get("groups", "delays")))
    ]
    columns = tuple(
        Column(title, number=True) for title in ("delay level", "delivered up to", "queue's end", "waiting")
    )
    return Table("Delayed messages", columns, rows)
