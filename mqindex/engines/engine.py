"""Engines: how a stage, a plain function of one picklable value, is mapped over a list.

An engine knows nothing of brokers or files. `LocalEngine` runs a stage in threads (the kernels release the GIL);
`mqindex.spark.SparkEngine` runs it in Spark tasks.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from mqindex._native.numbers import whole_number
from mqindex.engines.processors import processors
from mqindex.engines.workers import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")

_MANY: Final = 64  # items: from here on it costs little to begin with one thread
_SHORT: Final = 0.001  # seconds of an item
_PATIENCE: Final = 0.0001  # seconds for each item, which some may take beyond that before the rest is spread


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is: what `LocalEngine` hands to its `progress`.

    Attributes
    ----------
    stage : str, its name
    done, total : int, units of work
    note : str, what a person should know before the stages that follow, or nothing
    unit : str, what `done` and `total` count: "byte" where the stage reads, else "entry", "file", "task" and so on
    """

    stage: str
    done: int
    total: int
    note: str = ""
    unit: str = "task"


OnProgress = Callable[[Progress], None]


class Engine(Protocol):
    """What the pipeline needs of an engine; `progress` is called as work finishes, None: no calls.

    >>> from mqindex.engines import Engine, LocalEngine
    >>> engine: Engine = LocalEngine(workers=2)
    >>> engine.map(len, ["a", "bc"], name="demo")
    [1, 2]
    """

    progress: OnProgress | None

    def map(
        self,
        stage: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Result]:
        """`[stage(item) for item in items]`, in the items' order, however the work is spread.

        Parameters
        ----------
        stage : a picklable function of one picklable value
        items : what it is called with
        name : what the stage does, shown to people, such as "check the log"
        weights : units of work of each item, for grouping and for progress; None: 1 each
        unit : what the weights count, such as "byte" or "entry"; a noun in the singular

        Raises
        ------
        RebuildError : a worker died. An exception that a stage raises reaches the caller unchanged
        """


@runtime_checkable
class Cluster(Engine, Protocol):
    """An engine of several machines, each of which may see other files."""

    def looks(self) -> int:
        """How many tasks reach every machine; 0: there is only this one."""


class LocalEngine:
    """One machine, threads, no Java.

    Parameters
    ----------
    workers : int or None
        Threads; None: the processors that this process may use.
    progress : callable or None
        Called in the caller's thread with a `Progress` after each finished item.

    Examples
    --------
    >>> LocalEngine(workers=2).map(abs, [-1, 2, -3], name="demo")
    [1, 2, 3]
    """

    def __init__(self, workers: int | None = None, *, progress: OnProgress | None = None) -> None:
        self.workers = processors() if workers is None else whole_number("workers", workers)
        if self.workers < 1:
            raise ValueError(f"workers: expected 1 or more, got {workers}")
        self.progress = progress

    def __repr__(self) -> str:
        return f"LocalEngine(workers={self.workers})"

    def map(
        self,
        stage: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Result]:
        """See `Engine.map`. After the first failure no other item is begun."""
        tally = _Tally(name, weights or [1] * len(items), unit, self.progress)
        if self.workers == 1 or len(items) < 2:
            return [tally.finish(i, stage(item)) for i, item in enumerate(items)]
        results: list[Any] = [None] * len(items)
        begun = 0

        def finish(i: int, result: Result) -> None:
            results[i] = tally.finish(i, result)

        def numbered(i: int) -> tuple[int, Result]:
            return i, stage(items[i])

        if len(items) >= _MANY and one_at_a_time():
            begun = _short_ones(stage, items, finish)
        workers = Workers(self.workers, "mqindex")
        try:
            for i in range(begun, len(items)):
                workers.submit(numbered, i)
            while workers.pending:
                finish(*workers.next())
        finally:
            workers.close(cancel=True)
        return results


def chosen_engine(engine: Engine | None) -> Engine:
    """The engine of a call; where none was given, the processors of this machine."""
    if engine is None:
        return LocalEngine()
    if isinstance(engine, type) or not callable(getattr(engine, "map", None)):
        got = f"the class {engine.__name__}" if isinstance(engine, type) else f"{engine!r:.80}"
        raise TypeError(f"engine: expected LocalEngine() or SparkEngine(spark), got {got}")
    return engine


def one_at_a_time() -> bool:
    """Whether this interpreter runs Python in one thread at a time."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _short_ones(stage: Callable[[Item], Result], items: Sequence[Item], finish: Callable[[int, Result], None]) -> int:
    """Work off the first items in the caller's thread, all if they are short; returns how many.

    Short ones are mostly Python and calls of the system: two threads take the interpreter's lock from each other at
    each call, and need 1.6 times as long as one.
    """
    late, patience = 0.0, _PATIENCE * len(items)
    for i, item in enumerate(items):
        began = time.perf_counter()
        result = stage(item)
        late = max(late + time.perf_counter() - began - _SHORT, 0.0)
        finish(i, result)
        if late > patience:
            return i + 1
    return len(items)


class _Tally:
    """Counts the finished work of one stage, and calls `progress` with it."""

    def __init__(self, name: str, weights: Sequence[int], unit: str, progress: OnProgress | None) -> None:
        self.name, self.weights, self.unit, self.progress = name, weights, unit, progress
        self.total, self.done = sum(weights), 0
        self._show()

    def finish(self, item: int, result: Result) -> Result:
        """Item number `item` is done; hands its result through."""
        self.done += self.weights[item]
        self._show()
        return result

    def _show(self) -> None:
        if self.progress is not None:
            self.progress(Progress(self.name, self.done, self.total, unit=self.unit))
