"""What a case is: contenders that do the same work, and the rows of the table that come of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from bench import java
from bench.numbers import Goal
from bench.workshop import Workshop

__all__ = ["Arguments", "Case", "Contender"]

Arguments = Callable[[Workshop], dict[str, object]]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do the work, run in a process of its own.

    runs : "rocketmq:<sub-command>" or "kafka:<sub-command>" in Java, or "<module>.<function>" of `bench.contenders`.
    needs : modules without which it cannot run.
    warm : MiB of memory to touch before a run, at full size.
    facts : put before the names of its answers, where it does other work than the rest of the case.
    """

    name: str
    runs: str
    arguments: Arguments
    needs: tuple[str, ...] = ()
    warm: int = 0
    facts: str = ""

    def missing(self) -> str:
        """What is not here; empty when it can run."""
        if broker := java.broker_of(self.runs):
            return "" if java.available(broker) else "Java and Maven"
        return ", ".join(name for name in self.needs if find_spec(name) is None)

    def command(self, shop: Workshop, scratch: str) -> list[str]:
        """The command line of one run."""
        arguments = {**self.arguments(shop), "scratch": scratch}
        if broker := java.broker_of(self.runs):
            return java.command(broker, self.runs.partition(":")[2], arguments, scratch)
        return [sys.executable, "-m", "bench.contenders", self.runs, json.dumps(arguments)]


@dataclass(frozen=True, slots=True)
class Case:
    """A group of rows that are measured together.

    estimate : seconds of one fork of all contenders: (whatever the scale, on top at full size).
    files : what is brought into the page cache before every contender run.
    keeps : what contenders wrote is removed with the work directory, not after each run.
    answer : what every contender that says it must have computed at the scale of `python -m bench check`.
    """

    name: str
    title: str
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...]
    answer: dict[str, object]
    estimate: tuple[float, float]
    forks: int = 3
    files: Callable[[Workshop], list[str]] = lambda shop: []
    watch: bool = False
    keeps: bool = False

    def seconds(self, shop: Workshop) -> float:
        """About how long a run takes."""
        fixed, work = self.estimate
        return shop.scale.forks(self.forks) * (fixed + work / shop.scale.divisor)
