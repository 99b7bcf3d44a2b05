"""A real Kafka broker, its own controller: its settings, its lives, and what it logs in each of them."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.peer.jvm import PATIENCE, Jvm
from tests.peer.kafka.client import Client
from tests.peer.maven import PeerError
from tests.peer.ports import accepts, free_ports

__all__ = ["Broker", "complaints"]

FLAGS = ("-Xmx640m", "-Xms256m", "-XX:-UsePerfData")
LOGGED = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c{1} %m%n
"""
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "log.retention.check.interval.ms": 3_600_000,
}
# What a broker says of a partition whose index files it does not take as they are.
COMPLAINTS = (
    "Could not find offset index file",
    "Corrupt",
    "corrupt",
    "Recovering",
    "recovering segment",
    "rebuilding index",
    "ERROR",
)


class Broker:
    """A broker, on one log dir and one pair of ports through all its lives, and its client. `more`: other settings."""

    def __init__(self, version: str, home: Path, more: Mapping[str, object] | None = None) -> None:
        self.version = version
        self.home = home
        self.log_dir = home / "logs"
        home.mkdir(parents=True, exist_ok=True)
        self.port, controller = free_ports(2)
        address = f"127.0.0.1:{self.port}"
        settings: dict[str, object] = {
            **SETTINGS,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{address}",
            "log.dirs": self.log_dir,
            **(more or {}),
        }
        self.properties = home / "server.properties"
        self.properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        (home / "log4j.properties").write_text(LOGGED)
        self.cluster = base64.urlsafe_b64encode(uuid.UUID(int=7).bytes).decode().rstrip("=")
        main = ["peer.kafka.Driver", str(home / "driver.log"), address]
        self.client = Client(self._jvm(main, talks=True))
        self._running: Jvm | None = None
        self._said = 0

    def launch(self) -> None:
        """Begin a life, and do not wait."""
        main = ["peer.Watched", "peer.kafka.Broker", self.cluster, str(self.properties)]
        self._running = self._jvm(main)
        self._said = self._running.log.stat().st_size

    @property
    def life(self) -> Jvm:
        """The process of this life."""
        assert self._running is not None
        return self._running

    def wait_until_ready(self, topics: Iterable[str] = ()) -> None:
        """Until it accepts connections and leads the partitions of the topics."""
        until = time.monotonic() + PATIENCE
        while not accepts(self.port):
            if self._running is None or self._running.ended or time.monotonic() > until:
                raise PeerError(f"broker {self.version} did not start: {self._running and self._running.tail()}")
            time.sleep(0.05)
        self.client.wait_for(topics)

    def stop(self) -> list[str]:
        """End a life cleanly; what was logged in it."""
        assert self._running is not None
        self._running.stop()
        with open(self._running.log, errors="replace") as log:
            log.seek(self._said)
            said = log.read().splitlines()
        self._running = None
        return said

    def kill(self) -> None:
        """End a life with SIGKILL. Does nothing to a broker that does not run."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def close(self) -> None:
        """End every process, at once."""
        self.kill()
        self.client.jvm.kill()

    def partition(self, topic: str) -> Path:
        """The directory of a topic's only partition."""
        return self.log_dir / f"{topic}-0"

    def _jvm(self, main: list[str], *, talks: bool = False) -> Jvm:
        flags = [*FLAGS, f"-Dlog4j.configuration=file:{self.home / 'log4j.properties'}"]
        return Jvm("kafka", self.version, main, self.home, flags=flags, talks=talks)


def complaints(said: Iterable[str], partition: str) -> list[str]:
    """The lines of a life that say that a partition's files were not taken as they are."""
    return [line for line in said if partition in line and any(sign in line for sign in COMPLAINTS)]
