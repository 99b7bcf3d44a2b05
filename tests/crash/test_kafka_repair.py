"""Repair and rebuild of Kafka, killed or failing at any of their system calls: every file is the old or the new one."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import verify
from tests.support.crash_at import Outcome, Runner, some_calls
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter
from tests.support.tree import contents, scraps

REPAIR = "mqindex.kafka.repair:repair"
REBUILD = "mqindex.kafka.rebuild:rebuild"
OPTIONS: dict[str, Any] = {"index_interval_bytes": 100, "engine": LocalEngine(1)}
FAILURES = ("ENOSPC", "EIO", "EACCES")


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def make_partition(directory: Path) -> Path:
    """Three segments, in the second an aborted transaction."""
    writer = PartitionWriter(directory, 10, index_interval=100)
    for segment in range(3):
        if segment:
            writer.roll()
        for _ in range(6):
            writer.append([KafkaRecord(b"value" * 8, timestamp=FIRST_TIME + writer.next_offset)])
        if segment == 1:
            writer.append([KafkaRecord()], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
            writer.marker(1)
    writer.close()
    return directory


def broken(directory: Path) -> tuple[Path, dict[str, str]]:
    """A partition in need of repair, and its right files: one is lost, others are empty, wrong, or too many."""
    make_partition(directory)
    right = contents(directory)
    first, second, third = sorted(directory.glob("*.log"))
    first.with_suffix(".timeindex").unlink()
    second.with_suffix(".index").write_bytes(b"")
    second.with_suffix(".txnindex").write_bytes(b"\xff" * 34)
    third.with_suffix(".timeindex").write_bytes(b"\x07" * 24)
    third.with_suffix(".txnindex").write_bytes(second.with_suffix(".log").read_bytes()[:34])
    return directory, right


def finished(directory: Path) -> dict[str, str]:
    """All but the backups."""
    return {path: held for path, held in contents(directory).items() if not path.startswith("mqindex-backup-")}


def test_killed_at_any_call_every_file_is_the_old_or_the_new_one(
    runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    original, right = broken(tmp_path / "broken-0")
    old = contents(original)
    for at in some_calls(rng):
        directory = shutil.copytree(original, tmp_path / f"topic-{at}")
        outcome = runner.run(REPAIR, str(directory), at=at, **OPTIONS)
        check_old_or_new(directory, old, right)
        if not outcome.killed:
            assert outcome.error is None
            break
        assert runner.run(REPAIR, str(directory), **OPTIONS).error is None
        assert finished(directory) == right
        assert scraps(directory) == []
        assert set(old.values()) <= set(contents(directory).values())
        shutil.rmtree(directory)
    assert at > 25
    assert verify(directory, **OPTIONS).findings == []


def test_error_at_any_call_is_told_and_a_second_run_finishes(
    runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    original, right = broken(tmp_path / "broken-0")
    old = contents(original)
    for at in some_calls(rng):
        directory = shutil.copytree(original, tmp_path / f"topic-{at}")
        failure = FAILURES[at % 3]
        outcome = runner.run(REPAIR, str(directory), at=at, failure=failure, **OPTIONS)
        check_old_or_new(directory, old, right)
        assert scraps(directory) == []
        if len(outcome.calls) < at:
            assert outcome.error is None
            break
        assert isinstance(outcome.error, OSError), outcome
        assert outcome.error.errno == getattr(errno, failure)
        assert runner.run(REPAIR, str(directory), **OPTIONS).error is None
        assert finished(directory) == right
        shutil.rmtree(directory)
    assert at > 20


def check_old_or_new(directory: Path, old: dict[str, str], right: dict[str, str]) -> None:
    here = contents(directory)
    for path, held in here.items():
        if not path.startswith((".mqindex-", "mqindex-backup-")):
            assert held in (old.get(path), right.get(path)), path
    assert old.keys() & right.keys() <= here.keys()
    assert set(old.values()) <= set(here.values())  # nothing is lost


def test_a_rebuild_that_is_killed_or_fails_leaves_all_or_nothing(
    runner: Runner, tmp_path: Path, rng: random.Random
) -> None:
    directory = make_partition(tmp_path / "topic-0")
    before = contents(directory)
    right = {path: held for path, held in before.items() if not path.endswith(".log")}
    for at in some_calls(rng):
        out = tmp_path / f"place{at}" / "out"
        out.parent.mkdir()
        failure = ("kill", *FAILURES)[at % 4]
        outcome = runner.run(REBUILD, str(directory), str(out), at=at, failure=failure, **OPTIONS)
        assert not out.exists() or contents(out) == right
        if not outcome.killed:
            assert scraps(out.parent) == []
            if outcome.error is None and len(outcome.calls) < at:
                break
        if not out.exists():
            assert runner.run(REBUILD, str(directory), str(out), **OPTIONS).error is None
        assert contents(out) == right
        assert contents(directory) == before
    assert at > 15


def test_files_that_may_not_grow_are_one_clear_error(runner: Runner, tmp_path: Path) -> None:
    directory, _ = broken(tmp_path / "topic-0")
    old = contents(directory)
    outcome: Outcome = runner.run(REPAIR, str(directory), limit=10, **OPTIONS)
    assert isinstance(outcome.error, OSError)
    assert outcome.error.errno == errno.EFBIG
    assert contents(directory) == old
