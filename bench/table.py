"""Records as Markdown: the table of README.md, and what `python -m bench` prints."""

from __future__ import annotations

import os
from typing import Any

from bench.cases import CASES
from bench.machine import ROOT
from bench.scale import SCALES

__all__ = ["document", "readme_is_current", "write_readme"]

README = os.path.join(ROOT, "README.md")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
TIMES = "\N{MULTIPLICATION SIGN}"
HEAD = "| Work | mqindex | compared with | ratio (each run) | must | aim | |"
SIGNS = {"aim": "aim met", "must": "must met", "no": "**not met**", "": ""}


def document(record: dict[str, Any]) -> str:
    """The table of one record: full size, then how the ratios change with size, then where it comes from.

    Full size is missing while only smaller ones were run: then the largest there is.
    """
    parts = record["parts"]
    name = next((scale for scale in SCALES if parts.get(scale)), None)
    if name is None:
        return "No case has been measured."
    lines = [HEAD, "|---|---|---|---|---|---|---|"]
    rows = [row for case in _ordered(parts[name]) for row in parts[name][case]["numbers"]]
    if name != "full":
        # The goals are for the full size.
        rows = [{**row, "must": None, "aim": None, "met": ""} for row in rows]
        lines.insert(0, f"{SCALES[name].divisor} times less work than at full size:\n")
    lines += [_row(row) for row in rows]
    grown = _growth(parts)
    if grown:
        lines += ["", "The same work at 1/100, 1/10 and full size (mqindex; ratio):", "", *grown]
    return "\n".join([*lines, "", _origin(record, name)])


def write_readme(record: dict[str, Any]) -> None:
    """Put the table between the marks of README.md."""
    text, table = _readme(), _between(record)
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    with open(README, "w", encoding="utf-8") as file:
        file.write(head + table + tail)


def readme_is_current(record: dict[str, Any]) -> bool:
    """Whether README.md holds exactly this record's table."""
    return _between(record) in _readme()


def _readme() -> str:
    with open(README, encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"README.md: expected one {BEGIN} and one {END} behind it")
    return text


def _between(record: dict[str, Any]) -> str:
    return f"{BEGIN}\n{document(record)}\n{END}"


def _ordered(cases: dict[str, Any]) -> list[str]:
    return [name for name in CASES if name in cases]


def _row(row: dict[str, Any]) -> str:
    peer = f"{_value(row['peer'], row['unit'])} ({row['peer_name']})" if "peer" in row else ""
    ours = _value(row["ours"], row["unit"])
    cells = [row["work"], ours, peer, _spread(row), _goal(row, 0), _goal(row, 1), SIGNS[row["met"]]]
    return f"| {' | '.join(cells)} |"


def _spread(row: dict[str, Any]) -> str:
    if "ratio" not in row:
        return ""
    low, high = row["ratios"]
    return f"**{_times(row['ratio'])}** ({_times(low)} to {_times(high)})"


def _goal(row: dict[str, Any], which: int) -> str:
    goal = row[("must", "aim")[which]]
    if goal is None:
        return ""
    if row["kind"] == "below":
        return f"{goal:g} {row['unit']}"
    more = f" + {row['allowance'][which]:g} s" if "allowance" in row else ""
    return f"{goal:g}{TIMES}{more}"


def _growth(parts: dict[str, Any]) -> list[str]:
    names = [name for name in reversed(SCALES) if parts.get(name)]
    if len(names) < 2:
        return []
    lines = ["| Work | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    found = {name: {row["work"]: row for part in parts[name].values() for row in part["numbers"]} for name in names}
    for case in _ordered(parts[names[-1]]):
        for row in parts[names[-1]][case]["numbers"]:
            cells = [_cell(found[name].get(row["work"])) for name in names]
            lines.append("| " + " | ".join([row["work"], *cells]) + " |")
    return lines


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    value = _value(row["ours"], row["unit"])
    return f"{value}; {_times(row['ratio'])}" if "ratio" in row else value


def _value(value: float, unit: str) -> str:
    return f"{value:.{_digits(value)}f} {'M msg/s' if unit == 'M/s' else unit}"


def _times(ratio: float) -> str:
    return f"{ratio:.{_digits(ratio)}f}{TIMES}"


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 0.1 else 4


def _origin(record: dict[str, Any], scale: str) -> str:
    machine = record["machine"]
    commits = sorted({part["commit"] for part in record["parts"][scale].values()})
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {caches}, {machine['memory_gib']} GiB; {machine['kernel']}; "
        f"{machine['compiler']}; {machine['python']}; {machine['java']}; {packages}. "
        f"RocketMQ 4.9.3 and Kafka 4.1.0 from Maven. Measured {record['date']} at {', '.join(commits)}."
    )
