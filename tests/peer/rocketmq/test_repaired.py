"""What nobody told is not guessed: where repair was told, the broker starts and answers all that it answered before."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from mqindex.errors import GeometryError
from mqindex.rocketmq import repair, verify
from tests.peer.rocketmq.broker import Broker, Peer, dismiss_all
from tests.peer.rocketmq.conftest import Written, on_the_older
from tests.peer.rocketmq.workload import TOPICS, ask_everything
from tests.support.tree import contents


@on_the_older
def test_store_without_index_and_queues_is_repaired_as_its_broker_is_configured(
    stopped: Written, proven: Callable[[str], None]
) -> None:
    broker, answers = stopped.broker, stopped.answers
    shutil.rmtree(broker.store / "index")
    shutil.rmtree(broker.store / "consumequeue")
    before = contents(broker.store)
    with pytest.raises(GeometryError, match="--hash-slot-num 5000000 --index-num 20000000"):
        repair(broker.store)
    assert contents(broker.store) == before
    report = repair(broker.store, config=broker.conf, broker_version=broker.version)
    assert report.ok
    broker.launch()
    try:
        broker.wait_until_ready(TOPICS)
        after = ask_everything(broker, stopped.sent, [0])
    finally:
        broker.kill()
    after = after.until(max(message.phy_offset + message.size for message in answers.messages))
    assert (after.queues, after.by_tag) == (answers.queues, answers.by_tag)
    assert (after.by_key, after.by_unique_key) == (answers.by_key, answers.by_unique_key)
    proven(f"index ({report.entries} entries) and queues lost, told how, repaired: every answer as before")


def test_queues_in_rocksdb_are_recognised(peers: dict[str, Peer], say_proven: Callable[[str], None]) -> None:
    for name, settings in (
        ("rocks", {"storeType": "defaultRocksDB"}),
        ("rocks-apart", {"storeType": "defaultRocksDB", "useSeparateStorePathForRocksdbCQ": "true"}),
    ):
        broker = peers["5.5.1"].broker(name, settings)
        broker.launch()
        broker.wait_until_ready()
        broker.create_topic("Rocks")
        dismiss_all([broker])
        leaves_alone(broker)
    say_proven("RocketMQ 5.5.1: consume queues in RocksDB are recognised, and nothing is written among them")


def leaves_alone(broker: Broker) -> None:
    for options in ({}, {"config": broker.conf}):
        report = verify(broker.store, **options)  # type: ignore[arg-type]
        assert [finding.kind for finding in report.findings if finding.severity == "error"] == []
        assert "queues-elsewhere" in {finding.kind for finding in report.findings}
        before = sorted(broker.store.rglob("*"))
        assert repair(broker.store, **options).ok  # type: ignore[arg-type]
        assert sorted(broker.store.rglob("*")) == before
