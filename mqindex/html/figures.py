"""Pictures: each function draws one, for a figure of that name. Labels are made visible."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from mqindex.html.drawing import WIDTH, Box, Drawing, Picture
from mqindex.html.text import count, rate, size, visible

Form = Callable[[float], str]
_CALENDAR = (0, 32_503_680_000_000)  # ms, to the year 3000: other values are not taken as times
_LABEL = 28  # characters
_THIN = 2.0  # pixels: less would not be seen
_FAINT = 0.4  # of a colour
_FEW = 30  # points: more are a line without dots
_CELLS = 64  # of a row of a heat map
_SHADES = 6
_DIGIT = 7  # pixels, and a little more
_RESOLVED = 2.0**-44  # of a value: some hundred floats, so that the values of its axis are apart


@dataclass(frozen=True, slots=True)
class LinePart:
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
    number = max(len(values) for _, values in layers)
    stop = start + max(number * width, 1)
    tops = [sum(parts) for parts in zip(*(values for _, values in layers), strict=True)]
    base, edges = [0.0] * number, [start + i * width for i in range(number)]
    drawing = Drawing(name, 220, xs=(start, stop), ys=(0, _above(tops)), left=_margin(_above(tops), form))
    _value_axis(drawing, 0, _above(tops), form)
    for tone, values in layers:
        top = [below + value for below, value in zip(base, values, strict=True)]
        drawing.boxes(tone, _bars(edges, width, base, top))
        base = top
    _time_axis(drawing, start, stop)
    return drawing.picture


def _above(values: Iterable[float]) -> float:
    """Where an axis of these values ends."""
    return max([*values, 0]) * 1.06 or 1


def _bars(edges: Sequence[float], width: float, base: Sequence[float], top: Sequence[float]) -> Iterable[Box]:
    """The boxes of bars that have a height, with gaps between them."""
    gap = 0.08 * width
    for edge, low, high in zip(edges, base, top, strict=True):
        if high > low:
            yield edge + gap, edge + width - gap, low, high


def time_line(name: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], form: Form = count) -> Picture:
    """Lines over time. `lines`: a tone and its points, (ms, value); times beyond the calendar are left out."""
    inside = [(tone, [point for point in points if in_calendar(point[0])]) for tone, points in lines]
    times = [ms for _, points in inside for ms, _ in points] or [0, 1]
    values = [value for _, points in inside for _, value in points] or [0, 1]
    start, stop = min(times), max(times)
    low, high = _around(min(values), max(values))
    xs = (start, max(stop, start + 1))
    drawing = Drawing(name, 220, xs=xs, ys=(low, high), left=_margin(high, form))
    _value_axis(drawing, low, high, form)
    for tone, points in inside:
        drawing.line(tone, points)
        if len(points) < _FEW:
            drawing.dots(tone, points)
    _time_axis(drawing, *xs)
    return drawing.picture


def _around(least: float, most: float) -> tuple[float, float]:
    """The ends of an axis of values from `least` to `most`: apart for a float too, and not below zero without need."""
    spare = max((most - least) * 0.05 or 1, abs(most) * _RESOLVED)
    return max(least - spare, min(least, 0)), most + spare


def bars(
    name: str, labels: Sequence[str], values: Sequence[float], *, ideal: Sequence[float] = (), form: Form = count
) -> Picture:
    """One bar for each label, and what it would ideally be as a line with points."""
    top = _above([*values, *ideal])
    drawing = Drawing(name, 220, xs=(-0.6, len(values) - 0.4), ys=(0, top), left=_margin(top, form))
    _value_axis(drawing, 0, top, form)
    drawing.boxes("s1", _bars([place - 0.5 for place in range(len(values))], 1, [0.0] * len(values), values))
    drawing.line("s2", list(enumerate(ideal)))
    drawing.dots("s2", list(enumerate(ideal)))
    widest = _DIGIT * max(map(len, labels), default=1) + 10
    step = -(-len(labels) * widest // (WIDTH - _margin(top, form)))
    shown = [visible(label, _LABEL) for label in labels[::step]]
    drawing.labels_below(range(0, len(labels), step), shown)
    return drawing.picture


def ranked(
    name: str, labels: Sequence[str], values: Sequence[float], form: Form = count, *, tone: str = "s1"
) -> Picture:
    """Bars below each other, the label on the left and the value after the bar."""
    most = max([*values, 0]) or 1
    xs, ys = (0, most), (len(values) - 0.4, -0.6)
    drawing = Drawing(name, 26 * len(values) + 20, xs=xs, ys=ys, left=210, right=96, bottom=6)
    long = [max(value, most * 0.002) for value in values]
    drawing.boxes(tone, [(0, stop, place - 0.33, place + 0.33) for place, stop in enumerate(long)])
    for place, value in enumerate(values):
        drawing.text((value, place), form(value), right=6)
    drawing.labels_left(range(len(values)), [visible(one, _LABEL).split("… (")[0] for one in labels])
    return drawing.picture


def stretches(
    name: str, rows: Sequence[tuple[str, Sequence[LinePart]]], start: float, stop: float, form: Form | None = None
) -> Picture:
    """Lines below each other over one axis, each with its stretches; tiny ones stay visible. No form: times."""
    whole = (stop - start) or 1
    xs, ys = (start, start + whole), (len(rows) - 0.4, -0.6)
    drawing = Drawing(name, 34 * len(rows) + 44, xs=xs, ys=ys, left=150, right=24)
    thin = _THIN * whole / (WIDTH - 174)
    for place, (_, parts) in enumerate(rows):
        drawing.boxes("raised", [(start, start + whole, place - 0.3, place + 0.3)])
        for (tone, faint), same in groupby(parts, key=lambda part: (part.tone, part.faint)):
            boxes = [(*_seen(part, start, stop, thin), place - 0.3, place + 0.3) for part in same]
            drawing.boxes(tone, boxes, _FAINT if faint else 1)
    drawing.labels_left(range(len(rows)), [visible(label, _LABEL) for label, _ in rows])
    if form is None:
        _time_axis(drawing, start, start + whole)
    else:
        ticks = [start + whole * i / 4 for i in range(5)]
        drawing.labels_below(ticks, [form(tick) for tick in ticks], inside=True)
    return drawing.picture


def _seen(part: LinePart, start: float, stop: float, thin: float) -> tuple[float, float]:
    """Where it begins and ends in the picture, `thin` apart at least."""
    low, high = max(part.start, start), min(part.stop, stop)
    width = max(high - low, thin)
    left = min(low, stop - width)
    return left, left + width


def heat(name: str, values: Sequence[float], most: float) -> Picture:
    """A map of cells, read like a text; the darker, the nearer to `most`. Each shade is one path."""
    rows = max(-(-len(values) // _CELLS), 1)
    shades: list[list[Box]] = [[] for _ in range(_SHADES + 1)]
    for place, value in enumerate(values):
        level = 0 if value <= 0 else min(_SHADES, 1 + int(_SHADES * value / (most or 1)))
        x, y = place % _CELLS, place // _CELLS
        shades[level].append((x + 0.06, x + 0.94, y + 0.06, y + 0.94))
    drawing = Drawing(name, 24 * rows + 16, xs=(0, _CELLS), ys=(rows, 0), left=4, right=4, bottom=4)
    drawing.boxes("raised", shades[0])
    for level in range(1, _SHADES + 1):
        drawing.boxes("s1", shades[level], round(0.1 + 0.9 * level / _SHADES, 1))
    return drawing.picture


def _margin(high: float, form: Form) -> int:
    """Room for the labels of an axis that ends at `high`."""
    return max(64, _DIGIT * len(form(high)) + 10)


def _value_axis(drawing: Drawing, low: float, high: float, form: Form) -> None:
    """Some four values, round ones in the unit in which they are shown."""
    unit = 1024.0 ** int(math.log(high, 1024)) if form in (size, rate) and high >= 1024 else 1.0
    ticks = [tick * unit for tick in _round_values(low / unit, high / unit, whole=form is count)]
    drawing.levels(ticks)
    drawing.labels_left(ticks, [form(tick) for tick in ticks], "muted")


def _round_values(low: float, high: float, *, whole: bool) -> list[float]:
    """The multiples of a round number from `low` to `high`, of the least that gives no more than four steps.

    >>> _round_values(0, 7.42, whole=True), _round_values(0.2, 1.06, whole=False)
    ([0.0, 2.0, 4.0, 6.0], [0.25, 0.5, 0.75, 1.0])
    """
    least = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(least))
    steps = [one * power for one in (1, 2, 2.5, 5, 10)]
    step = next(one for one in steps if one >= least and (one.is_integer() or not whole or one < 1))
    step = max(step, 1.0) if whole else step
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _time_axis(drawing: Drawing, start: float, stop: float) -> None:
    """At most five times in UTC, as precise as their distance requires; the day is shown where it changes."""
    step = (stop - start) / 4
    ticks = [start + step * i for i in range(5)]
    labels, day = [], ""
    for tick in ticks:
        label, of_day = _time_label(tick, step)
        labels.append(label if of_day in (day, label) else f"{label}\n{of_day}")
        day = of_day
    drawing.labels_below(ticks, labels, inside=True)


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
