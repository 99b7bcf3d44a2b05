"""What long work will read and write, said before it begins."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from mqindex.cli.text import size
from mqindex.cli.trouble import say

if TYPE_CHECKING:
    from mqindex.engines import Engine

__all__ = ["Announcing"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Announcing:
    """An engine that tells people what the survey of a store means for `out`, before the work goes on."""

    def __init__(self, engine: Engine, out: str) -> None:
        self._engine, self._out = engine, out

    def map(
        self,
        stage: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        name: str,
        weights: Sequence[int] | None = None,
    ) -> list[Result]:
        """See `Engine.map`."""
        from mqindex.rocketmq.rebuild import needed_space
        from mqindex.rocketmq.survey import Survey

        results = self._engine.map(stage, items, name=name, weights=weights)
        for result in results:
            if isinstance(result, Survey):
                parent = os.path.dirname(os.path.abspath(self._out))
                try:
                    needed, free = needed_space(result), shutil.disk_usage(parent).free
                except OSError:  # a file system that only the workers see
                    continue
                needs = f"needs about {size(needed)} in {parent}, where {size(free)} are free"
                say(f"reads {size(result.log_bytes)} of commit log; {needs}")
        return results
