"""Index files that mqindex optimized: a broker answers from them as before, writes on behind, is killed and goes on."""

from __future__ import annotations

from collections.abc import Callable

from mqindex.rocketmq import IndexFile, optimize, verify
from tests.peer.rocketmq.broker import Broker
from tests.peer.rocketmq.client import Outgoing
from tests.peer.rocketmq.conftest import Written, on_the_newer
from tests.peer.rocketmq.workload import TOPICS, Answers, Sent, ask_everything
from tests.support.tree import index_bytes, index_paths


@on_the_newer
def test_a_broker_serves_and_continues_optimized_files(stopped: Written, proven: Callable[[str], None]) -> None:
    broker, sent, answers = stopped.broker, stopped.sent, stopped.answers
    written = index_bytes(broker.store)
    report = optimize(broker.store, broker.store, overwrite=True)
    assert report.files == len(written)
    ordered = index_bytes(broker.store)
    assert not set(ordered) & set(written)
    assert verify(broker.store, deep=True, config=broker.conf).ok

    after = asked_again(broker, sent, answers)
    assert (after.by_key, after.by_unique_key, after.queues) == (answers.by_key, answers.by_unique_key, answers.queues)
    for at in range(40):
        broker.client.send(Outgoing("Orders", b"more", keys=f"more-{at} order-{at}", tags="TagM"))
    broker.client.wait_for_key("Orders", "more-39")
    assert len(broker.client.query_key("Orders", "order-7")) == len(answers.by_key["Orders", "order-7"]) + 1
    broker.stop()
    assert index_bytes(broker.store)[: len(ordered) - 1] == ordered[:-1]
    continued = index_paths(broker.store)[len(ordered) - 1]
    with IndexFile.open(continued, hash_slot_num=100, index_num=400) as last:
        assert last._order().entries < last.header.index_count - 1
    verified = verify(broker.store, deep=True, config=broker.conf)
    assert verified.ok, verified.findings

    broker.launch()
    broker.wait_until_ready(TOPICS)
    broker.kill()
    broker.launch()
    try:
        broker.wait_until_ready(TOPICS)
        reached = int.from_bytes(ordered[-2][24:32], "big")
        full = {pair: found for pair, found in answers.by_key.items() if found and found[-1] < reached}
        for pair in sorted(full)[::20]:
            found = sorted(message.phy_offset for message in broker.client.query_key(*pair))
            assert [offset for offset in found if offset < reached] == full[pair]
    finally:
        broker.kill()
    queries = len(after.by_key) + len(after.by_unique_key)
    proven(
        f"{len(ordered)} optimized index files: {queries} queries answered as before, continued, killed, served again"
    )


def asked_again(broker: Broker, sent: Sent, answers: Answers) -> Answers:
    broker.launch()
    broker.wait_until_ready(TOPICS)
    after = ask_everything(broker, sent, [0])
    return after.until(max(message.phy_offset + message.size for message in answers.messages))
