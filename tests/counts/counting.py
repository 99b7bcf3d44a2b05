"""Instructions of the kernels, counted by valgrind: the same on a busy machine as on an idle one.

`python -m tests.counts.counting` counts here and keeps the numbers in `expected.json`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from mqindex._native import index_entries
from tests.counts.work import ITEMS

__all__ = ["EXPECTED", "counted", "expected", "this_build"]

EXPECTED = Path(__file__).with_name("expected.json")


def this_build() -> str:
    """What the counts depend on: machine, the compiler of the kernels, and Python, which single calls go through."""
    binary = Path(index_entries.__file__).read_bytes()
    compilers = sorted(set(re.findall(rb"(?:GCC: |clang version )[^\0]*", binary)))
    return f"{platform.machine()}, {b', '.join(compilers).decode()}, Python {platform.python_version()}"


def expected() -> dict[str, dict[str, float]]:
    """Build -> name -> instructions an item."""
    known: dict[str, dict[str, float]] = json.loads(EXPECTED.read_text())
    return known


def counted() -> dict[str, float]:
    """Name -> instructions an item, callees included."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "callgrind.out")
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-m", "tests.counts.work"],
            env=os.environ | {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"the counted process failed:\n{done.stderr[-3000:]}")
        totals = inclusive(out.read_text())
    return {name: round(_total(totals, name) / items, 1) for name, items in ITEMS.items()}


def _total(totals: Counter[str], name: str) -> int:
    of, dot, method = name.partition(".")
    symbol = rf"__pyx_pw_\w+{of}_\d+{method}" if dot else name
    found = [total for function, total in totals.items() if re.fullmatch(symbol, function)]
    if not found:
        raise LookupError(f"{name}: no function of this name was called: renamed, or inlined?")
    return sum(found)


def inclusive(profile: str) -> Counter[str]:
    """Function -> instructions in it and in what it calls, of a profile in callgrind's format."""
    names: dict[str, str] = {}
    totals: Counter[str] = Counter()
    current = ""
    for line in profile.splitlines():
        if match := re.match(r"(c?fn)=(\(\d+\))(?: (.*))?", line):
            kind, number, name = match.groups()
            names.setdefault(number, name)
            current = names[number] if kind == "fn" else current
        elif match := re.match(r"[+*0-9-]\S* (\d+)$", line):
            totals[current] += int(match[1])  # of the function itself, or after `calls=` of a call
    return totals


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps(expected() | {this_build(): counted()}, indent=2) + "\n")
