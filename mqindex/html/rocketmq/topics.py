"""Topics and queues: what fills the log, when, in which sizes, and how evenly."""

from __future__ import annotations

from collections.abc import Iterable

from mqindex.html import figures
from mqindex.html.page import Block, Facts, Figure, Note, Section, Table
from mqindex.html.palette import SERIES
from mqindex.html.parts import Listed, Shown, histogram, listing, name_of, over_time, series_table, tiles, times_of
from mqindex.html.text import count, size, times

_LAYERS = len(SERIES) - 1  # topics with a colour of their own; the last is for all others
_RANKED = 15
_SHOWN = 4  # topics whose queues and tags are drawn


def topics_of(facts: Facts) -> Section:
    """The section of `topics` in the report's JSON."""
    topics = facts.get("topics")
    both: list[Listed] = [("messages", "messages", count), ("bytes", "bytes", size)]
    blocks: list[Block] = [tiles(facts, ("topics",), both, large=True)]
    if not topics["topics"]:
        return Section("topics", "Topics and queues", [Note("No topic has a message in the log.")])
    blocks.append(_ranked(facts))
    blocks.append(_table(facts))
    if times_of(topics["times"]):
        blocks.append(_bytes_over_time(facts))
        says = "Messages stored in equal spans of time."
        blocks.append(over_time(facts, ("topics", "times"), "topics-messages", "Messages over time", says))
    if any(topics["sizes"]["counts"]):
        says = "Messages by their size in the log, with header and properties: from each size up to the next."
        blocks.append(histogram(facts, ("topics", "sizes"), "topics-sizes", "Message sizes", says, form=size))
    blocks.append(_kinds(facts))
    blocks += _queues(facts)
    blocks += _tags(facts)
    lead = "A message counts in each queue that the broker gives it to; many that the log holds as one, for a batch "
    lead += "queue, count once. Messages and bytes are exact; times, sizes and tags are estimates where only a sample "
    lead += "was read."
    return Section("topics", "Topics and queues", blocks, lead)


def _ranked(facts: Facts) -> Figure:
    topics = facts.get("topics", "topics")[:_RANKED]
    labels = [name_of(one["name"]) for one in topics]
    picture = figures.ranked("topics-bytes", labels, [one["bytes"] for one in topics], size)
    return Figure(picture, "Largest topics", "Bytes of the log that each topic's messages take.")


def _table(facts: Facts) -> Table:
    columns: list[Listed] = [
        ("topic", "name", None), ("kind", "kind", None), ("messages", "messages", count), ("bytes", "bytes", size),
        ("queues", "queue_count", count), ("skew", "skew", times), ("without tag", "untagged", count),
    ]  # fmt: skip
    caption = "Topics by bytes. Skew: messages of the fullest queue, compared with the mean queue"
    whole = len(facts.get("topics", "topics")) + facts.get("topics", "more")
    return listing(facts, ("topics", "topics"), caption, columns, whole=whole, limit=50)


def _bytes_over_time(facts: Facts) -> Figure:
    whole, topics = facts.get("topics", "times"), facts.get("topics", "topics")
    named = [(i, one) for i, one in enumerate(topics) if len(one["times"]["bytes"]) == len(whole["bytes"])][:_LAYERS]
    layers = [(SERIES[place], one["times"]["bytes"]) for place, (_, one) in enumerate(named)]
    rest = [
        max(0, all_ - sum(parts))
        for all_, *parts in zip(whole["bytes"], *(values for _, values in layers), strict=True)
    ]
    legend: list[tuple[str, str]] = [(SERIES[place], name_of(one["name"])) for place, (_, one) in enumerate(named)]
    if any(rest):
        layers.append((SERIES[-1], rest))
        legend.append((SERIES[-1], "all others"))
    picture = figures.time_bars("topics-time", whole["start"], whole["width"], layers, size)
    columns: list[Shown] = [("all", ("topics", "times", "bytes"), size)]
    columns += [(name_of(one["name"]), ("topics", "topics", i, "times", "bytes"), size) for i, one in named]
    data = series_table(facts, "Bytes over time", ("topics", "times"), columns)
    return Figure(
        picture, "Bytes over time", "Bytes of the log that the largest topics took, by store time.", legend, data
    )


def _kinds(facts: Facts) -> Table:
    caption = "Kinds of topics: messages, delayed, retries, dead letters and the broker's own"
    columns: list[Listed] = [
        ("kind", "kind", None), ("topics", "topics", count), ("messages", "messages", count), ("bytes", "bytes", size),
    ]  # fmt: skip
    return listing(facts, ("topics", "kinds"), caption, columns)


def _queues(facts: Facts) -> Iterable[Block]:
    """How evenly the queues are filled, for the largest topics with several queues."""
    topics = facts.get("topics", "topics")
    columns: list[Listed] = [("queue", "queue_id", str), ("messages", "messages", count), ("bytes", "bytes", size)]
    several = [i for i, one in enumerate(topics) if one["queue_count"] > 1][:_SHOWN]
    for i in several:
        of_topic = topics[i]["queues"]
        queues = sorted(range(len(of_topic)), key=[one["queue_id"] for one in of_topic].__getitem__)
        name = name_of(topics[i]["name"])
        values = [of_topic[at]["messages"] for at in queues]
        labels = [str(of_topic[at]["queue_id"]) for at in queues]
        path, whole = ("topics", "topics", i, "queues"), topics[i]["queue_count"]
        data = listing(facts, path, f"Queues of {name}", columns, rows=queues, whole=whole, limit=64)
        says = "Messages of each queue. Equal bars: the load is spread evenly."
        yield Figure(figures.bars(f"topics-queues-{i}", labels, values), f"Queues of {name}", says, data=data)


def _tags(facts: Facts) -> Iterable[Block]:
    topics = facts.get("topics", "topics")
    columns: list[Listed] = [("tag", "tag", None), ("messages", "messages", count)]
    for i in [i for i, one in enumerate(topics) if len(one["tags"]) > 1][:_SHOWN]:
        caption = f"Most frequent tags of {name_of(topics[i]['name'])}"
        yield listing(facts, ("topics", "topics", i, "tags"), caption, columns, bars=["messages"])
