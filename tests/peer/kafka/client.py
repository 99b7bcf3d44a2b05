"""The client of a Kafka broker, in a JVM that lives as long as the tests: a line asks, lines answer."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tests.peer.conversation import Conversation

__all__ = ["Acknowledged", "Client", "Commit", "Isolation", "Outgoing", "Record", "Transaction"]

Isolation = Literal["read_uncommitted", "read_committed"]
Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Outgoing:
    """A record to send."""

    timestamp: int
    key: bytes | None = None
    value: bytes | None = b""
    headers: tuple[Header, ...] = ()

    def words(self) -> list[str]:
        headers = [word for name, value in self.headers for word in (name, _word(value))]
        return [str(self.timestamp), _word(self.key), _word(self.value), *headers]


@dataclass(frozen=True)
class Record:
    """A record as the client's library decodes it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None = field(repr=False)
    value: bytes | None = field(repr=False)
    headers: tuple[Header, ...] = field(repr=False)

    @classmethod
    def of(cls, row: Sequence[str]) -> Record:
        headers = tuple((name, _bytes(word)) for name, word in zip(row[5::2], row[6::2], strict=True))
        return cls(int(row[0]), int(row[1]), row[2], _bytes(row[3]), _bytes(row[4]), headers)


class Acknowledged(NamedTuple):
    """A record that the broker said it has."""

    offset: int
    timestamp: int
    value: bytes | None


class Commit(NamedTuple):
    """A group's offset; leader_epoch -1: none."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class Transaction(NamedTuple):
    """Of a transactional id; start_time -1: none."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time: int
    partitions: str


class Client(Conversation):
    """Producers by name, a consumer for each isolation level, and an administrator."""

    def create_topic(self, topic: str, settings: Mapping[str, object]) -> None:
        """A topic of one partition, and its leader."""
        self.ask(["topic", topic, *(str(word) for item in settings.items() for word in item)])

    def wait_for(self, topics: Iterable[str]) -> None:
        """Until the broker leads their partitions."""
        self.ask(["ready", *topics])

    def create_producer(self, name: str, codec: str, kind: Literal["plain", "idempotent", "transactional"]) -> None:
        self.ask(["producer", name, codec, kind])

    def send(self, producer: str, topic: str, records: Sequence[Outgoing]) -> list[int]:
        """One batch; its records' offsets."""
        lines = (record.words() for record in records)
        return [int(offset) for offset, _ in self.ask(["send", producer, topic, str(len(records))], *lines)]

    def begin(self, producer: str) -> None:
        """A transaction."""
        self.ask(["begin", producer])

    def end(self, producer: str, *, commit: bool) -> None:
        self.ask(["end", producer, "commit" if commit else "abort"])

    def flood(self, producers: Sequence[str], topic: str, first_time: int) -> None:
        """Begin to send batch after batch with each of the producers, of times that go up, until `drop_producers`."""
        self.ask(["flood", topic, str(first_time), *producers])

    def drop_producers(self) -> list[Acknowledged]:
        """End every producer, with what it has not sent; what the broker had acknowledged of the flood."""
        return [Acknowledged(int(row[0]), int(row[1]), _bytes(row[2])) for row in self.ask(["drop"])]

    def close_producers(self) -> None:
        self.ask(["close"])

    def consume(self, topic: str, isolation: Isolation) -> list[Record]:
        """From the first record to the last."""
        return [Record.of(row) for row in self.ask(["consume", topic, isolation])]

    def seek(self, topic: str, isolation: Isolation, offsets: Sequence[int]) -> list[int]:
        """The first record that is read at each of the offsets; -1: none."""
        return [int(first) for (first,) in self.ask(["seek", topic, isolation, *map(str, offsets)])]

    def offsets_for_times(self, topic: str, times: Sequence[int]) -> list[tuple[int, int]]:
        """Timestamp and offset for each of the times; twice -1: none."""
        return [(int(time), int(offset)) for offset, time in self.ask(["times", topic, *map(str, times)])]

    def probe(self, topic: str, offsets: Sequence[int], times: Sequence[int]) -> list[str]:
        """Of a damaged log: the first record's offset at each of the offsets, and at each of the times; "-1": none; or
        the name of what the client's library throws.
        """
        numbers = map(str, (*offsets, *times))
        return [answer for (answer,) in self.ask(["probe", topic, str(len(offsets)), *numbers])]

    def special_offsets(self, topic: str) -> list[tuple[int, int]]:
        """Timestamp and offset of list-offsets' -1 (end), -2 (start) and -3 (largest timestamp)."""
        return [(int(time), int(offset)) for offset, time in self.ask(["special", topic])]

    def commit(self, group: str, topic: str, commits: Sequence[tuple[int, int, str]]) -> None:
        """A member of a group commits these: offset, leader epoch (-1: none), metadata."""
        self.ask(["commit", group, topic, *(str(word) for each in commits for word in each)])

    def commits(self, group: str) -> list[Commit]:
        """What the administrator's listConsumerGroupOffsets says."""
        rows = self.ask(["offsets", group])
        return [Commit(row[0], int(row[1]), int(row[2]), int(row[3]), row[4]) for row in rows]

    def forget(self, group: str, topic: str) -> None:
        """Delete a group's commit."""
        self.ask(["forget", group, topic])

    def open_transactions(self, topic: str) -> tuple[int, list[tuple[int, int]]]:
        """The last stable offset, and of each open transaction the producer and the first offset, oldest first."""
        (stable,), *producers = self.ask(["producers", topic])
        found = [(int(producer), int(first)) for producer, first in producers if int(first) >= 0]
        return int(stable), sorted(found, key=lambda each: each[1])

    def transaction(self, name: str) -> Transaction:
        """What the administrator's describeTransactions says."""
        (row,) = self.ask(["transaction", name])
        return Transaction(row[0], *(int(word) for word in row[1:5]), row[5])


def _word(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()


def _bytes(word: str) -> bytes | None:
    return None if word == "-" else base64.b64decode(word)
