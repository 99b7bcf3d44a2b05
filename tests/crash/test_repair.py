"""A repair that is killed or fails at any of its system calls: every file is the old or the new one."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import verify
from tests.support.crash_at import Outcome, Runner, some_calls
from tests.support.small_store import OPTIONS as INDEX_OPTIONS
from tests.support.small_store import QUEUE_FILE_SIZE, make_small_store
from tests.support.tree import contents, index_bytes, index_paths, queue_contents, scraps

REPAIR = "mqindex.rocketmq.repair:repair"
ONE = LocalEngine(1)
ERRORS = ("ENOSPC", "EIO", "EACCES")
OPTIONS: dict[str, Any] = {**INDEX_OPTIONS, "config": {"mappedFileSizeConsumeQueue": QUEUE_FILE_SIZE}}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def newest_gone(root: Path) -> None:
    index_paths(root)[-1].unlink()


def all_gone(root: Path) -> None:
    shutil.rmtree(root / "index")


def spoilt(root: Path) -> None:
    """The first is gone, one in the middle is spoilt, the last one is of another time."""
    paths = index_paths(root)
    paths[0].unlink()
    paths[2].write_bytes(b"\x07" * paths[2].stat().st_size)
    paths[-1].write_bytes(paths[1].read_bytes())


def incomplete(root: Path) -> None:
    """The last file lacks its newest entries, as one that a crash brought back from the disk."""
    last = index_paths(root)[-1]
    shorter = make_small_store(root.parent / "shorter", count=42)
    match = index_paths(shorter)[-1]
    assert match.name == last.name
    last.write_bytes(match.read_bytes())
    shutil.rmtree(shorter)


def queues_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


def queues_spoilt(root: Path) -> None:
    """A queue is gone, of another one a file; in the last a unit is spoilt, and two files are too many."""
    one, two, three = sorted((root / "consumequeue").iterdir())
    shutil.rmtree(one)
    min((two / "0").iterdir()).unlink()
    path = min((three / "0").iterdir())
    path.write_bytes(b"\x07" * 20 + path.read_bytes()[20:])
    (three / "0" / "stranger").write_bytes(b"mine")
    (three / "0" / f"{QUEUE_FILE_SIZE * 9:020d}").write_bytes(b"\x01" * QUEUE_FILE_SIZE)
    index_paths(root)[1].unlink()


SITUATIONS: dict[str, Callable[[Path], None]] = {
    "newest gone": newest_gone,
    "all gone": all_gone,
    "spoilt": spoilt,
    "incomplete": incomplete,
    "queues gone": queues_gone,
    "queues spoilt": queues_spoilt,
}


Files = tuple[list[bytes], dict[str, bytes]]


def files_of(root: Path) -> Files:
    """The index files, and those of the queues."""
    return index_bytes(root), queue_contents(root)


def broken(situation: str, tmp_path: Path) -> tuple[Path, Files]:
    """A store in need of repair, to be copied for each attempt; and its right files."""
    root = make_small_store(tmp_path / "broken", unclean=True)
    expected = files_of(root)
    assert min(map(len, expected)) > 4
    SITUATIONS[situation](root)
    return root, expected


def repair(runner: Runner, root: Path, *, at: int = 0, failure: str = "kill", limit: int = 0) -> Outcome:
    return runner.run(REPAIR, str(root), at=at, failure=failure, limit=limit, engine=ONE, **OPTIONS)


def finished(runner: Runner, original: Path, tmp_path: Path) -> Path:
    root = shutil.copytree(original, tmp_path / "finished")
    assert repair(runner, root).error is None
    return root


@pytest.mark.parametrize("situation", SITUATIONS)
def test_killed_at_any_call_every_file_is_the_old_or_the_new_one(
    situation: str, runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    original, expected = broken(situation, tmp_path)
    old = contents(original)
    new = contents(finished(runner, original, tmp_path))
    for at in some_calls(rng):
        root = shutil.copytree(original, tmp_path / f"store{at}")
        outcome = repair(runner, root, at=at)
        if not outcome.killed:
            assert outcome.error is None
            break
        check_old_or_new(old, new, root)
        check_nothing_lost(old, root)
        again = repair(runner, root)
        assert again.error is None
        assert files_of(root) == expected
        assert scraps(root) == []
        check_nothing_lost(old, root)
        assert (root / "checkpoint").read_bytes()[16:24] != bytes(8)
        assert verify(root, deep=True, engine=ONE, **OPTIONS).ok
        shutil.rmtree(root)
    assert at > 15


@pytest.mark.parametrize("situation", SITUATIONS)
def test_error_at_any_call_is_told_and_a_second_run_finishes(
    situation: str, runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    """Each call gets one of the errors in turn, and another one in the next situation."""
    turn = [*SITUATIONS].index(situation)
    original, expected = broken(situation, tmp_path)
    old = contents(original)
    new = contents(finished(runner, original, tmp_path))
    for at in some_calls(rng):
        root = shutil.copytree(original, tmp_path / f"store{at}")
        failure = ERRORS[(at + turn) % len(ERRORS)]
        outcome = repair(runner, root, at=at, failure=failure)
        if len(outcome.calls) < at:
            assert outcome.error is None
            break
        assert isinstance(outcome.error, OSError), outcome
        assert outcome.error.errno == getattr(errno, failure)
        assert scraps(root) == []
        check_old_or_new(old, new, root)
        check_nothing_lost(old, root)
        assert repair(runner, root).error is None
        assert files_of(root) == expected
        check_nothing_lost(old, root)
        shutil.rmtree(root)
    assert at > 10


@pytest.mark.parametrize("situation", SITUATIONS)
def test_file_that_may_not_grow_is_one_clear_error(situation: str, runner: Runner, tmp_path: Path) -> None:
    original, _ = broken(situation, tmp_path)
    old = contents(original)
    root = shutil.copytree(original, tmp_path / "store")
    outcome = repair(runner, root, limit=300)
    assert isinstance(outcome.error, OSError)
    assert outcome.error.errno == errno.EFBIG
    assert contents(root) == old


def check_old_or_new(old: dict[str, str], new: dict[str, str], root: Path) -> None:
    """What is not in a backup or in scratch is as before or as after an undisturbed repair, and never gone between."""
    old, new, here = (
        {path: content for path, content in held.items() if not path.startswith((".mqindex-", "mqindex-backup-"))}
        for held in (old, new, contents(root))
    )
    for path, content in here.items():
        assert content in (old.get(path), new.get(path)), path
    gone = old.keys() & new.keys() - here.keys()
    assert not gone, f"gone: {sorted(gone)}"


def check_nothing_lost(old: dict[str, str], root: Path) -> None:
    """Each file that was there before is still somewhere in the store."""
    assert set(old.values()) <= set(contents(root).values())
