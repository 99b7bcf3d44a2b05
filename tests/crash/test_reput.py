"""A follower that is killed anywhere needs no hand: the next one goes on, and nothing tells that it was killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import IndexFile
from mqindex.rocketmq.dispatch.follow import FollowReport, follow
from tests.support.crash_at import Runner, some_calls
from tests.support.growing_store import OPTIONS, GrowingStore, Turns
from tests.support.killed import ROUNDS
from tests.support.log_writer import FIRST_TIME
from tests.support.tree import contents, index_bytes, index_paths, queue_bytes

ROUNDS_PER_STORE = 200
FOLLOW = "mqindex.rocketmq.dispatch.follow:follow"
ENOUGH = 12  # looks that read the whole small log and let its last message count
ONE = LocalEngine(1)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> GrowingStore:
    return GrowingStore(tmp_path / "store")


def finish(store: GrowingStore, out: Path) -> FollowReport:
    """Follow to the log's end and stop cleanly."""
    report = follow(store.root, out, stop=Turns(ENOUGH), engine=ONE, **OPTIONS)
    assert report.phy_offset == store.writer.position
    assert not (out / "abort").exists()
    return report


def files_of(out: Path) -> tuple[list[bytes], dict[str, bytes]]:
    return index_bytes(out), queue_bytes(out)


def test_killed_at_any_call_the_next_run_goes_on(
    runner: Runner, store: GrowingStore, tmp_path: Path, rng: random.Random
) -> None:
    store.write(30)
    before, expected = contents(store.root), store.expected(tmp_path / "rebuilt")
    at = 0
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        outcome = runner.run(FOLLOW, str(store.root), str(out), at=at, stop=Turns(ENOUGH), engine=ONE, **OPTIONS)
        if not outcome.killed:
            assert outcome.error is None
            break
        finish(store, out)
        assert files_of(out) == expected
        if at % 8 == 0:
            assert finish(store, out).messages == 0
            assert files_of(out) == expected
    assert at > 30
    assert contents(store.root) == before


def test_killed_at_any_time_while_the_log_grows(
    tmp_path: Path, rng: random.Random, tell_kills: Callable[..., None]
) -> None:
    repairs = messages = 0
    for first in range(0, ROUNDS, ROUNDS_PER_STORE):
        place = tmp_path / str(first)
        store = GrowingStore(place / "store")
        repairs += killed_often(store, place, min(ROUNDS - first, ROUNDS_PER_STORE), rng)
        messages += store.number
        shutil.rmtree(place)
    assert repairs > ROUNDS // 50
    tell_kills("follow", ROUNDS, messages=messages, lost=0)


def killed_often(store: GrowingStore, place: Path, rounds: int, rng: random.Random) -> int:
    """How often the follower repaired its directory."""
    out, repairs = place / "out", 0
    store.write(5)
    finish(store, out)
    for number in range(rounds):
        child = os.fork()
        if child == 0:
            _follow_and_leave(store, out)
        while number % 2 and not (out / "abort").exists():  # a busy machine begins late
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the follower ended by itself"
            time.sleep(0.001)
        for _ in range(rng.randint(0, 4)):
            store.write(1)
            time.sleep(rng.random() * 0.004)
        time.sleep(rng.random() * 0.008)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if number % 10 == 9 or number == rounds - 1:
            repairs += finish(store, out).repairs
            assert files_of(out) == store.expected(place / "rebuilt")
    return repairs


def test_killed_inside_a_put_the_entry_is_put_again(store: GrowingStore, tmp_path: Path) -> None:
    store.write(19)
    finish(store, tmp_path / "before")
    (path,) = [file for file in index_paths(tmp_path / "before") if 1 < _count(file) < 16]
    n = store.number
    (at,) = store.write(1)
    expected = store.expected(tmp_path / "rebuilt")
    old = path.read_bytes()
    with IndexFile.open(path, hash_slot_num=5, index_num=16, writable=True) as file:
        number = file.header.index_count
        assert file.put_key(f"Topic{n % 2}#C0A8010A1F902B193F2D{n:012X}", at, FIRST_TIME + n * 700)
        slots = file.slots().tolist()
    new = path.read_bytes()
    entry, slot = 40 + 4 * 5 + 20 * number, 40 + 4 * slots.index(number)
    stores = [
        (entry, 4),
        (entry + 4, 8),
        (entry + 12, 4),
        (entry + 16, 4),
        (slot, 4),
        (32, 4),
        (36, 4),
        (24, 8),
        (8, 8),
    ]
    for done in range(len(stores) + 1):
        out = tmp_path / f"place{done}"
        shutil.copytree(path.parents[1], out)
        torn = bytearray(old)
        for start, size in stores[:done]:
            torn[start : start + size] = new[start : start + size]
        (out / "index" / path.name).write_bytes(torn)
        (out / "abort").touch()
        finish(store, out)
        assert files_of(out) == expected
    assert bytes(torn) == new


def _count(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[36:40], "big")


def _follow_and_leave(store: GrowingStore, out: Path) -> None:
    try:
        follow(store.root, out, stop=Turns(10**9), engine=ONE, **OPTIONS)
    finally:
        os._exit(1)


@pytest.mark.parametrize("failure", ["ENOSPC", "EIO"])
def test_an_error_at_any_call_is_told_and_the_next_run_goes_on(
    failure: str, runner: Runner, store: GrowingStore, tmp_path: Path, rng: random.Random
) -> None:
    store.write(12)
    expected = store.expected(tmp_path / "rebuilt")
    at = 0
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        outcome = runner.run(
            FOLLOW, str(store.root), str(out), at=at, failure=failure, stop=Turns(ENOUGH), engine=ONE, **OPTIONS
        )
        if len(outcome.calls) < at:
            break
        if outcome.error is None:  # a checkpoint for which there was no space is written later
            assert outcome.calls[at - 1] == "mkdir" or (failure == "ENOSPC" and files_of(out) == expected)
        else:
            assert isinstance(outcome.error, OSError)
        finish(store, out)
        assert files_of(out) == expected
    assert at > 20
