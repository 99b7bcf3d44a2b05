"""What root writes in a broker's store belongs to the broker, which could not open it otherwise."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.files import disk
from mqindex.rocketmq import MessageStore, NewMessage
from mqindex.rocketmq.dispatch.follow import follow
from tests.support.growing_store import OPTIONS, GrowingStore, Turns

BROKER = 12345
CONFIG = {
    "maxHashSlotNum": 5,
    "maxIndexNum": 16,
    "mappedFileSizeCommitLog": 1 << 12,
    "mappedFileSizeConsumeQueue": 100,
}
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")


def of_broker(root: Path) -> Path:
    root.mkdir()
    os.chown(root, BROKER, BROKER)
    root.chmod(0o750)
    return root


def strangers(root: Path) -> dict[str, tuple[int, int, str]]:
    """What below the root has not the root's owner, or lets others in."""
    found = {}
    for path in [root, *root.rglob("*")]:
        there = path.stat()
        mode = stat.S_IMODE(there.st_mode)
        if (there.st_uid, there.st_gid, mode & 0o666) != (BROKER, BROKER, 0o640):
            found[str(path.relative_to(root))] = there.st_uid, there.st_gid, oct(mode)
    return found


@root_only
def test_a_store_that_root_makes_in_a_brokers_directory(tmp_path: Path) -> None:
    root = of_broker(tmp_path / "store")
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        for number in range(60):
            store.put_message(NewMessage(f"T{number % 3}", bytes(200), keys=f"k{number}"))
        store.flush()
        assert {"abort", "checkpoint", "commitlog", "consumequeue", "index", "lock"} <= set(os.listdir(root))
        assert len(os.listdir(root / "index")) > 3
        os.link(root / "abort", tmp_path / "abort")
    os.rename(tmp_path / "abort", root / "abort")
    assert strangers(root) == {}


@root_only
def test_the_backup_of_what_stood_behind_the_logs_end(tmp_path: Path) -> None:
    root = of_broker(tmp_path / "store")
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        store.put_message(NewMessage("T", b"whole"))
    with open(root / "commitlog" / f"{0:020d}", "r+b") as log:
        log.seek(2000)
        log.write(b"torn")
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        store.put_message(NewMessage("T", b"next"))
    assert any(path.name.startswith("mqindex-backup-") for path in root.iterdir())
    assert strangers(root) == {}


@root_only
def test_what_root_follows_into_a_brokers_directory(tmp_path: Path) -> None:
    store, out = GrowingStore(tmp_path / "store"), of_broker(tmp_path / "out")
    store.write(60)
    follow(store.root, out, stop=Turns(12), engine=LocalEngine(1), **OPTIONS)
    assert {"checkpoint", "consumequeue", "follow.json", "index", "lock"} <= set(os.listdir(out))
    assert strangers(out) == {}


def test_a_link_in_the_place_of_a_new_file_hands_nothing_over(tmp_path: Path) -> None:
    """`chown` by a path followed it: whoever owned the directory was given the file that it led to."""
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("a secret")
    victim.chmod(0o600)
    link.symlink_to(victim)
    neighbour = tmp_path / "neighbour"
    neighbour.touch(mode=0o644)
    before = victim.stat()
    with pytest.raises(OSError):
        disk.own_like(str(link), str(neighbour))
    assert (victim.stat().st_mode, victim.stat().st_uid) == (before.st_mode, before.st_uid)
