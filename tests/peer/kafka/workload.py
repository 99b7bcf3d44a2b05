"""What is written by a real Kafka broker, and what it answers when it is asked about all of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.peer.kafka.broker import Broker
from tests.peer.kafka.client import Client, Isolation, Outgoing, Record

__all__ = [
    "CODECS",
    "FIRST_TIME",
    "ISOLATIONS",
    "TOPICS",
    "TRANSACTIONAL",
    "Answers",
    "Sent",
    "Topic",
    "ask",
    "create_producers",
    "write_everything",
    "write_transactions",
]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ISOLATIONS: tuple[Isolation, ...] = ("read_uncommitted", "read_committed")
FIRST_TIME = 1_600_000_000_000  # years ago: no file's modification time is near a record's
TIMES = 180  # of each topic that is asked for them
AROUND = 120  # of which so many are near those of records
SEEKS = 25


@dataclass(frozen=True)
class Topic:
    """How a topic of one partition is set."""

    index_interval_bytes: int = 4096
    segment_bytes: int = 40_000
    log_append_time: bool = False

    def settings(self, version: str) -> dict[str, object]:
        # 4.1.0 refuses small segments by this name, for those who are no tests.
        segment_bytes = "internal.segment.bytes" if version >= "4.1" else "segment.bytes"
        return {
            segment_bytes: self.segment_bytes,
            "segment.ms": 2**62,
            "retention.ms": -1,
            "index.interval.bytes": self.index_interval_bytes,
            "message.timestamp.type": "LogAppendTime" if self.log_append_time else "CreateTime",
        }


TOPICS = {
    "codecs": Topic(index_interval_bytes=1000),
    "appended": Topic(log_append_time=True, segment_bytes=20_000),
    "paid": Topic(index_interval_bytes=500, segment_bytes=15_000),
    "dense": Topic(index_interval_bytes=0, segment_bytes=10_000),
    "damaged": Topic(index_interval_bytes=500, segment_bytes=15_000),
    "lost": Topic(segment_bytes=20_000),
    "deleted": Topic(index_interval_bytes=500, segment_bytes=15_000),
}
TRANSACTIONAL = ("paid", "damaged", "deleted")


@dataclass(frozen=True)
class Sent:
    """How many records a topic got, and how many transactions of them were aborted."""

    records: int
    aborted: int


@dataclass(frozen=True)
class Answers:
    """All that a broker says of a partition. Timestamp and offset of each time asked, and of -1, -2 and -3."""

    records: dict[Isolation, list[Record]]
    first_records: dict[Isolation, dict[int, int]]
    by_time: dict[int, tuple[int, int]]


def write_everything(broker: Broker, source: random.Random) -> dict[str, Sent]:
    """Every topic, every codec, transactions committed and aborted; what was sent, by topic."""
    client = broker.client
    for topic, how in TOPICS.items():
        client.create_topic(topic, how.settings(broker.version))
    create_producers(client)
    sent = {}
    for topic in TOPICS:
        if topic in TRANSACTIONAL:
            sent[topic] = write_transactions(client, topic, source)
            continue
        batches = list(_batches(topic, source))
        for number, batch in enumerate(batches):
            client.send(CODECS[number % len(CODECS)], topic, batch)
        sent[topic] = Sent(sum(map(len, batches)), aborted=0)
    client.close_producers()
    return sent


def create_producers(client: Client) -> None:
    """Two for each codec: one named like it, and `paying-<codec>` for transactions."""
    for codec in CODECS:
        client.create_producer(codec, codec, "plain" if codec == "snappy" else "idempotent")
        client.create_producer(f"paying-{codec}", codec, "transactional")


def write_transactions(client: Client, topic: str, source: random.Random) -> Sent:
    """Transactions of every codec, each ended in the end."""
    batches = list(_batches(topic, source))
    return Sent(sum(map(len, batches)), _pay(client, topic, batches, source))


def ask(broker: Broker, topic: str, before: Answers | None = None) -> Answers:
    """Every record, times around each of many, and where readers begin; the same times as `before`."""
    client = broker.client
    records: dict[Isolation, list[Record]] = {each: client.consume(topic, each) for each in ISOLATIONS}
    end = records["read_uncommitted"][-1].offset
    seeks = range(0, end + 1, max(1, end // SEEKS))
    times = [time for time in before.by_time if time >= 0] if before else _times_around(records["read_uncommitted"])
    by_time = dict(zip((-1, -2, -3), client.special_offsets(topic), strict=True))
    return Answers(
        records=records,
        first_records={each: dict(zip(seeks, client.seek(topic, each, seeks), strict=True)) for each in ISOLATIONS},
        by_time=by_time | dict(zip(times, client.offsets_for_times(topic, times), strict=True)),
    )


def _times_around(records: list[Record]) -> list[int]:
    chosen = records[:: max(1, len(records) // (AROUND // 3))]
    times = {record.timestamp + beside for record in chosen for beside in (-1, 0, 1)}
    first, last = min(record.timestamp for record in records) - 1000, max(record.timestamp for record in records) + 1000
    source = random.Random(first)
    any_ones = {source.randint(first, last) for _ in range(TIMES - AROUND)}
    return sorted(times | any_ones | {0, first, last})


def _batches(topic: str, source: random.Random) -> Iterator[list[Outgoing]]:
    """Times go up, more or less; keys, values and headers may be absent or empty."""
    time = FIRST_TIME
    for number in range(100):
        batch = []
        for i in range(source.choice((1, 3, 12))):
            time += source.randrange(2000)
            value = source.randbytes(source.randrange(300)) + b"again and " * source.randrange(20)
            batch.append(
                Outgoing(
                    time - source.choice((0, 0, 0, 500, 20_000)),
                    key=source.choice((None, b"", f"{topic}-{number}-{i} ключ".encode())),
                    value=source.choice((None, b"", value, value, value, value)),
                    headers=source.choice(((), (("größe", b"\x00\xff"), ("", None), ("twice", b"1"), ("twice", b"2")))),
                )
            )
        yield batch


def _pay(client: Client, topic: str, batches: list[list[Outgoing]], source: random.Random) -> int:
    """Transactions of several batches, some at the same time, and records of no transaction; how many were aborted."""
    aborted, left = 0, iter(batches)
    for number, batch in enumerate(left):
        names = [f"paying-{CODECS[number % len(CODECS)]}"]
        sent = [(names[0], batch)]
        if number % 3 == 0:
            names.append(f"paying-{CODECS[(number + 2) % len(CODECS)]}")
        sent += zip([*names[1:], *names, *(["none"] if number % 2 else [])], left, strict=False)
        begun = set()
        for name, some in sent:
            if name in names and name not in begun:
                client.begin(name)
                begun.add(name)
            client.send(name, topic, some)
        for name in sorted(begun):
            commit = source.random() < 0.5
            client.end(name, commit=commit)
            aborted += not commit
    return aborted
