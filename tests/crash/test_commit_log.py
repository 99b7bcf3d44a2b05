"""A writer of a commit log that is killed anywhere, whose disk is full, or fails: what was acknowledged stays."""

from __future__ import annotations

import errno
import os
import random
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.rocketmq import CommitLog, NewMessage
from mqindex.rocketmq.log.writing import log_writer
from tests.crash.test_full_disk import REPOSITORY, mountable
from tests.reference.commit_log import Record, scan_log
from tests.reference.rebuild import log_files
from tests.support.killed import ROUNDS, killed

ROUNDS_PER_LOG = 12
FILE_SIZE = 1 << 14
ACK = struct.Struct("=qq")  # number of a message, its phy offset


def body_of(number: int) -> bytes:
    """Of any size up to 3 KiB, and no two alike."""
    source = random.Random(number)
    return b"%d:" % number + source.randbytes(source.choice((0, 10, 200, 1000, 3000)))


def message(number: int) -> NewMessage:
    return NewMessage("TopicTest", body_of(number), keys=f"k{number}", tags="TagA", queue_id=number % 4)


class Child:
    """What runs until it is killed: appends of every kind, and a word for each message that must not be lost."""

    def __init__(self, directory: Path, answer: int, seed: int, first: int) -> None:
        self.directory, self.answer = directory, answer
        self.random = random.Random(seed)
        self.numbers = iter(range(first, sys.maxsize))
        self.flush = self.random.choice(("sync", "async"))

    def run(self) -> None:
        with CommitLog.open(self.directory, mapped_file_size=FILE_SIZE, writable=True, flush=self.flush) as log:
            if self.flush == "sync" and self.random.random() < 0.3:
                many = [threading.Thread(target=self.append_alone, args=(log,)) for _ in range(4)]
                for thread in many:
                    thread.start()
                for thread in many:
                    thread.join()
            while True:
                self.append_mixed(log)

    def append_alone(self, log: CommitLog) -> None:
        while True:
            number = next(self.numbers)
            self.acknowledge([number], [log.append_message(message(number), queue_offset=number).phy_offset])

    def append_mixed(self, log: CommitLog) -> None:
        waiting: tuple[list[int], list[int]] = [], []
        for _ in range(self.random.randrange(1, 5)):
            count = self.random.choice((1, 1, 1, 3, 3, 60))
            numbers = [next(self.numbers) for _ in range(count)]
            if count == 1:
                offsets = [log.append_message(message(numbers[0]), queue_offset=numbers[0]).phy_offset]
            else:
                messages = [message(number) for number in numbers]
                result = log.append_messages(messages, queue_offset=numbers, whole=count == 3)
                offsets = result.phy_offsets.tolist()
            waiting[0].extend(numbers)
            waiting[1].extend(offsets)
            if self.flush == "sync":
                self.acknowledge(*waiting)
                waiting = [], []
        log.flush()
        self.acknowledge(*waiting)

    def acknowledge(self, numbers: list[int], offsets: list[int]) -> None:
        for number, offset in zip(numbers, offsets, strict=True):
            os.write(self.answer, ACK.pack(number, offset))


def killed_child(directory: Path, source: random.Random, first: int) -> dict[int, int]:
    """What a child acknowledged before it was killed: at some time, or some time after some word of it."""
    seed, words, pause = source.getrandbits(32), source.choice((0, 1, 2, 5, 20, 60)), source.random()
    seconds = pause * (0.001 if words else 0.006)
    said = killed(lambda pipe: Child(directory, pipe, seed, first).run(), ACK, words=words, seconds=seconds)
    return dict(said)


