"""Whether all machines of an engine see the same files: on one of them a volume may not be mounted.

The directory below an unmounted volume is there, and empty: a worker there would take a store for one without an index,
and write files that nobody else sees. So a directory is known by names in it. Where something is written, one of these
is that of a directory made there for this: others see an empty directory as that worker does.

A task may run on a machine that was never asked, such as one that joined later: every task looks for itself.
"""

from __future__ import annotations

import heapq
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from mqindex.engines.engine import Cluster, Engine
from mqindex.errors import FileStateError
from mqindex.files.places.place import Place

Item = TypeVar("Item")
Result = TypeVar("Result")

_NAMES = 100  # of a directory, that are compared
_STAGE = "look for the paths"


class SeeingEngine:
    """An engine each of whose tasks first makes sure that its machine sees what it must, else a `FileStateError`.

    known : paths, and names by which another machine knows each.
    """

    def __init__(self, engine: Cluster, known: Mapping[str, Sequence[str]]) -> None:
        self.engine, self.known, self.progress = engine, known, engine.progress

    def looks(self) -> int:
        """As of the engine."""
        return self.engine.looks()

    def sees(self, path: str) -> bool:
        """Whether this process sees a path as the tasks must."""
        return _is_seen(path, self.known.get(path, ()))

    def over(self, engine: Engine, paths: Sequence[str]) -> SeeingEngine:
        """The same over an engine that leads to this one's, for work that needs only some of the paths."""
        assert isinstance(engine, Cluster)
        return SeeingEngine(engine, {path: names for path, names in self.known.items() if path in paths})

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
        return self.engine.map(looking(self, stage), items, name=name, weights=weights, unit=unit)


def require_seen(engine: Cluster, paths: Sequence[str]) -> Engine:
    """Ask every machine; an engine whose tasks see the paths as the others do. What is nowhere, no task must see.

    What is elsewhere, all machines see alike.
    """
    paths = [path for path in paths if not isinstance(path, Place)]
    if not paths:
        return engine
    looks = engine.looks()
    if not looks:
        return engine
    found = [_names_in(paths), *engine.map(_names_in, [tuple(paths)] * looks, name=_STAGE)]
    known = {}
    for path, *answers in zip(paths, *found, strict=True):
        there = [names for names in answers if names is not None]
        if there:
            known[path] = answers[0] or max(there, key=len)  # this machine's, unless it sees none
    return _asked(SeeingEngine(engine, known))


def require_made(engine: SeeingEngine, paths: Sequence[str]) -> SeeingEngine:
    """Ask every machine; an engine whose tasks also see what was just made in some directories."""
    made = {os.path.dirname(path): [os.path.basename(path)] for path in paths}
    return _asked(SeeingEngine(engine.engine, {**engine.known, **made}))


def _asked(engine: SeeingEngine) -> SeeingEngine:
    engine.map(nothing, [None] * engine.looks(), name=_STAGE)
    return engine


def nothing(_: None = None) -> None:
    """The look of the task itself is all."""


def looking(engine: Engine, stage: Callable[..., Result]) -> Callable[..., Result]:
    """`stage`, which first makes sure of what the engine's tasks must see."""
    return _Looking(stage, engine.known) if isinstance(engine, SeeingEngine) else stage


class _Looking:
    """A stage that looks once in each task: there it arrives as a copy that has not looked yet."""

    def __init__(self, stage: Callable[..., Any], known: Mapping[str, Sequence[str]]) -> None:
        self.stage, self.known, self.looked = stage, known, False

    def __call__(self, *arguments: Any) -> Any:
        if not self.looked:
            for path, names in self.known.items():
                if not _is_seen(path, names):
                    raise unseen(socket.gethostname(), path)
            self.looked = True
        return self.stage(*arguments)


def unseen(host: str, path: str) -> FileStateError:
    """The error for a worker that does not see a path."""
    hint = "every path must be visible to all workers: is its volume mounted there?"
    return FileStateError(f"the worker on {host} does not see it as the others do", path=path, hint=hint)


def _names_in(paths: Sequence[str]) -> list[list[str] | None]:
    return list(map(_names, paths))


def _names(path: str) -> list[str] | None:
    """Names by which another machine knows a directory; none of a file, or of an empty one; None: nothing is there.

    The last ones: of the files of a log or an index these are the newest, and a broker deletes the oldest. Hidden names
    come and go, and `lost+found` is in every volume.
    """
    try:
        names = os.listdir(path)
    except OSError:
        return [] if os.path.exists(path) else None
    return heapq.nlargest(_NAMES, (name for name in names if not name.startswith(".") and name != "lost+found"))


def _is_seen(path: str, names: Sequence[str]) -> bool:
    """Whether one of the names is in a directory: a broker may add and delete some meanwhile."""
    return any(os.path.lexists(os.path.join(path, name)) for name in names) if names else os.path.exists(path)
