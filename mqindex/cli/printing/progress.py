"""Progress of long work: one bar on a terminal, which names the stage that runs; a line each minute elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mqindex._words import plural
from mqindex.cli.trouble import say
from mqindex.engines import Progress
from mqindex.files.few_threads import started
from mqindex.wording.text import about_size

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, Task

    from mqindex.engines import OnProgress

MINUTE: Final = 60.0  # s between two lines
_WIDEST_BAR = 40
_BESIDE_THE_BAR = 56  # columns for name, share, rate and time left


@contextlib.contextmanager
def progress_bars() -> Iterator[OnProgress]:
    """A callback for engines that shows notes and the progress of the work on stderr, while the block runs."""
    with _bars() if sys.stderr.isatty() else _lines() as show:
        yield lambda now: say(now.note) if now.note else show(now)


def amount(count: float, unit: str) -> str:
    """So many units of work, short.

    >>> amount(2_217_500_000, "byte"), amount(12_345_678, "entry"), amount(740, "byte"), amount(1, "file")
    ('2.1 GiB', '12.3 M entries', '740 bytes', '1 file')
    """
    if unit == "byte":
        return about_size(count)
    scaled, prefix = float(count), ""
    for prefix in ("", "k", "M", "G", "T"):
        if scaled < 999.95 or prefix == "T":
            break
        scaled /= 1000
    if not prefix:
        return plural(round(count), unit)
    return f"{scaled:.1f} {prefix} {plural(2, unit).removeprefix('2 ')}"


def progress_line(now: Progress, seconds: float) -> str:
    """The line in a log file about a stage that has run for some seconds.

    >>> progress_line(Progress("check the log", 4_400_000_000, 16_000_000_000, unit="byte"), 2.0)
    'check the log: 27 %, 4.1 GiB of 14.9 GiB, 2.0 GiB/s, 0:00:05 left'
    >>> progress_line(Progress("publish", 0, 1), 3700.0)
    'publish: for 1:01:40'
    """
    if not now.done:
        return f"{now.stage}: for {_duration(seconds)}"
    done, total = amount(now.done, now.unit), amount(now.total, now.unit)
    left = seconds * (now.total - now.done) / now.done
    parts = [f"{100 * now.done // now.total} %", f"{done} of {total}", _rate(now.done / seconds, now.unit)]
    return f"{now.stage}: {', '.join(filter(None, parts))}, {_duration(left)} left"


def _rate(speed: float, unit: str) -> str:
    return "" if unit == "task" else f"{amount(speed, unit)}/s"  # tasks are of any size


def _duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> _duration(5.3), _duration(3700)
    ('0:00:05', '1:01:40')
    """
    return str(timedelta(seconds=round(seconds)))


@contextlib.contextmanager
def _bars() -> Iterator[OnProgress]:
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    bars = progress.Progress(
        *columns(max(4, min(_WIDEST_BAR, console.width - _BESIDE_THE_BAR))),
        console=console,
        transient=True,  # the report that follows says what was done
        redirect_stdout=False,
    )
    task, running = bars.add_task("", visible=False, unit=""), ""

    def show(now: Progress) -> None:
        nonlocal running
        if now.total and (now.stage != running or now.done == 0):
            running = now.stage
            bars.reset(task, total=now.total, description=now.stage, visible=True, unit=now.unit)
        if now.total:
            bars.update(task, completed=now.done)

    try:
        try:
            bars.start()
        except RuntimeError:  # no more threads can be started, and Rich draws in one of its own: nothing is drawn
            bars.stop()
        yield show
    finally:
        bars.stop()


def columns(bar_width: int = _WIDEST_BAR) -> list[ProgressColumn]:
    """Name, bar, share, rate, and the time left, of a stage whose task has a field `unit`."""
    from rich import progress

    return [
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=bar_width),
        progress.TaskProgressColumn(),
        _column(_shown_rate),
        _column(_shown_time),
    ]


def _column(text_of: Callable[[Task], str]) -> ProgressColumn:
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Column(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(text_of(task), style="cyan")

    return Column()


def _shown_rate(task: Task) -> str:
    """Bytes, or other units, a second."""
    speed = _speed(task)
    return _rate(speed, task.fields["unit"]) if speed else ""


def _shown_time(task: Task) -> str:
    """The time left; where it is not known, or nothing is left, the time that it took."""
    speed = _speed(task)
    if task.finished or not speed:
        return _duration(_seconds(task))
    return f"{_duration((task.remaining or 0) / speed)} left"


def _speed(task: Task) -> float:
    """The speed of the last seconds; if there are too few, that of the whole stage."""
    return task.finished_speed or task.speed or task.completed / (_seconds(task) or 1.0)


def _seconds(task: Task) -> float:
    """How long a task has run, or ran if it is finished."""
    return task.finished_time or task.elapsed or 0.0


@contextlib.contextmanager
def _lines() -> Iterator[OnProgress]:
    """The stage that runs, once a minute, by a thread, if it can be started: a single task may take hours."""
    latest: list[tuple[Progress, float]] = []  # at most one, and since when its stage runs
    over = threading.Event()

    def show(now: Progress) -> None:
        same = latest and now.done and latest[0][0].stage == now.stage
        latest[:] = [(now, latest[0][1] if same else time.monotonic())]

    def report() -> None:
        while not over.wait(MINUTE):
            for now, since in latest:
                if now.done < now.total:
                    say(progress_line(now, max(time.monotonic() - since, 1e-3)))

    reporter = started(report, "progress")
    try:
        yield show
    finally:
        over.set()
        if reporter is not None:
            reporter.join()
