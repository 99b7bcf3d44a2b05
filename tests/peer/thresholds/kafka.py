"""Starts Kafka's brokers of the releases beside each threshold; `tests/data/kafka/thresholds.json` is what they did.

python -m tests.peer.thresholds.kafka [CASE...]      # Maven fetches about twenty releases
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.peer.jvm import PATIENCE, Jvm
from tests.peer.kafka.broker import LOGGED, Broker
from tests.peer.maven import PeerError, exit_code
from tests.peer.ports import accepts, free_ports
from tests.support.golden_kafka import DATA
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

__all__ = ["ANSWERS", "CASES", "NOT_ASKED", "Answer", "answer"]

ANSWERS = DATA / "thresholds.json"
NOT_ASKED = ("future", "futurek", "twice", "txnbig")  # no threshold: what every broker does, or all but those of 3.9
FLAGS = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.util", "sun.nio.ch"))
STARTED = re.compile(r"^INFO Kafka(?:Raft)?Server .*started$", re.MULTILINE)
FAILED = re.compile(r"^(?:Exception in thread \S+ )?(\S+Exception: .*)$", re.MULTILINE)
SETTINGS = """\
broker.id=1
listeners=PLAINTEXT://127.0.0.1:{port}
zookeeper.connect=127.0.0.1:{zookeeper}
log.dirs={log_dir}
log.retention.ms=-1
"""
RAFT = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{zookeeper}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{zookeeper}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={log_dir}
"""
Answer = dict[str, Any]


def nothing(_place: Path) -> Answer:
    """Nothing is changed; nothing more is seen."""
    return {}


@dataclass(frozen=True)
class Case:
    """`versions` are asked. `harm` is done to partition t-0 after a clean stop; `seen` is in it after the next one.

    `lives`: how a broker is started; `batch`: records in a batch of the partition.
    """

    versions: Sequence[str]
    harm: Callable[[Path], object] = nothing
    seen: Callable[[Path], Answer] = nothing
    lives: str = "zk"
    batch: int = 5


def beside(name: str, content: bytes) -> Callable[[Path], object]:
    """A file of the log dir."""
    return lambda partition: (partition.parent / name).write_bytes(content)


def within(name: str, content: bytes) -> Callable[[Path], object]:
    """A file of the partition."""
    return lambda partition: (partition / name).write_bytes(content)


def lose_index(partition: Path) -> None:
    (partition / INDEX).unlink()


def lose_marks_and_index(partition: Path) -> None:
    """So that the start recovers the segment."""
    lose_index(partition)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (partition.parent / name).unlink(missing_ok=True)


def stray(partition: Path) -> None:
    shutil.copytree(partition, partition.with_name(f"t-0.{'a' * 32}-stray"))


def index(partition: Path) -> Answer:
    return {"index": (partition / INDEX).read_bytes().hex()}


def metadata_trimmed(partition: Path) -> Answer:
    sizes = [each.stat().st_size for each in (partition.parent / "__cluster_metadata-0").glob("0*index")]
    return {"trimmed": len(sizes) == 2 and max(sizes) < 1 << 20}


def aborted(version: int) -> Callable[[Path], object]:
    """A transaction index of one entry."""
    return within("00000000000000000000.txnindex", struct.pack(">hqqqq", version, 1, 0, 1, 2))


LOG = "Watched.log"  # of the life before, too
INDEX = "00000000000000000000.index"
POINTS = "recovery-point-offset-checkpoint"
CASES = {
    "lost": Case(("1.0.0", "1.0.2", "1.1.0", "1.1.1", "2.2.2", "2.3.0"), lose_index, index, batch=1),
    "meta": Case(("2.7.2", "2.8.0"), within("partition.metadata", b"version: 0\ntopic_id: ???")),
    "metaindex": Case(("4.3.1", "4.4.0"), seen=metadata_trimmed, lives="kraft"),
    "number": Case(("0.11.0.3", "1.0.0", "3.0.2", "3.1.0"), beside(POINTS, b"0\n1\nt 0 x\n")),
    "raft": Case(("2.7.2", "2.8.0"), lives="raft at first"),
    "recover": Case(("1.1.1", "2.0.0"), lose_marks_and_index, index),
    "recover-single": Case(("1.1.1", "2.0.0"), lose_marks_and_index, index, batch=1),
    "stray": Case(("3.6.0", "3.6.1"), stray),
    "txn": Case(("4.3.1", "4.4.0"), aborted(1), lives="kraft"),
    "txnneg": Case(("4.3.1", "4.4.0"), aborted(-1), lives="kraft"),
    "unreadable": Case(("0.11.0.3", "1.0.0"), beside(POINTS, b"0\n1\nt 0\n")),
    "zookeeper": Case(("3.9.2", "4.0.0"), lives="zk at first"),
}


