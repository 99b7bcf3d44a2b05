"""From samples to numbers: medians, spread, ratios, and whether a goal is met."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

__all__ = ["Goal", "Measured", "amount", "number", "summary", "times"]

Measured = dict[str, dict[str, Any]]  # "contender/measure" -> summary
UNITS = {
    "ns": 1e9,
    "us": 1e6,
    "ms": 1e3,
    "s": 1.0,
    "MiB": 1 / 2**20,
    "M/s": 1e-6,
    "GB/s": 1e-9,
    "%": 100.0,
    "reads": 1.0,
    "rounds": 1.0,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table. `ours` and `peer` name what is compared, as "contender/measure".

    kind : "faster": peer / ours must reach the goal. "slower": (ours - allowance) / peer must stay below it.
        "below": ours itself must, in `unit`.
    unit : in what the two are printed; "M/s" and "GB/s" are rates, the others are for one unit of work, or, with
        `whole`, for all.
    """

    work: str
    ours: str
    peer: str | None
    kind: Literal["faster", "slower", "below", "shown"]
    unit: str
    must: float | None = None
    aim: float | None = None
    allowance: tuple[float, float] = (0.0, 0.0)
    whole: bool = False


def summary(samples: list[float], units: int) -> dict[str, Any]:
    """Seconds of each process (the median of its rounds) as a record keeps them.

    >>> summary([3.0, 1.0, 2.0], units=10)["median"]
    2.0
    """
    return {"units": units, "samples": samples, "median": median(samples), "min": min(samples), "max": max(samples)}


def amount(value: float, unit: str) -> str:
    """A measured value in words.

    >>> amount(23.4477, "ns"), amount(6.1357, "M/s")
    ('23.4 ns', '6.14 M msg/s')
    """
    return f"{value:.{_digits(value)}f} {'M msg/s' if unit == 'M/s' else unit}"


def times(ratio: float) -> str:
    """A ratio in words.

    >>> times(11.2188), times(0.96)
    ('11.2\N{MULTIPLICATION SIGN}', '0.96\N{MULTIPLICATION SIGN}')
    """
    return f"{ratio:.{_digits(ratio)}f}\N{MULTIPLICATION SIGN}"


def number(goal: Goal, measured: Measured) -> dict[str, Any]:
    """The row of one goal, as recorded and printed."""
    ours = measured[goal.ours]
    row: dict[str, Any] = {"work": goal.work, "unit": goal.unit, "kind": goal.kind, "must": goal.must, "aim": goal.aim}
    row["ours"] = _shown(ours["median"], ours["units"], goal)
    if goal.peer is None:
        row["met"] = _met(row["ours"], row["ours"], goal)
        return row
    peer = measured[goal.peer]
    row["peer"] = _shown(peer["median"], peer["units"], goal)
    row["peer_name"] = goal.peer
    row["ratio"] = _ratio(ours["median"], peer["median"], goal, 0.0)
    pairs = [_ratio(a, b, goal, 0.0) for a, b in zip(ours["samples"], peer["samples"], strict=False)]
    row["ratios"] = [min(pairs), max(pairs)]
    if goal.allowance != (0.0, 0.0):
        row["allowance"] = list(goal.allowance)
    must, aim = (_ratio(ours["median"], peer["median"], goal, spared) for spared in goal.allowance)
    row["met"] = _met(must, aim, goal)
    return row


def _ratio(ours: float, peer: float, goal: Goal, spared: float) -> float:
    return peer / ours if goal.kind == "faster" else (ours - spared) / peer


def _met(must: float, aim: float, goal: Goal) -> str:
    """ "aim", "must" or "no"; empty where nothing is asked."""
    if goal.must is None:
        return ""
    sign = -1 if goal.kind == "faster" else 1
    if goal.aim is not None and sign * aim <= sign * goal.aim:
        return "aim"
    return "must" if sign * must <= sign * goal.must else "no"


def _shown(value: float, units: int, goal: Goal) -> float:
    if goal.unit.endswith("/s"):
        return units / value * UNITS[goal.unit]
    return (value if goal.whole else value / units) * UNITS[goal.unit]


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4
