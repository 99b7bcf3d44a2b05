"""A drawing surface: matplotlib's SVG renderer, with names of colours in place of colours.

The pictures are drawn once, for light and dark: each name of the palette has a colour of its own that no picture
means, and in the SVG that colour becomes the style sheet's variable of that name. Text stays text. Only the renderer
is used: figures, axes and artists would take ten times as long.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from mqindex._needs import needing
from mqindex.files.tmpfile import passing_directory
from mqindex.html.palette import TONES

__all__ = ["NEEDS", "WIDTH", "Box", "Drawing", "Picture", "ink", "require_library"]

NEEDS = "a page needs jinja2 and matplotlib: pip install 'mqindex[html]'"
WIDTH = 760  # units of a picture, which are pixels where the page is wide
_GAP = 6  # pixels between an axis and its labels
_TOP = 10  # pixels above the axes
_FONT: Any = {"family": "sans-serif", "style": "normal", "variant": "normal", "weight": "normal", "size": 11}
_MIDDLE, _ASCENT, _LINE = 4, 9, 14  # pixels: a baseline below the middle and the top of a line, and the next one
_RULES: Any = {"svg.fonttype": "none", "path.simplify": True, "path.simplify_threshold": 0.1}  # not the user's
_STRIPPED: Any = [  # parts that a picture inside a page does not need; and colours get their names
    (re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style .*?</defs>|<!--.*?-->", re.S), ""),
    (re.compile(r" ?transform=\"rotate\(-?0 [^\"]*\"(?= |>)"), ""),
    (re.compile(r"font-family: [^;\"]*;? ?"), ""),
    (re.compile(r"font: (?:\w+ )*?([\d.]+px)[^;\"]*"), r"font-size: \1"),
    (re.compile(r"\s*\n\s*"), " "),
    (re.compile(r"> <"), "><"),
    (re.compile(r"#0100([0-9a-f]{2})"), lambda found: f"var(--{TONES[int(found[1], 16)]})"),
]

Side = Literal["left", "center", "right"]
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, right, low, high."""


def ink(tone: str) -> str:
    """The colour that represents a name of the palette until the picture is in the page.

    >>> ink("paper")
    '#010000'
    """
    return f"#0100{TONES.index(tone):02x}"


def require_library() -> None:
    """`ImportError` that says what to install."""
    for name in ("jinja2", "matplotlib"):
        with needing(f"{NEEDS} (there is no {name})", name), _loading():
            importlib.import_module("matplotlib.backends.backend_svg" if name == "matplotlib" else name)


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """Load matplotlib quietly, with a temporary directory: it would keep a list of fonts in the user's home."""
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        yield
        return
    log = logging.getLogger("matplotlib.font_manager")
    with passing_directory() as place:
        os.environ["MPLCONFIGDIR"] = place
        log.disabled = True
        try:
            yield
        finally:
            log.disabled = False
            del os.environ["MPLCONFIGDIR"]


class Picture(NamedTuple):
    """The content of an `<svg>` of `WIDTH` by `height`; `name`: of the figure, with which its ids begin."""

    name: str
    height: int
    content: str