def answer(name: str, version: str, home: Path) -> Answer:
    """What a broker of a version does, and what is there afterwards."""
    case = CASES[name]
    mode = "kraft" if "raft" in case.lives else "zk"
    said = {"version": version, "case": name, "mode": mode}
    return {**said, **(_with_raft(case, version, home) if case.lives == "kraft" else _alone(case, version, home))}


def _with_raft(case: Case, version: str, home: Path) -> Answer:
    broker = Broker(version, home)
    try:
        broker.launch()
        broker.wait_until_ready()
        broker.client.create_topic("t", {})
        broker.wait_until_ready(["t"])
        broker.stop()
        case.harm(broker.partition("t"))
        (home / LOG).unlink()
        broker.launch()
        starts = _starts(broker.life)
        broker.stop()
        return {"starts": starts, **case.seen(broker.partition("t"))}
    finally:
        broker.close()


def _alone(case: Case, version: str, home: Path) -> Answer:
    """Without clients: the partition is made by hand, and no broker of ZooKeeper asks whose it is."""
    profile = "kafkas" if version < "4" else "kafka"
    port, zookeeper = free_ports(2)
    partition = home / "logs" / "t-0"
    settings = RAFT if "raft" in case.lives else SETTINGS
    (home / "server.properties").write_text(settings.format(port=port, zookeeper=zookeeper, log_dir=partition.parent))
    (home / "log4j.properties").write_text(LOGGED)
    flags = [*FLAGS, f"-Dlog4j.configuration=file:{home / 'log4j.properties'}"]
    keeper = ["org.apache.zookeeper.server.ZooKeeperServerMain", str(zookeeper), str(home / "zookeeper" / "data")]
    flags += ["-Dzookeeper.admin.enableServer=false", "-Dzookeeper.jmx.log4j.disable=true"]
    running: list[Jvm] = []

    def life(main: Sequence[str]) -> Jvm:
        where = home / "zookeeper" if main is keeper else home
        running.append(Jvm(profile, version, ["peer.Watched", *main], where, flags=flags))
        return running[-1]

    try:
        if case.lives.startswith("zk") and version < "4":
            life(keeper)
            _wait(lambda: accepts(zookeeper) or running[0].ended)
        if case.lives == "zk":
            _write(partition, case.batch)
            broker = life(["kafka.Kafka", str(home / "server.properties")])
            if not _starts(broker):
                raise PeerError(f"broker {version} did not start: {broker.tail()}")
            broker.stop()
            (home / LOG).unlink()
            case.harm(partition)
        broker = life(["kafka.Kafka", str(home / "server.properties")])
        starts = _starts(broker)
        broker.stop()
        if case.lives == "raft at first":
            found = FAILED.search(broker.log.read_text())
            return {"starts": starts, "said": found[1].replace(str(partition.parent), "<log dir>") if found else ""}
        if case.lives == "zk at first":
            return {"starts": starts, "properties": (partition.parent / "meta.properties").exists()}
        return {"starts": starts, **case.seen(partition)}
    finally:
        for one in running:
            one.kill()


def _write(partition: Path, batch: int) -> None:
    """50 records."""
    writer = PartitionWriter(partition)
    while writer.next_offset < 50:
        times = range(writer.next_offset, writer.next_offset + batch)
        writer.append([KafkaRecord(b"v" * 200, timestamp=FIRST_TIME + at) for at in times])
    writer.close()


def _starts(broker: Jvm) -> bool:
    """Whether it says that it has started, and does not end."""
    _wait(lambda: broker.ended or STARTED.search(broker.log.read_text(errors="replace")) is not None)
    return not broker.ended


def _wait(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > until:
            raise PeerError(f"a broker neither started nor ended within {PATIENCE:.0f} s")
        time.sleep(0.1)


def main() -> None:
    """Asks about the cases that are named, or about all."""
    kept = {(one["case"], one["version"]): one for one in json.loads(ANSWERS.read_text())}
    for name in sys.argv[1:] or CASES:
        for version in CASES[name].versions:
            with TemporaryDirectory() as home:
                kept[name, version] = answer(name, version, Path(home))
            print(json.dumps(kept[name, version]), flush=True)
        lines = [f" {json.dumps(one)}" for _, one in sorted(kept.items())]
        ANSWERS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    sys.exit(exit_code(main))
