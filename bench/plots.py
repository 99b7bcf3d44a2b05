"""Plots of a record: the rows of README.md, each ratio, and how the same work grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.numbers import times
from bench.rows import FRONT, GROUPS, full_name, group, largest_scale, peer, rows
from bench.scale import SCALES

__all__ = ["growth", "speed", "speed_up", "tables"]

GROWN = {  # case, work -> the work at full size, its unit, what is plotted
    ("put_keys", "put_keys, 20 M keys, hashing included"): (20e6, "keys", "put_keys"),
    ("select_phy_offsets", "select_phy_offsets, 1 M keys, one thread: hit"): (20e6, "keys", "select_phy_offsets, hit"),
    ("select_phy_offsets", "select_phy_offsets, 1 M keys, one thread: miss"): (
        20e6,
        "keys",
        "select_phy_offsets, miss",
    ),
    ("extract", "extract into memory, 4 GiB, against decode alone"): (4.0, "GiB of log", "extract"),
    ("rebuild", "rebuild, against decode + buildIndex"): (4.0, "GiB of log", "rebuild"),
}
BATCHES = {  # get_messages: messages a call -> the row
    32: "the same, 32 a call",
    1024: "the same, 1024 a call",
    32768: "get_messages, 32768 a call, tag filter: places, against getMessage",
}


def tables(record: dict[str, Any]) -> dict[str, Any]:
    """What each plot shows."""
    full = rows(record, largest_scale(record) or "full")
    ratios = {key: row for key, row in full.items() if row["kind"] == "faster" and peer(key[0], row) != "mqindex"}
    listed = [
        (
            group(key[0], row),
            f"{full_name(key, full).split(', against ')[0]} ({peer(key[0], row)})".replace("`", ""),
            row,
        )
        for key, row in ratios.items()
    ]
    front = [(f"{FRONT[key]} ({_product(key, full[key])})", full[key]) for key in FRONT if key in ratios]
    return {
        "speed": [[words.replace("`", ""), round(row["ratio"], 3)] for words, row in front],
        "speed-up": [[where, words, *_spread(row)] for name in GROUPS for where, words, row in listed if where == name],
        "growth": [panel for panel in [*map(_sizes(record), GROWN), _batches(full)] if panel],
    }


def speed(table: list[Any], colours: dict[str, str]) -> Any:
    """The ratios of README.md as bars."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.6))
    axes = figure.subplots()
    bars = axes.barh([words for words, _ in table], [ratio for _, ratio in table], color=colours["ours"], height=0.6)
    axes.bar_label(bars, [times(ratio) for _, ratio in table], padding=4)
    axes.axvline(1, color=colours["second"], linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast as the one in brackets (orange: equally fast)")
    return figure


def speed_up(table: list[Any], colours: dict[str, str]) -> Any:
    """Each ratio, with the range of its runs, on a logarithmic axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.24 * len(table) + 0.8))
    axes = figure.subplots()
    for place, (_, _, ratio, low, high) in enumerate(table):
        axes.plot([low, high], [place, place], color=colours["ours"], linewidth=3, alpha=0.5)
        axes.plot(ratio, place, "o", color=colours["ours"], markersize=5)
    axes.set_yticks(range(len(table)), [words for _, words, *_ in table], fontsize=8)
    axes.set_xscale("log")
    axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], ["0.1", "0.2", "0.5", *"125", "10", "20", "50", "100"])
    axes.minorticks_off()
    axes.axvline(1, color=colours["second"], linewidth=1)
    axes.grid(axis="x")
    axes.set_axisbelow(True)
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_xlabel("times as fast (point: median; bar: the runs; orange: equally fast)")
    return figure


def growth(table: list[Any], colours: dict[str, str]) -> Any:
    """Ours and theirs, one panel for each work."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    for place, panel in enumerate(table):
        axes = figure.add_subplot(2, 3, place + 1)
        axes.loglog(panel["sizes"], panel["mqindex"], "o-", color=colours["ours"])
        axes.loglog(panel["sizes"], panel["peer"], "s--", color=colours["second"])
        axes.set_xticks(panel["sizes"], [_short(size) for size in panel["sizes"]])
        axes.minorticks_off()
        top, bottom = max(panel["mqindex"] + panel["peer"]), min(panel["mqindex"] + panel["peer"])
        ticks = [tick for tick in _ticks() if bottom / 2 <= tick <= top * 2]
        axes.set_yticks(ticks, [_short(tick) for tick in ticks])
        axes.set_ylim(bottom / 1.6, top * 1.6)
        axes.set_title(panel["work"], fontsize=10)
        axes.set_xlabel(panel["of"], fontsize=9)
        axes.set_ylabel(panel["unit"], fontsize=9)
        axes.grid()
    figure.legend(["mqindex", "the broker's classes"], loc="outside lower center", ncols=2, labelcolor=colours["ink"])
    return figure


def _product(key: tuple[str, str], row: dict[str, Any]) -> str:
    return peer(key[0], row).split()[0].removesuffix("'s")


def _spread(row: dict[str, Any]) -> list[float]:
    return [round(value, 3) for value in (row["ratio"], *row["ratios"])]


def _sizes(record: dict[str, Any]) -> Callable[[tuple[str, str]], dict[str, Any] | None]:
    def panel(key: tuple[str, str]) -> dict[str, Any] | None:
        full, of, title = GROWN[key]
        found = {full / SCALES[name].divisor: rows(record, name).get(key) for name in reversed(SCALES)}
        return _panel(title, of, found)

    return panel


def _batches(full: dict[tuple[str, str], Any]) -> dict[str, Any] | None:
    found = {size: full.get(("get_message", work)) for size, work in BATCHES.items()}
    return _panel("get_messages, places", "messages a call", found)


def _panel(title: str, of: str, found: dict[Any, Any]) -> dict[str, Any] | None:
    points = {size: row for size, row in found.items() if row}
    if len(points) < 2:
        return None
    unit = {"ns": "ns an item", "M/s": "M msg/s"}[next(iter(points.values()))["unit"]]
    ours, theirs = ([round(row[who], 3) for row in points.values()] for who in ("ours", "peer"))
    return {"work": title, "of": of, "sizes": list(points), "unit": unit, "mqindex": ours, "peer": theirs}


def _ticks() -> list[float]:
    return [digit * 10**power for power in range(-2, 5) for digit in (1, 2, 5)]


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:g} M"
    return f"{number / 1e3:g} k" if number >= 1e5 else f"{number:g}"
