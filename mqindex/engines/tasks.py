"""Helpers of code that drives an engine: a stage of one task, notes for its progress, a scratch for the tasks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeGuard, TypeVar

from mqindex.engines import Engine, Progress
from mqindex.engines.engine import Cluster
from mqindex.errors import RebuildError
from mqindex.files import disk
from mqindex.files.paths import parent_of
from mqindex.files.places.place import Place
from mqindex.files.results import staging
from mqindex.files.rights import as_owner_of

if TYPE_CHECKING:
    from mqindex.engines.visibility import SeeingEngine

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_one(engine: Engine, stage: Callable[[Item], Result], item: Item, name: str) -> Result:
    """A stage of a single task."""
    return engine.map(stage, [item], name=name)[0]


def require_seen(engine: Engine, paths: Iterable[str]) -> Engine:
    """Before any work: an engine whose machines all see the same at these paths, and each task again.

    Else it is a `FileStateError`. An engine of one machine is returned as it is.
    """
    if not isinstance(engine, Cluster):
        return engine
    from mqindex.engines import visibility  # here: only a cluster needs it

    return visibility.require_seen(engine, list(dict.fromkeys(paths)))


def announce(engine: Engine, note: str) -> None:
    """Pass a note on what is about to happen to the engine's `progress`."""
    if engine.progress is not None:
        engine.progress(Progress("plan", 0, 0, note))


@contextmanager
def half_done(said: Callable[[], str | None]) -> Iterator[None]:
    """Where files get their places: the error of a worker that dies in this block says what is true of them then.

    said : asked then; None: none has its place yet.
    """
    try:
        yield
    except RebuildError as error:
        error.hint = said() or error.hint
        raise


@contextmanager
def scratch_for(engine: Engine, out: str) -> Iterator[tuple[Engine, str]]:
    """As `scratch_in`, for a result at `out`, which may be elsewhere."""
    if isinstance(out, Place):
        from mqindex.files.results import elsewhere  # here: what is written on this machine needs none of it

        with elsewhere.scratch_of(out) as scratch:
            yield engine, scratch
    else:
        with scratch_in(engine, parent_of(out)) as made:
            yield made


@contextmanager
def scratch_in(engine: Engine, parent: str) -> Iterator[tuple[Engine, str]]:
    """A scratch directory for the tasks, gone at the end, and an engine whose machines all see it."""
    with scratches_in(engine, [parent]) as (seeing, (scratch,)):
        yield seeing, scratch


@contextmanager
def scratches_in(engine: Engine, parents: Sequence[str]) -> Iterator[tuple[Engine, list[str]]]:
    """A scratch directory in each of several places, all gone at the end, and an engine whose machines all see them."""
    with _made_in(engine, parents) as made:
        yield _require_made(engine, made), made


@contextmanager
def marked(engine: Engine, directories: Sequence[str]) -> Iterator[Engine]:
    """An engine whose machines see the same directories, whatever is in them: a cluster's see a scratch there."""
    if not is_seeing(engine):
        yield engine
        return
    with scratches_in(engine, directories) as (seeing, _):
        yield seeing


def _require_made(engine: Engine, made: Sequence[str]) -> Engine:
    if not is_seeing(engine):
        return engine
    from mqindex.engines import visibility  # as above

    return visibility.require_made(engine, made)


def is_seeing(engine: Engine) -> TypeGuard[SeeingEngine]:
    """Whether `require_seen` found several machines."""
    visibility = sys.modules.get("mqindex.engines.visibility")  # it is loaded where there are several machines
    return visibility is not None and isinstance(engine, visibility.SeeingEngine)


def _sees(engine: Engine, directory: str) -> bool:
    """Whether this process sees a directory as the tasks do: below a volume that is not mounted here it is empty."""
    return disk.is_directory(directory) and (not is_seeing(engine) or engine.sees(directory))


@contextmanager
def _made_in(engine: Engine, parents: Sequence[str]) -> Iterator[list[str]]:
    if all(_sees(engine, parent) for parent in parents):
        with ExitStack() as stack:
            yield [stack.enter_context(staging.scratch(parent)) for parent in parents]
        return
    shared = engine.map(
        staging.make_shared_scratch, parents, name="make a scratch directory"
    )  # the driver does not see the tasks' files
    try:
        with ExitStack() as stack:
            for parent, scratch in zip(parents, shared, strict=True):
                stack.enter_context(staging.named_outside(parent, [scratch]))
            yield shared
    finally:
        with half_done(lambda: "what it leaves is removed by a later run"):
            plain = engine.engine if is_seeing(engine) else engine  # what tasks saw may be replaced by now
            gone = plain.map(staging.discard, shared, name="clean up")
        for path, removed in zip(shared, gone, strict=True):
            if not removed:
                staging.say_left(path)  # here: what a task warns of goes to a worker's log


@contextmanager
def held(engine: Engine, hold: Callable[[str], AbstractContextManager[None]], root: str) -> Iterator[None]:
    """Hold a store for writing; where the driver does not see it, a task checks once that no broker holds it."""
    if _sees(engine, root):
        with as_owner_of(root), hold(root):
            yield
    else:
        run_one(engine, _try_to_hold, (hold, root), "look for a broker")
        yield


def _try_to_hold(item: tuple[Callable[[str], AbstractContextManager[None]], str]) -> None:
    hold, root = item
    with hold(root):
        pass
