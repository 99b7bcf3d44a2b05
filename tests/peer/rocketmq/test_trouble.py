"""A store in trouble: what verify says and repair does, and at the end a broker that starts and answers everything."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from mqindex.errors import MQIndexError
from mqindex.report import Start
from mqindex.rocketmq import IndexService, repair, verify
from tests.peer.maven import PeerError
from tests.peer.rocketmq.broker import Broker, Peer, stop_all
from tests.peer.rocketmq.conftest import SEED
from tests.peer.rocketmq.workload import TOPICS, Answers, Sent, ask_everything, send_everything
from tests.support.tree import contents


def found(answers: Answers) -> dict[tuple[str, str], set[int]]:
    """By key and unique key. After an unclean end a broker has the last message twice in its index."""
    return {key: set(offsets) for key, offsets in (answers.by_key | answers.by_unique_key).items()}


@dataclass(frozen=True)
class Stopped:
    """A broker that was filled, asked about everything, and stopped."""

    broker: Broker
    sent: Sent
    answers: Answers

    def require_all_answers(self) -> None:
        """It starts, and answers as it did."""
        self.broker.launch()
        try:
            self.broker.wait_until_ready(TOPICS)
            after = ask_everything(self.broker, self.sent, [0])
            self.broker.stop()
        finally:
            self.broker.kill()
        before = self.answers
        after = after.until(max(message.phy_offset + message.size for message in before.messages))
        assert (after.queues, after.by_tag) == (before.queues, before.by_tag)
        assert found(after) == found(before)

    def start(self) -> Start:
        """What verify says of the next start."""
        report = verify(self.broker.store, config=self.broker.conf, broker_version=self.broker.version)
        assert report.start is not None
        return report.start

    def is_clean(self) -> bool:
        return verify(self.broker.store, config=self.broker.conf, broker_version=self.broker.version).ok

    def entries(self) -> int:
        with IndexService.open(self.broker.store / "index") as index:
            return sum(len(file.entries()["phy_offset"]) for file in index)


@pytest.fixture(scope="module")
def all_stopped(peers: dict[str, Peer]) -> Iterator[dict[str, Stopped]]:
    brokers = {each: peer.broker("trouble") for each, peer in peers.items()}

    def fill(broker: Broker) -> Stopped:
        broker.launch()
        broker.wait_until_ready()
        sent = send_everything(broker, random.Random(SEED))
        return Stopped(broker, sent, ask_everything(broker, sent, [0]))

    with ThreadPoolExecutor() as both:
        filled = list(both.map(fill, brokers.values()))
    stop_all(brokers.values())
    yield dict(zip(brokers, filled, strict=True))
    for broker in brokers.values():
        broker.kill()


@pytest.fixture
def stopped(all_stopped: dict[str, Stopped], version: str) -> Iterator[Stopped]:
    """Its store is as it was at the stop, whatever another test has left."""
    chosen = all_stopped[version]
    store = chosen.broker.store
    copy = store.with_name("as-stopped")
    if not copy.exists():
        shutil.copytree(store, copy)
    yield chosen
    chosen.broker.kill()
    shutil.rmtree(store)
    shutil.copytree(copy, store)


def test_the_volume_of_the_log_was_not_mounted(stopped: Stopped, proven: Callable[[str], None]) -> None:
    store = stopped.broker.store
    log, elsewhere = store / "commitlog", store.parent / "volume"
    log.rename(elsewhere)
    log.mkdir()
    before = contents(store)
    assert not stopped.is_clean()
    with pytest.raises(MQIndexError, match="mounted"):
        repair(store, config=stopped.broker.conf, broker_version=stopped.broker.version)
    assert contents(store) == before
    log.rmdir()
    elsewhere.rename(log)
    assert stopped.is_clean()
    stopped.require_all_answers()
    proven("commit log not mounted: repair refuses and changes nothing; mounted again, every answer as before")


def test_an_unclean_end_and_an_old_checkpoint(stopped: Stopped, proven: Callable[[str], None]) -> None:
    store, entries = stopped.broker.store, stopped.entries()
    old = bytearray((store / "checkpoint").read_bytes())
    last = max(message.store_timestamp for message in stopped.answers.messages)
    late = last + 10_000  # as after a life without new messages: the log is read again from its last file on
    struct.pack_into(">3q", old, 0, late, late, 1)  # of log, queues, index
    (store / "checkpoint").write_bytes(old)
    (store / "abort").touch()
    start = stopped.start()
    assert start.entries_deleted == entries
    assert 0 < (start.entries_lost or 0) <= entries
    assert not stopped.is_clean()
    assert repair(store, config=stopped.broker.conf, broker_version=stopped.broker.version).ok
    assert stopped.is_clean()
    assert stopped.start().entries_deleted == 0
    stopped.require_all_answers()
    assert stopped.entries() >= entries
    proven(
        f"abort and an old checkpoint: verify tells that {start.entries_deleted} entries go and {start.entries_lost} "
        "do not come back; repaired, a broker keeps them all"
    )


def test_a_lost_and_found_among_the_files_of_the_log(stopped: Stopped, proven: Callable[[str], None]) -> None:
    stray = stopped.broker.store / "commitlog" / "lost+found"
    stray.mkdir()
    starts = stopped.start().starts
    assert starts is (stopped.broker.version > "5")
    if not starts:
        assert not stopped.is_clean()
        stopped.broker.launch()
        with pytest.raises(PeerError, match="did not start"):
            stopped.broker.wait_until_ready()
        stopped.broker.kill()
        stray.rmdir()
        assert stopped.start().starts
    stopped.require_all_answers()
    proven("lost+found in commitlog/: " + ("it starts" if starts else "it does not start; after moving it, it does"))
