"""A repair that is taken back, after every kind of repair, and killed at any call: the store is what it was before."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError, StoreInUseError
from mqindex.files import lock
from mqindex.files.backups.backup import NO_BACKUP
from mqindex.files.backups.backup_record import RECORD
from tests.crash import test_kafka_repair
from tests.crash.test_repair import OPTIONS, SITUATIONS, broken
from tests.support.crash_at import Runner, some_calls
from tests.support.tree import contents, scraps, state

ONE = LocalEngine(1)
UNDO = "mqindex.rocketmq.repair:undo_repair"
UNDO_KAFKA = "mqindex.kafka.repair:undo_repair"


@pytest.fixture
def tmp_path(seen_by_all: Path) -> Path:
    """The owner of a store reaches it, and root works with his rights."""
    return seen_by_all


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def checkpoint_gone(root: Path) -> None:
    (root / "checkpoint").unlink()


def checkpoint_is_a_directory(root: Path) -> None:
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()
    (root / "checkpoint" / "mine").write_bytes(b"mine")
    SITUATIONS["newest gone"](root)


def file_for_a_topic(root: Path) -> None:
    one = min((root / "consumequeue").iterdir())
    shutil.rmtree(one)
    one.write_bytes(b"mine")


KINDS: dict[str, Callable[[Path], None]] = {
    **SITUATIONS,
    "checkpoint gone": checkpoint_gone,
    "checkpoint is a directory": checkpoint_is_a_directory,
    "file for a topic": file_for_a_topic,
}


def store(kind: str, tmp_path: Path) -> Path:
    """A store in need of repair, all of it owned by somebody else where that can be."""
    SITUATIONS.setdefault(kind, KINDS[kind])
    root, _ = broken(kind, tmp_path)
    give_away(root)
    return root


def give_away(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        os.chmod(path, 0o750 if path.is_dir() else 0o640)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)


def owners(root: Path) -> set[tuple[int, int]]:
    return {(uid, gid) for _, _, uid, gid in state(root).values()}


def backups(root: Path) -> list[Path]:
    """The newest first."""
    return sorted(root.glob("mqindex-backup-*"), key=lambda path: path.stat().st_ctime_ns, reverse=True)


def lost(old: Path, root: Path) -> set[str]:
    """What was somewhere in the store and is nowhere in it."""
    return set(contents(old).values()) - set(contents(root).values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_is_what_it_was_before_the_repair(kind: str, tmp_path: Path) -> None:
    root = store(kind, tmp_path)
    before = state(root)
    report = rocketmq.repair(root, engine=ONE, **OPTIONS)
    assert report.backup is not None
    after = state(root)
    assert after != before
    undone = rocketmq.undo_repair(root, report.backup)
    assert state(root) == before
    assert undone.actions
    assert backups(root) == [Path(str(undone.backup))]
    again = rocketmq.undo_repair(root, str(undone.backup))
    assert state(root) == after
    rocketmq.undo_repair(root, str(again.backup))
    assert state(root) == before
    assert scraps(root) == []


@pytest.mark.parametrize("kind", KINDS)
def test_killed_at_any_call_a_second_undo_finishes(
    kind: str, runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    original = store(kind, tmp_path)
    before = state(original)
    repaired = copy(original, tmp_path / "repaired")
    rocketmq.repair(repaired, engine=ONE, **OPTIONS)
    after, (backup,) = state(repaired), backups(repaired)
    for at in some_calls(rng):
        root = copy(repaired, tmp_path / f"store{at}")
        outcome = runner.run(UNDO, str(root), backup.name, at=at)
        for path, one in state(root).items():
            assert one in (before.get(path), after.get(path)), path
        assert before.keys() & after.keys() <= state(root).keys() | moved_whole(kind)
        assert lost(repaired, root) - record(backup) == set()
        if not outcome.killed:
            assert outcome.error is None
            break
        if (root / backup.name).exists():
            rocketmq.undo_repair(root, backup.name)
        assert state(root) == before
        assert scraps(root) == []
        shutil.rmtree(root)
    assert at > 10


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_that_was_killed_is_taken_back(kind: str, runner: Runner, tmp_path: Path, rng: random.Random) -> None:
    """Not finished, and finished by a second run."""
    original = store(kind, tmp_path)
    before, seen = state(original), 0
    for at in some_calls(rng):
        root = copy(original, tmp_path / f"store{at}")
        outcome = runner.run("mqindex.rocketmq.repair:repair", str(root), at=at, engine=ONE, **OPTIONS)
        if not outcome.killed:
            break
        assert owners(root) == owners(original)  # the broker can open what is there
        if state(root) != before and rng.random() < 0.3:
            rocketmq.repair(root, engine=ONE, **OPTIONS)
        if backups(root):
            seen += 1
            for backup in backups(root):
                rocketmq.undo_repair(root, backup)
            assert state(root) == before
            assert scraps(root) == []
        shutil.rmtree(root)
    assert seen  # the least has a backup at 13 calls running, of which one of twelve is among those tried


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    give_away(target)
    return target


def moved_whole(kind: str) -> set[str]:
    """A file and a directory cannot take each other's place at once."""
    return {"checkpoint", "checkpoint/mine"} if "directory" in kind else {"consumequeue/Topic0"}


