"""SVG files of bench/svg, light and dark. Each carries the table that it shows, so that a test can compare it."""

from __future__ import annotations

import json
import os
from typing import Any
from xml.etree import ElementTree as ET

from bench import diagrams, plots
from bench import house as rooms
from bench.machine import ROOT

__all__ = ["draw", "stale", "tables"]

FOLDER = os.path.join(ROOT, "bench", "svg")
DRAWN_BY = {
    "house": rooms.house,
    "pipeline": diagrams.pipeline,
    "repair": diagrams.repair,
    "speed": plots.speed,
    "speed-up": plots.speed_up,
    "growth": plots.growth,
}
THEMES = {
    "light": {"ink": "#1f2328", "faint": "#d1d9e0", "fill": "#ddf4ff", "ours": "#0969da", "second": "#bc4c00"},
    "dark": {"ink": "#f0f6fc", "faint": "#3d444d", "fill": "#0c2d6b", "ours": "#4493f8", "second": "#db6d28"},
}
TABLE = "{http://purl.org/dc/elements/1.1/}description"


def tables(record: dict[str, Any]) -> dict[str, Any]:
    """Name of each picture: what it shows, as JSON would give it back."""
    return json.loads(json.dumps({"house": rooms.table(), **diagrams.tables(), **plots.tables(record)}))


def draw(shown: dict[str, Any]) -> None:
    """Write every picture, in both themes."""
    import matplotlib as mpl

    mpl.use("svg")
    os.makedirs(FOLDER, exist_ok=True)
    for name, table in shown.items():
        for theme, colours in THEMES.items():
            with mpl.rc_context(_settings(colours)):
                figure = DRAWN_BY[name](table, colours)
                about = {"Date": None, "Description": json.dumps(table)}
                figure.savefig(_path(name, theme), transparent=True, bbox_inches="tight", metadata=about)


def stale(shown: dict[str, Any]) -> list[str]:
    """The files that are missing, or show another table."""
    expected = {_path(name, theme): table for name, table in shown.items() for theme in THEMES}
    return [path for path, table in expected.items() if not os.path.exists(path) or _table_of(path) != table]


def _table_of(path: str) -> Any:
    found = next(ET.parse(path).iter(TABLE), None)
    return json.loads(found.text or "null") if found is not None else None


def _path(name: str, theme: str) -> str:
    return os.path.join(FOLDER, f"{name}-{theme}.svg")


def _settings(colours: dict[str, str]) -> dict[str, Any]:
    inked = ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"]
    return {
        **dict.fromkeys(inked, colours["ink"]),
        "svg.fonttype": "none",  # text stays text: small files, and a reader can search them
        "svg.hashsalt": "mqindex",  # the same picture is the same file
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 10,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "grid.color": colours["faint"],
        "legend.frameon": False,
    }
