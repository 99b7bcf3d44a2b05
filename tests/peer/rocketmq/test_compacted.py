"""Compacted topics (`cleanup.policy=COMPACTION`): what a broker adds to them after a repair, and what it does not."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqindex.errors import FileStateError
from mqindex.report import Report
from mqindex.rocketmq import repair, verify
from tests.peer.maven import PeerError
from tests.peer.rocketmq.broker import Broker, Peer
from tests.peer.rocketmq.client import Outgoing

VERSION = "5.5.1"
DERIVED = ("compaction", "consumequeue", "index")
Consumed = list[tuple[int, bytes]]


@pytest.fixture
def broker(peers: dict[str, Peer]) -> Iterator[Broker]:
    made = peers[VERSION].broker("compacted", {"compactionMappedFileSize": 1 << 20, "compactionCqMappedFileSize": 4600})
    made.launch()
    try:
        made.wait_until_ready()
        words = ["updateTopic", "-b", made.address, "-t", "Compacted", "-r", "1", "-w", "1"]
        assert any("success" in line for line in made.client.mqadmin(*words, "-a", "+cleanup.policy=COMPACTION"))
        made.client.wait_for_route("Compacted")
        made.create_topic("Plain", 1)
        yield made
    finally:
        made.kill()


def send(broker: Broker, numbers: range) -> None:
    for n in numbers:
        broker.client.send(Outgoing("Compacted", b"c%d" % n, 0, keys=f"c{n}"))
        broker.client.send(Outgoing("Plain", b"p%d" % n, 0, keys=f"p{n}"))
    broker.client.wait_for_key("Plain", f"p{numbers[-1]}")


def consumed(broker: Broker, count: int) -> Consumed:
    """As many messages of the compacted topic; it has them a little after the index."""
    until = time.monotonic() + 20
    while True:
        try:
            found = broker.client.consume("Compacted", broker.name, 0)
        except PeerError:  # the ordinary queue has more than the topic's own
            found = []
        if len(found) == count or time.monotonic() > until:
            return [(message.queue_offset, message.body) for message in found]
        time.sleep(0.2)


def start(broker: Broker) -> None:
    broker.launch()
    broker.wait_until_ready({"Compacted", "Plain"})


def errors(report: Report) -> set[str]:
    return {one.kind for one in report.findings if one.severity == "error"}


def remove(store: Path, *names: str) -> None:
    for name in names:
        shutil.rmtree(store / name)


def queues_go(broker: Broker, place: Path) -> None:
    """As the finding says: the broker then dispatches its whole log again."""
    shutil.move(broker.store / "consumequeue", place)


def is_refused(broker: Broker) -> bool:
    with pytest.raises(FileStateError, match="may keep messages from compacted topics"):
        repair(broker.store, config=broker.conf)
    return True


@pytest.mark.nightly
def test_messages_are_not_kept_from_a_compacted_topic(
    broker: Broker, tmp_path: Path, say_proven: Callable[[str], None]
) -> None:
    """After a repair a broker served 20 of 40 messages: it adds to a compacted topic what its queues lack, only."""
    store = broker.store
    send(broker, range(20))
    assert len(consumed(broker, 20)) == 20
    broker.stop()
    for name in DERIVED:
        shutil.copytree(store / name, tmp_path / name)
    start(broker)
    send(broker, range(20, 40))
    before = consumed(broker, 40)
    assert before == [(n, b"c%d" % n) for n in range(40)]
    broker.stop()

    remove(store, *DERIVED)  # an older copy: queues and compacted topic end at the same message
    for name in DERIVED:
        shutil.copytree(tmp_path / name, store / name)
    assert is_refused(broker)
    index_only = repair(store, config=broker.conf, parts=["index"])
    assert errors(index_only) == errors(verify(store, config=broker.conf)) != set()
    queues_go(broker, tmp_path / "queues-1")
    start(broker)
    assert consumed(broker, 40) == before
    broker.stop()

    remove(store, *DERIVED)  # the log alone
    assert is_refused(broker)
    start(broker)
    assert consumed(broker, 40) == before
    broker.stop()

    remove(store, "compaction")  # the queues reach the log's end
    assert repair(store, config=broker.conf).actions == []
    queues_go(broker, tmp_path / "queues-2")
    start(broker)
    assert consumed(broker, 40) == before
    broker.kill()

    remove(store, "compaction", "consumequeue/Plain")  # after an unclean end it reads its log again
    shutil.copytree(tmp_path / "compaction", store / "compaction")
    assert is_refused(broker)
    start(broker)
    assert consumed(broker, 40) == before
    send(broker, range(40, 50))
    assert consumed(broker, 50)[:40] == before
    broker.stop()
    assert verify(store, config=broker.conf).ok
    say_proven(f"RocketMQ {VERSION}: no repair keeps messages from a compacted topic")
