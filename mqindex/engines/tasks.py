"""Helpers of code that drives an engine: a stage of one task, notes for its progress, a scratch for the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from mqindex.engines import Engine, Progress
from mqindex.files import disk, staging

__all__ = ["announce", "held", "require_seen", "run_one", "scratch_in", "scratches_in"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_one(engine: Engine, stage: Callable[[Item], Result], item: Item, name: str) -> Result:
    """A stage of a single task."""
    return engine.map(stage, [item], name=name)[0]


def require_seen(engine: Engine, paths: Sequence[str]) -> None:
    """Before any work: an engine of several machines checks that each sees the paths, else `FileStateError`."""
    look = getattr(engine, "require_seen", None)
    if look is not None:
        look(paths)


def announce(engine: Engine, note: str) -> None:
    """Pass a note on what is about to happen to the engine's `progress`."""
    if engine.progress is not None:
        engine.progress(Progress("plan", 0, 0, note))


@contextmanager
def scratch_in(engine: Engine, parent: str) -> Iterator[str]:
    """A scratch directory for the tasks, gone at the end."""
    with scratches_in(engine, [parent]) as (scratch,):
        yield scratch


@contextmanager
def scratches_in(engine: Engine, parents: Sequence[str]) -> Iterator[list[str]]:
    """A scratch directory in each of several places, all gone at the end."""
    if all(map(disk.is_directory, parents)):
        with ExitStack() as stack:
            yield [stack.enter_context(staging.scratch(parent)) for parent in parents]
        return
    shared = engine.map(
        staging.make_shared_scratch, parents, name="make a scratch directory"
    )  # the driver does not see the tasks' files
    try:
        yield shared
    finally:
        engine.map(staging.discard, shared, name="clean up")


@contextmanager
def held(engine: Engine, hold: Callable[[str], AbstractContextManager[None]], root: str) -> Iterator[None]:
    """Hold a store for writing; where the driver does not see it, a task checks once that no broker holds it."""
    if disk.is_directory(root):
        with hold(root):
            yield
    else:
        run_one(engine, _try_to_hold, (hold, root), "look for a broker")
        yield


def _try_to_hold(item: tuple[Callable[[str], AbstractContextManager[None]], str]) -> None:
    hold, root = item
    with hold(root):
        pass
