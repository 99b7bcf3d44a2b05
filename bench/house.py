"""The rooms of the package and the arrows between them, drawn from the imports."""

from __future__ import annotations

from typing import Any

__all__ = ["house", "needed", "table"]

C = "src_c"
ACROSS = {  # where the middle of a room is, left to right; rooms that are not named here follow on the right
    "cli": 8.4,
    "spark": 5.4,
    "html": 11.6,
    "rocketmq": 2.9,
    "kafka": 7.6,
    "engines": 3.1,
    "undo": 7.8,
    "wording": 11.6,
    "report": 10.2,
    "columns": 5.4,
    "files": 7.8,
    "_native": 6.4,
    C: 5.4,
    "errors": 8.8,
    "health": 0.8,
}
STEP, LETTER, LINE = 1.35, 0.092, 0.2  # between levels; width and height of a small letter
FEW = 5  # inner rooms in a line, at most


def table() -> dict[str, Any]:
    """Rooms with how high they are above the lowest, what each imports, and the rooms inside it, the lowest first."""
    from tests.api.test_import_rules import INSIDE, LEVELS, PACKAGE, imports, modules, room, source

    arrows: dict[str, set[str]] = {}
    for module in modules():
        above = room(module)
        if above in LEVELS and not above.startswith("__"):
            below = {room(name) for name, _ in imports(module)} & set(LEVELS) - {above}
            arrows.setdefault(above, set()).update(below)
            if source(module).suffix == ".pyx" and "cdef extern from" in source(module).read_text():
                arrows[above].add(C)
    shown = sorted([C, *(name for name in arrows if name == "_native" or not name.startswith("_"))])
    below = {name: sorted(arrows.get(name, set()) & set(shown)) for name in shown}
    inside = {
        name: [one for rooms in INSIDE.get(name, []) for one in sorted(rooms) if (PACKAGE / name / one).is_dir()]
        for name in shown
    }
    return {
        "levels": {name: _height(name, below) for name in shown},
        "arrows": below,
        "inside": {name: rooms for name, rooms in inside.items() if rooms},
    }


def _height(name: str, arrows: dict[str, list[str]]) -> int:
    return max((_height(below, arrows) + 1 for below in arrows[name]), default=0)


def needed(arrows: dict[str, list[str]]) -> list[tuple[str, str]]:
    """The arrows without those that follow from others: what is drawn."""

    def reached(name: str) -> set[str]:
        return {name}.union(*(reached(below) for below in arrows.get(name, [])))

    return [
        (name, below)
        for name, direct in arrows.items()
        for below in direct
        if not any(below in reached(other) for other in direct if other != below)
    ]


def house(table: dict[str, Any], colours: dict[str, str]) -> Any:
    """Boxes in levels; an arrow leads from a room to one that it imports, also where others lie between."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    places = _places(table["levels"])
    lines = {name: _lines(table["inside"].get(name, [])) for name in places}
    high = {name: 0.55 + LINE * max(0, len(lines[name]) - 0.5) for name in places}
    figure = Figure(figsize=(9.6, 6.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, max(x for x, _ in places.values()) + 0.8)
    axes.set_ylim(-0.4, max(y for _, y in places.values()) + 0.5)
    for name, below in needed(table["arrows"]):
        (x, y), (to_x, to_y) = places[name], places[below]
        aside = max(-0.45, min(0.45, (to_x - x) * 0.12))
        start, end = (x + aside, y - high[name] / 2), (to_x - aside, to_y + high[below] / 2)
        arrow = {"arrowstyle": "->", "color": colours["second"], "shrinkA": 0, "shrinkB": 1}
        axes.annotate("", end, start, arrowprops=arrow, zorder=0)
    for name, (x, y) in places.items():
        wide = max(1.3, LETTER * max(map(len, [name, *lines[name]])) + 0.3)
        corner = (x - wide / 2, y - high[name] / 2)
        style = {"facecolor": colours["fill"], "edgecolor": colours["ours"]}
        axes.add_patch(FancyBboxPatch(corner, wide, high[name], boxstyle="round,pad=0,rounding_size=0.06", **style))
        top = y + LINE / 2 * len(lines[name])
        axes.text(x, top, name, ha="center", va="center", weight="bold")
        for number, line in enumerate(lines[name], 1):
            axes.text(x, top - LINE * number, line, ha="center", va="center", fontsize=8)
    return figure


def _places(levels: dict[str, int]) -> dict[str, tuple[float, float]]:
    rightmost = max(ACROSS.values())
    unknown = [name for name in levels if name not in ACROSS]
    across = {**ACROSS, **{name: rightmost + 1.6 * (i + 1) for i, name in enumerate(unknown)}}
    return {name: (across[name], level * STEP) for name, level in levels.items()}


def _lines(rooms: list[str]) -> list[str]:
    """As few lines as may be, of about as many rooms."""
    each = -(-len(rooms) // max(1, -(-len(rooms) // FEW))) or 1
    return [" · ".join(rooms[i : i + each]) for i in range(0, len(rooms), each)]
