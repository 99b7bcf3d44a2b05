"""What users read of a record: the tables and plots of bench/README.md, and the rows of README.md."""

from __future__ import annotations

import os
from typing import Any

from bench import pictures
from bench.machine import ROOT
from bench.numbers import amount, times
from bench.rows import FRONT, GROUPS, Row, full_name, group, largest_scale, peer, rows
from bench.scale import SCALES

__all__ = ["stale", "write"]

BEGIN, END = "<!-- written by `python -m bench report` -->", "<!-- written until here -->"
ALIKE = 0.1  # a ratio so near to 1 is no gain
MEMORY = ["private memory of a rebuild, 1 GiB of log", "private memory of a rebuild, 16 GiB of log"]
GROUP_HEADINGS = {
    "RocketMQ": "Compared with RocketMQ's own classes",
    "Kafka": "Compared with Kafka's own classes",
    "others": "Compared with what else one would use",
    "mqindex itself": "Alone, and compared with itself",
}


def write(records: list[dict[str, Any]]) -> None:
    """Put the tables between the marks of both documents, and draw what the first record shows."""
    for path, text in _documents(records).items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    pictures.draw(pictures.tables(records[0]))


def stale(records: list[dict[str, Any]]) -> list[str]:
    """The documents and pictures that are not what these records give."""
    wrong = [path for path, text in _documents(records).items() if text != _read(path)]
    return [os.path.relpath(path, ROOT) for path in [*wrong, *pictures.stale(pictures.tables(records[0]))]]


def _documents(records: list[dict[str, Any]]) -> dict[str, str]:
    full = "\n\n".join([_full(records[0]), *map(_other, records[1:])])
    written = {"README.md": _front(records), os.path.join("bench", "README.md"): full}
    return {path: _filled(path, text) for name, text in written.items() for path in [os.path.join(ROOT, name)]}


def _filled(path: str, table: str) -> str:
    head, begin, rest = _read(path).partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in tail:
        raise SystemExit(f"{path}: expected one line {BEGIN} and, after it, one line {END}")
    return f"{head}{begin}\n{table}\n{end}{tail}"


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _front(records: list[dict[str, Any]]) -> str:
    """Each row is of one run: of the first of these machines that has it."""
    found: dict[tuple[str, str], Row] = {}
    for record in reversed(records):
        found |= rows(record, "full")
    lines = [
        _line([FRONT[key], _ours(row), _theirs(key[0], row), _gain(row)]) for key in FRONT if (row := found.get(key))
    ]
    head = _head("work", "mqindex", "compared with", "mqindex is")
    return "\n".join([head, *lines, *_memory([found.get(("private_memory", work)) for work in MEMORY])])


def _memory(found: list[Row | None]) -> list[str]:
    small, large = (_ours(row) if row else "" for row in found)
    return ["", f"A rebuild takes {small} of private memory for 1 GiB of log, and {large} for 16 GiB."] if small else []


def _full(record: dict[str, Any]) -> str:
    scale = largest_scale(record)
    if scale is None:
        return "Nothing has been measured."
    size = "" if scale == "full" else f"{SCALES[scale].divisor} times less work than at full size.\n"
    parts = [_origin(record, scale), size, _picture("speed-up", "Each ratio of the tables, in one plot"), ""]
    return "\n".join([*parts, *_tables(record, scale), *_growth(record)]).rstrip()


def _other(record: dict[str, Any]) -> str:
    """Another machine: what was measured there."""
    scale = largest_scale(record)
    if scale is None:
        return ""
    return "\n".join(["## On another processor\n", _origin(record, scale), *_tables(record, scale)]).rstrip()


def _tables(record: dict[str, Any], scale: str) -> list[str]:
    found, parts = rows(record, scale), []
    for name in GROUPS:
        lines = [
            _line([full_name(key, found), _ours(row), _theirs(key[0], row), _spread(row)])
            for key, row in found.items()
            if group(key[0], row) == name
        ]
        if lines:
            head = _head("work", "mqindex", "compared with", "ratio (each run)")
            parts += [f"### {GROUP_HEADINGS[name]}\n", head, *lines, ""]
    return parts


def _growth(record: dict[str, Any]) -> list[str]:
    names = [name for name in reversed(SCALES) if record["parts"].get(name)]
    if len(names) < 2:
        return []
    found = [rows(record, name) for name in names]
    lines = [
        _line([full_name(key, found[-1]), *(_cell(each.get(key)) for each in found)])
        for key in found[-1]
        if sum(key in each for each in found) > 1
    ]
    sizes = ["full size" if name == "full" else f"1/{SCALES[name].divisor}" for name in names]
    picture = _picture("growth", "The same work at three sizes: mqindex and what it is compared with")
    return ["### The same work at other sizes\n", picture, "", _head("work", *sizes), *lines]


def _picture(name: str, words: str) -> str:
    return (
        f'<picture>\n<source media="(prefers-color-scheme: dark)" srcset="svg/{name}-dark.svg">\n'
        f'<img alt="{words}" src="svg/{name}-light.svg">\n</picture>'
    )


def _head(*names: str) -> str:
    return _line(list(names)) + "\n" + "|---" * len(names) + "|"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ours(row: Row) -> str:
    return amount(row["ours"], row["unit"])


def _theirs(case: str, row: Row) -> str:
    return f"{amount(row['peer'], row['unit'])}, {peer(case, row)}" if "peer" in row else ""


def _gain(row: Row) -> str:
    if row["kind"] != "faster":
        return f"{times(row['ratio'])} as long"
    if abs(row["ratio"] - 1) < ALIKE:
        return "as fast"
    return f"**{times(row['ratio'])}** as fast" if row["ratio"] > 1 else f"{times(row['ratio'])} as fast"


def _spread(row: Row) -> str:
    if "ratio" not in row:
        return ""
    low, high = row["ratios"]
    what = "" if row["kind"] == "faster" else " as much" if row["unit"] == "MiB" else " as long"
    return f"**{times(row['ratio'])}**{what} ({times(low)} to {times(high)})"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{_ours(row)}; {times(row['ratio'])}" if "ratio" in row else _ours(row)


def _origin(record: dict[str, Any], scale: str) -> str:
    machine = record["machine"]
    commits = sorted({part["commit"] for part in record["parts"][scale].values()})
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    return (
        f"Measured {record['date']} on {machine['cpu']}, {machine['cores']} cores, {caches}, "
        f"{machine['memory_gib']} GiB; {machine['kernel']}; {machine['compiler']}; {machine['python']}; "
        f"{machine['java']}; {packages}; RocketMQ 4.9.3 and Kafka 4.1.0 from Maven; at {', '.join(commits)}.\n"
    )
