"""A rebuild that is killed or fails at any of its system calls leaves the store alone and nothing half done."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from tests.support.crash_at import Outcome, Runner, some_calls
from tests.support.small_store import make_small_store
from tests.support.tree import contents, index_bytes, queue_contents, scraps

REBUILD = "mqindex.rocketmq.rebuild:rebuild"
ONE = LocalEngine(1)
ERRORS = ("ENOSPC", "EIO", "EACCES")


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


def files_of(root: Path) -> tuple[list[bytes], dict[str, bytes]]:
    """The index files, and those of the queues."""
    return index_bytes(root), queue_contents(root)


def rebuild(runner: Runner, store: Path, out: Path, *, at: int = 0, failure: str = "kill", limit: int = 0,
            overwrite: bool = False) -> Outcome:  # fmt: skip
    return runner.run(
        REBUILD, str(store), str(out), at=at, failure=failure, limit=limit,
        engine=ONE, split_size=4096, overwrite=overwrite,
    )  # fmt: skip


def test_rebuild_that_is_let_alone_counts_its_calls(runner: Runner, store: Path, tmp_path: Path) -> None:
    outcome = rebuild(runner, store, tmp_path / "out")
    assert outcome.error is None
    assert files_of(tmp_path / "out") == files_of(store)
    assert {"rename", "fsync", "posix_fallocate", "msync", "mkdir", "create"} <= set(outcome.calls)


def test_killed_at_any_call_a_second_run_finishes(
    runner: Runner, store: Path, tmp_path: Path, rng: random.Random
) -> None:
    before, expected = contents(store), files_of(store)
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        outcome = rebuild(runner, store, out, at=at)
        if not outcome.killed:
            break
        if out.exists():
            assert files_of(out) == expected
        else:
            assert rebuild(runner, store, out).error is None
        assert files_of(out) == expected
        assert contents(store) == before
        rebuild(runner, store, out.parent / "other")
        assert scraps(out.parent) == []
    assert at > 20


def test_killed_at_any_call_the_old_output_is_there_or_beside(
    runner: Runner, store: Path, tmp_path: Path, rng: random.Random
) -> None:
    expected = files_of(store)
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        (out / "index").mkdir(parents=True)
        (out / "index" / "old").write_bytes(b"old")
        outcome = rebuild(runner, store, out, at=at, overwrite=True)
        backups = list(out.parent.glob("out.backup-*"))
        if not outcome.killed:
            assert outcome.error is None
            break
        if (out / "index" / "old").exists():
            assert contents(out).keys() == {"index", "index/old"}
            assert backups == []
        else:
            backups += out.parent.glob("out.exchange-*")  # between the two calls that swap and give the backup its name
            assert [(path / "index" / "old").read_bytes() for path in backups] == [b"old"]
            assert not out.exists() or files_of(out) == expected
        again = rebuild(runner, store, out, overwrite=True)
        assert again.error is None
        assert files_of(out) == expected
        assert any((path / "index" / "old").exists() for path in out.parent.glob("out.backup-*"))
        assert scraps(out.parent) == []
    assert at > 20


@pytest.mark.parametrize("failure", ERRORS)
def test_error_at_any_call_is_told_and_leaves_nothing(
    failure: str, runner: Runner, store: Path, tmp_path: Path, rng: random.Random
) -> None:
    before, expected = contents(store), files_of(store)
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        outcome = rebuild(runner, store, out, at=at, failure=failure)
        if len(outcome.calls) < at:
            break
        assert contents(store) == before
        assert scraps(out.parent) == []
        check_failed(outcome, failure)
        if out.exists():  # only the last sync of all came too late
            assert files_of(out) == expected
        assert [path.name for path in out.parent.iterdir()] in ([], ["out"])
    assert at > 10


def test_error_at_any_call_leaves_the_old_output(
    runner: Runner, store: Path, tmp_path: Path, rng: random.Random
) -> None:
    """Each call gets one of the errors in turn."""
    expected = files_of(store)
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        (out / "index").mkdir(parents=True)
        (out / "index" / "old").write_bytes(b"old")
        failure = ERRORS[at % len(ERRORS)]
        outcome = rebuild(runner, store, out, at=at, failure=failure, overwrite=True)
        if len(outcome.calls) < at:
            break
        check_failed(outcome, failure)
        assert scraps(out.parent) == []
        backups = list(out.parent.glob("out.backup-*"))
        if (out / "index" / "old").exists():
            assert backups == []
        else:  # the new one is there and only its last sync failed
            assert files_of(out) == expected
            assert [(path / "index" / "old").read_bytes() for path in backups] == [b"old"]


def test_file_that_may_not_grow_is_one_clear_error(runner: Runner, store: Path, tmp_path: Path) -> None:
    for limit in (1, 100, 300):
        outcome = rebuild(runner, store, tmp_path / "out", limit=limit)
        assert isinstance(outcome.error, OSError)
        assert outcome.error.errno == errno.EFBIG
        assert [path.name for path in tmp_path.iterdir()] == ["store"]


def check_failed(outcome: Outcome, failure: str) -> None:
    assert isinstance(outcome.error, OSError), outcome
    assert outcome.error.errno == getattr(errno, failure)
