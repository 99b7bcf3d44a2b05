"""What runs when the power goes, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import struct
import threading
import time
from pathlib import Path
from typing import ClassVar

from mqindex.engines import LocalEngine
from mqindex.files.backups.backup_record import RECORD
from mqindex.rocketmq import MessageStore, NewMessage, optimize, rebuild, repair, undo_repair, verify
from tests.crash.test_repair import OPTIONS as REPAIR_OPTIONS
from tests.crash.test_repair import SITUATIONS, check_nothing_lost, check_old_or_new
from tests.powercut.disk import Disk
from tests.support.opening import require_opens
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents, scraps

__all__ = ["TRIALS", "WORD", "AsyncWriter", "InPlace", "Optimize", "Publication", "Repair", "Trial", "Undo", "Writer"]

WORD = struct.Struct("=qqqq")
ONE = LocalEngine(1)


class Trial:
    """Something that runs on a disk (`work`, in a process of its own) and is held against what it said (`check`)."""

    name = ""
    most_words, most_seconds = 60, 0.01  # when the power goes: after so many words, and so long after the last

    def __init__(self, disk: Disk, source: random.Random) -> None:
        self.disk, self.source = disk, source

    def begin(self) -> None:
        """Before each cut."""

    def work(self, answer: int) -> None:
        """Say a word for each thing that must be there."""

    def check(self, words: list[tuple[int, ...]]) -> None:
        """AssertionError: something is lost."""


# ---- a store under synchronous flush


class Writer(Trial):
    """Three callers that put one by one, one that puts many, one that dispatches and flushes."""

    name = "writer"
    config: ClassVar = {
        "maxHashSlotNum": 20,
        "maxIndexNum": 64,
        "mappedFileSizeCommitLog": 1 << 14,
        "mappedFileSizeConsumeQueue": 400,
        "flushDiskType": "SYNC_FLUSH",
    }
    queues = 3
    callers = 4
    per_store = 20

    def __init__(self, disk: Disk, source: random.Random) -> None:
        super().__init__(disk, source)
        self.cuts = self.following = 0
        self.acknowledged: dict[int, tuple[int, ...]] = {}

    def begin(self) -> None:
        if self.cuts % self.per_store == 0:
            shutil.rmtree(self.disk.root / "store", ignore_errors=True)
            self.acknowledged, self.following = {}, 0
        self.cuts += 1
        self.seed = self.source.getrandbits(32)

    def work(self, answer: int) -> None:
        with self._open() as store:
            callers = [threading.Thread(target=self._put, args=(store, answer, n)) for n in range(self.callers)]
            for caller in callers:
                caller.start()
            for caller in callers:
                caller.join()

    def _put(self, store: MessageStore, answer: int, caller: int) -> None:
        source, number = random.Random(self.seed + caller), self.following + caller
        while True:
            many = caller == 0 and source.random() < 0.5
            numbers = [number + self.callers * n for n in range(source.randint(2, 30) if many else 1)]
            batch = [self._message(n) for n in numbers]
            if many:
                put = store.put_messages(batch)
                places = list(zip(put.queue_offsets.tolist(), put.phy_offsets.tolist(), strict=True))
            else:
                places = [(one.queue_offset, one.phy_offset) for one in map(store.put_message, batch)]
            for n, place in zip(numbers, places, strict=True):
                self._say(answer, WORD.pack(n, n % self.queues, *place))
            number = numbers[-1] + self.callers
            if caller == 1 and source.random() < 0.2:
                source.choice((store.reput, store.flush))()

    def _say(self, answer: int, word: bytes) -> None:
        os.write(answer, word)

    def check(self, words: list[tuple[int, ...]]) -> None:
        self.acknowledged |= {number: tuple(place) for number, *place in words}
        require_opens(self.disk.root / "store", config=self.config)
        found = {}
        with self._open() as store:
            for topic, queue_id in store.queues:
                part = store.get_messages(topic, queue_id, 0, max_msg_nums=1 << 20, columns=None).messages
                columns = (part[name].tolist() for name in ("queue_offset", "phy_offset"))
                for key, *place in zip(part["keys"].to_pylist(), *columns, strict=True):
                    if key is None or not key[1:].isdecimal():  # its last page is zeros, which no checksum covers:
                        assert (queue_id, *place) not in self.acknowledged.values()  # recovery keeps it, as a broker's
                        continue
                    found[int(key[1:])] = queue_id, *place
            lost = self.acknowledged.items() - found.items()
            assert not lost, f"{len(lost)} acknowledged messages are lost: {sorted(lost)[:5]}"
            for number in self.source.sample(sorted(self.acknowledged), min(len(self.acknowledged), 20)):
                (only,) = store.query_message("T", f"k{number}", exact=True).messages
                assert only.body == self._message(number).body, f"message {number} has another body"
        report = verify(self.disk.root / "store", deep=True, engine=ONE, config=self.config)
        assert report.ok, report.findings[:3]
        self.following = max([*found, *self.acknowledged], default=-1) + 1

    def _open(self) -> MessageStore:
        return MessageStore.open(self.disk.root / "store", writable=True, config=self.config)

    def _message(self, number: int) -> NewMessage:
        size = (5, 90, 700, 2500)[number // self.queues % 4]
        return NewMessage("T", bytes([number % 251]) * size, queue_id=number % self.queues, keys=f"k{number}", tags="A")


class AsyncWriter(Writer):
    """Two callers under asynchronous flush, with dispatch far behind; what a flush brought to the disk is there.

    One more thread does what the system may do at any time: bring any one file to the disk, as a later file of the log
    whose predecessor's end is in memory only, or a queue's.
    """

    name = "async writer"
    config: ClassVar = {**Writer.config, "flushDiskType": "ASYNC_FLUSH"}
    callers = 2
    per_store = 5
    most_words, most_seconds = 200, 0.1

    def work(self, answer: int) -> None:
        self.put: list[bytes] = []
        with self._open() as store:
            threads = [threading.Thread(target=self._put, args=(store, answer, n)) for n in range(self.callers)]
            threads.append(threading.Thread(target=self._write_back))
            for thread in threads:
                thread.start()
            source = random.Random(self.seed)
            while True:
                time.sleep(source.random() * 0.02)
                if source.random() < 0.1:
                    store.reput()
                if source.random() < 0.1:
                    before = self.put[:]
                    store.flush()
                    os.write(answer, b"".join(before))
                    del self.put[: len(before)]

    def _say(self, answer: int, word: bytes) -> None:
        self.put.append(word)
        time.sleep(0.001)

    def _write_back(self) -> None:
        source = random.Random(self.seed)
        while True:
            files = [path for path in (self.disk.root / "store").rglob("*") if path.name.isdecimal() and path.is_file()]
            newest = sorted(path for path in files if path.parent.name == "commitlog")[-1:]
            for path in [*source.sample(files, min(len(files), 1)), *newest]:
                with contextlib.suppress(FileNotFoundError):
                    fd = os.open(path, os.O_RDONLY)
                    os.fdatasync(fd)
                    os.close(fd)
            time.sleep(source.random() * 0.03)


# ---- a rebuild's publication


class Publication(Trial):
    """Stores are rebuilt to one place in turn: it always is one of them, whole, none older than the last one said."""

    name = "rebuild"
    most_words, most_seconds = 3, 0.15

    def __init__(self, disk: Disk, source: random.Random) -> None:
        super().__init__(disk, source)
        self.right = []
        for number, count in enumerate((20, 30, 44)):
            make_small_store(disk.root / f"source{number}", count=count)
            self._rebuild(number)
            self.right.append(contents(disk.root / "out"))
        disk.sync()

    def _rebuild(self, number: int) -> None:
        rebuild(self.disk.root / f"source{number % 3}", self.disk.root / "out", overwrite=True, engine=ONE, **OPTIONS)
        for backup in self.disk.root.glob("out.backup-*"):
            shutil.rmtree(backup)

    def begin(self) -> None:
        self._rebuild(2)
        self.disk.sync()

    def work(self, answer: int) -> None:
        number = 0
        while True:
            self._rebuild(number)
            os.write(answer, WORD.pack(number, 0, 0, 0))
            number += 1

    def check(self, words: list[tuple[int, ...]]) -> None:
        here = contents(self.disk.root / "out")
        last = words[-1][0] if words else -1
        allowed = [self.right[(last + more) % 3] for more in (0, 1)]
        assert here in allowed, f"half an output: {sorted(here)}"
        again = last + 2
        self._rebuild(again)
        assert contents(self.disk.root / "out") == self.right[again % 3]
        assert scraps(self.disk.root) == [], scraps(self.disk.root)


# ---- what changes a store in place


class InPlace(Trial):
    """Every file is the old or the new one, nothing of the old ones is gone, and a second call finishes."""

    most_words = 0
    situations: tuple[str, ...] = ("",)
    ends_good = True

    def __init__(self, disk: Disk, source: random.Random) -> None:
        super().__init__(disk, source)
        self.number = 0
        self.states: dict[str, dict[str, str]] = {}
        self.root = disk.root / "store"

    def make(self, situation: str) -> None:
        """The store before; there is none."""
        raise NotImplementedError

    def change(self) -> None:
        """What may be interrupted, and again."""
        raise NotImplementedError

    def begin(self) -> None:
        situation = self.situations[self.number % len(self.situations)]
        self.number += 1
        if situation not in self.states:
            self._make(situation)
            begun = time.monotonic()
            self.change()
            self.most_seconds = 1.3 * (time.monotonic() - begun)
            self.states[situation] = contents(self.root)
        self._make(situation)
        self.old, self.new = contents(self.root), self.states[situation]
        self.disk.sync()

    def _make(self, situation: str) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.make(situation)

    def work(self, answer: int) -> None:
        self.change()
        os.write(answer, WORD.pack(0, 0, 0, 0))
        time.sleep(60)

    def check(self, words: list[tuple[int, ...]]) -> None:
        require_opens(self.root, **REPAIR_OPTIONS)
        check_old_or_new(self.old, self.new, self.root)
        self._check_nothing_lost()
        if words:
            other = _live(contents(self.root)).items() ^ _live(self.new).items()
            assert not other, f"a change that had ended is not on the disk: {sorted(other)}"
        self.change()
        assert not (other := _live(contents(self.root)).items() ^ _live(self.new).items()), (
            f"a second call: {sorted(other)}"
        )
        assert require_opens(self.root, **REPAIR_OPTIONS) or not self.ends_good, "verify does not say ok at last"
        self._check_nothing_lost()
        assert scraps(self.root) == [], scraps(self.root)

    def _check_nothing_lost(self) -> None:
        held = {path: content for path, content in self.old.items() if not path.endswith(RECORD)}
        check_nothing_lost(held, self.root)


class Repair(InPlace):
    """A repair of stores that are broken in several ways."""

    name = "repair"
    situations = tuple(SITUATIONS)

    def make(self, situation: str) -> None:
        make_small_store(self.root, unclean=True)
        SITUATIONS[situation](self.root)

    def change(self) -> None:
        repair(self.root, engine=ONE, **REPAIR_OPTIONS)


class Undo(Repair):
    """A repair that is taken back. Once that is done there is no backup to call it with again."""

    name = "undo"
    ends_good = False

    def make(self, situation: str) -> None:
        super().make(situation)
        self.backup = Path(str(repair(self.root, engine=ONE, **REPAIR_OPTIONS).backup))

    def change(self) -> None:
        if self.backup.is_dir():
            undo_repair(self.root, self.backup)


class Optimize(InPlace):
    """Index files are ordered, and get their fences and the key filter, which never lead a look-up astray."""

    name = "optimize"

    def make(self, situation: str) -> None:
        make_small_store(self.root)

    def change(self) -> None:
        optimize(self.root, self.root, overwrite=True, engine=ONE)

    def check(self, words: list[tuple[int, ...]]) -> None:
        report = verify(self.root, deep=True, engine=ONE, **REPAIR_OPTIONS)
        assert not report.findings, report.findings[:3]
        super().check(words)


def _live(held: dict[str, str]) -> dict[str, str]:
    return {path: content for path, content in held.items() if not path.startswith(("mqindex-backup-", ".mqindex-"))}


TRIALS = (Writer, AsyncWriter, Publication, Repair, Undo, Optimize)