def tear(directory: Path, end: int, source: random.Random) -> None:
    """What a loss of power may leave of what no sync has reached: from some byte on zeros or anything else.

    A writer syncs a file before it goes to the second one behind it. What checksums cannot tell is left out: a record
    whose body is whole and whose numbers or properties are not.
    """
    records, _, _ = scan_log(log_files(directory))
    first = max(end, records[-1].phy_offset // FILE_SIZE * FILE_SIZE - FILE_SIZE)
    for record in records:
        if record.phy_offset < first or source.random() < 0.5:
            continue
        path = directory / f"{record.phy_offset // FILE_SIZE * FILE_SIZE:020d}"
        at = record.phy_offset % FILE_SIZE + source.choice((0, 4, 88, 88 + len(record.body) // 2))
        size = min(source.choice((len(record.body) // 2, 4096, FILE_SIZE)), FILE_SIZE - at)
        with path.open("r+b") as file:
            file.seek(at)
            file.write(bytes(size) if source.random() < 0.7 else source.randbytes(size))


def check_whole(directory: Path, acknowledged: dict[int, int]) -> list[Record]:
    records, damage, end = scan_log(log_files(directory))
    assert damage == []
    found = {record.queue_offset: record for record in records}
    assert len(found) == len(records)
    for number, record in found.items():
        assert record.body == body_of(number)
        assert record.property_map == {"KEYS": f"k{number}", "TAGS": "TagA"}
    assert {number: found[number].phy_offset for number in acknowledged} == acknowledged
    for start, data in log_files(directory):
        assert not data[max(end - start, 0) :].strip(b"\0"), f"something stale behind the end {end}"
        assert len(data) == FILE_SIZE
    return records


def test_killed_anywhere_keeps_what_was_acknowledged_and_opens_by_itself(
    tmp_path: Path, rng: random.Random, tell_kills: Callable[..., None]
) -> None:
    words = rolled = 0
    for number in range(-(-ROUNDS // ROUNDS_PER_LOG)):
        directory = tmp_path / f"store{number}" / "commitlog"
        directory.mkdir(parents=True)
        acknowledged: dict[int, int] = {}
        first = 0
        for _ in range(min(ROUNDS_PER_LOG, ROUNDS - number * ROUNDS_PER_LOG)):
            said = killed_child(directory, rng, first)
            acknowledged.update(said)
            words += len(said)
            if acknowledged and rng.random() < 0.4:
                last = max(acknowledged, key=lambda number: acknowledged[number])
                records, _, _ = scan_log(log_files(directory))
                (size,) = [record.size for record in records if record.queue_offset == last]
                tear(directory, acknowledged[last] + size, rng)
            with CommitLog.open(directory, mapped_file_size=FILE_SIZE, writable=True) as log:
                found = [phy for batch in log.scan() for phy in batch["phy_offset"].tolist()]
            records = check_whole(directory, acknowledged)
            assert found == [record.phy_offset for record in records]
            first = max((record.queue_offset for record in records), default=-1) + 1
        rolled += len(list(directory.iterdir())) - 1
        shutil.rmtree(directory)
    assert words > ROUNDS
    assert rolled > ROUNDS / 20
    tell_kills("append", ROUNDS, acknowledged=words, lost=0)


@pytest.mark.parametrize("many", [False, True])
def test_failed_write_leaves_nothing_and_the_next_one_succeeds(
    many: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write of an append, after some of its bytes; the frames of the failed append are all of one size."""
    real, left = log_writer.write_at, [0]

    def failing(fd: int, data: bytes, at: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            real(fd, bytes(data)[: len(data) * 2 // 3], at)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(fd, data, at)

    monkeypatch.setattr(log_writer, "write_at", failing)
    with CommitLog.open(tmp_path / "commitlog", mapped_file_size=FILE_SIZE, writable=True) as log:
        appended = failures = 0
        for at in [1, 2, 3, 4, 5] * 12:
            left[0] = at
            end = log.max_phy_offset
            messages = [NewMessage("T", b"%05d" % appended * 40) for _ in range(150 if many else 1)]
            try:
                log.append_messages(messages, queue_offset=range(appended, appended + len(messages)), whole=False)
            except OSError as error:
                assert error.errno == errno.ENOSPC
                failures += 1
                assert log.max_phy_offset == end
                assert scan_log(log_files(tmp_path / "commitlog"))[2] in (end, end - end % FILE_SIZE, 0)
            else:
                appended += len(messages)
            left[0] = 0
            log.append_message(NewMessage("T", b"%05d" % appended * 40), queue_offset=appended)
            appended += 1
            records = scan_log(log_files(tmp_path / "commitlog"))[0]
            assert [record.queue_offset for record in records] == list(range(appended))
    assert failures > 10


def test_interrupt_between_write_and_commit_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., None] = log_writer.write_at

    def interrupted(*args: object) -> None:
        real(*args)
        raise KeyboardInterrupt

    with CommitLog.open(tmp_path / "commitlog", mapped_file_size=FILE_SIZE, writable=True) as log:
        log.append_message(message(0), queue_offset=0)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(log_writer, "write_at", interrupted)
            log.append_message(message(4), queue_offset=1)
        log.append_message(message(2), queue_offset=2)
        end = log.max_phy_offset
    assert [record.queue_offset for record in scan_log(log_files(tmp_path / "commitlog"))[0]] == [0, 2]
    assert not (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[end:].strip(b"\0")


FULL = """
import errno, pathlib, shutil, sys
disk = pathlib.Path(sys.argv[1])
from mqindex.rocketmq import CommitLog, NewMessage
ballast = disk / "ballast"
ballast.write_bytes(bytes(600_000))

def fill(log, count, **options):
    try:
        while True:
            log.append_messages([NewMessage("T", bytes(3000))] * count, queue_offset=range(count), **options)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error

def messages(log):
    return sum(batch.num_rows for batch in log.scan())

for flush in ("sync", "async"):
    with CommitLog.open(disk / flush / "commitlog", mapped_file_size=1 << 16, writable=True, flush=flush) as log:
        fill(log, 7)
        stored = messages(log)
        assert stored and stored % 7 == 0
        fill(log, 1)
        assert messages(log) >= stored
        stored = messages(log)
    with CommitLog.open(disk / flush / "commitlog", writable=True, flush=flush) as log:
        assert messages(log) == stored and not log.damage
        fill(log, 1)
        stored = messages(log)
        ballast.unlink()
        log.append_messages([NewMessage("T", bytes(3000))] * 20, queue_offset=range(20), whole=True)
        assert messages(log) == stored + 20
    shutil.rmtree(disk / flush)
    ballast.write_bytes(bytes(600_000))
print("done")
"""


@pytest.mark.skipif(not mountable(), reason="no file system may be mounted here; failing writes are tested anyway")
def test_full_disk_is_an_error_and_the_log_appends_again_when_there_is_space(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    mount = f'mount -t tmpfs -o size=1m none "{tmp_path}/disk" && exec "$@"'
    inside = [sys.executable, "-c", FULL, str(tmp_path / "disk")]
    command = ["unshare", "-Urm", "sh", "-c", mount, "sh", *inside]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
