"""A drawing surface: matplotlib draws in the names of colours, and SVG comes out whose colours are the page's.

The pictures are drawn once, for light and dark: each name of the palette has a colour of its own that no picture
means, and in the SVG that colour becomes the style sheet's variable of that name. Text stays text.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mqindex.files.tmpfile import passing_directory
from mqindex.html.palette import TONES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WIDTH", "Drawing", "Picture", "ink", "label_below", "label_left", "require_library"]

_GAP = 6.0  # pixels between an axis and its labels
WIDTH = 760  # units of a picture, which are pixels where the page is wide
_SENTINEL = re.compile(r"#0100([0-9a-f]{2})")
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
_RULES = {
    "svg.fonttype": "none",
    "svg.hashsalt": "mqindex",
    "text.parse_math": False,  # a name may have dollars
    "axes.unicode_minus": False,
    "font.size": 11.0,
    "path.simplify": True,
}
_STRIPPED = [  # what a picture inside of a page does not need
    (re.compile(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*|<!--.*?-->\s*|<metadata>.*?</metadata>\s*", re.S), ""),
    (re.compile(r' xmlns(:\w+)?="[^"]*"| version="1\.1"'), ""),
    (re.compile(r'<g id="[^"]*"/>\s*'), ""),
    (re.compile(r'<g id="[^"]*"'), "<g"),
    (re.compile(r" ?transform=\"rotate\(-?0 [^\"]*\"(?= |>)"), ""),
    (re.compile(r"font-family: [^;\"]*;? ?"), ""),
    (re.compile(r"font: (?:\w+ )*?([\d.]+px)[^;\"]*"), r"font-size: \1"),
    (re.compile(r"<style .*?</style>\s*", re.S), ""),
    (re.compile(r"\s*\n\s*"), " "),
    (re.compile(r"> <"), "><"),
]


def ink(tone: str) -> str:
    """The colour that stands for a name of the palette until the picture is in the page.

    >>> ink("paper")
    '#010000'
    """
    return f"#0100{TONES.index(tone):02x}"


def require_library() -> None:
    """`ImportError` that says what to install, before any work is done."""
    try:
        import jinja2  # noqa: F401

        with _loading():
            import matplotlib.backends.backend_svg  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"a page needs jinja2 and matplotlib: pip install 'mqindex[html]' ({error})", name=error.name
        ) from error


@contextlib.contextmanager
def _loading() -> Iterator[None]:
    """matplotlib keeps a list of fonts in the user's home: it gets a directory that goes away, and says nothing."""
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
    """What is inside of an `<svg>` of `WIDTH` by `height`; `name`: of the figure, which its ids begin with."""

    name: str
    height: int
    content: str


def label_below(axes: Axes, places: Sequence[float], labels: Sequence[str], *, inside: bool = False) -> None:
    """A line below the axes, and labels at these places of it; `inside`: the outer ones do not stand out."""
    from matplotlib.transforms import ScaledTranslation

    axes.plot([0, 1], [0, 0], color=ink("line"), linewidth=1, transform=axes.transAxes, clip_on=False)
    below = axes.get_xaxis_transform() + ScaledTranslation(0, -_GAP / 72, axes.figure.dpi_scale_trans)
    sides = ["left", *["center"] * (len(places) - 2), "right"] if inside else ["center"] * len(places)
    for place, label, side in zip(places, labels, sides, strict=True):
        axes.text(place, 0, label, ha=side, va="top", color=ink("muted"), transform=below)


def label_left(axes: Axes, places: Sequence[float], labels: Sequence[str], *, lines: bool) -> None:
    """Labels on the left: of values, with thin lines to read them by, or names."""
    from matplotlib.transforms import ScaledTranslation

    beside = axes.get_yaxis_transform() + ScaledTranslation(-_GAP / 72, 0, axes.figure.dpi_scale_trans)
    if lines:
        axes.hlines(places, 0, 1, color=ink("line"), linewidth=0.8, transform=axes.get_yaxis_transform(), zorder=0)
    for place, label in zip(places, labels, strict=True):
        axes.text(0, place, label, ha="right", va="center", color=ink("muted" if lines else "ink"), transform=beside)


class Drawing:
    """A picture of one pair of axes. `with Drawing("name", height=200) as axes: …`; then `picture`.

    The axes have no frame and no ticks; `label_below` and `label_left` draw what there is to be read.
    """

    picture: Picture

    def __init__(self, name: str, height: int, *, left: int = 64, bottom: int = 34, right: int = 14) -> None:
        self._name = name
        self._height = height
        self._left, self._bottom, self._right = left, bottom, right

    def __enter__(self) -> Axes:
        require_library()
        import matplotlib as mpl
        from matplotlib.figure import Figure

        self._rules = contextlib.ExitStack()
        self._rules.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # a name may have characters that no font has
        rules: Any = {**mpl.rcParamsDefault, **_RULES}  # whatever the user's own are
        rules.pop("backend", None)
        self._rules.enter_context(mpl.rc_context(rules))
        self._figure = Figure(figsize=(WIDTH / 72, self._height / 72), dpi=72)
        self._figure.patch.set_visible(False)
        place = (
            self._left / WIDTH,
            self._bottom / self._height,
            1 - (self._left + self._right) / WIDTH,
            1 - (self._bottom + 10) / self._height,
        )
        axes = self._figure.add_axes(place)
        axes.set_axis_off()  # its ticks take most of the time of a drawing: what is needed of them is drawn below
        return axes

    def __exit__(self, *failed: object) -> None:
        with self._rules:
            if failed[0] is None:
                self.picture = self._exported()

    def _exported(self) -> Picture:
        out = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        self._figure.savefig(out, format="svg", metadata=nothing)
        svg = out.getvalue()
        for pattern, instead in _STRIPPED:
            svg = pattern.sub(instead, svg)
        svg = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), svg)
        svg = _SENTINEL.sub(lambda found: f"var(--{TONES[int(found[1], 16)]})", svg)
        svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{self._name}-", svg).replace("xlink:href", "href")
        return Picture(self._name, self._height, svg[svg.index(">") + 1 : svg.rindex("</svg>")].strip())
