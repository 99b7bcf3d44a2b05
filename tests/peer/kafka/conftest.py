"""Real Kafka brokers of two versions, side by side: what each wrote in its first life."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqindex.kafka import PartitionLog, verify
from mqindex.report import Report
from tests.peer import maven
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.workload import TOPICS, Answers, Sent, ask, write_everything
from tests.peer.maven import PeerError, class_path
from tests.support.nightly import NIGHTLY, some

VERSIONS = maven.VERSIONS["kafka"]
OLDER, NEWER = VERSIONS
# Tests of one version, which in the nightly run are of both; and which versions live the lives that those look at.
on_the_older = pytest.mark.parametrize("version", some(VERSIONS, lambda version: version == OLDER))
on_the_newer = pytest.mark.parametrize("version", some(VERSIONS, lambda version: version == NEWER))
LIVING = VERSIONS if NIGHTLY else (NEWER,)
SEED = 5


@dataclass(frozen=True)
class Meanwhile:
    """What mqindex said of a partition while the broker held it, its newest indexes full of zeros to the end."""

    report: Report
    by_time: list[tuple[int, int]]
    index_bytes: int


@dataclass(frozen=True)
class Written:
    """A log dir that a broker wrote and left, by a clean stop; what was sent, and what the broker said of it."""

    broker: Broker
    sent: dict[str, Sent]
    answers: dict[str, Answers]
    meanwhile: dict[str, Meanwhile]
    log_dir: Path  # a copy: tests read it, while others change the broker's own

    def partition(self, topic: str) -> Path:
        return self.log_dir / f"{topic}-0"


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """The broker's version, first of all parameters."""
    return str(request.param)


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Broker]]:
    """Brokers that have not started, and their clients. Without Java or Maven these tests fail: they are promises."""
    made: dict[str, Broker] = {}
    try:
        for each in VERSIONS:
            class_path("kafka", each)
            made[each] = Broker(each, tmp_path_factory.mktemp(f"peer-kafka-{each}"))
        for broker in made.values():
            broker.client.wait_until_ready()
        yield made
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        for broker in made.values():
            broker.close()


@pytest.fixture(scope="session")
def written(brokers: dict[str, Broker]) -> dict[str, Written]:
    """By version: a log dir that a broker filled, asked about everything, and left."""
    with ThreadPoolExecutor() as both:
        return dict(zip(brokers, both.map(fill, brokers.values()), strict=True))


def fill(broker: Broker) -> Written:
    broker.launch()
    broker.wait_until_ready()
    sent = write_everything(broker, random.Random(SEED))
    answers = {topic: ask(broker, topic) for topic in TOPICS}
    meanwhile = {topic: look(broker.partition(topic), answers[topic]) for topic in TOPICS}
    broker.stop()
    return Written(broker, sent, answers, meanwhile, shutil.copytree(broker.log_dir, broker.home / "copy"))


def look(partition: Path, said: Answers) -> Meanwhile:
    with PartitionLog.open(partition) as log:
        times, offsets = log.offsets_for_timestamps(list(said.by_time))
    sizes = [path.stat().st_size for path in partition.glob("*.index")]
    return Meanwhile(verify(partition), list(zip(times.tolist(), offsets.tolist(), strict=True)), max(sizes))


@pytest.fixture
def proven(say_proven: Callable[[str], None], version: str) -> Callable[[str], None]:
    """Says, at the end of the run, what a test has shown."""
    return lambda line: say_proven(f"Kafka {version}: {line}")