class Drawing:
    """A picture of one pair of axes, drawn from the back to the front; `picture` is there when the block has ended.

    `xs`, `ys`: the values at the ends of the axes, the left and the lower end first.

    >>> with Drawing("p", 60, xs=(0, 10), ys=(0, 1), left=0, bottom=0, right=0) as drawing:
    ...     drawing.boxes("s1", [(0, 5, 0, 1)])
    >>> drawing.picture.content
    '<path d="M 0 60 L 0 10 L 380 10 L 380 60 ...z..." style="fill: var(--s1)"/>'
    """

    picture: Picture

    def __init__(
        self, name: str, height: int, *, xs: Point, ys: Point, left: int = 64, bottom: int = 34, right: int = 14
    ) -> None:
        self._name, self._height = name, height
        self._left, self._right, self._bottom = left, WIDTH - right, bottom
        self._x, self._y = _scale(xs, self._left, self._right), _scale(ys, bottom, height - _TOP)

    def __enter__(self) -> Drawing:
        require_library()
        import matplotlib as mpl
        from matplotlib.backends.backend_svg import RendererSVG
        from matplotlib.font_manager import FontProperties

        self._rules = contextlib.ExitStack()
        self._rules.enter_context(mpl.rc_context(_RULES))
        self._font = FontProperties(**_FONT)
        self._out = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        make: Any = RendererSVG
        self._renderer = make(WIDTH, self._height, self._out, metadata=nothing)
        return self

    def __exit__(self, *failed: object) -> None:
        with self._rules:
            if failed[0] is None:
                self.picture = self._exported()

    def _exported(self) -> Picture:
        self._renderer.finalize()
        svg = self._out.getvalue()
        svg = svg[svg.index(">", svg.index("<svg")) + 1 : svg.rindex("</svg>")]
        for pattern, instead in _STRIPPED:
            svg = pattern.sub(instead, svg)
        return Picture(self._name, self._height, svg.strip())

    def boxes(self, tone: str, boxes: Iterable[Box], alpha: float = 1.0) -> None:
        """Filled boxes, all of them one path: a page with many pictures stays small."""
        from matplotlib.path import Path

        points = [
            point
            for left, right, low, high in boxes
            for point in ((left, low), (left, high), (right, high), (right, low), (left, low))
        ]
        if points:
            codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * (len(points) // 5)
            self._path(self._placed(points), codes, tone, 0, alpha=alpha)

    def line(self, tone: str, points: Sequence[Point], width: float = 2) -> None:
        """A line through these points."""
        if points:
            self._path(self._placed(points), None, tone, width)

    def dots(self, tone: str, points: Sequence[Point], width: float = 5) -> None:
        """A dot at each point: a line of no length, with round ends."""
        from matplotlib.path import Path

        twice = [place for place in self._placed(points) for _ in range(2)]
        if twice:
            self._path(twice, [Path.MOVETO, Path.LINETO] * len(points), tone, width, cap="round")

    def levels(self, values: Sequence[float]) -> None:
        """Thin lines across, to read values by."""
        from matplotlib.path import Path

        places = [(x, _short(self._y(value))) for value in values for x in (self._left, self._right)]
        if places:
            self._path(places, [Path.MOVETO, Path.LINETO] * len(values), "line", 0.8)

    def text(self, at: Point, text: str, tone: str = "ink", side: Side = "left", *, right: float = 0) -> None:
        """A text that is centred on the height of a point, `right` pixels from it."""
        x, y = self._placed([at])[0]
        self._text(x + right, y - _MIDDLE, text, tone, side)

    def labels_below(self, places: Sequence[float], labels: Sequence[str], *, inside: bool = False) -> None:
        """A line below the axes, and labels at these places of it; `inside`: the outer ones do not go beyond it."""
        self._path([(self._left, self._bottom), (self._right, self._bottom)], None, "line", 1)
        centre: list[Side] = ["center"] * len(places)
        sides: list[Side] = ["left", *centre[2:], "right"] if inside else centre
        for place, label, side in zip(places, labels, sides, strict=True):
            for number, line in enumerate(label.split("\n")):
                self._text(self._x(place), self._bottom - _GAP - _ASCENT - number * _LINE, line, "muted", side)

    def labels_left(self, places: Sequence[float], labels: Sequence[str], tone: str = "ink") -> None:
        """Labels on the left of the axes."""
        for place, label in zip(places, labels, strict=True):
            self._text(self._left - _GAP, self._y(place) - _MIDDLE, label, tone, "right")

    def _placed(self, points: Iterable[Point]) -> list[Point]:
        return [(_short(self._x(x)), _short(self._y(y))) for x, y in points]

    def _path(
        self, points: Sequence[Point], codes: Sequence[Any] | None, tone: str, width: float, *,
        alpha: float = 1.0, cap: Literal["butt", "round"] = "butt",
    ) -> None:  # fmt: skip
        """A line of this width; none: a filled shape."""
        from matplotlib.path import Path
        from matplotlib.transforms import IdentityTransform

        context = self._context(tone)
        context.set_linewidth(width)
        context.set_capstyle(cap)
        context.set_alpha(alpha)
        face = None if width else context.get_rgb()
        self._renderer.draw_path(context, Path(points, codes), IdentityTransform(), face)

    def _text(self, x: float, y: float, text: str, tone: str, side: Side) -> None:
        from matplotlib.text import Text

        x, y = _short(x), _short(self._height - y)
        self._renderer.draw_text(self._context(tone), x, y, text, self._font, 0, mtext=Text(x, 0, ha=side))

    def _context(self, tone: str) -> Any:
        context = self._renderer.new_gc()
        context.set_foreground(ink(tone))
        context.set_joinstyle("round")
        return context


def _scale(values: Point, low: float, high: float) -> Callable[[float], float]:
    """The place in pixels of a value on an axis; an axis of no length has its value at the low end."""
    first, last = values
    step = (high - low) / ((last - first) or 1)
    return lambda value: low + (value - first) * step


def _short(pixels: float) -> float:
    return round(pixels, 1)
