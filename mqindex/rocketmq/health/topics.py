"""Topics and queues: what fills the log, counted for messages that dispatch puts into queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mqindex.health import Histogram, Share, Text, TimeBins, TimeSeries
from mqindex.rocketmq.health.samples import Named
from mqindex.rocketmq.queue.topic_kinds import topic_kind
from mqindex.rocketmq.tally.split_tally import Frequent, SplitCounts, TopicCounts, together

_TOPICS = 50
_QUEUES = 64
_TAGS = 10


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """One queue of a topic, as far as the log goes."""

    queue_id: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TagHealth:
    """Messages whose tags have one hash, and the text of one of these; None: it cannot be read any more.

    `messages` may be an estimate; what is rare in a stretch of the log is left out there.
    """

    hash: int
    tag: Text | None
    messages: int


@dataclass(frozen=True, slots=True)
class TopicHealth:
    """One topic.

    Attributes
    ----------
    name : Text
    kind : str, "messages", "delayed", "dead letters", "retries", "light queues" or "system"
    messages, bytes : int, exact
    times : TimeSeries, of the same bins as that of all topics
    sizes : Histogram, messages by size in bytes, in powers of two
    tags : tuple of TagHealth, the 10 most frequent; untagged : int, messages without
    queues : tuple of QueueHealth, the 64 largest; queue_count : int, all of them
    skew : float, messages of the fullest queue, 1.0: as many as in the mean queue
    sampled : Share, what times, sizes and tags are made of; they are estimates of all
    """

    name: Text
    kind: str
    messages: int
    bytes: int
    times: TimeSeries
    sizes: Histogram
    tags: tuple[TagHealth, ...]
    untagged: int
    queues: tuple[QueueHealth, ...]
    queue_count: int
    skew: float
    sampled: Share


@dataclass(frozen=True, slots=True)
class TopicKind:
    """All topics of one kind."""

    kind: str
    topics: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicsHealth:
    """The topics of a store. A message counts in each queue that dispatch gives it to, an inner batch once.

    Attributes
    ----------
    messages, bytes : int, of all topics
    times : TimeSeries; sizes : Histogram
    topics : tuple of TopicHealth, at most 50, of most bytes
    more : int, topics that are not listed; more_messages, more_bytes : int, of these
    kinds : tuple of TopicKind
    sampled : Share
    """

    messages: int
    bytes: int
    times: TimeSeries
    sizes: Histogram
    topics: tuple[TopicHealth, ...]
    more: int
    more_messages: int
    more_bytes: int
    kinds: tuple[TopicKind, ...]
    sampled: Share


@dataclass(slots=True)
class _Topic:
    """The counts of one topic in all splits. `tags`: hash -> (how many, phy offset of one)."""

    name: str
    queues: dict[int, tuple[int, int]] = field(default_factory=dict)
    seen: list[TopicCounts] = field(default_factory=list)
    tags: list[Frequent] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return sum(messages for messages, _ in self.queues.values())

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.queues.values())


@dataclass(frozen=True, slots=True)
class Gathered:
    """All splits together. `listed`: the topics to be listed; `totals`: (messages, bytes) of every topic."""

    listed: tuple[_Topic, ...]
    totals: dict[str, tuple[int, int]]
    seen: int
    times: TimeBins
    sizes: dict[int, int]

    @property
    def tag_places(self) -> list[int]:
        """Phy offsets of messages that name the tags."""
        return [place for topic in self.listed for _, _, place in topic.tags]


def gather(counts: Sequence[SplitCounts]) -> Gathered:
    """Put the splits' counts together."""
    totals: dict[str, tuple[int, int]] = {}
    for split in counts:
        for queue in split.queues:
            messages, size = totals.get(queue.topic, (0, 0))
            totals[queue.topic] = messages + queue.messages, size + queue.bytes
    largest = sorted(totals, key=lambda topic: (-totals[topic][1], topic))[:_TOPICS]
    listed = {topic: _Topic(topic) for topic in largest}
    for split in counts:
        for queue in split.queues:
            if queue.topic in listed:
                queues = listed[queue.topic].queues
                messages, size = queues.get(queue.queue_id, (0, 0))
                queues[queue.queue_id] = messages + queue.messages, size + queue.bytes
        for one in split.topics:
            if one.topic in listed:
                listed[one.topic].seen.append(one)
    for topic in listed.values():
        topic.tags = together((one.tags for one in topic.seen), _TAGS)
    every = [one for split in counts for one in split.topics]
    return Gathered(
        tuple(listed.values()),
        totals,
        sum(one.seen for one in every),
        TimeBins.gather(one.times for one in every),
        _sizes(every),
    )


def topics_of(gathered: Gathered, named: Mapping[int, Named]) -> TopicsHealth:
    """The topics of a store that was checked."""
    totals = gathered.totals
    messages, size = sum(one for one, _ in totals.values()), sum(one for _, one in totals.values())
    share = Share("times, sizes and tags", "messages", gathered.seen, messages)
    topics = [_topic(one, gathered.times, named) for one in gathered.listed]
    return TopicsHealth(
        messages=messages,
        bytes=size,
        times=gathered.times.series(share),
        sizes=_histogram(gathered.sizes, share),
        topics=tuple(topics),
        more=len(totals) - len(topics),
        more_messages=messages - sum(one.messages for one in topics),
        more_bytes=size - sum(one.bytes for one in topics),
        kinds=tuple(_kinds(totals)),
        sampled=share,
    )


def _topic(topic: _Topic, times: TimeBins, named: Mapping[int, Named]) -> TopicHealth:
    share = Share("times, sizes and tags", "messages", sum(one.seen for one in topic.seen), topic.messages)
    ranked = sorted(topic.queues.items(), key=lambda one: (-one[1][0], one[0]))
    return TopicHealth(
        name=Text.of(topic.name),
        kind=topic_kind(topic.name),
        messages=topic.messages,
        bytes=topic.bytes,
        times=TimeBins.gather(one.times for one in topic.seen).series(share, times),
        sizes=_histogram(_sizes(topic.seen), share),
        tags=tuple(
            TagHealth(value, named[place].tags if place in named else None, share.estimate(count))
            for value, count, place in topic.tags
        ),
        untagged=share.estimate(sum(one.untagged for one in topic.seen)),
        queues=tuple(QueueHealth(queue_id, *counts) for queue_id, counts in ranked[:_QUEUES]),
        queue_count=len(ranked),
        skew=ranked[0][1][0] * len(ranked) / topic.messages,
        sampled=share,
    )


def _kinds(totals: Mapping[str, tuple[int, int]]) -> Iterable[TopicKind]:
    topics: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for topic, (count, size) in totals.items():
        kind = topic_kind(topic)
        topics[kind] += 1
        messages[kind] += count
        sizes[kind] += size
    return (
        TopicKind(kind, topics[kind], messages[kind], sizes[kind]) for kind in sorted(topics, key=lambda k: -sizes[k])
    )


def _sizes(parts: Iterable[TopicCounts]) -> dict[int, int]:
    sizes: Counter[int] = Counter()
    for part in parts:
        sizes.update(part.sizes)
    return dict(sizes)


def _histogram(sizes: Mapping[int, int], share: Share) -> Histogram:
    return Histogram.of({power: share.estimate(count) for power, count in sizes.items()}, lambda power: 1 << power)
