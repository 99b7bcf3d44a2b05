"""Two pictures that need no measurement: the pipeline, and what a repair gave a broken store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["pipeline", "repair", "tables"]

BLOCK = 4096  # bytes of log that one bar of the picture is for
STAGES = {  # what there is after the stage -> (the stage before it, words under it, how many are drawn)
    "commit log": ("", "files of 1 GiB", 1),
    "splits": ("plan", "byte ranges", 4),
    "runs": ("extract", "20 bytes an entry", 4),
    "files": ("assign\nbuild", "index, consume queues", 3),
    "store": ("publish", "by one rename", 1),
}


def tables() -> dict[str, Any]:
    """What the pictures show."""
    return {"pipeline": {name: list(words) for name, words in STAGES.items()}, "repair": _entries()}


def pipeline(table: dict[str, Any], colours: dict[str, str]) -> Any:
    """Boxes from left to right; between them the stage that turns one into the next."""
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    figure = Figure(figsize=(8.4, 1.7))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-0.6, 2 * len(table) - 1.4)
    axes.set_ylim(-0.45, 1.25)
    for place, (name, (stage, words, count)) in enumerate(table.items()):
        left, height = 2 * place - 0.5, 0.8 / count
        for number in range(count):
            corner = (left, height * number + 0.02)
            style = {"facecolor": colours["fill"], "edgecolor": colours["ours"]}
            axes.add_patch(FancyBboxPatch(corner, 1, height - 0.06, boxstyle="round,pad=0,rounding_size=0.04", **style))
        axes.text(2 * place, 1, name, ha="center", va="center", weight="bold")
        axes.text(2 * place, -0.22, words, ha="center", va="center", fontsize=9)
        if stage:
            arrow = {"arrowstyle": "->", "color": colours["second"]}
            axes.annotate("", (left - 0.05, 0.4), (left - 0.95, 0.4), arrowprops=arrow)
            axes.text(left - 0.5, 0.5, stage, ha="center", va="bottom", fontsize=9)
    return figure


def repair(table: dict[str, Any], colours: dict[str, str]) -> Any:
    """Index entries of each block of the log, before and after."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.9), layout="constrained")
    places = np.arange(len(table["after"])) * table["block"] / 1024
    for axes, (words, colour) in zip(
        figure.subplots(1, 2, sharey=True), {"before": "second", "after": "ours"}.items(), strict=True
    ):
        axes.bar(places, table[words], width=table["block"] / 1024 * 0.8, align="edge", color=colours[colour])
        axes.set_title(f"{words} mqindex repair: {sum(table[words])} index entries", fontsize=10)
        axes.set_xlabel("place in the commit log, KiB", fontsize=9)
    figure.axes[0].set_ylabel("index entries", fontsize=9)
    return figure


def _entries() -> dict[str, Any]:
    """Of the store in README.md: how many index entries lead into each block of the log."""
    from mqindex import rocketmq
    from tests.support.golden import case

    with tempfile.TemporaryDirectory() as folder:
        store = case("killed-lost-493").unpack_after(Path(folder))
        before = _count(store)
        rocketmq.repair(store)
        after = _count(store)
    shown = len(after)
    return {"block": BLOCK, "before": before + [0] * (shown - len(before)), "after": after}


def _count(store: Path) -> list[int]:
    from mqindex.rocketmq import IndexFile

    blocks = []
    for name in os.listdir(store / "index"):
        with IndexFile.open(store / "index" / name, hash_slot_num=500, index_num=5000) as index:
            blocks.append(index.entries()["phy_offset"] // BLOCK)
    return np.bincount(np.concatenate(blocks)).tolist()
