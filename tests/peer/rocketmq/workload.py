"""What is sent to a real broker, and what it answers when it is asked about all of it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace

from tests.peer.jvm import PATIENCE
from tests.peer.maven import PeerError
from tests.peer.rocketmq.broker import Broker
from tests.peer.rocketmq.client import Client, Outgoing, Receipt, Received

__all__ = ["TOPICS", "Answers", "Sent", "ask_everything", "send_everything"]

TOPICS = {"Orders": 4, "Text": 2, "Batches": 2, "Large": 2, "Bare": 1, "Later": 2, "Paid": 2}
DELAYED = 5
Sent = list[tuple[Outgoing, Receipt]]


@dataclass(frozen=True)
class Answers:
    """All that a broker says of a store. Queues by (topic, queue), queries by (topic, key), times as asked."""

    queues: dict[tuple[str, int], list[Received]]
    by_key: dict[tuple[str, str], list[int]]
    by_unique_key: dict[tuple[str, str], list[int]]
    by_offset_id: dict[str, Received]
    by_tag: dict[tuple[str, int, str], list[int]]
    by_time: dict[tuple[str, int, int], int]
    mqadmin: dict[str, list[str]]

    @property
    def messages(self) -> list[Received]:
        return [message for queue in self.queues.values() for message in queue]

    def until(self, end: int) -> Answers:
        """Without the messages from a phy offset on: a broker that starts may deliver a delayed message once more."""
        return replace(
            self,
            queues={of: [m for m in queue if m.phy_offset < end] for of, queue in self.queues.items()},
            by_key={of: [at for at in offsets if at < end] for of, offsets in self.by_key.items()},
            by_unique_key={of: [at for at in offsets if at < end] for of, offsets in self.by_unique_key.items()},
            by_tag={of: [at for at in offsets if at < end] for of, offsets in self.by_tag.items()},
        )


def send_everything(broker: Broker, random_source: random.Random) -> Sent:
    """Keys, tags, text of any script, batches, compressed and empty properties, delays, transactions: all queues."""
    client = broker.client
    for topic, queues in TOPICS.items():
        broker.create_topic(topic, queues)
    sent = [(message, client.send(message)) for message in _plain(random_source)]
    for start in range(0, 30, 10):
        batch = [
            Outgoing("Batches", b"part %d" % i, queue_id=start // 10 % 2, tags="TagB", keys=f"batch-{start} part-{i}")
            for i in range(start, start + 10)
        ]
        sent += zip(batch, client.send_batch(batch), strict=True)
    for i in range(DELAYED):
        delayed = Outgoing("Later", b"later %d" % i, queue_id=i % 2, tags="TagL", keys=f"later-{i}", delay_level=1)
        sent.append((delayed, client.send(delayed)))
    for i in range(6):
        paid = Outgoing("Paid", b"paid %d" % i, tags="TagP", keys=f"paid-{i}")
        sent.append((paid, client.send_in_transaction(paid, commit=i % 3 != 2)))
    _wait_for(client, broker.name, "Later", DELAYED)
    _wait_for(client, broker.name, "Paid", 4)
    client.wait_for_key("Later", f"later-{DELAYED - 1}")
    client.wait_for_key("Paid", "paid-4")
    return sent


def ask_everything(broker: Broker, sent: Sent, times: list[int]) -> Answers:
    """Every queue, key, unique key, offset id, tag and time; and some of it once more by `mqadmin`'s own commands."""
    client = broker.client
    queues = {
        (topic, queue_id): client.consume(topic, broker.name, queue_id)
        for topic, count in TOPICS.items()
        for queue_id in range(count)
    }
    received = [message for queue in queues.values() for message in queue]
    keys = {(m.topic, key) for m in received for key in m.properties.get("KEYS", "").split(" ") if key}
    keys |= {(topic, "no such key") for topic in TOPICS}
    unique_keys = {(m.topic, m.uniq_key) for m in received}
    tags = {(m.topic, m.queue_id, m.properties["TAGS"]) for m in received if "TAGS" in m.properties}
    return Answers(
        queues=queues,
        by_key={pair: _offsets(client.query_key(*pair)) for pair in sorted(keys)},
        by_unique_key={pair: _offsets(client.query_unique_key(*pair)) for pair in sorted(unique_keys)},
        by_offset_id={receipt.offset_id: client.view(m.topic, receipt.offset_id) for m, receipt in sent[::20]},
        by_tag={tag: _offsets(client.consume(tag[0], broker.name, tag[1], tags=tag[2])) for tag in sorted(tags)},
        by_time={
            (topic, queue_id, when): client.search_offset(topic, broker.name, queue_id, when)
            for topic in ("Text", "Batches", "Bare")  # one file each: 4.9.3 looks at the files' modification times too
            for queue_id in range(TOPICS[topic])
            for when in times
        },
        mqadmin=_ask_mqadmin(broker, sent),
    )


def _ask_mqadmin(broker: Broker, sent: Sent) -> dict[str, list[str]]:
    message, receipt = sent[100]
    topic = ["-t", message.topic]
    commands = {
        "queryMsgByKey": [*topic, "-k", message.keys.split(" ")[0]],
        "queryMsgByUniqueKey": [*topic, "-i", receipt.uniq_key],
        "queryMsgById": ["-i", receipt.offset_id, *(topic if broker.version >= "5" else [])],
        "queryMsgByOffset": [
            *topic, "-b", broker.name, "-i", str(receipt.queue_id), "-o", str(receipt.queue_offset),
        ],
    }  # fmt: skip
    said = {name: broker.client.mqadmin(name, *words) for name, words in commands.items()}
    for name, lines in said.items():
        if not any(receipt.uniq_key in line for line in lines):
            raise PeerError(f"mqadmin {name} did not find {receipt}: {lines}")
    return said


def _plain(random_source: random.Random) -> list[Outgoing]:
    """More than one file each of log, queue and index."""
    orders = [
        Outgoing(
            "Orders",
            random_source.randbytes(random_source.randrange(1, 3500)),
            queue_id=i % 4,
            tags="Tag" + "ABC"[i % 3],
            keys=f"order-{i} customer-{i % 10}",
            flag=i,
        )
        for i in range(700)
    ]
    text = [
        Outgoing(
            "Text",
            f"тело {i} 正文 😀".encode(),
            tags="标签",
            keys=f"订单-{i} 😀{i} ключ",
            properties={"señor": f"größe {i}", "空": "值 \t x"},
        )
        for i in range(20)
    ]
    large = [
        Outgoing("Large", b"%d " % i * 5000, tags="TagZ", keys=f"large-{i}", properties={"n": str(i)})  # compressed
        for i in range(6)
    ]
    return orders + text + large + [Outgoing("Bare", b"bare %d" % i) for i in range(5)]


def _wait_for(client: Client, broker_name: str, topic: str, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while sum(client.offsets(topic, broker_name, queue)[1] for queue in range(TOPICS[topic])) < count:
        if time.monotonic() > until:
            raise PeerError(f"{topic}: fewer than {count} messages after {PATIENCE:.0f} s")
        time.sleep(0.05)


def _offsets(messages: list[Received]) -> list[int]:
    return sorted(message.phy_offset for message in messages)
