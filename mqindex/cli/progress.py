"""Progress of long work: a bar a stage, on a terminal only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqindex.cli.trouble import say

if TYPE_CHECKING:
    from mqindex.engines import OnProgress, Progress

__all__ = ["progress_bars"]


@contextlib.contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """A callback for engines that says notes on stderr, and on a terminal draws bars there while it lasts."""
    if not sys.stderr.isatty():
        yield _say_note
        return
    from rich import progress
    from rich.console import Console

    bars = progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,  # the report that follows says what was done
        redirect_stdout=False,
    )
    stages: dict[str, progress.TaskID] = {}

    def show(now: Progress) -> None:
        _say_note(now)
        if now.total and (now.stage not in stages or now.done == 0):
            stages[now.stage] = bars.add_task(now.stage, total=now.total)
        if now.total:
            bars.update(stages[now.stage], completed=now.done)

    with bars:
        yield show


def _say_note(now: Progress) -> None:
    if now.note:
        say(now.note)
