"""What a repair and its undo believe: no backup that rotted, and by root no link that the store's owner made."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError, MQIndexError
from mqindex.files import disk
from mqindex.files.backups import exchange
from mqindex.files.backups.backup_record import RECORD
from mqindex.files.few_threads import of_each
from mqindex.files.rights import as_owner_of, as_process
from tests.crash import test_kafka_repair
from tests.crash.test_repair import OPTIONS, broken
from tests.support.small_store import make_small_store
from tests.support.tree import state

BROKER = 12345
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root works with the rights of others")


def give(root: Path) -> None:
    for path in [root, *root.rglob("*")]:
        os.chown(path, BROKER, BROKER, follow_symlinks=False)


def rocketmq_backup(tmp_path: Path) -> tuple[Any, Path, Path]:
    root, _ = broken("spoilt", tmp_path)
    return rocketmq, root, Path(str(rocketmq.repair(root, engine=LocalEngine(1), **OPTIONS).backup))


def kafka_backup(tmp_path: Path) -> tuple[Any, Path, Path]:
    root, _ = test_kafka_repair.broken(tmp_path)
    return kafka, root, Path(str(kafka.repair(root, **test_kafka_repair.OPTIONS).backup))


def kept_file(backup: Path) -> Path:
    return next(
        path for path in sorted(backup.rglob("*")) if path.is_file() and path.name != RECORD and path.stat().st_size
    )


@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_a_backup_of_which_a_byte_changed_is_refused(make: Any, tmp_path: Path) -> None:
    broker, root, backup = make(tmp_path)
    path = kept_file(backup)
    right = path.read_bytes()
    path.write_bytes(bytes([right[0] ^ 1]) + right[1:])
    before = state(root)
    for dry_run in (True, False):
        with pytest.raises(FileStateError, match="is not what was put there") as caught:
            broker.undo_repair(root, backup, dry_run=dry_run)
        assert str(path) in str(caught.value)
    assert state(root) == before
    path.write_bytes(right[:-1])
    with pytest.raises(FileStateError, match=f"expected {len(right)} bytes"):
        broker.undo_repair(root, backup)
    path.write_bytes(right)
    assert broker.undo_repair(root, backup).actions


@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_a_backup_that_lacks_a_file_is_refused(make: Any, tmp_path: Path) -> None:
    broker, root, backup = make(tmp_path)
    path = kept_file(backup)
    right = path.read_bytes()
    path.unlink()
    before = state(root)
    for dry_run in (True, False):
        with pytest.raises(FileStateError, match="a file of this backup is not what was put there") as caught:
            broker.undo_repair(root, backup, dry_run=dry_run)
        assert f"{path}: expected {len(right)} bytes, BLAKE2b " in str(caught.value)
        assert ", got no file; `repair` writes it from the log" in str(caught.value)
    assert state(root) == before
    path.write_bytes(right)
    assert broker.undo_repair(root, backup).actions


@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_an_undo_that_was_interrupted_goes_on_though_a_broker_wrote_since(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is back in its place is missing from the backup, and its broker may have changed it."""
    broker, root, backup = make(tmp_path)
    rename, renamed = exchange._rename, []

    def one_only(root: str, source: str, name: str) -> None:
        if renamed:
            raise OSError(5, "the disk is gone")
        rename(root, source, name)
        renamed.append(os.path.join(root, name))

    monkeypatch.setattr(exchange, "_rename", one_only)
    with contextlib.suppress(OSError):
        broker.undo_repair(root, backup)
    monkeypatch.undo()
    (back,) = renamed
    with open(back, "ab") as file:
        file.write(b"more")
    broker.undo_repair(root, backup)
    assert not backup.exists()


@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_a_dry_run_says_what_would_be_done_and_changes_nothing(make: Any, tmp_path: Path) -> None:
    broker, root, backup = make(tmp_path)
    before = state(root)
    planned = broker.undo_repair(root, backup, dry_run=True)
    assert (planned.dry_run, planned.findings, planned.backup, planned.out_files) == (True, [], None, [])
    assert state(root) == before
    assert broker.undo_repair(root, backup).actions == planned.actions != []


@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_a_record_without_checksums_is_none(make: Any, tmp_path: Path) -> None:
    broker, root, backup = make(tmp_path)
    record = json.loads((backup / RECORD).read_text())
    del record["sums"]
    (backup / RECORD).write_text(json.dumps(record))
    with pytest.raises(FileStateError, match="not the record of a backup"):
        broker.undo_repair(root, backup)


