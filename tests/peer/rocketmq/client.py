"""The client of a broker, in a JVM that lives as long as the tests: a line asks, lines answer."""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.peer.conversation import Conversation
from tests.peer.jvm import PATIENCE
from tests.peer.maven import PeerError
from tests.peer.rocketmq.process import start

__all__ = ["Client", "Outgoing", "Receipt", "Received"]

TEMPORARY_BODIES = threading.Lock()  # one directory for all versions, which we remove
PULLED = 32  # the broker's own limit of one pull


@dataclass(frozen=True)
class Outgoing:
    """A message to send. `queue_id` -1: the client chooses."""

    topic: str
    body: bytes
    queue_id: int = -1
    tags: str = ""
    keys: str = ""
    delay_level: int = 0
    flag: int = 0
    properties: dict[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        more = [word for item in self.properties.items() for word in item]
        body = base64.b64encode(self.body).decode()
        return [
            self.topic,
            str(self.queue_id),
            self.tags,
            self.keys,
            str(self.delay_level),
            str(self.flag),
            body,
            *more,
        ]


@dataclass(frozen=True)
class Receipt:
    """What the broker said of a message that it took."""

    uniq_key: str
    offset_id: str
    queue_id: int
    queue_offset: int

    @property
    def phy_offset(self) -> int:
        """An offset id ends in it."""
        return int(self.offset_id[-16:], 16)


@dataclass(frozen=True)
class Received:
    """A message as the client's library decodes it."""

    topic: str
    queue_id: int
    queue_offset: int
    phy_offset: int
    size: int
    sys_flag: int
    flag: int
    born_timestamp: int
    store_timestamp: int
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    uniq_key: str
    offset_id: str
    body: bytes = field(repr=False)
    properties: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, row: Sequence[str]) -> Received:
        names = dict(zip(row[15::2], row[16::2], strict=True))
        for added in ("MIN_OFFSET", "MAX_OFFSET"):  # by the client, in a pull
            names.pop(added, None)
        numbers = [int(word) for word in row[1:12]]
        return cls(row[0], *numbers, row[12], row[13], base64.b64decode(row[14]), names)


class Client(Conversation):
    """Producer, consumer and administrator of one version; the name server is in the same JVM."""

    def __init__(self, version: str, home: Path, namesrv: int) -> None:
        self.namesrv = f"127.0.0.1:{namesrv}"
        home.mkdir(parents=True)
        conf = home / "namesrv.conf"
        conf.write_text(f"listenPort={namesrv}\nkvConfigPath={home}/kvConfig.json\n")
        main = ["peer.rocketmq.Driver", str(home / "driver.log"), str(conf), self.namesrv]
        super().__init__(start(version, main, home, talks=True))

    def send(self, message: Outgoing) -> Receipt:
        return _receipts(self.ask(["send", *message.words()]))[0]

    def send_batch(self, messages: Sequence[Outgoing]) -> list[Receipt]:
        """All in one request, into one queue."""
        return _receipts(self.ask(["batch", str(len(messages))], *(message.words() for message in messages)))

    def send_in_transaction(self, message: Outgoing, *, commit: bool) -> Receipt:
        decision = "COMMIT_MESSAGE" if commit else "ROLLBACK_MESSAGE"
        return _receipts(self.ask(["transaction", decision, *message.words()]))[0]

    def flood(self, topic: str) -> None:
        """Begin to send messages with the keys `flood-0`, `flood-1` and so on, until the broker is gone."""
        self.ask(["flood", topic])

    def flooded(self) -> list[Receipt]:
        """What the broker had acknowledged of the flood, in order."""
        return _receipts(self.ask(["flooded"]))

    def create_topic(self, broker: str, topic: str, queues: int) -> None:
        self.ask(["topic", broker, topic, str(queues)])

    def wait_for_route(self, topic: str) -> None:
        """Until the name server knows who holds the topic."""
        self.ask(["route", topic])

    def offsets(self, topic: str, broker_name: str, queue_id: int) -> tuple[int, int]:
        """Minimum and maximum offset of a queue."""
        (row,) = self.ask(["offsets", topic, broker_name, str(queue_id)])
        return int(row[0]), int(row[1])

    def search_offset(self, topic: str, broker_name: str, queue_id: int, timestamp: int) -> int:
        ((found,),) = self.ask(["search", topic, broker_name, str(queue_id), str(timestamp)])
        return int(found)

    def pull(
        self, topic: str, broker_name: str, queue_id: int, offset: int, *, tags: str = "*", count: int = PULLED
    ) -> tuple[str, int, list[Received]]:
        """One pull: the client's status, the next offset, and the messages."""
        words = ["pull", topic, broker_name, str(queue_id), tags, str(offset), str(count)]
        (status, following, _, _), *rows = self.ask(words)
        return status, int(following), [Received.of(row) for row in rows]

    def consume(self, topic: str, broker_name: str, queue_id: int, *, tags: str = "*") -> list[Received]:
        """A whole queue, pull after pull."""
        at, stop = self.offsets(topic, broker_name, queue_id)
        found: list[Received] = []
        while at < stop:
            _, following, more = self.pull(topic, broker_name, queue_id, at, tags=tags)
            if following <= at:
                raise PeerError(f"{topic}/{queue_id}: no way on from offset {at} of {stop}")
            at = following
            found += more
        return found

    def query_key(self, topic: str, key: str) -> list[Received]:
        return [Received.of(row) for row in self.ask(["key", topic, key])]

    def wait_for_key(self, topic: str, key: str) -> None:
        """Until dispatch, which follows the log at a distance, has indexed a key, and with it all before it."""
        until = time.monotonic() + PATIENCE
        while not self.query_key(topic, key):
            if time.monotonic() > until:
                raise PeerError(f"{topic}#{key} is not indexed after {PATIENCE:.0f} s")
            time.sleep(0.01)

    def query_unique_key(self, topic: str, uniq_key: str) -> list[Received]:
        return [Received.of(row) for row in self.ask(["unique", topic, uniq_key])]

    def view(self, topic: str, offset_id: str) -> Received:
        """By offset id: from the log, without index and queues."""
        (row,) = self.ask(["id", topic, offset_id])
        return Received.of(row)

    def mqadmin(self, *words: str) -> list[str]:
        """What a command of `mqadmin` prints."""
        with TEMPORARY_BODIES:
            lines = [row[0] for row in self.ask(["mqadmin", *words])]
            for line in lines:
                if line.startswith("Message Body Path:"):
                    _forget_body(Path(line.partition(":")[2].strip()))
        return lines


def _forget_body(path: Path) -> None:
    """Some commands leave the body in a file below `/tmp/rocketmq`, whatever they are told."""
    path.unlink(missing_ok=True)
    for directory in path.parents[:2]:
        with contextlib.suppress(OSError):  # it has been there before
            directory.rmdir()


def _receipts(rows: list[list[str]]) -> list[Receipt]:
    """A batch has one row: its ids are separated by commas."""
    found = []
    for status, uniq_keys, offset_ids, queue_id, queue_offset in rows:
        if status != "SEND_OK":
            raise PeerError(f"sent, but {status}")
        ids = zip(uniq_keys.split(","), offset_ids.split(","), strict=True)
        found += [
            Receipt(uniq_key, offset_id, int(queue_id), int(queue_offset) + number)
            for number, (uniq_key, offset_id) in enumerate(ids)
        ]
    return found
