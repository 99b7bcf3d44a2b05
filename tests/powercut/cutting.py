"""Cuts: a process works, the power goes, the disk is mounted again and looked at."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import struct
import tempfile
import termios
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from tests.powercut.disk import Disk
from tests.powercut.trials import WORD, Trial
from tests.support.memory_disk import memory_disk

__all__ = ["Result", "cut_often"]


@dataclass
class Result:
    """How often the power went, how many things had been acknowledged, and what was lost."""

    name: str
    cuts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name}: {self.cuts:,} cuts, {self.acknowledged:,} acknowledged, {len(self.lost):,} lost"


def cut_often(kind: type[Trial], cuts: int, seed: int) -> Result:
    """So many cuts of one trial, on one disk."""
    result, source = Result(kind.name), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="mqindex-powercut-", dir=memory_disk()) as place:
        disk = Disk(Path(place))
        try:
            trial = kind(disk, source)
            for _ in range(cuts):
                trial.begin()
                words = _worked(trial, disk, source)
                result.cuts += 1
                result.acknowledged += len(words)
                try:
                    trial.check(words)
                except Exception:
                    result.lost.append(f"{kind.name}, cut {result.cuts}\n{traceback.format_exc()}")
                    break  # what comes behind would be told of this one
        finally:
            disk.unmount()
    return result


def _worked(trial: Trial, disk: Disk, source: random.Random) -> list[tuple[int, ...]]:
    """The words that were said before the power went."""
    words, seconds = source.randint(0, trial.most_words), source.random() * trial.most_seconds
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # errors without end, of a disk that is gone
        try:
            trial.work(writing)
        finally:
            os._exit(0)
    os.close(writing)
    said = b""
    with open(reading, "rb", buffering=0) as pipe:
        while len(said) < words * WORD.size and (piece := pipe.read(words * WORD.size - len(said))):
            said += piece
        time.sleep(seconds)
        ready = struct.unpack("=i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
        disk.cut()  # what is said from here on is said without power: a sync under way may end well
        said += pipe.read(ready) if ready else b""
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    disk.unmount()
    disk.mount()
    return list(WORD.iter_unpack(said[: len(said) // WORD.size * WORD.size]))
