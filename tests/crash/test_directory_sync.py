"""The names of files: they are on the disk before what is in the files is acknowledged, or an old one goes."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.files import disk
from mqindex.rocketmq import CommitLog, MessageStore, NewMessage, repair, undo_repair
from tests.support.log_writer import LogMessage
from tests.support.queued_store import make_queued_store

CONFIG = {"mappedFileSizeCommitLog": 1 << 10}


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of what was brought to the disk by Python's call, in order."""
    paths: list[str] = []

    def fsync(fd: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def fail_once(monkeypatch: pytest.MonkeyPatch, call: Callable[[str], None], where: Path) -> Callable[[], bool]:
    """The next sync of that directory fails; tells whether one did."""
    left = [1]

    def failing(path: str) -> None:
        if path == str(where) and left[0]:
            left[0] = 0
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        call(path)

    monkeypatch.setattr(disk, "sync_directory", failing)
    return lambda: not left[0]


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_after_a_failed_sync_of_the_directory_at_a_roll_the_log_takes_appends(
    flush: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, body = tmp_path / "commitlog", bytes(300)
    with CommitLog.open(place, writable=True, flush=flush, config=CONFIG) as log:
        kept = [log.append_message(NewMessage("T", body), queue_offset=n).phy_offset for n in range(2)]
        failed = fail_once(monkeypatch, disk.sync_directory, place)
        with pytest.raises(OSError, match="Input/output error"):
            log.append_message(NewMessage("T", body), queue_offset=2)
        assert failed()
        kept += [log.append_message(NewMessage("T", body), queue_offset=n).phy_offset for n in range(2, 9)]
    with CommitLog.open(place) as log:
        offsets = [at for batch in log.scan(columns=["phy_offset"]) for at in batch["phy_offset"].tolist()]
    assert offsets == kept
    assert len(list(place.iterdir())) == 5


def test_a_new_directory_is_on_the_disk_before_an_append_is_acknowledged(tmp_path: Path, synced: list[str]) -> None:
    place = tmp_path / "new" / "store" / "commitlog"
    with CommitLog.open(place, writable=True, flush="sync", config=CONFIG) as log:
        log.append_message(NewMessage("T", b"acknowledged"), queue_offset=0)
        assert {str(tmp_path), str(tmp_path / "new"), str(tmp_path / "new" / "store"), str(place)} <= set(synced)


def test_a_new_store_is_on_the_disk_before_a_put_is_acknowledged(tmp_path: Path, synced: list[str]) -> None:
    root = tmp_path / "new" / "store"
    with MessageStore.open(root, writable=True, config={**CONFIG, "flushDiskType": "SYNC_FLUSH"}) as store:
        store.put_message(NewMessage("T", b"acknowledged"))
        assert {str(tmp_path), str(tmp_path / "new"), str(root), str(root / "commitlog")} <= set(synced)
        assert synced.index(str(root)) < synced.index(str(root / "commitlog"))


@pytest.mark.parametrize("undone", [False, True])
def test_the_directories_of_many_queues_wait_for_the_disk_together(
    undone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair, or an undo, of 20,000 queues took minutes: three waits for each, one after the other."""
    queues = [LogMessage("Topic", queue_id=n) for n in range(20)]
    root = make_queued_store(tmp_path / "store", queues)
    homes = [root / "consumequeue" / "Topic" / str(n) for n in range(20)]
    for home in homes:
        os.truncate(home / f"{0:020d}", 20)
    done = partial(repair, root, engine=LocalEngine(1), config={"mappedFileSizeConsumeQueue": 1000})
    if undone:
        done = partial(undo_repair, root, done().backup or "")
    calls: list[tuple[str, str, str]] = []

    def watch(name: str) -> None:
        call = getattr(disk, name)

        def watched(*paths: str) -> None:
            calls.append((name, paths[-1], threading.current_thread().name))
            call(*paths)

        monkeypatch.setattr(disk, name, watched)

    watch("sync_directory")
    watch("rename")
    backup = Path(done().backup or "")
    names = [(name, path) for name, path, _ in calls]
    renames = [names.index(("rename", str(home / f"{0:020d}"))) for home in homes]
    for home in homes:
        assert names.index(("sync_directory", str(backup / home.relative_to(root)))) < min(renames)
        assert names.index(("sync_directory", str(home))) > max(renames)
    alone = [path for name, path, thread in calls if name != "rename" and not thread.startswith("mqindex-wait")]
    assert len(alone) < len(homes)
