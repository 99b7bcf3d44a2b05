"""Engines that behave as a cluster does, in one process: workers that see other files, or die."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mqindex.engines import LocalEngine
from mqindex.errors import RebuildError

__all__ = ["LOOK", "BlindWorker", "DyingWorker", "ElsewhereCluster"]

LOOK = "look for the paths"


class BlindWorker(LocalEngine):
    """Two workers; on w2 the volume of the directory `hidden` is not mounted, so that it has one of its own there.

    on_w2 : names of stages that it runs; None: every second task is one of its.
    """

    def __init__(self, hidden: Path, beside: Path, on_w2: Sequence[str] | None = None) -> None:
        super().__init__(1)
        self.hidden, self.on_w2 = hidden, on_w2
        self.local, self.aside = beside / "on-w2", beside / "on-w1"
        self.local.mkdir()
        self.stages: list[str] = []
        self._turns = itertools.cycle([False, True])

    def looks(self) -> int:
        return 4

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **more: Any) -> list[Any]:
        self.stages.append(name)
        packed = pickle.dumps(stage)
        return [self._run(packed, item, name) for item in items]

    def _run(self, packed: bytes, item: Any, name: str) -> Any:
        blind = next(self._turns) if self.on_w2 is None else name in self.on_w2
        with self._on_w2() if blind else nullcontext():
            return pickle.loads(packed)(item)

    @contextmanager
    def _on_w2(self) -> Iterator[None]:
        self.hidden.rename(self.aside)
        self.local.rename(self.hidden)
        try:
            with patch("socket.gethostname", lambda: "w2"):
                yield
        finally:
            self.hidden.rename(self.local)
            self.aside.rename(self.hidden)


class ElsewhereCluster(LocalEngine):
    """Workers that see the directory `there`, which this process does not.

    mount_point : here the directory is there, and empty: the volume is not mounted.
    """

    def __init__(self, there: Path, *, mount_point: bool = False) -> None:
        super().__init__(1)
        self.there, self.away = there, there.with_name(f"{there.name}-away")
        self.mount_point = mount_point
        self._go()

    def looks(self) -> int:
        return 2

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **more: Any) -> list[Any]:
        self.come_back()
        try:
            return [pickle.loads(pickle.dumps(stage))(item) for item in items]
        finally:
            self._go()

    def come_back(self) -> None:
        """This process sees the directory from now on."""
        if self.mount_point:
            self.there.rmdir()  # nothing was written there
        self.away.rename(self.there)

    def _go(self) -> None:
        self.there.rename(self.away)
        if self.mount_point:
            self.there.mkdir()


class DyingWorker(LocalEngine):
    """A worker that dies after it has run a stage, each time."""

    def __init__(self, name: str) -> None:
        super().__init__(1)
        self.name = name

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **more: Any) -> list[Any]:
        done = super().map(stage, items, name=name, **more)
        if name == self.name:
            raise RebuildError(f"Spark could not {name}: it died", hint="nothing was published")
        return done
