"""The rounds and the answers of one contender run."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Result", "checksum", "repeat"]


MOST = 30


def repeat(*, rounds: int, warmup: int = 0, least: float = 0.0) -> Iterator[bool]:
    """Warm-up rounds (False), then timed ones (True), as the Java contenders repeat theirs.

    Each kind goes on until it has had its number of rounds and `least` seconds, so that small work is repeated too.

    >>> list(repeat(rounds=2, warmup=1))
    [False, True, True]
    """
    for timed, number in ((False, warmup), (True, rounds)):
        began, done = time.perf_counter(), 0
        while done < number or (number and time.perf_counter() - began < least and not (timed and done >= MOST)):
            yield timed
            done += 1


class Result:
    """Seconds of each timed round by measure, and what was computed."""

    def __init__(self) -> None:
        self.measures: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, Any] = {}

    def add(self, measure: str, seconds: float, units: int) -> None:
        """One round of `measure` took that long for `units` units."""
        self.measures.setdefault(measure, {"units": units, "seconds": []})["seconds"].append(seconds)

    @contextmanager
    def timed(self, measure: str, units: int, *, keep: bool = True) -> Iterator[None]:
        """Time a block; `keep=False`: a warm-up."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        if keep:
            self.add(measure, seconds, units)

    def answer(self, **facts: Any) -> None:
        """What was computed, to be held against the other contenders."""
        self.answers.update(facts)

    def line(self) -> str:
        """The line that the runner reads."""
        return json.dumps({"measures": self.measures, "answer": self.answers})


def checksum(paths: list[str]) -> str:
    """How many files, and the CRC-32 of all their bytes in the order given: as the Java contenders say it."""
    crc = 0
    for path in paths:
        with open(path, "rb") as file:
            while block := file.read(1 << 24):
                crc = zlib.crc32(block, crc)
    return f"{len(paths)}:{crc:08x}"
