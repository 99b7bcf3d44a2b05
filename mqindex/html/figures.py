"""Pictures: each function draws one, for a figure of that name. Labels are made visible."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mqindex.html.drawing import WIDTH, Drawing, Picture, ink, label_below, label_left
from mqindex.html.text import count, rate, size, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Stretch", "bars", "heat", "in_calendar", "ranked", "stretches", "time_bars", "time_line"]

Form = Callable[[float], str]
_CALENDAR = (0, 32_503_680_000_000)  # ms, to the year 3000: what lies beyond is no time
_LABEL = 28  # characters
_THIN = 2.0  # pixels: less would not be seen
_CELLS = 64  # of a row of a heat map
_SHADES = 6


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a line, from `start` up to `stop`, in a colour of the palette; `faint`: a light shade of it."""

    start: float
    stop: float
    tone: str
    faint: bool = False


def in_calendar(ms: float) -> bool:
    """Whether a time can be drawn."""
    return _CALENDAR[0] < ms < _CALENDAR[1]


def time_bars(
    name: str, start: int, width: int, layers: Sequence[tuple[str, Sequence[float]]], form: Form = count
) -> Picture:
    """Bars over time, layers on top of each other. `layers`: a tone and its value in each bin of `width` ms."""
    drawing = Drawing(name, 220)
    with drawing as axes:
        number = max(len(values) for _, values in layers)
        base = [0.0] * number
        edges = [start + i * width for i in range(number)]
        for tone, values in layers:
            top = [below + value for below, value in zip(base, values, strict=True)]
            _bar_shape(axes, edges, width, base, top, tone)
            base = top
        axes.set_ylim(0, max(base) * 1.06 or 1)
        _time_axis(axes, start, start + number * width)
        _value_axis(axes, form)
    return drawing.picture


def _bar_shape(
    axes: Axes, edges: Sequence[float], width: float, base: Sequence[float], top: Sequence[float], tone: str
) -> None:
    """All bars of a tone as one path: a page with many pictures stays small."""
    gap = 0.08 * width
    points: list[tuple[float, float]] = []
    for edge, low, high in zip(edges, base, top, strict=True):
        if high > low:
            left, right = edge + gap, edge + width - gap
            points += [(left, low), (left, high), (right, high), (right, low), (left, low)]
    _boxes(axes, points, tone)


