"""Real brokers of two versions, started side by side."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peer import maven
from tests.peer.maven import PeerError, class_path
from tests.peer.rocketmq.broker import Broker, Peer, stop_all
from tests.peer.rocketmq.workload import Answers, Sent, ask_everything, send_everything
from tests.support.nightly import NIGHTLY, some

VERSIONS = maven.VERSIONS["rocketmq"]
OLDER, NEWER = VERSIONS
# Tests of one version, which in the nightly run are of both; and which versions live the lives that those look at.
on_the_older = pytest.mark.parametrize("version", some(VERSIONS, lambda version: version == OLDER))
on_the_newer = pytest.mark.parametrize("version", some(VERSIONS, lambda version: version == NEWER))
LIVING = VERSIONS if NIGHTLY else (NEWER,)
SEED = 4
TIMES = 200  # any ones, asked of five queues


@dataclass(frozen=True)
class Written:
    """A store that a broker wrote and then left, by a clean stop; what was sent, and what the broker said of it."""

    broker: Broker
    sent: Sent
    times: list[int]
    answers: Answers
    store: Path  # a copy: tests read it, while others change the broker's own

    def restore(self) -> None:
        """The broker's own store becomes what it was at that stop, whatever tests made of it."""
        self.broker.kill()
        shutil.rmtree(self.broker.store)
        shutil.copytree(self.store, self.broker.store)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """The broker's version, first of all parameters."""
    return str(request.param)


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Peer]]:
    """Every version. Without Java or Maven these tests fail: they prove what we promise."""
    started: dict[str, Peer] = {}
    try:
        for each in VERSIONS:
            class_path("rocketmq", each)
            started[each] = Peer(each, tmp_path_factory.mktemp(f"peer-{each}"))
        yield started
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        for peer in started.values():
            peer.close()


@pytest.fixture(scope="session")
def written(peers: dict[str, Peer]) -> dict[str, Written]:
    """By version: a store that a broker filled, asked about everything, and left."""
    brokers = {each: peer.broker("writer") for each, peer in peers.items()}
    for broker in brokers.values():
        broker.launch()

    def fill(broker: Broker) -> tuple[Sent, list[int], Answers]:
        broker.wait_until_ready()
        sent = send_everything(broker, random.Random(SEED))
        first = broker.client.view(sent[0][0].topic, sent[0][1].offset_id).store_timestamp
        last = int(time.time() * 1000)
        source = random.Random(first)
        times = [0, *(first + after for after in (0, 100, 500, 1000)), 2**62]
        times += [source.randint(first - 10, last + 10) for _ in range(TIMES)]
        return sent, times, ask_everything(broker, sent, times)

    with ThreadPoolExecutor() as both:
        filled = dict(zip(brokers, both.map(fill, brokers.values()), strict=True))
    stop_all(brokers.values())
    return {
        each: Written(brokers[each], *filled[each], shutil.copytree(brokers[each].store, brokers[each].home / "copy"))
        for each in brokers
    }


@pytest.fixture
def stopped(written: dict[str, Written], version: str) -> Iterator[Written]:
    """A broker that was filled, asked about everything and stopped: a test may change its store, and start it."""
    chosen = written[version]
    chosen.restore()
    yield chosen
    chosen.broker.kill()


@pytest.fixture
def proven(say_proven: Callable[[str], None], version: str) -> Callable[[str], None]:
    """Says, at the end of the run, what a test has shown."""
    return lambda line: say_proven(f"RocketMQ {version}: {line}")
