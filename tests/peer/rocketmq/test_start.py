"""Whether a broker starts on a store: what `verify` says, and what the broker does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.rocketmq import verify
from tests.peer.jvm import PATIENCE
from tests.peer.ports import accepts
from tests.peer.rocketmq.broker import SETTINGS, broker_ports
from tests.peer.rocketmq.process import start
from tests.support.golden import case

pytestmark = pytest.mark.peer

STORES = {"4.9.3": "basic-493", "5.5.0": "basic-550"}


def last_log_file(store: Path) -> Path:
    return max(path for path in (store / "commitlog").iterdir() if path.is_file())


def empty_next_file(store: Path) -> None:
    last = last_log_file(store)
    last.with_name(f"{int(last.name) + last.stat().st_size:020d}").touch()


def broken_configuration(store: Path) -> None:
    (store / "config").mkdir(exist_ok=True)
    for name in ("subscriptionGroup.json", "subscriptionGroup.json.bak"):
        (store / "config" / name).write_text("{broken")


def lock_directory(store: Path) -> None:
    (store / "lock").unlink(missing_ok=True)
    (store / "lock").mkdir()


HARMS: dict[str, list[Callable[[Path], object]]] = {
    "nothing": [],
    "lost+found": [lambda store: (store / "commitlog" / "lost+found").mkdir()],
    "an empty next file": [empty_next_file],
    "an empty next file and lost+found": [empty_next_file, lambda store: (store / "commitlog" / "lost+found").mkdir()],
    "a cut last file": [lambda store: os.truncate(last_log_file(store), 65000)],
    "a directory named as an index file": [lambda store: (store / "index" / "99991231235959999").mkdir()],
    "a broken configuration": [broken_configuration],
    "a directory in place of the lock": [lock_directory],
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_broker_starts_where_verify_says_so(
    harm: str, version: str, tmp_path: Path, proven: Callable[[str], None]
) -> None:
    chosen = case(STORES[version])
    store = chosen.unpack(tmp_path)
    for each in HARMS[harm]:
        each(store)
    said = verify(store, broker_version=version).start
    assert said is not None
    assert starts(version, store, chosen.geometry, tmp_path) is said.starts
    proven(f"with {harm} it {'starts' if said.starts else 'does not start'}, as verify says")


def starts(version: str, store: Path, geometry: tuple[int, int], home: Path) -> bool:
    port, ha_port = broker_ports()
    queue_files = (path.stat().st_size for path in (store / "consumequeue").glob("*/*/*"))
    settings: dict[str, object] = {
        **SETTINGS,
        "brokerName": "start",
        "listenPort": port,
        "haListenPort": ha_port,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "mappedFileSizeCommitLog": 65536,
        "mappedFileSizeConsumeQueue": max(queue_files),
        "maxHashSlotNum": geometry[0],
        "maxIndexNum": geometry[1],
    }
    conf = home / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    jvm = start(version, ["peer.Watched", "org.apache.rocketmq.broker.BrokerStartup", "-c", str(conf)], home)
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if jvm.ended:
                return False
            if accepts(port):
                return True
            time.sleep(0.05)
        pytest.fail(f"the broker neither starts nor ends: {jvm.tail()}")
    finally:
        jvm.kill()
