"""An archive of the classes that each kind of process of the peers loads: half of what a start costs.

python -m tests.peer.archives      # what `./dev` does beforehand, once for a Java and a version of a broker

Java compares an archive with its class path, and does without it where something else is there now.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.peer.jvm import Jvm, archive
from tests.peer.kafka.broker import Broker
from tests.peer.kafka.client import Outgoing as Record
from tests.peer.maven import VERSIONS, exit_code
from tests.peer.rocketmq.broker import Peer
from tests.peer.rocketmq.client import Outgoing

BROKER = ["peer.Watched"]
CLIENTS = {"rocketmq": ["peer.rocketmq.Driver"], "kafka": ["peer.kafka.Driver"]}


def rocketmq(version: str, home: Path) -> None:
    """A message is sent, found, and read."""
    peer = Peer(version, home)
    try:
        broker = peer.broker("classes")
        broker.launch()
        broker.wait_until_ready()
        broker.create_topic("Classes", 1)
        broker.client.send(Outgoing("Classes", b"body", tags="Tag", keys="key"))
        broker.client.wait_for_key("Classes", "key")
        broker.client.consume("Classes", broker.name, 0)
        broker.stop()
        broker.client.jvm.stop()
    finally:
        peer.close()


def kafka(version: str, home: Path) -> None:
    """A record is sent, and read."""
    broker = Broker(version, home)
    try:
        broker.client.wait_until_ready()
        broker.launch()
        broker.wait_until_ready()
        broker.client.create_topic("classes", {})
        broker.client.create_producer("classes", "lz4", "idempotent")
        broker.client.send("classes", "classes", [Record(1_600_000_000_000, b"key", b"value")])
        broker.client.consume("classes", "read_committed")
        broker.stop()
        broker.client.jvm.stop()
    finally:
        broker.close()


def record() -> None:
    """Makes those that are missing."""
    Jvm.makes_archives = True
    for name, make in (("rocketmq", rocketmq), ("kafka", kafka)):
        for version in VERSIONS[name]:
            if not all(archive(name, version, each).exists() for each in (BROKER, CLIENTS[name])):
                with TemporaryDirectory() as home:
                    make(version, Path(home))


if __name__ == "__main__":
    sys.exit(exit_code(record))
