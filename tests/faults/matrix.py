"""Every operation, each call, every failure, and pairs of them: attempts side by side, and what came of them."""

from __future__ import annotations

import multiprocessing
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.faults import offline, writing
from tests.faults.attempt import Operation, Verdict, attempt
from tests.faults.preload import FAILURES
from tests.support.memory_disk import memory_disk

__all__ = ["OPERATIONS", "Attempt", "Totals", "run"]

OPERATIONS: dict[str, Operation] = {each.name: each for each in (*offline.OPERATIONS, *writing.OPERATIONS)}
WORDS = ("survived", "lost", "traceback", "hang", "scrap", "unnamed")
_LATER = (1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12, 20, 40)


@dataclass(frozen=True)
class Attempt:
    """One cell of the matrix; `second`: the number and the failure of one more call, in what came of the first."""

    operation: str
    at: int
    failure: str
    second: tuple[int, str] | None = None

    @classmethod
    def of(cls, words: str) -> Attempt:
        """From what `str` gives."""
        operation, at, failure, *second = words.split(":")
        return cls(operation, int(at), failure, (int(second[0]), second[1]) if second else None)

    @property
    def failing(self) -> tuple[tuple[int, str], ...]:
        return ((self.at, self.failure), *([self.second] if self.second else []))

    def __str__(self) -> str:
        return ":".join([self.operation, *(f"{at}:{failure}" for at, failure in self.failing)])


@dataclass
class Totals:
    """What came of them; `bad`: what to tell of those that did not survive, with one attempt that shows it."""

    failed: int = 0
    words: Counter[str] = field(default_factory=Counter)
    bad: dict[tuple[str, str, str], list[Attempt]] = field(default_factory=dict)
    traces: dict[str, str] = field(default_factory=dict)

    def add(self, cell: Attempt, verdict: Verdict) -> str | None:
        """A sentence, if this is the first of its kind that did not survive."""
        if cell.at and not verdict.counted.struck and verdict.word == "survived":
            return None  # it has fewer calls this time
        self.failed += bool(cell.at)
        self.words[verdict.word] += bool(cell.at) or verdict.word != "survived"
        if verdict.word == "survived":
            return None
        alike = self.bad.setdefault((cell.operation, verdict.word, verdict.why), [])
        alike.append(cell)
        self.traces[str(cell)] = verdict.trace
        return f"{verdict.word}: {verdict.why}: {cell}" if len(alike) == 1 else None

    def __str__(self) -> str:
        names = {"traceback": "tracebacks", "hang": "hangs", "scrap": "left scrap", "unnamed": "errors without a path"}
        parts = [f"{self.words[word]:,} {names.get(word, word)}" for word in WORDS]
        return f"{self.failed:,} calls or pairs of calls made to fail: {', '.join(parts)}"

    @property
    def ok(self) -> bool:
        """Whether every attempt survived, and there were some."""
        return 0 < self.failed == self.words["survived"] and not self.bad


class _Place:
    """Where the templates stand, and the copies of one process."""

    root, number = Path(), 0

    def template(self, operation: Operation) -> Path:
        return self.root / "templates" / operation.name

    def attempt(self, cell: Attempt) -> tuple[Attempt, Verdict]:
        self.number += 1
        operation = OPERATIONS[cell.operation]
        copy = self.root / f"{os.getpid()}-{self.number}"
        return cell, attempt(operation, self.template(operation), copy, *cell.failing)


_place = _Place()  # the processes that are forked have it too


def _attempt(cell: Attempt) -> tuple[Attempt, Verdict]:
    return _place.attempt(cell)


def cells(name: str, calls: Sequence[str]) -> list[Attempt]:
    """Every call with every failure that it can have."""
    return [
        Attempt(name, at, failure)
        for at, call in enumerate(calls, 1)
        for failure, of_calls in FAILURES.items()
        if of_calls is None or call in of_calls
    ]


def pairs(single: Sequence[Attempt], count: int, source: random.Random) -> list[Attempt]:
    """So many pairs: any call, and one of the calls soon after it, as where an error is dealt with, or much later."""
    found = []
    for _ in range(count if single else 0):
        first, other = source.choice(single), source.choice(single)
        second = first.at + source.choice(_LATER), other.failure
        found.append(replace(first, second=second))
    return found


def run(
    names: Sequence[str],
    choose: Callable[[list[Attempt]], list[Attempt]] = list,
    tell: Callable[[str], None] = lambda line: None,
    workers: int | None = None,
) -> Totals:
    """Make calls fail, of each operation those that `choose` takes."""
    totals = Totals()
    with tempfile.TemporaryDirectory(prefix="mqindex-faults-", dir=memory_disk()) as directory:
        _place.root = Path(directory).resolve()
        chosen: list[Attempt] = []
        for name in names:
            operation = OPERATIONS[name]
            _place.template(operation).mkdir(parents=True)
            operation.prepare(_place.template(operation))
            undisturbed = _attempt(Attempt(name, 0, "EIO"))
            totals.add(*undisturbed)
            calls = undisturbed[1].counted.calls
            mine = choose(cells(name, calls))
            tell(f"{name}: {len(calls)} calls, {len(mine)} attempts")
            chosen += mine
        with multiprocessing.get_context("fork").Pool(workers or os.cpu_count() or 1) as pool:
            for cell, verdict in pool.imap_unordered(_attempt, chosen, chunksize=8):
                if (first := totals.add(cell, verdict)) is not None:  # now: the rest may take an hour
                    tell(first)
            pool.close()
            pool.join()
    return totals
