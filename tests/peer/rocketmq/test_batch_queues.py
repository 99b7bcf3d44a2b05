"""Topics whose queues are batch queues (`queue.type=BatchCQ`, 5.x): rebuilt as the broker wrote them, and after a
repair the broker serves each message of each batch and goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqindex.rocketmq import rebuild, repair, verify
from tests.peer.rocketmq.broker import Broker, Peer
from tests.peer.rocketmq.client import Outgoing
from tests.support.tree import queue_bytes

VERSION = "5.5.1"
QUEUES = [("Batched", 0), ("Batched", 1), ("Plain", 0), ("Plain", 1)]
Consumed = dict[tuple[str, int], list[tuple[int, bytes]]]


@pytest.fixture
def broker(peers: dict[str, Peer]) -> Iterator[Broker]:
    made = peers[VERSION].broker("batches", {"mapperFileSizeBatchConsumeQueue": 460})
    made.launch()
    try:
        made.wait_until_ready()
        words = ["updateTopic", "-b", made.address, "-t", "Batched", "-r", "2", "-w", "2", "-a", "+queue.type=BatchCQ"]
        assert any("success" in line for line in made.client.mqadmin(*words))
        made.client.wait_for_route("Batched")
        made.create_topic("Plain", 2)
        yield made
    finally:
        made.kill()


def send(broker: Broker, numbers: range) -> list[bytes]:
    """Batches among ordinary messages; to the topic of batches single ones too, with tags. All bodies, sorted."""
    bodies = []
    for n in numbers:
        bodies.append(b"p%d" % n)
        broker.client.send(Outgoing("Plain", bodies[-1], n % 2, "TagA", f"p{n}"))
        if n % 2:
            some = [Outgoing("Batched", b"b%d-%d" % (n, at), n // 2 % 2, keys=f"b{n}-{at}") for at in range(1 + n % 5)]
            broker.client.send_batch(some)
            bodies += [one.body for one in some]
        if n % 7 == 0:
            bodies.append(b"s%d" % n)
            broker.client.send(Outgoing("Batched", bodies[-1], 0, "TagS", f"s{n}"))
    broker.client.wait_for_key("Plain", f"p{numbers[-1]}")
    return sorted(bodies)


def consumed(broker: Broker) -> Consumed:
    found = {}
    for topic, queue_id in QUEUES:
        messages = broker.client.consume(topic, broker.name, queue_id)
        found[topic, queue_id] = [(message.queue_offset, message.body) for message in messages]
    return found


def bodies_of(found: Consumed) -> list[bytes]:
    return sorted(body for messages in found.values() for _, body in messages)


def batch_bytes(root: Path) -> dict[str, bytes]:
    home = root / "batchconsumequeue"
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def rebuilt_as_written(broker: Broker, out: Path) -> None:
    report = rebuild(broker.store, out, config=broker.conf)
    assert (report.ok, report.findings) == (True, [])
    assert batch_bytes(out) == batch_bytes(broker.store)
    written = queue_bytes(broker.store)
    assert {name: data for name, data in queue_bytes(out).items() if name.startswith("Plain/")} == {
        name: data for name, data in written.items() if name.startswith("Plain/")
    }


def spoil(store: Path, how: str) -> None:
    files = sorted((store / "batchconsumequeue" / "Batched" / "0").iterdir())
    if how == "all gone":
        shutil.rmtree(store / "batchconsumequeue")
        shutil.rmtree(store / "consumequeue" / "Plain")
    elif how == "behind":
        files[-1].unlink()
        shutil.rmtree(store / "consumequeue" / "Plain" / "1")
    elif how == "middle gone":
        files[1].unlink()
    elif how == "cut":
        files[0].write_bytes(files[0].read_bytes()[:100])
    else:
        data = bytearray(files[1].read_bytes())
        data[46 * 3 : 46 * 5] = b"\7" * 92
        files[1].write_bytes(data)


@pytest.mark.nightly
def test_batch_queues_are_rebuilt_and_repaired_and_the_broker_goes_on(
    broker: Broker, tmp_path: Path, say_proven: Callable[[str], None]
) -> None:
    """After a repair of the other queues a broker never wrote the batch queues on: their messages were lost."""
    sent = send(broker, range(60))
    before = consumed(broker)
    assert bodies_of(before) == sent
    broker.stop()
    rebuilt_as_written(broker, tmp_path / "first")
    assert verify(broker.store, config=broker.conf).ok
    written, ordinary = batch_bytes(broker.store), queue_bytes(broker.store)
    for how in ("middle gone", "cut", "wrong", "behind", "all gone"):
        spoil(broker.store, how)
        assert not verify(broker.store, config=broker.conf).ok, how
        assert repair(broker.store, config=broker.conf).ok, how
        assert (batch_bytes(broker.store), queue_bytes(broker.store)) == (written, ordinary), how
        assert verify(broker.store, config=broker.conf).ok, how
    broker.launch()
    broker.wait_until_ready({topic for topic, _ in QUEUES})
    assert consumed(broker) == before
    more = send(broker, range(60, 90))
    after = consumed(broker)
    assert bodies_of(after) == sorted(sent + more)
    assert all(after[name][: len(before[name])] == before[name] for name in QUEUES)
    running = verify(broker.store, config=broker.conf).findings
    assert [str(one) for one in running if "batchconsumequeue" in str(one.path)] == []
    assert all([offset for offset, _ in after[name]] == [*range(len(after[name]))] for name in QUEUES)
    broker.stop()
    rebuilt_as_written(broker, tmp_path / "second")
    assert verify(broker.store, config=broker.conf).ok
    say_proven(f"RocketMQ {VERSION}: batch queues rebuilt byte for byte; repaired, each message of each batch served")
