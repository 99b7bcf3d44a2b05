"""Several pieces of work on one engine: what each hands to it at a time goes through it as one round of tasks.

```
work of A   map ──┐               ┌── map ──┐
work of B   map ──┼─ one round ───┼── map ──┼─ one round ── …
work of C   map ──┘               └── ends
```

Each piece of work runs in a thread of its own, as if it were alone, and waits in `map`. When all of them wait, the
caller's thread, and no other, gives the engine all their items at once. An error belongs to the work whose item it is.
"""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from mqindex.engines.engine import Cluster, Engine, LocalEngine, OnProgress
from mqindex.engines.tasks import is_seeing
from mqindex.engines.transport import portable
from mqindex.errors import RebuildError
from mqindex.files.few_threads import no_thread, started
from mqindex.files.results.staging import interrupts_wait

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_kept(
    engine: Engine, stage: Callable[[Item], Result], items: Sequence[Item], *, name: str
) -> list[Result | Exception]:
    """As `engine.map`; where the stage raises an error, that is the item's result."""
    pairs = [(number, item) for number, item in enumerate(items)]
    return [_result(*one) for one in engine.map(_Kept([stage] * len(items)), pairs, name=name)]


def together(
    engine: Engine,
    work: Callable[[Engine, Item], Result],
    items: Sequence[Item],
    paths_of: Callable[[Item], Sequence[str]],
) -> list[Result | Exception]:
    """`work(engine, item)` of each item, all at once, in rounds; an error that one raises is its result.

    An interrupt reaches each of them at its next call of the engine; it is raised when all have ended.

    paths_of : of an engine of several machines, what the tasks of one item's work must see
    """
    rounds = _Rounds(engine.engine if is_seeing(engine) else engine, len(items))
    for number, item in enumerate(items):
        own: Engine = _joined(rounds)
        if is_seeing(engine):
            own = engine.over(own, paths_of(item))
        if started(partial(rounds.run, number, partial(work, own, item)), f"store-{number}") is None:
            rounds.run(number, _without_thread)
    rounds.serve()
    return [_result(*rounds.results[number]) for number in range(len(items))]


def _without_thread() -> Any:
    raise no_thread()


def _result(value: Any, error: BaseException | None) -> Any:
    if error is not None and not isinstance(error, Exception):
        raise error
    return value if error is None else error


@dataclass(eq=False)
class _Request:
    """One call of `map`, and what came of it."""

    stage: Callable[[Any], Any]
    items: Sequence[Any]
    name: str
    weights: Sequence[int]
    unit: str
    answer: list[Any] = field(default_factory=list)
    error: BaseException | None = None


class _Rounds:
    """What the pieces of work ask for, and the rounds that answer it. `results`: (value, error) of each."""

    def __init__(self, engine: Engine, count: int) -> None:
        self.engine, self.results = engine, dict[int, tuple[Any, BaseException | None]]()
        self.looks = engine.looks() if isinstance(engine, Cluster) else 0
        self._changed = threading.Condition()
        self._alive = count
        self._asked: list[_Request] = []
        self.interrupt: BaseException | None = None

    # ---- in the thread of a piece of work

    def run(self, number: int, work: Callable[[], Any]) -> None:
        """A whole piece of work."""
        try:
            self.results[number] = work(), None
        except BaseException as error:
            self.results[number] = None, error
        with self._changed:
            self._alive -= 1
            self._changed.notify_all()

    def ask(self, request: _Request) -> list[Any]:
        """Wait for the round with this request."""
        with self._changed:
            self._asked.append(request)
            self._changed.notify_all()
            self._changed.wait_for(lambda: request not in self._asked)
        if request.error is not None:
            raise request.error
        return request.answer

    # ---- in the caller's thread

    def serve(self) -> None:
        """Rounds until all pieces of work have ended."""
        while self._alive:
            try:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._asked) == self._alive)
                if self._asked:
                    self._answer(self._asked)
            except BaseException as error:
                if not isinstance(error, Exception):
                    self.interrupt = self.interrupt or error
                for one in self._asked:  # each says in a copy what is true of its own files
                    one.error = copy.copy(error) if isinstance(error, RebuildError) else error
            with interrupts_wait(), self._changed:
                self._asked = []
                self._changed.notify_all()
        if self.interrupt is not None:
            raise self.interrupt

    def _answer(self, asked: Sequence[_Request]) -> None:
        pairs = [(number, item) for number, one in enumerate(asked) for item in one.items]
        units = {one.unit for one in asked}
        found = iter(
            self.engine.map(
                _Kept([one.stage for one in asked]),
                pairs,
                name=", ".join(dict.fromkeys(one.name for one in asked)),
                weights=[weight for one in asked for weight in one.weights],
                unit=units.pop() if len(units) == 1 else "task",
            )
        )
        for one in asked:
            own = [next(found) for _ in one.items]
            one.answer = [value for value, _ in own]
            one.error = next((error for _, error in own if error is not None), None)


class _Kept:
    """A stage of several: of a pair (number, item) it runs that one, and keeps its error, (value, error).

    After one's error no other item of that one is begun here.
    """

    def __init__(self, stages: Sequence[Callable[[Any], Any]]) -> None:
        self._stages = stages
        self._failed: set[int] = set()

    def __call__(self, pair: tuple[int, Any]) -> tuple[Any, Exception | None]:
        number, item = pair
        if number in self._failed:
            return None, None  # the error is that of another item
        try:
            return self._stages[number](item), None
        except Exception as error:
            self._failed.add(number)
            return None, portable(error, pickle.dumps, pickle.loads)


def _joined(rounds: _Rounds) -> Engine:
    if isinstance(rounds.engine, LocalEngine):
        return _OfThreads(rounds)
    return _OfCluster(rounds) if rounds.looks else _Joined(rounds)


class _Joined:
    """The engine that a piece of work gets."""

    progress: OnProgress | None = None  # the rounds have the caller's
    _interrupted = False

    def __init__(self, rounds: _Rounds) -> None:
        self._rounds = rounds

    def map(
        self,
        stage: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Result]:
        """See `Engine.map`."""
        if self._rounds.interrupt is not None and not self._interrupted:
            self._interrupted = True  # what it asks for later cleans up
            raise self._rounds.interrupt
        try:
            return self._rounds.ask(_Request(stage, items, name, weights or [1] * len(items), unit))
        except BaseException as error:
            self._interrupted |= error is self._rounds.interrupt
            raise


class _OfThreads(_Joined, LocalEngine):
    """The same of one whose tasks share this process's memory."""

    def __init__(self, rounds: _Rounds) -> None:
        assert isinstance(rounds.engine, LocalEngine)
        LocalEngine.__init__(self, rounds.engine.workers)
        self._rounds = rounds


class _OfCluster(_Joined):
    """The same of several machines."""

    def looks(self) -> int:
        """As of the engine."""
        return self._rounds.looks
