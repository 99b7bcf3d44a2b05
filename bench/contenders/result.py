"""The rounds and the answers of one contender run."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Result", "checksums"]


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


def checksums(paths: list[str]) -> str:
    """CRC-32 of each file, in the order given, as the Java contenders print them."""
    return ",".join(f"{_crc(path):08x}" for path in paths)


def _crc(path: str) -> int:
    crc = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 24):
            crc = zlib.crc32(block, crc)
    return crc


def numbered(directory: str) -> list[str]:
    """The files of a directory, in the order of their names."""
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))]
