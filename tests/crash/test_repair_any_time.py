"""A repair that is killed at any time, again and again: the last one finishes, and no acknowledged message is lost."""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
from collections.abc import Callable
from pathlib import Path

from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore, repair, verify
from tests.crash.test_message_store import CONFIG, Acknowledged, found_in, killed_writer
from tests.support.killed import ROUNDS, killed
from tests.support.tree import scraps

ONE = LocalEngine(1)
WORD = struct.Struct("c")
KILLS_PER_REPAIR, REPAIRS_PER_STORE = 4, 10
SECONDS = 0.06  # a whole repair takes about half of it


def index_gone(root: Path, source: random.Random) -> None:
    shutil.rmtree(root / "index")


def queues_gone(root: Path, source: random.Random) -> None:
    shutil.rmtree(root / "consumequeue")


def queue_gone(root: Path, source: random.Random) -> None:
    shutil.rmtree(source.choice(sorted((root / "consumequeue").glob("*/*"))))


def checkpoint_gone(root: Path, source: random.Random) -> None:
    (root / "checkpoint").unlink(missing_ok=True)  # nothing needs it after a clean exit


def files_gone(root: Path, source: random.Random) -> None:
    for path in source.sample(files(root), len(files(root)) // 2):
        path.unlink()


def files_spoilt(root: Path, source: random.Random) -> None:
    for path in source.sample(files(root), len(files(root)) // 2):
        with path.open("r+b") as file:
            file.seek(source.randrange(path.stat().st_size - 40))
            file.write(source.randbytes(40))


HARMS = [index_gone, queues_gone, queue_gone, checkpoint_gone, files_gone, files_spoilt]


def files(root: Path) -> list[Path]:
    return sorted([*(root / "index").iterdir(), *(root / "consumequeue").glob("*/*/*")])


def written(root: Path, source: random.Random) -> Acknowledged:
    """What a writer acknowledged, which was killed too."""
    said: Acknowledged = {}
    while len(said) < 60:
        said |= killed_writer(root, source, max(said, default=-1) + 10_000)
    MessageStore.open(root, writable=True, config=CONFIG).close()
    return said


def test_killed_at_any_time_the_last_repair_finishes_and_nothing_is_lost(
    tmp_path: Path, rng: random.Random, tell_kills: Callable[..., None]
) -> None:
    kills = words = half = 0
    while kills < ROUNDS:
        root = tmp_path / f"store{kills}"
        root.mkdir()
        acknowledged = written(root, rng)
        words += len(acknowledged)
        for _ in range(REPAIRS_PER_STORE):
            rng.choice(HARMS)(root, rng)
            for _ in range(KILLS_PER_REPAIR):
                seconds = rng.random() * SECONDS
                half += not killed(repaired_until_killed(root), WORD, words=0, seconds=seconds)
                kills += 1
            repair(root, config=CONFIG, broker_version="4.9.3", engine=ONE)
            assert scraps(root) == []
            with MessageStore.open(root, config=CONFIG) as store:
                assert acknowledged.items() <= found_in(store).items()
                for number in rng.sample(sorted(acknowledged), 5):
                    (only,) = store.query_message("T", f"k{number}", exact=True).messages
                    assert (only.queue_id, only.queue_offset, only.phy_offset) == acknowledged[number]
            report = verify(root, deep=True, engine=ONE, config=CONFIG)
            assert report.ok, report.findings
        shutil.rmtree(root)
    assert half > ROUNDS // 20
    tell_kills("repair", kills, before_its_end=half, acknowledged=words, lost=0)


def repaired_until_killed(root: Path) -> Callable[[int], None]:
    """A repair, and a word when it has ended."""

    def work(pipe: int) -> None:
        repair(root, config=CONFIG, broker_version="4.9.3", engine=ONE)
        os.write(pipe, b".")
        signal.pause()

    return work
