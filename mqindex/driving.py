"""What drives an engine besides its map: a stage of one task, words for whoever watches, a scratch for the tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from mqindex import staging
from mqindex.engines import Engine, Progress

__all__ = ["announce", "held", "one", "scratch_in"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def one(engine: Engine, stage: Callable[[Item], Result], item: Item, name: str) -> Result:
    """A stage of a single task."""
    return engine.map(stage, [item], name=name)[0]


def announce(engine: Engine, note: str) -> None:
    """Tell whoever watches what is about to happen."""
    if engine.progress is not None:
        engine.progress(Progress("plan", 0, 0, note))


@contextmanager
def scratch_in(engine: Engine, parent: str) -> Iterator[str]:
    """A scratch directory for the tasks, gone at the end."""
    if os.path.isdir(parent):
        with staging.scratch(parent) as scratch:
            yield scratch
        return
    shared = one(engine, staging.make_shared_scratch, parent, "scratch")  # the driver does not see the tasks' files
    try:
        yield shared
    finally:
        one(engine, staging.discard, shared, "clean")


@contextmanager
def held(engine: Engine, hold: Callable[[str], AbstractContextManager[None]], root: str) -> Iterator[None]:
    """Hold a store for writing; where the driver does not see it, a task looks once that no broker does."""
    if os.path.isdir(root):
        with hold(root):
            yield
    else:
        one(engine, _try_to_hold, (hold, root), "lock")
        yield


def _try_to_hold(item: tuple[Callable[[str], AbstractContextManager[None]], str]) -> None:
    hold, root = item
    with hold(root):
        pass
