"""A log that is bad in its middle, after a clean stop: a broker serves all but that, before a repair and after it.

The batches are as long as each other. Without a repair of mqindex the broker answers once, then a second time with it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mqindex.kafka import repair, verify
from mqindex.report import RepairReport, Report
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.client import Outgoing
from tests.peer.kafka.conftest import LIVING, on_the_newer
from tests.peer.kafka.test_rebuilt import Content, delete, files_of
from tests.peer.kafka.workload import FIRST_TIME, Topic
from tests.peer.maven import PeerError, class_path

pytestmark = on_the_newer

HOW = Topic(index_interval_bytes=500, segment_bytes=12_000)
KINDS = ("flip", "value", "zero", "size")
TOPICS = {f"{kind}-{where}": (kind, where) for kind in KINDS for where in ("middle", "newest")}
BATCHES, RECORDS = 50, 4
VALUE = b"ten times all the same: " * 8
BAD = 4  # which batch of the segment
OFFSETS = range(0, BATCHES * RECORDS, 3)
TIMES = [FIRST_TIME + 1000 * offset for offset in OFFSETS]


@dataclass(frozen=True)
class Lives:
    """By topic: what was answered before the damage, with it, after a repair, and with all indexes lost and written."""

    whole: dict[str, list[str]]
    found: dict[str, Report]
    damaged: dict[str, list[str]]
    report: RepairReport
    kept: dict[str, tuple[Content, Content]]
    repaired: dict[str, list[str]]
    lost: RepairReport
    written: dict[str, list[str]]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Lives]]:
    """By version."""
    brokers = []
    try:
        for version in LIVING:
            class_path("kafka", version)
            brokers.append(Broker(version, tmp_path_factory.mktemp(f"peer-kafka-damaged-{version}")))
        with ThreadPoolExecutor() as both:
            yield dict(zip(LIVING, both.map(live, brokers), strict=True))
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        for broker in brokers:
            broker.close()


def live(broker: Broker) -> Lives:
    broker.launch()
    broker.client.wait_until_ready()
    broker.wait_until_ready()
    for topic in TOPICS:
        fill(broker, topic)
    whole = answers(broker)
    broker.stop()
    for topic, (kind, where) in TOPICS.items():
        spoil(chosen(broker.partition(topic), where), kind)
    found = {topic: verify(broker.partition(topic), index_interval_bytes=500) for topic in TOPICS}
    damaged = life(broker)
    before = {topic: files_of(broker.partition(topic)) for topic in TOPICS}
    report = repair(broker.log_dir, index_interval_bytes=500, kafka_version=broker.version)
    kept = {topic: (before[topic], files_of(broker.partition(topic))) for topic in TOPICS}
    repaired = life(broker)
    for topic, (_, where) in TOPICS.items():
        delete(broker.partition(topic), ("index", "timeindex") if where == "middle" else ())
    lost = repair(broker.log_dir, index_interval_bytes=500, kafka_version=broker.version)
    return Lives(whole, found, damaged, report, kept, repaired, lost, life(broker))


def fill(broker: Broker, topic: str) -> None:
    client = broker.client
    client.create_topic(topic, HOW.settings(broker.version))
    client.create_producer("none", "none", "plain")
    for number in range(BATCHES):
        times = range(FIRST_TIME + 1000 * RECORDS * number, FIRST_TIME + 1000 * RECORDS * (number + 1), 1000)
        client.send("none", topic, [Outgoing(time, value=VALUE) for time in times])
    client.close_producers()


def life(broker: Broker) -> dict[str, list[str]]:
    broker.launch()
    broker.wait_until_ready(TOPICS)
    found = answers(broker)
    broker.stop()
    return found


def answers(broker: Broker) -> dict[str, list[str]]:
    return {topic: broker.client.probe(topic, OFFSETS, TIMES) for topic in TOPICS}


def chosen(partition: Path, where: str) -> Path:
    logs = sorted(partition.glob("*.log"))
    return logs[-1] if where == "newest" else logs[1]


def spoil(log: Path, kind: str) -> None:
    """One batch: a byte of its records, a byte of a value, its length; or it and the next are zeros."""
    data = bytearray(log.read_bytes())
    size = 12 + struct.unpack_from(">i", data, 8)[0]
    at = BAD * size
    assert len(data) > (BAD + 4) * size
    if kind == "flip":
        data[at + 62] ^= 0x40
    elif kind == "value":
        data[data.index(b"times", at)] ^= 1
    elif kind == "zero":
        data[at : at + 2 * size] = bytes(2 * size)
    else:
        data[at + 8] ^= 0x40
    log.write_bytes(data)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_repair_leaves_every_answer_as_it_was(lives: dict[str, Lives], version: str, topic: str) -> None:
    done = lives[version]
    before, after = done.kept[topic]
    assert after == before
    assert done.repaired[topic] == done.damaged[topic]
    same = sum(one == two for one, two in zip(done.damaged[topic], done.whole[topic], strict=True))
    assert same > len(done.whole[topic]) * 3 // 4


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if topic.endswith("middle")])
def test_lost_indexes_are_written_so_that_no_good_record_is_cut(
    lives: dict[str, Lives], version: str, topic: str, proven: Callable[[str], None]
) -> None:
    done = lives[version]
    wrong = {at for at, answer in enumerate(done.written[topic]) if answer != done.whole[topic][at]}
    damaged = {at for at, answer in enumerate(done.damaged[topic]) if answer != done.whole[topic][at]}
    assert wrong <= damaged
    if topic == "size-middle":
        proven("a log with a bad batch, cleanly stopped: repaired, all seeks and times are answered as before")


def test_what_is_damaged_is_told_with_what_is_good_behind(lives: dict[str, Lives], version: str) -> None:
    for topic, report in lives[version].found.items():
        (told,) = [one for one in report.findings if one.kind.startswith("log-")]
        batches = 2 if topic.startswith("zero") else 1
        first = int(Path(str(told.path)).stem) + BAD * RECORDS
        assert f"left out, offsets {first} to {first + batches * RECORDS - 1}" in str(told.hint)
        assert "good batches behind: " in str(told.hint)
        assert report.actions == []
