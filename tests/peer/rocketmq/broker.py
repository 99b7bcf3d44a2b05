"""Real brokers: their settings, their lives, and the client of each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.peer.jvm import PATIENCE, Jvm
from tests.peer.maven import PeerError
from tests.peer.ports import accepts, free_ports
from tests.peer.rocketmq.client import Client
from tests.peer.rocketmq.process import start

__all__ = ["Broker", "Peer", "dismiss_all", "stop_all"]

SETTINGS = {
    "brokerClusterName": "PeerCluster",
    "brokerId": 0,
    "brokerIP1": "127.0.0.1",
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 2000,  # 100 units
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    "autoCreateTopicEnable": "true",
    "diskMaxUsedSpaceRatio": 95,  # it must not refuse or expire anything on a full disk
    "fileReservedTime": 24 * 365 * 100,
    "waitTimeMillsInSendQueue": 60_000,  # a busy machine is no busy broker
    "osPageCacheBusyTimeOutMills": 60_000,
    "timerFlushIntervalMs": 3_600_000,  # 5.x compares 37 MB of its timer wheel, byte for byte, every second
    # 5.5.0 never rests again once a transaction ended this long ago; so it writes at once that one ended, and rests
    "transactionOpBatchInterval": 3_600_000,
    "transactionOpMsgMaxSize": 1,
    "transactionMetricFlushInterval": 1000,  # milliseconds; 5.x writes them every 10, and looks at the clock in between
}


class Peer:
    """The brokers of one version."""

    def __init__(self, version: str, home: Path) -> None:
        self.version = version
        self.home = home
        self.brokers: list[Broker] = []

    def broker(self, name: str, settings: Mapping[str, object] = SETTINGS) -> Broker:
        """A broker that has not started yet, with a store of its own."""
        made = Broker(self.version, self.home / name, name, {**SETTINGS, **settings})
        self.brokers.append(made)
        made.client.wait_until_ready()
        return made

    def close(self) -> None:
        """End every process, at once."""
        for broker in self.brokers:
            broker.kill()
            broker.client.jvm.kill()


class Broker:
    """A broker, on one port and store through all its lives.

    Name server and client are its own: a client remembers for half a minute where a topic was, also on another broker.
    """

    def __init__(self, version: str, home: Path, name: str, settings: Mapping[str, object]) -> None:
        self.name = name
        self.version = version
        self.home = home
        (namesrv,) = free_ports(1)
        self.client = Client(version, home / "client", namesrv)
        self.store = self.home / "store"
        self.port, ha_port = free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self.config: dict[str, object] = {
            **settings,
            "brokerName": name,
            "namesrvAddr": self.client.namesrv,
            "listenPort": self.port,
            "haListenPort": ha_port,
            "storePathRootDir": self.store,
            "storePathCommitLog": self.store / "commitlog",
        }
        self.store.mkdir()
        self.conf = self.home / "broker.conf"
        self.conf.write_text("".join(f"{name}={value}\n" for name, value in self.config.items()))
        self._jvm: Jvm | None = None

    def launch(self) -> None:
        """Start, and do not wait."""
        main = ["peer.Watched", "peer.rocketmq.Broker", "-c", str(self.conf)]
        self._jvm = start(self.version, main, self.home)

    def wait_until_ready(self, topics: Iterable[str] = ()) -> None:
        """Until the port accepts connections, and the name server knows the topics."""
        until = time.monotonic() + PATIENCE
        while not accepts(self.port):
            if self._jvm is None or self._jvm.ended or time.monotonic() > until:
                raise PeerError(f"broker {self.name} {self.version} did not start: {self._jvm and self._jvm.tail()}")
            time.sleep(0.05)
        # Its own name is a topic too. A topic of 5.x is lost if it is made before the name server knows the broker.
        for topic in (self.name, *topics):
            self.client.wait_for_route(topic)

    def create_topic(self, topic: str, queues: int = 4) -> None:
        self.client.create_topic(self.address, topic, queues)

    def ask_to_stop(self) -> None:
        """SIGTERM; `stop` waits."""
        if self._jvm is not None:
            self._jvm.ask_to_stop()

    def stop(self) -> None:
        """A clean end."""
        if self._jvm is not None:
            self._jvm.stop()
            self._jvm = None

    def kill(self) -> None:
        """SIGKILL."""
        if self._jvm is not None:
            self._jvm.kill()
            self._jvm = None


def stop_all(brokers: Iterable[Broker]) -> None:
    """Ends several brokers cleanly, all at the same time."""
    brokers = list(brokers)
    for broker in brokers:
        broker.ask_to_stop()
    for broker in brokers:
        broker.stop()


def dismiss_all(brokers: Iterable[Broker]) -> None:
    """Ends several brokers cleanly, and their clients, which are not asked any more: idle, they cost some too."""
    brokers = list(brokers)
    stop_all(brokers)
    for broker in brokers:
        broker.client.jvm.kill()