def record(backup: Path) -> set[str]:
    return {digest for path, digest in contents(backup).items() if path == RECORD}


def test_what_the_broker_wrote_after_the_repair_is_kept(tmp_path: Path) -> None:
    root = store("all gone", tmp_path)
    report = rocketmq.repair(root, engine=ONE, **OPTIONS)
    (root / "index" / "20990101000000000").write_bytes(b"new")
    undone = rocketmq.undo_repair(root, str(report.backup))
    assert not (root / "index").exists()
    assert (Path(str(undone.backup)) / "index" / "20990101000000000").read_bytes() == b"new"


def test_repairs_are_taken_back_in_their_order(tmp_path: Path) -> None:
    """The older one first left a store that had never been: the newer one's files, between those of before both."""
    root = store("spoilt", tmp_path)
    states = [state(root)]
    first = Path(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup))
    states.append(state(root))
    SITUATIONS["newest gone"](root)
    SITUATIONS["queues spoilt"](root)
    states.append(state(root))
    second = Path(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup))
    states.append(state(root))
    with pytest.raises(FileStateError, match=f"not the newest.*put {second.name} back first"):
        rocketmq.undo_repair(root, first)
    assert state(root) == states[3]

    forward = Path(str(rocketmq.undo_repair(root, second).backup))
    assert state(root) == states[2]
    backward = Path(str(rocketmq.undo_repair(root, first).backup))
    with pytest.raises(FileStateError, match=f"put {backward.name} back first"):
        rocketmq.undo_repair(root, forward)
    rocketmq.undo_repair(root, backward)
    assert state(root) == states[2]
    rocketmq.undo_repair(root, forward)
    assert state(root) == states[3]
    assert scraps(root) == []


def test_a_backup_that_was_removed_holds_up_no_other(tmp_path: Path) -> None:
    root = store("spoilt", tmp_path)
    first = str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup)
    SITUATIONS["newest gone"](root)
    shutil.rmtree(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup))
    assert rocketmq.undo_repair(root, first).actions


def test_an_undo_that_was_killed_is_finished_whatever_came_before_it(runner: Runner, tmp_path: Path) -> None:
    original = store("spoilt", tmp_path)
    rocketmq.repair(original, engine=ONE, **OPTIONS)
    SITUATIONS["queues spoilt"](original)
    give_away(original)
    before = state(original)
    backup = Path(str(rocketmq.repair(original, engine=ONE, **OPTIONS).backup)).name
    (first,) = {path.name for path in backups(original)} - {backup}
    for at in range(5, 300, 7):
        root = copy(original, tmp_path / f"store{at}")
        if not runner.run(UNDO, str(root), backup, at=at).killed:
            break
        if (root / backup / RECORD).exists():
            with pytest.raises(FileStateError, match="not the newest"):
                rocketmq.undo_repair(root, first)
            rocketmq.undo_repair(root, backup)
        assert state(root) == before
        assert rocketmq.undo_repair(root, first).actions
        shutil.rmtree(root)
    assert at > 10


