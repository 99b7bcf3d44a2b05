"""For developers: what each case asks for, and whether the newest record meets it. Users read `report`."""

from __future__ import annotations

from typing import Any

from bench.numbers import amount, times
from bench.rows import rows

__all__ = ["document"]

HEAD = ["work", "mqindex", "ratio", "must", "aim", "met"]
SIGNS = {"aim": "aim met", "must": "must met", "no": "NOT MET"}


def document(record: dict[str, Any]) -> str:
    """A table of the rows that have a goal, at full size, which is what the goals are for."""
    found = [row for row in rows(record, "full").values() if row["must"] is not None]
    lines = [HEAD, *([*_measured(row), _goal(row, 0), _goal(row, 1), SIGNS[row["met"]]] for row in found)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _measured(row: dict[str, Any]) -> list[str]:
    return [row["work"], amount(row["ours"], row["unit"]), times(row["ratio"]) if "ratio" in row else ""]


def _goal(row: dict[str, Any], which: int) -> str:
    goal = row[("must", "aim")[which]]
    if goal is None:
        return ""
    if row["kind"] == "below":
        return f"{goal:g} {row['unit']}"
    more = f" + {row['allowance'][which]:g} s" if "allowance" in row else ""
    return f"{goal:g}x{more}"
