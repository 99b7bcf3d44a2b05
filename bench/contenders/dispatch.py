"""Dispatch: a complete log into queues and index, and a log that grows, followed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench import memory
from bench.contenders.result import Result, checksum, repeat
from mqindex.rocketmq import ConsumeQueueTable, IndexService
from mqindex.rocketmq.directories.store import index_paths
from mqindex.rocketmq.dispatch.reput import Reput, ReputResult
from mqindex.rocketmq.queue.queue_rules import QueueRules
from tests.support.big_log import BigLog, Block

__all__ = ["follow", "reput"]

FIRST_SECONDS = 60.0  # within which a follower must have started
FOUND_SECONDS = 10.0  # within which a key must be found


def reput(*, store: str, slots: int, entries: int, warm: int, scratch: str, **spec: Any) -> Result:
    """Dispatch of a whole log on one thread, whose end is found on the way. No fsync, as in the broker's restart."""
    result, checked = Result(), ""
    for keep in repeat(**spec):
        memory.warm(warm)
        out = os.path.join(scratch, "out")
        start = time.perf_counter()
        done = reput_once(os.path.join(store, "commitlog"), out, slots, entries)
        if keep:
            result.add("reput", time.perf_counter() - start, done.messages)
        checked = checked or checksum(index_paths(os.path.join(out, "index")))
        shutil.rmtree(out)
    result.answer(messages=done.messages, units=done.units, files=checked)
    return result


def reput_once(log: str, out: str, slots: int, entries: int) -> ReputResult:
    """Queues and index of a log, from nothing."""
    with (
        IndexService.open(f"{out}/index", hash_slot_num=slots, index_num=entries, writable=True) as index,
        ConsumeQueueTable.open(f"{out}/consumequeue", writable=True) as queues,
        Reput([log], index, queues, tags=False, rules=QueueRules(), start=0) as dispatch,
    ):
        return dispatch.run_once()


def follow(
    *, messages: int, per_second: int, file_size: int, slots: int, entries: int, scratch: str, **spec: Any
) -> Result:
    """`mqindex follow` in a process of its own, while this one appends and asks for the last key of many appends."""
    result = Result()
    for keep in repeat(**spec):
        root = os.path.join(scratch, "follow")
        growing = Growing(BigLog(Path(root, "store"), messages, mapped_file_size=file_size))
        growing.append(1)
        delays, said = _followed(growing, os.path.join(root, "out"), per_second, slots, entries)
        if said["messages"] != messages:
            raise RuntimeError(f"appended {messages}, dispatched {said['messages']}")
        if keep:
            result.add("delay", float(np.median(delays)), 1)
            result.add("delay_99", float(np.quantile(delays, 0.99)), 1)
            result.add("delay_most", max(delays), 1)
        shutil.rmtree(root)
    result.answer(messages=said["messages"], entries=said["entries"], units=said["units"])
    return result


def _followed(growing: Growing, out: str, per_second: int, slots: int, entries: int) -> tuple[list[float], Any]:
    options = ["--hash-slot-num", str(slots), "--index-num", str(entries), "--json"]
    command = [sys.executable, "-m", "mqindex", "follow", str(growing.log.root), "--out", out, *options]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        with _index(out, slots, entries) as index:
            _wait(index, growing, 0, FIRST_SECONDS)
            delays = _append_and_ask(growing, index, per_second)
        _wait_for_last(out, growing, slots, entries)
        running.send_signal(signal.SIGTERM)  # SIGINT is ignored by whatever a shell's background job starts
        said, _ = running.communicate(timeout=FIRST_SECONDS)
    finally:
        running.kill()
    return delays, json.loads(said.splitlines()[-1])


def _append_and_ask(growing: Growing, index: IndexService, per_second: int) -> list[float]:
    """Append at a steady rate, a batch a millisecond; one key at a time is waited for."""
    delays = []
    batch = max(per_second // 1000, 1)
    began = time.perf_counter()
    asked: tuple[int, float] | None = None
    while growing.number < growing.log.messages:
        due = int((time.perf_counter() - began) * per_second) - growing.number
        if due >= batch:
            growing.append(min(due, growing.log.messages - growing.number))
            asked = asked or (growing.number - 1, time.perf_counter())
        if asked is not None:
            if _found(index, growing, asked[0]):
                delays.append(time.perf_counter() - asked[1])
                asked = None
            elif time.perf_counter() - asked[1] > FOUND_SECONDS:
                raise RuntimeError(f"message {asked[0]} is not found")
        time.sleep(0.0001)
    return delays or [0.0]


def _wait_for_last(out: str, growing: Growing, slots: int, entries: int) -> None:
    with _index(out, slots, entries) as index:  # anew: it may have rolled
        _wait(index, growing, growing.number - 1, FOUND_SECONDS)


def _index(out: str, slots: int, entries: int) -> IndexService:
    deadline = time.perf_counter() + FIRST_SECONDS
    while not any(map(os.path.getsize, index_paths(os.path.join(out, "index")))):  # a new file is empty for a moment
        if time.perf_counter() > deadline:
            raise RuntimeError("the follower does not start")
        time.sleep(0.01)
    return IndexService.open(os.path.join(out, "index"), hash_slot_num=slots, index_num=entries)


def _wait(index: IndexService, growing: Growing, number: int, seconds: float) -> None:
    deadline = time.perf_counter() + seconds
    while not _found(index, growing, number):
        if time.perf_counter() > deadline:
            raise RuntimeError(f"message {number} is not found")
        time.sleep(0.001)


def _found(index: IndexService, growing: Growing, number: int) -> bool:
    key = growing.log.uniq_keys([number])[0].decode()
    return bool(len(index.query_offset(growing.log.topic, key, max_num=1).phy_offsets))


class Growing:
    """A log of the bench's messages that is written little by little, as a broker writes its own."""

    def __init__(self, log: BigLog) -> None:
        self.log, self.number = log, 0
        self._block = Block(log)
        (log.root / "commitlog").mkdir(parents=True)
        self._fd = -1

    def append(self, count: int) -> None:
        """The next `count` messages."""
        while count > 0:
            log, place = self.log, self.number % self.log.messages_per_file
            if place == 0:
                self._next_file()
            some = min(count, log.messages_per_file - place, self._block.rows)
            size = len(log.template)
            os.pwrite(self._fd, self._block.fill(self.number, self.number + some), place * size)
            self.number, count = self.number + some, count - some
            if self.number % log.messages_per_file == 0:
                at = log.messages_per_file * size
                free = log.mapped_file_size - at
                os.pwrite(self._fd, free.to_bytes(4, "big") + bytes.fromhex("cbd43194"), at)

    def _next_file(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        start = self.number // self.log.messages_per_file * self.log.mapped_file_size
        path = self.log.root / "commitlog" / f"{start:020d}"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        os.ftruncate(self._fd, self.log.mapped_file_size)