def _boxes(axes: Axes, points: Sequence[tuple[float, float]], tone: str, alpha: float = 1.0) -> None:
    """Boxes as one path, of five points each."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if points:
        box = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        path = Path(points, box * (len(points) // 5))
        axes.add_patch(PathPatch(path, facecolor=ink(tone), alpha=alpha, linewidth=0))


def time_line(
    name: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], form: Form = count, *, from_zero: bool = True
) -> Picture:
    """Lines over time. `lines`: a tone and its points, (ms, value); times beyond the calendar are left out."""
    drawing = Drawing(name, 220)
    with drawing as axes:
        inside = [(tone, [point for point in points if in_calendar(point[0])]) for tone, points in lines]
        for tone, points in inside:
            if points:
                axes.plot(*zip(*points, strict=True), color=ink(tone), linewidth=2, solid_joinstyle="round")
                if len(points) < 30:
                    axes.plot(*zip(*points, strict=True), "o", color=ink(tone), markersize=4.5, markeredgewidth=0)
        times = [ms for _, points in inside for ms, _ in points] or [0, 1]
        _time_axis(axes, min(times), max(times))
        if from_zero:
            axes.set_ylim(bottom=0)
        _value_axis(axes, form)
    return drawing.picture


def bars(
    name: str, labels: Sequence[str], values: Sequence[float], *, ideal: Sequence[float] = (), form: Form = count
) -> Picture:
    """One bar for each label, and what it would ideally be as a line with points."""
    drawing = Drawing(name, 220)
    with drawing as axes:
        places = list(range(len(values)))
        _bar_shape(axes, [place - 0.5 for place in places], 1, [0.0] * len(values), values, "s1")
        if ideal:
            axes.plot(places, list(ideal), color=ink("s2"), linewidth=2)
            axes.plot(places, list(ideal), "o", color=ink("s2"), markersize=5, markeredgewidth=0)
        axes.set_xlim(-0.6, len(values) - 0.4)
        axes.set_ylim(0, max([*values, *ideal, 0]) * 1.06 or 1)
        step = -(-len(labels) // 14)
        label_below(axes, places[::step], [visible(label, _LABEL) for label in labels[::step]])
        _value_axis(axes, form)
    return drawing.picture


def ranked(
    name: str, labels: Sequence[str], values: Sequence[float], form: Form = count, *, tone: str = "s1"
) -> Picture:
    """Bars that lie below each other, the label on the left and the value behind the bar."""
    drawing = Drawing(name, 26 * len(values) + 20, left=210, right=96, bottom=6)
    with drawing as axes:
        most = max([*values, 0]) or 1
        for place, value in enumerate(values):
            axes.broken_barh([(0, max(value, most * 0.002))], (place - 0.33, 0.66), facecolor=ink(tone), linewidth=0)
            axes.text(value + most * 0.012, place, form(value), va="center", color=ink("ink"), fontsize=11)
        axes.set_xlim(0, most)
        axes.set_ylim(len(values) - 0.4, -0.6)
        label_left(axes, range(len(values)), [visible(one, _LABEL).split("… (")[0] for one in labels], lines=False)
    return drawing.picture


def stretches(
    name: str, rows: Sequence[tuple[str, Sequence[Stretch]]], start: float, stop: float, form: Form | None = None
) -> Picture:
    """Lines below each other over one axis, each with its stretches; a tiny one is still to be seen. No form: times."""
    drawing = Drawing(name, 34 * len(rows) + 44, left=150, right=24)
    with drawing as axes:
        whole = (stop - start) or 1
        thin = _THIN * whole / (WIDTH - 174)
        for place, (_, parts) in enumerate(rows):
            axes.broken_barh([(start, whole)], (place - 0.3, 0.6), facecolor=ink("raised"), linewidth=0)
            for part in parts:
                low, high = max(part.start, start), min(part.stop, stop)
                width = max(high - low, thin)
                box = [(min(low, stop - width), width)]
                alpha = 0.45 if part.faint else 1
                axes.broken_barh(box, (place - 0.3, 0.6), facecolor=ink(part.tone), linewidth=0, alpha=alpha)
        axes.set_xlim(start, start + whole)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        label_left(axes, range(len(rows)), [visible(label, _LABEL) for label, _ in rows], lines=False)
        if form is None:
            _time_axis(axes, start, start + whole)
        else:
            ticks = [start + whole * i / 4 for i in range(5)]
            label_below(axes, ticks, [form(tick) for tick in ticks], inside=True)
    return drawing.picture


def heat(name: str, values: Sequence[float], most: float) -> Picture:
    """A map of cells, read like a text; the darker, the nearer to `most`. Each shade is one path."""
    rows = -(-len(values) // _CELLS)
    drawing = Drawing(name, 24 * max(rows, 1) + 16, left=4, right=4, bottom=4)
    with drawing as axes:
        shapes: list[list[tuple[float, float]]] = [[] for _ in range(_SHADES + 1)]
        for place, value in enumerate(values):
            level = 0 if value <= 0 else min(_SHADES, 1 + int(_SHADES * value / (most or 1)))
            x, y = place % _CELLS, place // _CELLS
            shapes[level] += [(x + 0.06, y + 0.06), (x + 0.94, y + 0.06), (x + 0.94, y + 0.94), (x + 0.06, y + 0.94)]
            shapes[level].append(shapes[level][-4])
        _boxes(axes, shapes[0], "raised")
        for level in range(1, _SHADES + 1):
            _boxes(axes, shapes[level], "s1", 0.1 + 0.9 * level / _SHADES)
        axes.set(xlim=(0, _CELLS), ylim=(max(rows, 1), 0))
    return drawing.picture


def _value_axis(axes: Axes, form: Form) -> None:
    """Some four values, round ones in the unit in which they are shown."""
    from matplotlib.ticker import MaxNLocator

    low, high = axes.get_ylim()
    unit = 1024.0 ** int(math.log(high, 1024)) if form in (size, rate) and high >= 1024 else 1.0
    locator = MaxNLocator(4, integer=form is count, steps=[1, 2, 2.5, 5, 10])
    ticks = [tick * unit for tick in locator.tick_values(low / unit, high / unit) if low <= tick * unit <= high]
    label_left(axes, ticks, [form(tick) for tick in ticks], lines=True)


def _time_axis(axes: Axes, start: float, stop: float) -> None:
    """Five times in UTC at most, as fine as their distance asks; the day stands where it changes."""
    stop = max(stop, start + 1)
    axes.set_xlim(start, stop)
    step = (stop - start) / 4
    ticks = [start + step * i for i in range(5)]
    labels, day = [], ""
    for tick in ticks:
        label, of_day = _time_label(tick, step)
        labels.append(label if of_day in (day, label) else f"{label}\n{of_day}")
        day = of_day
    label_below(axes, ticks, labels, inside=True)


def _time_label(ms: float, step: float) -> tuple[str, str]:
    if not in_calendar(ms):
        return "?", "?"
    when = datetime.fromtimestamp(ms / 1000, UTC)
    day = when.strftime("%Y-%m-%d")
    if step >= 86_400_000:
        return day, day
    if step >= 60_000:
        return when.strftime("%H:%M"), day
    if step >= 1000:
        return when.strftime("%H:%M:%S"), day
    return when.strftime("%H:%M:%S.") + f"{when.microsecond // 1000:03}", day
