"""An optimize killed at any of its system calls: every file is the old or the new one, and a second run ends it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import optimize, verify
from tests.support.crash_at import Outcome, Runner, some_calls
from tests.support.small_store import make_small_store
from tests.support.tree import contents, index_bytes, scraps

ONE = LocalEngine(1)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def run(runner: Runner, store: Path, out: Path, at: int, *, overwrite: bool = False) -> Outcome:
    return runner.run(
        "mqindex.rocketmq.optimize:optimize", str(store), str(out), at=at, failure="kill",
        engine=ONE, overwrite=overwrite,
    )  # fmt: skip


def test_killed_at_any_call_elsewhere(runner: Runner, tmp_path: Path, rng: random.Random) -> None:
    store = make_small_store(tmp_path / "store")
    before = contents(store)
    optimize(store, tmp_path / "right", engine=ONE)
    right = contents(tmp_path / "right")
    at = 0
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        if not run(runner, store, out, at).killed:
            break
        assert not out.exists() or contents(out) == right
        if not out.exists():
            assert run(runner, store, out, 0).error is None
        assert contents(out) == right
        assert contents(store) == before
    assert at > 20


def test_killed_at_any_call_in_place(runner: Runner, tmp_path: Path, rng: random.Random) -> None:
    store = make_small_store(tmp_path / "store")
    old = index_bytes(store)
    optimize(store, tmp_path / "right", engine=ONE)
    new = index_bytes(tmp_path / "right")
    at = 0
    for at in some_calls(rng):
        copy = tmp_path / f"place{at}"
        shutil.copytree(store, copy)
        killed = run(runner, copy, copy, at, overwrite=True).killed
        assert all(held in pair for held, *pair in zip(index_bytes(copy), old, new, strict=True))
        if not killed:
            break
        assert verify(copy).ok
        assert run(runner, copy, copy, 0, overwrite=True).error is None
        assert index_bytes(copy) == new
        assert contents(copy / "mqindex-index") == contents(tmp_path / "right" / "mqindex-index")
        assert scraps(copy) == []
    assert at > 20
