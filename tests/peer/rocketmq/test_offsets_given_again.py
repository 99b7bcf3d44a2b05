"""A broker that lost the end of a queue gives queue offsets again: what consumers get, before and after a repair."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mqindex.errors import FileStateError
from mqindex.rocketmq import rebuild, repair, verify
from tests.peer.rocketmq.broker import Broker, Peer
from tests.peer.rocketmq.client import Outgoing, Receipt
from tests.peer.rocketmq.conftest import NEWER, VERSIONS, on_the_older
from tests.support.nightly import some

TOPIC, OTHER = "Again", "Other"
FIRST, LATER, KEPT = 150, 20, 100  # KEPT: units of a file of a queue


def send(broker: Broker, topic: str, name: str, count: int) -> list[Receipt]:
    messages = [Outgoing(topic, b"%s %d" % (name.encode(), i), 0, keys=f"{name}-{i}") for i in range(count)]
    sent = [broker.client.send(message) for message in messages]
    broker.client.wait_for_key(topic, f"{name}-{count - 1}")
    return sent


def consumed(broker: Broker) -> list[tuple[int, bytes]]:
    """What a consumer gets of the queue from a broker that starts on its store: queue offsets and bodies."""
    broker.launch()
    broker.wait_until_ready([TOPIC])
    try:
        return [(one.queue_offset, one.body) for one in broker.client.consume(TOPIC, broker.name, 0)]
    finally:
        broker.stop()


def lose_queue(broker: Broker) -> None:
    """All files of the queue, while the broker is down."""
    broker.stop()
    shutil.rmtree(broker.store / "consumequeue" / TOPIC)
    broker.launch()
    broker.wait_until_ready([TOPIC])


def delete_and_create_topic(broker: Broker) -> None:
    """As an administrator does."""
    broker.client.mqadmin("deleteTopic", "-n", broker.client.namesrv, "-c", "PeerCluster", "-t", TOPIC)
    broker.create_topic(TOPIC, 1)
    broker.client.wait_for_route(TOPIC)


def places(messages: Sequence[Any]) -> list[tuple[int, int]]:
    return [(one.queue_offset, one.phy_offset) for one in messages]


BEGIN_AGAIN = (lose_queue, delete_and_create_topic)
SAMPLE = ((NEWER, lose_queue),)


@pytest.mark.parametrize(
    ("version", "begin_again"), some(itertools.product(VERSIONS, BEGIN_AGAIN), lambda *both: both in SAMPLE)
)
def test_a_queue_that_began_again_at_0_gives_consumers_what_it_gave(
    peers: dict[str, Peer], version: str, begin_again: Callable[[Broker], None], proven: Callable[[str], None]
) -> None:
    """The files are the same after both. A broker that builds them from nothing takes messages from consumers."""
    broker = peers[version].broker(begin_again.__name__)
    broker.launch()
    broker.wait_until_ready()
    broker.create_topic(TOPIC, 1)
    broker.create_topic(OTHER, 1)
    sent = send(broker, TOPIC, "first", FIRST)
    send(broker, OTHER, "last", 1)
    begin_again(broker)
    assert [one.queue_offset for one in send(broker, TOPIC, "later", LATER)] == list(range(LATER))
    broker.stop()
    later = [(i, b"later %d" % i) for i in range(LATER)]
    assert consumed(broker) == later

    options: dict[str, Any] = {"config": broker.conf, "broker_version": version}
    for report in (verify(broker.store, **options), repair(broker.store, **options)):
        assert report.ok
        assert ("queue-began-again", "warning") in [(one.kind, one.severity) for one in report.findings]
    queue = broker.store / "consumequeue" / TOPIC / "0" / f"{0:020d}"
    rebuild(broker.store, broker.home / "rebuilt", **options)
    rebuilt = broker.home / "rebuilt" / queue.relative_to(broker.store)
    assert [one.read_bytes() for one in rebuilt.parent.iterdir()] == [queue.read_bytes()]
    assert consumed(broker) == later

    shutil.rmtree(broker.store / "consumequeue")
    first = [(i, b"first %d" % i) for i in range(FIRST)]
    from_nothing = [*first, (0, b"later 0")]  # its message says 0; its unit is behind the others
    assert consumed(broker) == from_nothing
    with pytest.raises(FileStateError, match="--replace-served") as refused:
        repair(broker.store, **options)
    got = refused.value.got
    assert (got.said, got.count) == (f"{FIRST} earlier messages among queue offsets 0 to {FIRST - 1}", FIRST)
    assert places(got.messages) == places(sent)
    assert consumed(broker) == from_nothing
    assert repair(broker.store, replace_served=True, **options).ok
    assert consumed(broker) == later
    proven(f"{begin_again.__name__}: no message leaves a queue that began again at 0, unless that is asked for")


@on_the_older
def test_a_repair_gives_consumers_what_a_broker_builds_from_nothing(
    peers: dict[str, Peer], version: str, proven: Callable[[str], None]
) -> None:
    broker = peers[version].broker("again")
    broker.launch()
    broker.wait_until_ready()
    broker.create_topic(TOPIC, 1)
    broker.create_topic(OTHER, 1)
    send(broker, TOPIC, "first", FIRST)
    send(broker, OTHER, "last", 1)  # so a queue reaches the log's end, and a start dispatches nothing again
    broker.stop()
    max((broker.store / "consumequeue" / TOPIC / "0").iterdir()).unlink()

    broker.launch()
    broker.wait_until_ready([TOPIC])
    later = send(broker, TOPIC, "later", LATER)
    broker.stop()
    assert [one.queue_offset for one in later] == list(range(KEPT, KEPT + LATER))
    first_bodies = [(i, b"first %d" % i) for i in range(FIRST)]
    assert consumed(broker) == first_bodies[:KEPT] + [(KEPT + i, b"later %d" % i) for i in range(LATER)]

    options: dict[str, Any] = {"config": broker.conf, "broker_version": version}
    found = [one.got for one in verify(broker.store, **options).findings if one.kind == "offsets-served-twice"]
    with pytest.raises(FileStateError, match="--replace-served") as refused:
        repair(broker.store, **options)
    for got in (*found, refused.value.got):
        assert got.said == f"{LATER} later messages at queue offsets {KEPT} to {KEPT + LATER - 1}"
        assert places(got.messages) == places(later)
    assert len(found) == 1

    anew = shutil.copytree(broker.store, broker.home / "anew")
    shutil.rmtree(anew / "consumequeue")
    assert repair(broker.store, replace_served=True, **options).ok
    repaired = consumed(broker)
    assert repaired == first_bodies
    shutil.rmtree(broker.store)
    anew.rename(broker.store)
    assert consumed(broker) == repaired
    proven(f"{LATER} offsets given twice are named; repaired, consumers get what the broker builds from nothing")