def test_who_names_no_backup_is_told_which_there_are(tmp_path: Path) -> None:
    root = store("spoilt", tmp_path)
    with pytest.raises(FileStateError, match="no backup is there"):
        rocketmq.undo_repair(root, NO_BACKUP)
    name = Path(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup)).name
    with pytest.raises(FileStateError, match=f"one of {name}"):
        rocketmq.undo_repair(root, NO_BACKUP)
    with pytest.raises(FileNotFoundError, match=f"no such backup; there is {name}"):
        rocketmq.undo_repair(root, "mqindex-backup-19700101T000000Z")


def test_what_is_no_backup_of_the_store_is_refused(tmp_path: Path) -> None:
    root = store("spoilt", tmp_path)
    report = rocketmq.repair(root, engine=ONE, **OPTIONS)
    after = state(root)
    with pytest.raises(FileNotFoundError, match="no such backup"):
        rocketmq.undo_repair(root, "mqindex-backup-19700101T000000Z")
    with pytest.raises(FileStateError, match="not a backup"):
        rocketmq.undo_repair(root, root / "index")
    other = tmp_path / "other" / Path(str(report.backup)).name
    shutil.copytree(str(report.backup), other)
    with pytest.raises(FileStateError, match="a backup of another directory"):
        rocketmq.undo_repair(root, other)
    old = root / "mqindex-backup-20200101T000000Z"
    (old / "index").mkdir(parents=True)
    with pytest.raises(FileStateError, match="does not say what the repair did"):
        rocketmq.undo_repair(root, old)
    with lock.hold(str(root / "lock")), pytest.raises(StoreInUseError):
        rocketmq.undo_repair(root, str(report.backup))
    assert state(root) == after


@pytest.mark.parametrize("name", ["../stolen", "/etc/passwd", "index/../../stolen", "", "index//x", "index/.", 7, None])
def test_a_record_that_leads_outside_is_refused(name: object, tmp_path: Path) -> None:
    root = store("spoilt", tmp_path)
    backup = Path(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup))
    (tmp_path / "stolen").write_bytes(b"mine")
    record = json.loads((backup / RECORD).read_text())
    record["changes"].insert(0, {"name": name, "kept": False})
    (backup / RECORD).write_text(json.dumps(record))
    after = state(root)
    with pytest.raises(FileStateError, match="not the record of a backup"):
        rocketmq.undo_repair(root, backup)
    assert state(root) == after
    assert (tmp_path / "stolen").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "other/1"}', '{"schema": "mqindex.backup/1", "changes": 7}']
)
def test_a_record_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    root = store("newest gone", tmp_path)
    backup = Path(str(rocketmq.repair(root, engine=ONE, **OPTIONS).backup))
    (backup / RECORD).write_text(text)
    with pytest.raises(FileStateError, match="not the record of a backup"):
        rocketmq.undo_repair(root, backup)