def test_a_record_does_not_lead_through_a_link(tmp_path: Path) -> None:
    _, root, backup = rocketmq_backup(tmp_path)
    outside = tmp_path / "outside"
    (outside / "y").mkdir(parents=True)
    (outside / "y" / "passwd").write_bytes(b"root's")
    record = json.loads((backup / RECORD).read_text())
    record["changes"].append({"name": "x/y/passwd", "kept": True})
    (backup / RECORD).write_text(json.dumps(record))
    (root / "x").mkdir()
    (root / "x" / "y").symlink_to(outside / "y")
    (backup / "x" / "y").mkdir(parents=True)
    (backup / "x" / "y" / "passwd").write_bytes(b"mine")
    before = state(root)
    with pytest.raises(FileStateError, match="a directory is a link"):
        rocketmq.undo_repair(root, backup)
    assert (outside / "y" / "passwd").read_bytes() == b"root's"
    assert state(root) == before


@pytest.mark.parametrize("situation", ["newest gone", "queues spoilt"])
def test_the_files_of_a_linked_queue_are_not_moved(situation: str, tmp_path: Path) -> None:
    root, _ = broken(situation, tmp_path)
    queue = max((root / "consumequeue").iterdir()) / "0"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_bytes(b"root's")
    shutil.rmtree(queue)
    queue.symlink_to(outside)
    with pytest.raises(FileStateError, match="a directory is a link"):
        rocketmq.repair(root, engine=LocalEngine(1), **OPTIONS)
    assert [path.name for path in outside.iterdir()] == ["passwd"]


