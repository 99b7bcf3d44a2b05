"""A broker killed while it writes: what mqindex makes of its files is what the broker's own recovery makes of them.

A process that is killed loses nothing that it wrote: the indexes of closed segments are complete and as long as their
entries, and so are they after a recovery, which goes over the segments from the recovery point on. The newest segment's
indexes have zeros to their full length, and its time index lacks the closing entry, which a recovery adds. `repair` has
no fault to find with that; where the files are lost, it writes what the recovery writes.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

from mqindex.kafka import PartitionLog, verify
from mqindex.report import Report
from tests.peer.jvm import PATIENCE
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.client import Acknowledged
from tests.peer.kafka.conftest import LIVING, on_the_newer
from tests.peer.kafka.test_broker_writes import consume
from tests.peer.kafka.test_rebuilt import SUFFIXES, Content, delete, files_of, mqindex_repair
from tests.peer.kafka.workload import (
    FIRST_TIME,
    ISOLATIONS,
    Answers,
    Topic,
    ask,
    create_producers,
    write_transactions,
)
from tests.peer.maven import PeerError, class_path

pytestmark = on_the_newer

TOPIC = "flood"
HOW = Topic(index_interval_bytes=1000, segment_bytes=200_000)
SEED = 6
FLOOD_SECONDS = 2.5
LOOKS = 6  # at least, on a busy machine
FLOOD_TIME = 4_000_000_000_000  # behind every marker, which has the time of the clock: else all searches end at one
FLOODING = ("none", "lz4")
SETTINGS = {
    "log.initial.task.delay.ms": 100,  # and then at once, so that the recovery point is not the log's start
    "log.flush.offset.checkpoint.interval.ms": 200,
    "broker.session.timeout.ms": 2000,  # how long the controller thinks that the killed broker lives
    "broker.heartbeat.interval.ms": 300,
}
ENTRY_SIZES = {"index": 8, "timeindex": 12}
# What a broker says of indexes that it does not take, besides that it recovers what was not flushed.
TORN = "Corruption found in segment"  # of a batch that it was writing: it cuts it, repaired or not
COMPLAINTS = ("Could not find offset index file", "Corrupt", "corrupt", "rebuilding index", "ERROR")


@dataclass(frozen=True)
class Killed:
    """A partition as it was left by SIGKILL, in three copies.

    `crashed` stays as it is. One is recovered by the broker. The third is repaired, loses all indexes, is repaired
    again, and then served.
    """

    looks: list[Report]
    acknowledged: list[Acknowledged]
    by_time: dict[int, tuple[int, int]]  # asked before the flood
    crashed: Path
    recovery: list[str]
    recovered: Content
    answers: Answers
    unharmed: subprocess.CompletedProcess[str]
    after_unharmed: tuple[Report, Content]
    lost: subprocess.CompletedProcess[str]
    after_lost: tuple[Report, Content]
    said: list[str]
    left: Content
    answers_after: Answers


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Killed]]:
    """By version."""
    brokers = []
    try:
        for version in LIVING:
            class_path("kafka", version)
            brokers.append(Broker(version, tmp_path_factory.mktemp(f"peer-kafka-killed-{version}"), SETTINGS))
        with ThreadPoolExecutor() as both:
            yield dict(zip(LIVING, both.map(live, brokers), strict=True))
    except PeerError as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        for broker in brokers:
            broker.close()


def live(broker: Broker) -> Killed:
    looks, by_time, acknowledged = flood_and_kill(broker)
    crashed, repaired = broker.home / "crashed", broker.home / "repaired"
    shutil.copytree(broker.log_dir, crashed)

    broker.launch()
    broker.wait_until_ready([TOPIC])
    answers = ask(broker, TOPIC)
    recovery, recovered = broker.stop(), files_of(broker.partition(TOPIC))
    broker.log_dir.rename(broker.home / "recovered")

    shutil.copytree(crashed, repaired)
    partition = repaired / f"{TOPIC}-0"
    unharmed = repair(repaired, broker.version)
    after_unharmed = check(partition, broker.version), files_of(partition)
    delete(partition, SUFFIXES)
    lost = repair(repaired, broker.version)
    after_lost = check(partition, broker.version), files_of(partition)

    repaired.rename(broker.log_dir)
    broker.launch()
    broker.wait_until_ready([TOPIC])
    answers_after = ask(broker, TOPIC, answers)
    return Killed(
        looks, acknowledged, by_time, crashed / f"{TOPIC}-0", recovery, recovered, answers, unharmed, after_unharmed,
        lost, after_lost, broker.stop(), files_of(broker.partition(TOPIC)), answers_after,
    )  # fmt: skip


def flood_and_kill(broker: Broker) -> tuple[list[Report], dict[int, tuple[int, int]], list[Acknowledged]]:
    """Transactions, one of them left open; answers of this time; then a flood, looked at meanwhile, and SIGKILL."""
    client, source = broker.client, random.Random(SEED)
    broker.launch()
    client.wait_until_ready()
    broker.wait_until_ready()
    client.create_topic(TOPIC, {**HOW.settings(broker.version), "message.timestamp.after.max.ms": 2**62})
    create_producers(client)
    write_transactions(client, TOPIC, source)
    times = [FIRST_TIME + 5000 * n for n in range(30)]
    by_time = dict(zip(times, client.offsets_for_times(TOPIC, times), strict=True))
    client.begin("paying-gzip")
    client.flood(["paying-gzip", *FLOODING], TOPIC, FLOOD_TIME)
    looks, until = look_on(broker), monotonic() + PATIENCE
    while not is_partly_flushed(broker) and monotonic() < until:
        sleep(0.2)
    broker.kill()
    return looks, by_time, client.drop_producers()


def look_on(broker: Broker) -> list[Report]:
    """What verify says of a partition that the broker writes, again and again."""
    looks: list[Report] = []
    until = monotonic() + FLOOD_SECONDS
    while monotonic() < until or len(looks) < LOOKS:
        looks.append(check(broker.partition(TOPIC), broker.version, deep=len(looks) % 3 == 2))
        sleep(0.05)
    return looks


def is_partly_flushed(broker: Broker) -> bool:
    """Whether there are some segments, and the recovery point is behind the first ones."""
    segments = sorted(int(path.stem) for path in broker.partition(TOPIC).glob("*.log"))
    points = (broker.log_dir / "recovery-point-offset-checkpoint").read_text().splitlines()
    (point,) = [int(line.split()[2]) for line in points if line.startswith(f"{TOPIC} ")] or [0]
    return len(segments) > 5 and point > segments[2]


def repair(log_dir: Path, version: str) -> subprocess.CompletedProcess[str]:
    interval = ["--index-interval-bytes", HOW.index_interval_bytes, "--kafka-version", version]
    return mqindex_repair(log_dir / f"{TOPIC}-0", *interval)


def check(directory: Path, version: str, *, deep: bool = False) -> Report:
    return verify(directory, deep=deep, index_interval_bytes=HOW.index_interval_bytes, kafka_version=version)


def trimmed(name: str, data: bytes) -> bytes:
    """An index without the places behind its last entry, where zeros stand."""
    size = ENTRY_SIZES[name.rpartition(".")[2]]
    used = len(data.rstrip(b"\0"))
    return data[: -(-used // size) * size]


def of_kind(content: Content, suffix: str) -> Content:
    return {name: data for name, data in content.items() if name.endswith(f".{suffix}")}


def faults(report: Report) -> list[str]:
    """What is no mere information, besides a batch that was being written: a repair leaves the log alone."""
    return [each.kind for each in report.findings if each.severity != "info" and not each.kind.startswith("log-")]


def test_what_the_comparisons_rest_on(killed: dict[str, Killed], version: str) -> None:
    """Some segments were recovered, not all; no log was cut but where a batch was being written; times lead far."""
    life = killed[version]
    crashed, recovered = of_kind(files_of(life.crashed), "log"), of_kind(life.recovered, "log")
    assert 0 < recovered_segments(life) < len(recovered)
    assert list(crashed) == list(recovered)
    assert all(data.startswith(recovered[name]) for name, data in crashed.items())
    assert len(set(life.answers.by_time.values())) > 50


def recovered_segments(life: Killed) -> int:
    return sum("Recovering unflushed segment" in line and f"{TOPIC}-0" in line for line in life.recovery)


def complaints(said: list[str]) -> list[str]:
    return [line for line in said if f"{TOPIC}-0" in line and any(sign in line for sign in COMPLAINTS)]


def newest(life: Killed) -> str:
    return max(life.recovered).partition(".")[0]


def test_nothing_is_found_in_a_partition_that_the_broker_writes(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    """What is half-written, and what was written after the log was read, looked like the traces of a crash."""
    looks = killed[version].looks
    found = [str(each) for report in looks for each in report.findings if each.severity != "info"]
    assert not found, f"{len(found)} in {len(looks)} looks: {found[:5]}"
    assert len({report.bytes for report in looks}) > LOOKS // 2, "the log did not grow"
    proven(f"{len(looks)} looks of verify, deep and quick, at a partition that it was writing find nothing")


def test_a_killed_brokers_partition_is_read_as_after_its_recovery(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    assert check(life.crashed, version).ok
    with PartitionLog.open(life.crashed) as log:
        times, offsets = log.offsets_for_timestamps(list(life.answers.by_time))
        assert list(zip(times.tolist(), offsets.tolist(), strict=True)) == list(life.answers.by_time.values())
        for isolation in ISOLATIONS:
            assert list(consume(log, isolation)) == life.answers.records[isolation], isolation
    proven(
        f"killed while writing, {len(life.answers.records['read_uncommitted'])} records and {len(times)} "
        "offsets-for-times are read from what it left as the broker serves them after its recovery"
    )


def test_what_a_kill_leaves_needs_no_repair(killed: dict[str, Killed], version: str) -> None:
    life = killed[version]
    report, content = life.after_unharmed
    assert life.unharmed.returncode == 0, life.unharmed.stdout + life.unharmed.stderr
    assert faults(report) == []
    crashed = files_of(life.crashed)
    assert {name: data for name, data in content.items() if name in crashed} == crashed
    # Killed between a segment's log and its indexes, which the broker makes at their first use.
    added = {name: data for name, data in content.items() if name not in crashed}
    assert {name.partition(".")[0] for name in added} <= {newest(life)}
    assert added == {name: life.recovered[name] for name in added}
    for name, data in content.items():
        if name.partition(".")[0] != newest(life):
            assert name.endswith(".log") or data == life.recovered[name], name
        elif name.endswith(".index"):
            assert trimmed(name, data) == life.recovered[name]
        elif name.endswith(".timeindex"):
            closing = life.recovered[name][-ENTRY_SIZES["timeindex"] :]
            assert trimmed(name, data) in (life.recovered[name], life.recovered[name].removesuffix(closing))


def test_lost_indexes_become_what_the_brokers_recovery_writes(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    report, content = life.after_lost
    assert life.lost.returncode == 0, life.lost.stdout + life.lost.stderr
    assert faults(report) == []
    for suffix in SUFFIXES:
        # The broker opens a segment's transaction index when it recovers it, and may leave an empty one.
        written = {name: data for name, data in of_kind(life.recovered, suffix).items() if data or suffix != "txnindex"}
        assert of_kind(content, suffix) == written, suffix
    assert of_kind(content, "txnindex")
    files = sum(len(of_kind(content, suffix)) for suffix in SUFFIXES)
    proven(
        f"killed while writing, the broker recovers {recovered_segments(life)} of "
        f"{len(of_kind(content, 'log'))} segments; repair writes all {files} index files, each byte as it leaves them"
    )


def test_the_broker_serves_the_repaired_partition(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    served = {
        Acknowledged(each.offset, each.timestamp, each.value) for each in life.answers_after.records[ISOLATIONS[0]]
    }
    assert len(life.acknowledged) > 200
    assert served.issuperset(life.acknowledged)
    assert life.answers_after == life.answers
    times = list(life.by_time)
    with PartitionLog.open(life.crashed) as log:
        assert [log.offset_for_timestamp(time) for time in times] == list(life.by_time.values())
    assert set(complaints(life.said)) <= {line for line in complaints(life.recovery) if TORN in line}
    assert life.left == life.recovered
    proven(
        f"killed while writing and repaired, it serves all {len(life.acknowledged)} acknowledged records, and answers "
        f"{len(life.answers.by_time)} offsets-for-times as without the repair"
    )
