"""A store that mqindex alone has written is loaded by a real broker, which serves it and goes on in it."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from mqindex.rocketmq import MessageStore, NewMessage, verify
from tests.peer.jvm import PATIENCE
from tests.peer.rocketmq.broker import Broker, Peer, dismiss_all
from tests.peer.rocketmq.client import Outgoing, Receipt, Received
from tests.peer.rocketmq.conftest import LIVING, on_the_newer

pytestmark = on_the_newer

TOPICS = {"OurOrders": 4, "OurText": 2, "OurBatch": 1, "OurLarge": 1, "OurLater": 1}  # no other broker has them
COMPRESSED = 1
DELAYED = 3
AFTER = 100


@dataclass
class Served:
    """What was put, by phy offset; what the broker made of it; what it took afterwards."""

    broker: Broker
    put: dict[int, NewMessage] = field(default_factory=dict)
    msg_ids: dict[int, str] = field(default_factory=dict)
    consumed: list[Received] = field(default_factory=list)
    delivered: list[Received] = field(default_factory=list)
    by_key: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    by_unique_key: dict[str, set[int]] = field(default_factory=dict)
    by_offset_id: dict[str, int] = field(default_factory=dict)
    by_tag: dict[str, int] = field(default_factory=dict)
    sent_after: list[Receipt] = field(default_factory=list)
    found_after: list[set[int]] = field(default_factory=list)

    def of_topic(self, topic: str) -> dict[int, NewMessage]:
        return {at: message for at, message in self.put.items() if message.topic == topic}


@pytest.fixture(scope="module")
def served(peers: dict[str, Peer]) -> dict[str, Served]:
    """By version."""
    stores = {version: Served(peers[version].broker("reader")) for version in LIVING}
    for store in stores.values():
        put_everything(store)
        store.broker.launch()
    try:
        with ThreadPoolExecutor() as both:
            list(both.map(ask, stores.values()))
    finally:
        dismiss_all(store.broker for store in stores.values())
    return stores


def put_everything(store: Served) -> None:
    broker, source = store.broker, random.Random(7)
    broker.store.rmdir()  # nothing of it is there before mqindex makes it
    orders = [new_message("OurOrders", i, source.randbytes(1 + i % 3000), queue_id=i % 4, flag=i) for i in range(1200)]
    batch = [new_message("OurBatch", i, b"part") for i in range(20)]
    single = [
        new_message("OurText", i, f"正文 {i} 😀".encode(), queue_id=i % 2, keys=f"订单-{i} 😀") for i in range(20)
    ]
    large = zlib.compress(b"large " * 5000)
    single += [new_message("OurLarge", i, large, sys_flag=COMPRESSED) for i in range(4)]
    single += [new_message("OurLater", i, b"later", properties={"DELAY": "1"}) for i in range(DELAYED)]
    with MessageStore.open(broker.store, config=broker.conf, broker_version=broker.version, writable=True) as opened:
        for messages, whole in ((orders, False), (batch, True)):
            put = opened.put_messages(messages, whole=whole)
            store.put.update(zip(put.phy_offsets.tolist(), messages, strict=True))
        for message in single:
            result = opened.put_message(message)
            store.put[result.phy_offset] = message
            store.msg_ids[result.phy_offset] = result.msg_id


def new_message(
    topic: str, number: int, body: bytes, *, queue_id: int = 0, flag: int = 0, sys_flag: int = 0,
    keys: str | None = None, properties: dict[str, str | None] | None = None,
) -> NewMessage:  # fmt: skip
    return NewMessage(
        topic, body, queue_id=queue_id, flag=flag, sys_flag=sys_flag, tags="Tag" + "ABC"[number % 3],
        keys=keys or f"{topic}-{number} number-{number % 10}", properties=properties,
        uniq_key=f"{topic.encode().hex():0<24}{number:08X}".upper(),
    )  # fmt: skip


def ask(store: Served) -> None:
    broker, client = store.broker, store.broker.client
    broker.wait_until_ready()
    for topic, queues in TOPICS.items():
        broker.create_topic(topic, queues)
        if topic != "OurLater":
            store.consumed += [m for queue in range(queues) for m in client.consume(topic, broker.name, queue)]
    found = [message for message in store.put.values() if message.topic != "OurLater"]
    for topic, key in {(message.topic, key) for message in found for key in (message.keys or "").split(" ")}:
        store.by_key[topic, key] = places(client.query_key(topic, key))
    for message in found:
        assert message.uniq_key is not None
        store.by_unique_key[message.uniq_key] = places(client.query_unique_key(message.topic, message.uniq_key))
    store.by_offset_id = {
        offset_id: client.view(store.put[at].topic, offset_id).phy_offset
        for at, offset_id in store.msg_ids.items()
        if store.put[at].topic != "OurLater"
    }
    store.by_tag = {
        tag: sum(len(client.consume("OurOrders", broker.name, queue, tags=tag)) for queue in range(4))
        for tag in ("TagA", "TagB || TagC", "TagD")
    }
    until = time.monotonic() + PATIENCE
    while client.offsets("OurLater", broker.name, 0)[1] < DELAYED and time.monotonic() < until:
        time.sleep(0.1)
    store.delivered = client.consume("OurLater", broker.name, 0)
    for i in range(AFTER):
        after = Outgoing("OurOrders", b"after", tags="TagA", keys=f"after-{i}", queue_id=i % 4)
        store.sent_after.append(client.send(after))
    client.wait_for_key("OurOrders", f"after-{AFTER - 1}")
    store.found_after = [places(client.query_key("OurOrders", f"after-{i}")) for i in range(AFTER)]


def places(messages: list[Received]) -> set[int]:
    return {message.phy_offset for message in messages}


def test_a_broker_serves_every_message_that_mqindex_put(
    served: dict[str, Served], version: str, proven: Callable[[str], None]
) -> None:
    store = served[version]
    put = {at: message for at, message in store.put.items() if message.topic != "OurLater"}
    assert sorted(message.phy_offset for message in store.consumed) == sorted(put)
    for got in store.consumed:
        message = put[got.phy_offset]
        assert (got.topic, got.queue_id, got.flag) == (message.topic, message.queue_id, message.flag)
        assert got.body == (zlib.decompress(message.body) if message.sys_flag & COMPRESSED else message.body)
        wanted = {"TAGS": message.tags, "KEYS": message.keys, "UNIQ_KEY": message.uniq_key}
        assert {name: got.properties.get(name) for name in wanted} == wanted
    for topic, queues in TOPICS.items():
        for queue in range(queues):
            numbers = [got.queue_offset for got in store.consumed if (got.topic, got.queue_id) == (topic, queue)]
            assert numbers == list(range(len(numbers)))
    tags = [message.tags for message in store.of_topic("OurOrders").values()]
    assert store.by_tag == {"TagA": tags.count("TagA"), "TagB || TagC": len(tags) - tags.count("TagA"), "TagD": 0}
    assert [message.body for message in store.delivered][:DELAYED] == [b"later"] * DELAYED
    proven(
        f"a store of {len(store.put)} messages that mqindex alone wrote is loaded; all are consumed, delayed ones too"
    )


def test_a_broker_finds_every_key_that_mqindex_put(
    served: dict[str, Served], version: str, proven: Callable[[str], None]
) -> None:
    store = served[version]
    for (topic, key), found in store.by_key.items():
        wanted = {at for at, m in store.of_topic(topic).items() if key in (m.keys or "").split(" ")}
        # A broker gives 64 at most of one query, other keys of the same hash among them.
        assert found == wanted or (len(wanted) > 60 and found < wanted and len(found) > 50), key
    for at, message in store.put.items():
        if message.topic != "OurLater":
            assert message.uniq_key is not None
            assert store.by_unique_key[message.uniq_key] == {at}
    assert store.by_offset_id == {
        msg_id: at for at, msg_id in store.msg_ids.items() if store.put[at].topic != "OurLater"
    }
    queries = len(store.by_key) + len(store.by_unique_key) + len(store.by_offset_id)
    proven(f"of that store it answers {queries} queries by key, unique key and offset id")


def test_a_broker_goes_on_in_a_store_of_ours(
    served: dict[str, Served], version: str, proven: Callable[[str], None]
) -> None:
    store = served[version]
    assert store.found_after == [{receipt.phy_offset} for receipt in store.sent_after]
    first = len([message for message in store.of_topic("OurOrders").values() if message.queue_id == 0])
    assert store.sent_after[0].queue_offset == first
    report = verify(store.broker.store, deep=True, config=store.broker.conf, broker_version=version)
    assert report.ok, report.findings
    proven(f"it appended {AFTER} more to that store; verify --deep finds {report.messages} messages in order")
