"""A broker killed while it writes loses index entries; `mqindex repair` brings them back, and the broker goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from mqindex.report import Report, Start
from mqindex.rocketmq import Checkpoint, CommitLog, report, verify
from tests.peer.jvm import PATIENCE
from tests.peer.maven import PeerError
from tests.peer.rocketmq.broker import Broker, Peer, dismiss_all
from tests.peer.rocketmq.client import Outgoing, Receipt
from tests.peer.rocketmq.conftest import LIVING, on_the_newer
from tests.support.index_entries import entries_of
from tests.support.tree import index_paths

pytestmark = on_the_newer

TOPIC = "Flood"
DOUBTED = 3000  # ms before its checkpoint's times that a broker reads its log again from
FILES_LOST = 2  # of 64 KiB, which it does not read again
AFTER = 200
LOOKS = 4
LATE = ("missing-entries", "missing-units", "queue-missing", "queues-missing")
GEOMETRY = 1000, 100_000
SETTINGS = {
    "mappedFileSizeCommitLog": 1 << 16,
    "maxHashSlotNum": GEOMETRY[0],
    "maxIndexNum": GEOMETRY[1],  # one file, which is never full: the broker deletes it after an unclean end
    "flushCommitLogThoroughInterval": 200,
    "flushConsumeQueueThoroughInterval": 200,
    "flushIntervalConsumeQueue": 100,
}


@dataclass
class Killed:
    """The lives of a broker: killed in a flood; started, its losses counted, killed again; repaired; a last one."""

    broker: Broker
    looks: list[Report] = field(default_factory=list)
    acknowledged: list[Receipt] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    said: Start | None = None
    entries_lost: int = 0
    repair: subprocess.CompletedProcess[str] | None = None
    unanswered: list[str] = field(default_factory=list)
    repaired_files: dict[str, int] = field(default_factory=dict)
    sent_after: list[Receipt] = field(default_factory=list)
    unanswered_after: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def killed(peers: dict[str, Peer]) -> dict[str, Killed]:
    """By version."""
    lives = {version: Killed(peers[version].broker("killed", SETTINGS)) for version in LIVING}
    try:
        with ThreadPoolExecutor() as both:
            list(both.map(live, lives.values()))
    finally:
        dismiss_all(life.broker for life in lives.values())
    return lives


def live(life: Killed) -> None:
    broker, client = life.broker, life.broker.client
    broker.launch()
    broker.wait_until_ready()
    broker.create_topic(TOPIC)
    client.flood(TOPIC)
    life.looks = look_on(broker)
    wait_until_much_would_be_lost(broker)
    broker.kill()
    life.acknowledged = client.flooded()
    life.said = verify(broker.store, config=broker.conf, broker_version=broker.version).start
    had = entries_of(broker.store, GEOMETRY)

    broker.launch()
    broker.wait_until_ready([TOPIC])
    life.lost = unanswered(life, life.acknowledged)
    broker.kill()
    life.entries_lost = (had - entries_of(broker.store, GEOMETRY)).total()

    command = [sys.executable, "-m", "mqindex", "repair", str(broker.store), "--broker-conf", str(broker.conf)]
    life.repair = subprocess.run(
        [*command, "--broker-version", broker.version], capture_output=True, text=True, check=False
    )
    life.repaired_files = {path.name: path.stat().st_ino for path in index_paths(broker.store)}
    broker.launch()
    broker.wait_until_ready([TOPIC])
    life.unanswered = unanswered(life, life.acknowledged)
    life.sent_after = [client.send(Outgoing(TOPIC, b"after", tags="TagF", keys=f"after-{i}")) for i in range(AFTER)]
    client.wait_for_key(TOPIC, f"after-{AFTER - 1}")
    life.unanswered_after = unanswered(life, life.sent_after, "after")


def look_on(broker: Broker) -> list[Report]:
    """What verify and report say of a store that the broker writes, from its first index file on, while it grows."""
    until = time.monotonic() + PATIENCE
    while not index_paths(broker.store) and time.monotonic() < until:
        time.sleep(0.1)
    given = {"config": broker.conf, "broker_version": broker.version}
    quick = [verify(broker.store, **given) for _ in range(LOOKS)]
    while len({one.messages for one in quick}) < LOOKS and time.monotonic() < until:  # its second message may be late
        quick.append(verify(broker.store, **given))
    return [*quick, verify(broker.store, deep=True, **given), report(broker.store, **given).verify]


def wait_until_much_would_be_lost(broker: Broker) -> None:
    """Until the checkpoint's times are so late that a start would not read the log's first files again."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        time.sleep(0.2)
        times = (Checkpoint.read(broker.store / "checkpoint") or Checkpoint())[:2]
        names = sorted(path.name for path in (broker.store / "commitlog").glob("0*"))
        if len(names) > FILES_LOST + 3:  # the broker makes files ahead
            with CommitLog.open(broker.store / "commitlog") as log:
                if log.get_message(int(names[FILES_LOST])).store_timestamp < min(times) - DOUBTED:
                    return
    raise PeerError(f"the broker's checkpoint does not go on: {times}")