@pytest.mark.parametrize("broker", [rocketmq, kafka])
def test_a_stat_that_fails_is_no_repair_that_is_done(
    broker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EACCES and EIO were taken for "there is nothing", and success was reported."""
    root = store("spoilt", tmp_path) if broker is rocketmq else partition(tmp_path)
    options = {"engine": ONE, **OPTIONS} if broker is rocketmq else INTERVAL
    before = state(root)

    def failing(call: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def look(path: Any, **options: Any) -> os.stat_result:
            found = call(path, **options)
            if "/.mqindex-" in str(path) and ("/part." in str(path) or "timeindex." in str(path)):
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)  # a new file, in the scratch
            return found

        return look

    for name in ("stat", "lstat"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    with pytest.raises(OSError, match="error"):
        broker.repair(root, **options)
    monkeypatch.undo()
    assert state(root) == before
    assert scraps(root) == []


# ---- Kafka


def partition(tmp_path: Path) -> Path:
    directory, _ = test_kafka_repair.broken(tmp_path / "logs" / "topic-0")
    give_away(directory)
    return directory


INTERVAL: dict[str, Any] = {"index_interval_bytes": 100, "engine": ONE}


def test_a_partition_is_what_it_was_before_the_repair(tmp_path: Path) -> None:
    directory = partition(tmp_path)
    before = state(directory)
    report = kafka.repair(directory, **INTERVAL)
    after = state(directory)
    undone = kafka.undo_repair(directory, str(report.backup))
    assert state(directory) == before
    assert undone.files == 4
    kafka.undo_repair(directory, str(undone.backup))
    assert state(directory) == after


def test_a_lost_time_index_is_lost_again(tmp_path: Path) -> None:
    directory = test_kafka_repair.make_partition(tmp_path / "topic-0")
    min(directory.glob("*.timeindex")).unlink()
    before = state(directory)
    report = kafka.repair(directory, **INTERVAL)
    undone = kafka.undo_repair(directory, str(report.backup))
    assert state(directory) == before
    assert [action.startswith("move") for action in undone.actions] == [True]


@pytest.mark.parametrize("by", ["pattern", "name", "path"])
def test_a_log_dir_is_what_it_was_before_the_repair(by: str, tmp_path: Path) -> None:
    first = partition(tmp_path)
    log_dir = first.parent
    second = copy(first, log_dir / "topic-1")
    before, others = state(first), state(second)
    report = kafka.repair(log_dir, **INTERVAL)
    repaired = state(second)
    pattern = str(report.backup)
    name = os.path.basename(pattern)
    undone = kafka.undo_repair(log_dir, {"pattern": pattern, "name": name, "path": str(first / name)}[by])
    assert state(first) == before
    assert state(second) == (repaired if by == "path" else others)
    assert all(action.split()[1].startswith("topic-") for action in undone.actions)
    assert str(undone.backup).startswith(f"{log_dir}/*/mqindex-backup-")


def test_repairs_of_a_log_dir_are_taken_back_in_the_order_of_each_partition(tmp_path: Path) -> None:
    first = partition(tmp_path)
    log_dir = first.parent
    second = copy(first, log_dir / "topic-1")
    of_both = os.path.basename(str(kafka.repair(log_dir, **INTERVAL).backup))
    min(first.glob("*.timeindex")).unlink()
    of_first = os.path.basename(str(kafka.repair(first, **INTERVAL).backup))
    before = state(log_dir)
    with pytest.raises(FileStateError, match=f"put {of_first} back first"):
        kafka.undo_repair(log_dir, of_both)
    assert state(log_dir) == before
    assert kafka.undo_repair(second, of_both).actions
    kafka.undo_repair(log_dir, of_first)
    assert kafka.undo_repair(log_dir, of_both).actions


def test_a_partition_whose_undo_is_killed_at_any_call(runner: Runner, tmp_path: Path, rng: random.Random) -> None:
    directory = partition(tmp_path)
    before = state(directory)
    backup = os.path.basename(str(kafka.repair(directory, **INTERVAL).backup))
    after = state(directory)
    for at in some_calls(rng):
        copied = copy(directory, tmp_path / "copies" / f"topic-{at}")
        outcome = runner.run(UNDO_KAFKA, str(copied), backup, at=at)
        for path, one in state(copied).items():
            assert one in (before.get(path), after.get(path)), path
        if not outcome.killed:
            assert outcome.error is None
            break
        if (copied / backup).exists():
            kafka.undo_repair(copied, backup)
        assert state(copied) == before
        assert scraps(copied) == []
    assert at > 10


def test_what_was_written_after_a_repair_is_told_when_it_is_taken_back(tmp_path: Path) -> None:
    """A broker continues a file that is put in place; it never indexes again what is gone with that file."""
    root = store("spoilt", tmp_path)
    backup = rocketmq.repair(root, engine=ONE, **OPTIONS).backup
    newest = max((root / "index").iterdir())
    os.utime(newest, ns=(time.time_ns(), time.time_ns()))  # as a broker's put leaves it
    report = rocketmq.undo_repair(root, str(backup))
    found = [(one.severity, one.kind, one.path) for one in report.findings]
    assert (report.ok, found) == (True, [("warning", "written-since-repair", str(newest))])
    assert rocketmq.undo_repair(root, str(report.backup)).findings == []


def test_a_partition_that_was_written_after_its_repair_likewise(tmp_path: Path) -> None:
    root = partition(tmp_path)
    backup = kafka.repair(root, **INTERVAL).backup
    index = min(root.glob("*.timeindex"))
    os.utime(index, ns=(time.time_ns(), time.time_ns()))
    report = kafka.undo_repair(root, str(backup))
    assert [(one.kind, one.path) for one in report.findings] == [("written-since-repair", str(index))]
