"""A drawing surface: the few elements of SVG that our pictures need, with names of colours in place of colours.

The pictures are drawn once, for light and dark: a colour is the style sheet's variable of that name. Text stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, tostring

WIDTH = 560  # units of a picture: nearly pixels where the page is narrow, so that its texts can be read there too
_GAP = 6  # pixels between an axis and its labels
_TOP = 10  # pixels above the axes
_FONT = "font-size: 12px"
_MIDDLE, _ASCENT, _LINE = 4, 9, 14  # pixels: a baseline below the middle and the top of a line, and the next one

Side = Literal["start", "middle", "end"]
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, right, low, high."""


class Picture(NamedTuple):
    """The content of an `<svg>` of `WIDTH` by `height`; `name`: of the figure."""

    name: str
    height: int
    content: str


class Drawing:
    """A picture of one pair of axes, drawn from the back to the front.

    `xs`, `ys`: the values at the ends of the axes, the left and the lower end first.

    >>> drawing = Drawing("p", 60, xs=(0, 10), ys=(0, 1), left=0, bottom=0, right=0)
    >>> drawing.boxes("s1", [(0, 5, 0, 1)])
    >>> drawing.picture.content
    '<path d="M0 60V10H280V60z" style="fill: var(--s1)" />'
    """

    def __init__(
        self, name: str, height: int, *, xs: Point, ys: Point, left: int = 64, bottom: int = 34, right: int = 14
    ) -> None:
        self._name, self._height = name, height
        self._left, self._right, self._bottom = left, WIDTH - right, height - bottom
        self._x, self._y = _scale(xs, self._left, self._right), _scale(ys, self._bottom, _TOP)
        self._elements: list[str] = []

    @property
    def picture(self) -> Picture:
        """What has been drawn."""
        return Picture(self._name, self._height, "".join(self._elements))

    def boxes(self, tone: str, boxes: Iterable[Box], alpha: float = 1.0) -> None:
        """Filled boxes, all of them one path: a page with many pictures stays small."""
        sides = [(self._placed(left, low), self._placed(right, high)) for left, right, low, high in boxes]
        way = "".join(f"M{left} {low}V{high}H{right}V{low}z" for (left, low), (right, high) in sides)
        self._path(way, f"fill: var(--{tone})" + (f"; opacity: {alpha}" if alpha < 1 else ""))

    def line(self, tone: str, points: Sequence[Point], width: float = 2) -> None:
        """A line through these points."""
        places = [f"{x} {y}" for x, y in (self._placed(*point) for point in points)]
        self._stroke(f"M{'L'.join(places)}" if places else "", tone, width, "; stroke-linejoin: round")

    def dots(self, tone: str, points: Sequence[Point], width: float = 5) -> None:
        """A dot at each point: a line of no length, with round ends."""
        places = (self._placed(*point) for point in points)
        self._stroke("".join(f"M{x} {y}h0" for x, y in places), tone, width, "; stroke-linecap: round")

    def levels(self, values: Sequence[float]) -> None:
        """Thin lines across, to read values by."""
        self._stroke("".join(f"M{self._left} {_short(self._y(one))}H{self._right}" for one in values), "line", 0.8)

    def text(self, at: Point, text: str, tone: str = "ink", *, right: float = 0) -> None:
        """A text that is centred on the height of a point, `right` pixels from it."""
        self._text(self._x(at[0]) + right, self._y(at[1]) + _MIDDLE, text, tone, "start")

    def labels_below(self, places: Sequence[float], labels: Sequence[str], *, inside: bool = False) -> None:
        """A line below the axes, and labels at these places of it; `inside`: the outer ones do not go beyond it."""
        self._stroke(f"M{self._left} {self._bottom}H{self._right}", "line", 1)
        middle: list[Side] = ["middle"] * len(places)
        sides: list[Side] = ["start", *middle[2:], "end"] if inside else middle
        for place, label, side in zip(places, labels, sides, strict=True):
            for number, line in enumerate(label.split("\n")):
                self._text(self._x(place), self._bottom + _GAP + _ASCENT + number * _LINE, line, "muted", side)

    def labels_left(self, places: Sequence[float], labels: Sequence[str], tone: str = "ink") -> None:
        """Labels on the left of the axes."""
        for place, label in zip(places, labels, strict=True):
            self._text(self._left - _GAP, self._y(place) + _MIDDLE, label, tone, "end")

    def _placed(self, x: float, y: float) -> tuple[str, str]:
        return _short(self._x(x)), _short(self._y(y))

    def _stroke(self, way: str, tone: str, width: float, ends: str = "") -> None:
        self._path(way, f"fill: none; stroke: var(--{tone}); stroke-width: {width:g}{ends}")

    def _path(self, way: str, style: str) -> None:
        if way:
            self._elements.append(_written(Element("path", d=way, style=style)))

    def _text(self, x: float, y: float, text: str, tone: str, side: Side) -> None:
        style = f"{_FONT}; text-anchor: {side}; fill: var(--{tone})"
        element = Element("text", style=style, x=_short(x), y=_short(y))
        element.text = text
        self._elements.append(_written(element))


def _written(element: Element) -> str:
    return tostring(element, encoding="unicode")


def _scale(values: Point, low: float, high: float) -> Callable[[float], float]:
    """The place in pixels of a value on an axis; an axis of no length has its value at the low end."""
    first, last = values
    step = (high - low) / ((last - first) or 1)
    return lambda value: low + (value - first) * step


def _short(pixels: float) -> str:
    """
    >>> _short(12.34), _short(12.0)
    ('12.3', '12')
    """
    return f"{pixels:.1f}".removesuffix(".0")