@root_only
def test_a_scratch_that_the_owner_exchanges_hands_nothing_over(
    seen_by_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """His process wins the race each time: the new file is a link when it gets its owner."""
    root, _ = broken("newest gone", seen_by_all)
    secret = seen_by_all / "secret"
    secret.write_bytes(b"root's")
    secret.chmod(0o600)
    give(root)
    own, swapped = exchange._own, []

    def late(source: str, path: str, like: str | None) -> None:
        os.rename(source, source + ".stolen")
        os.symlink(secret, source)
        swapped.append(source)
        own(source, path, like)

    monkeypatch.setattr(exchange, "_own", late)
    with contextlib.suppress(OSError):
        rocketmq.repair(root, engine=LocalEngine(2), **OPTIONS)
    assert swapped
    there = secret.stat()
    assert (there.st_uid, there.st_gid, there.st_mode & 0o777) == (0, 0, 0o600)


@root_only
def test_root_follows_no_first_link_of_another_user(seen_by_all: Path) -> None:
    root, _ = broken("newest gone", seen_by_all)
    volume = seen_by_all / "volume"
    volume.mkdir()
    shutil.move(root / "index", volume / "index")
    (root / "index").symlink_to(volume / "index")
    give(root)
    give(volume)
    before = sorted(os.listdir(volume / "index"))
    with pytest.raises(FileStateError, match="a directory is a link"):
        rocketmq.repair(root, engine=LocalEngine(1), **OPTIONS)
    assert sorted(os.listdir(volume / "index")) == before


@root_only
@pytest.mark.parametrize("reading", [False, True])
def test_the_rights_of_the_owner_in_all_threads_of_the_block_and_root_after_it(
    seen_by_all: Path, reading: bool
) -> None:
    secret = seen_by_all / "secret"
    secret.write_bytes(b"root's")
    secret.chmod(0o600)
    home = owned(seen_by_all / "home")
    link = home / "link"
    link.symlink_to(secret)
    closed = seen_by_all / "closed"
    closed.mkdir(mode=0o700)
    groups = os.getgroups()

    def may(mode: str) -> bool:
        try:
            with link.open(mode) as file:
                return file.read() == b"root's"
        except PermissionError:
            return False

    def may_list(_: object) -> bool:
        try:
            return os.listdir(closed) == []
        except PermissionError:
            return False

    with as_owner_of(str(home), reading=reading):
        assert not any([may("r+b"), *of_each(may, ["r+b"] * 3, 2)])
        assert {may("rb"), may_list(0), *of_each(may, ["rb"] * 3, 2)} == {not reading}
        with as_owner_of(str(seen_by_all)), as_owner_of(str(home)):  # in the block they stay what they are
            assert not may("r+b")
        assert (may("r+b"), may("rb")) == (False, not reading)
        with as_process():
            assert all([may("r+b"), may_list(0), *of_each(may, ["r+b"] * 3, 2)])
        assert (may("r+b"), may("rb"), may_list(0)) == (False, not reading, not reading)
        (home / "new").write_bytes(b"")
        assert os.getgroups() == [BROKER]
    assert all([may("r+b"), may_list(0), *of_each(may, ["r+b"] * 3, 2)])
    assert (os.geteuid(), os.getgroups()) == (0, groups)
    assert ((home / "new").stat().st_uid, (home / "new").stat().st_gid) == (BROKER, BROKER)


def owned(path: Path) -> Path:
    path.mkdir()
    os.chown(path, BROKER, BROKER)
    return path


@root_only
@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
@pytest.mark.parametrize("machine", ["i686", "a new one", "x86_64"])
def test_on_a_machine_whose_calls_are_not_known_root_repairs_nothing_of_others(
    make: Any, machine: str, seen_by_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, root, backup = make(seen_by_all)
    give(root)
    before = state(root)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    if machine == "x86_64":
        monkeypatch.setattr(sys, "maxsize", 2**31 - 1)  # a process of 32 bits
    said = f"{root}: got .*; run it as this user: sudo -u '#{BROKER}' mqindex"
    for call in (
        lambda: broker.repair(root),
        lambda: broker.undo_repair(root, backup),
        lambda: broker.undo_repair(root, backup, dry_run=True),
    ):
        with pytest.raises(FileStateError, match=said):
            call()
    assert state(root) == before


@root_only
@pytest.mark.parametrize("make", [rocketmq_backup, kafka_backup])
def test_a_way_that_is_closed_to_the_owner_is_said_before_the_work(make: Any, seen_by_all: Path) -> None:
    home = seen_by_all / "home"
    home.mkdir()
    broker, root, backup = make(home / "in it")
    give(home)
    before = state(root)
    os.chown(home, 0, 0)
    home.chmod(0o700)
    for call in (lambda: broker.repair(root), lambda: broker.undo_repair(root, backup)):
        with pytest.raises(FileStateError, match=r"that he cannot reach; let him enter .*mount --bind"):
            call()
    home.chmod(0o755)
    assert state(root) == before
    assert broker.undo_repair(root, backup).actions


_IMPORTED = """
import ctypes, sys
system, seen = ctypes.CDLL(None), []
sys.addaudithook(lambda event, args: seen.append(args[0]) if event == "import" and system.setfsuid(-1) else None)
from mqindex import kafka, rocketmq
broker = {"kafka": kafka, "rocketmq": rocketmq}[sys.argv[1]]
options = {"index_interval_bytes": 1000} if broker is kafka else {}
report = broker.repair(sys.argv[2], deep=True, **options)
assert report.actions and broker.undo_repair(sys.argv[2], report.backup).actions
print(seen)
"""


@root_only
@pytest.mark.parametrize("broker", ["kafka", "rocketmq"])
def test_nothing_is_imported_with_the_rights_of_the_owner(broker: str, seen_by_all: Path) -> None:
    """He may not enter root's installation."""
    subprocess.run([sys.executable, "-m", "mqindex", "sample", seen_by_all / "sample"], check=True, capture_output=True)
    root = seen_by_all / "sample" / {"kafka": "orders-0", "rocketmq": "store"}[broker]
    give(seen_by_all / "sample")
    done = subprocess.run([sys.executable, "-c", _IMPORTED, broker, root], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "[]\n")


@root_only
@pytest.mark.parametrize("what", ["rebuild", "optimize", "optimize in place", "follow"])
def test_what_root_makes_in_a_directory_of_another_user_follows_no_link_that_he_makes(
    what: str, seen_by_all: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """His process wins the race each time: the new directory is a link when the first file is made there."""
    home, outside = owned(seen_by_all / "home"), seen_by_all / "outside"
    outside.mkdir()
    root = make_small_store(home / "store")
    give(root)
    make, swapped = disk.make_directory, []

    def late(path: str) -> None:
        make(path)
        os.rename(path, path + ".stolen")
        os.symlink(outside, path)
        swapped.append(path)

    monkeypatch.setattr(disk, "make_directory", late)
    before = outside.stat().st_mtime_ns
    out = str(home / "out")
    with contextlib.suppress(OSError, MQIndexError), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "scratch could not be removed")  # it is a link by then
        if what == "rebuild":
            rocketmq.rebuild(root, out, engine=LocalEngine(2), **OPTIONS)
        elif what == "follow":
            rocketmq.follow(root, out, stop=Event(), engine=LocalEngine(1), **OPTIONS)
        else:
            rocketmq.optimize(root, root if what.endswith("place") else out, overwrite=True)
    monkeypatch.undo()
    assert swapped
    assert outside.stat().st_mtime_ns == before


@root_only
def test_a_lock_that_is_a_link_is_opened_with_the_rights_of_the_owner(seen_by_all: Path) -> None:
    secret = seen_by_all / "secret"
    secret.write_bytes(b"root's")
    secret.chmod(0o600)
    root = make_small_store(owned(seen_by_all / "home") / "store")
    (root / "lock").unlink(missing_ok=True)
    (root / "lock").symlink_to(secret)
    give(root)
    with pytest.raises(PermissionError, match="who may write it"):
        rocketmq.MessageStore.open(root, writable=True)


@root_only
def test_the_readers_of_a_rebuild_are_root(seen_by_all: Path) -> None:
    """`sudo mqindex rebuild` of a store that only its broker reads, into the directory of who calls it."""
    root = make_small_store(seen_by_all / "store")
    root.chmod(0o700)
    out = owned(seen_by_all / "home") / "out"
    assert rocketmq.rebuild(root, out, **OPTIONS).ok
    assert {path.stat().st_uid for path in [out, *out.rglob("*")]} == {BROKER}