def unanswered(life: Killed, receipts: list[Receipt], name: str = "flood") -> list[str]:
    """The keys and unique keys that do not lead to their message. The last one may be indexed twice."""
    client, found = life.broker.client, []
    for number, receipt in enumerate(receipts):
        key = f"{name}-{number}"
        if {message.phy_offset for message in client.query_key(TOPIC, key)} != {receipt.phy_offset}:
            found.append(key)
        if {message.phy_offset for message in client.query_unique_key(TOPIC, receipt.uniq_key)} != {receipt.phy_offset}:
            found.append(receipt.uniq_key)
    return found


def test_nothing_is_missing_in_a_store_that_the_broker_writes(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    """Index and queues, read after the log, were ahead of it, and what was not dispatched yet was told as missing.

    A broker that is short of processors may dispatch later than a look waits: of some looks that is borne.
    """
    looks = killed[version].looks
    errors = [[str(each) for each in one.findings if each.severity == "error"] for one in looks]
    others = [each for one in looks for each in one.findings if each.severity == "error" and each.kind not in LATE]
    assert not others, f"in {len(looks)} looks: {others[:5]}"
    clean = sum(not one for one in errors)
    assert clean > 1, f"{len(looks)} looks: {[one[:1] for one in errors]}"
    assert len({one.messages for one in looks}) > 2, "the log did not grow"
    proven(f"{clean} of {len(looks)} looks at a store that it wrote, deep and report too: no error")


def test_a_killed_broker_loses_index_entries_and_repair_brings_them_back(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    assert len(life.lost) > 100, "the broker lost next to nothing: there was nothing to repair"
    assert life.repair is not None
    assert life.repair.returncode == 0, life.repair.stdout + life.repair.stderr
    assert life.unanswered == []
    both = 2 * len(life.acknowledged)
    proven(f"killed while writing, it had lost {len(life.lost)} of {both} keys; after `mqindex repair` all answer")


def test_it_loses_the_index_entries_that_verify_said(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    assert life.said is not None
    assert life.entries_lost == life.said.entries_lost
    proven(f"of {life.said.entries_deleted} index entries it had lost {life.entries_lost}, as verify had said")


def test_the_broker_goes_on_in_the_repaired_files(
    killed: dict[str, Killed], version: str, proven: Callable[[str], None]
) -> None:
    life = killed[version]
    assert life.unanswered_after == []
    files = {path.name: path.stat().st_ino for path in index_paths(life.broker.store)}
    assert files == life.repaired_files, "it wrote into files of its own"
    report = verify(life.broker.store, deep=True, config=life.broker.conf, broker_version=version)
    assert report.ok, report.findings
    proven(f"it appended {AFTER} messages to the repaired files; verify --deep finds {report.entries} entries right")
