"""What a broker does when it starts on a store: what `verify` says of it, and what the broker does."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mqindex.rocketmq import Checkpoint, verify
from tests.peer.jvm import PATIENCE
from tests.peer.ports import accepts, free_ports
from tests.peer.rocketmq.broker import SETTINGS
from tests.peer.rocketmq.conftest import VERSIONS
from tests.peer.rocketmq.process import start
from tests.support.golden import case
from tests.support.index_entries import entries_of
from tests.support.nightly import one_of, some

STORES = {"4.9.3": "basic-493", "5.5.1": "basic-550"}


def log_files(store: Path) -> list[Path]:
    return sorted(path for path in (store / "commitlog").iterdir() if path.is_file())


def last_log_file(store: Path) -> Path:
    return log_files(store)[-1]


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


def a_file_that_is_none(queue: str) -> Callable[[Path], object]:
    """In the directory of a queue: a broker that loads that does not start."""

    def harm(store: Path) -> None:
        (store / "consumequeue/BBTopic" / queue).mkdir()
        (store / "consumequeue/BBTopic" / queue / "notes").write_bytes(bytes(3))

    return harm


def stranger_in_the_timer_log(store: Path) -> None:
    (store / "timerlog").mkdir(exist_ok=True)
    (store / "timerlog" / "copy").write_bytes(bytes(3))


HARMS: dict[str, list[Callable[[Path], object]]] = {
    "nothing": [],
    "lost+found": [lambda store: (store / "commitlog" / "lost+found").mkdir()],
    "an empty next file": [empty_next_file],
    "an empty next file and lost+found": [empty_next_file, lambda store: (store / "commitlog" / "lost+found").mkdir()],
    "a cut last file": [lambda store: os.truncate(last_log_file(store), 65000)],
    "a directory named as an index file": [lambda store: (store / "index" / "99991231235959999").mkdir()],
    "a broken configuration": [broken_configuration],
    "a directory in place of the lock": [lock_directory],
    "a strange file in a queue called 07": [a_file_that_is_none("07")],
    "a strange file in a queue called -1": [a_file_that_is_none("-1")],
    "a strange file in the timer log": [stranger_in_the_timer_log],
}


# Each harm on one of the versions; where they differ, by `lost+found`, `test_trouble` asks both.
@pytest.mark.parametrize(("version", "harm"), one_of(2, VERSIONS, HARMS))
def test_a_broker_starts_where_verify_says_so(
    harm: str, version: str, tmp_path: Path, proven: Callable[[str], None]
) -> None:
    store = case(STORES[version]).unpack(tmp_path)
    for each in HARMS[harm]:
        each(store)
    said = verify(store, broker_version=version).start
    assert said is not None
    assert starts(version, store, sizes(STORES[version], store), tmp_path) is said.starts
    proven(f"with {harm} it {'starts' if said.starts else 'does not start'}, as verify says")


@dataclass(frozen=True)
class Left:
    """How a broker left a store in which it was killed: the checkpoint, and the settings of the next start."""

    logics_physical_offset: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)


KILLED = "killed-lost-493"
"""Ten log files of 16 KiB, the last one empty, and one index file, of which the checkpoint does not know."""

LEFT = {
    "as it was left": Left(),
    "a checkpoint with an offset": Left(40_000),
    "a checkpoint with the offset of a file": Left(49_152),
    "an offset, and messageIndexSafe": Left(40_000, {"messageIndexSafe": "true"}),
    "commitLogRecoverMaxNum=4 and messageIndexSafe": Left(0, {"commitLogRecoverMaxNum": 4, "messageIndexSafe": "true"}),
    "enableAcceleratedRecovery": Left(40_027, {"enableAcceleratedRecovery": "true"}),
    "enableAcceleratedRecovery, and no message at the offset": Left(40_112, {"enableAcceleratedRecovery": "true"}),
    "enableAcceleratedRecovery and no offset": Left(0, {"enableAcceleratedRecovery": "true"}),
    "no index": Left(0, {"messageIndexEnable": "false"}),
}


def where_it_decides(version: str, left: str) -> bool:
    """A checkpoint alone on the older version, settings on the newer one, which knows them all."""
    return VERSIONS.index(version) == bool(LEFT[left].settings)


@pytest.mark.parametrize(("version", "left"), some(itertools.product(VERSIONS, LEFT), where_it_decides))
def test_a_broker_loses_the_index_entries_that_verify_says(
    left: str, version: str, tmp_path: Path, proven: Callable[[str], None]
) -> None:
    store = case(KILLED).unpack(tmp_path)
    checkpoint = Checkpoint.read(store / "checkpoint")
    assert checkpoint is not None
    changed = checkpoint._replace(logics_physical_offset=LEFT[left].logics_physical_offset)
    (store / "checkpoint").write_bytes(changed.to_bytes())
    settings = {**sizes(KILLED, store), **LEFT[left].settings}
    had = entries_of(store, case(KILLED).geometry)
    said = verify(store, config=settings, broker_version=version).start
    assert said is not None
    assert said.entries_deleted == had.total()
    assert starts(version, store, settings, tmp_path) is said.starts
    lost = (had - entries_of(store, case(KILLED).geometry)).total()
    assert not said.starts or lost == said.entries_lost
    what = f"of {had.total()} index entries {lost} do not come back" if said.starts else "it does not start"
    proven(f"{left}: {what}, as verify says")


def sizes(name: str, store: Path) -> dict[str, object]:
    """The settings of a golden store's files."""
    slots, number = case(name).geometry
    return {
        "mappedFileSizeCommitLog": log_files(store)[0].stat().st_size,
        "mappedFileSizeConsumeQueue": max(path.stat().st_size for path in (store / "consumequeue").glob("*/*/*")),
        "maxHashSlotNum": slots,
        "maxIndexNum": number,
    }


def starts(version: str, store: Path, changed: Mapping[str, object], home: Path) -> bool:
    port, ha_port = free_ports(2)
    settings: dict[str, object] = {
        **SETTINGS,
        **changed,
        "brokerName": "start",
        "listenPort": port,
        "haListenPort": ha_port,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
    }
    conf = home / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    jvm = start(version, ["peer.Watched", "org.apache.rocketmq.broker.BrokerStartup", "-c", str(conf)], home)
    try:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if jvm.ended:
                assert "BindException" not in jvm.tail(), jvm.tail()  # which says nothing of the store
                return False
            if accepts(port):
                return True
            time.sleep(0.05)
        pytest.fail(f"the broker neither starts nor ends: {jvm.tail()}")
    finally:
        jvm.kill()
