"""What a first use costs: import, `--help`, one look-up in a file that is not in the page cache. Fresh processes."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from bench import memory
from bench.contenders.result import Result, repeat

__all__ = ["run"]

IMPORT = """
import time
start = time.perf_counter()
import mqindex
print(time.perf_counter() - start)
"""
LOOK_UP = """
import sys, time
from bench.memory import drop
slots, entries = int(sys.argv[4]), int(sys.argv[5])
start = time.perf_counter()
from mqindex.rocketmq import IndexFile
with IndexFile.open(sys.argv[1], hash_slot_num=4, index_num=4) as index:
    index.select_phy_offset("none")
first = time.perf_counter() - start
drop(sys.argv[2])
start = time.perf_counter()
with IndexFile.open(sys.argv[2], hash_slot_num=slots, index_num=entries) as index:
    found = index.select_phy_offset(sys.argv[3])
cold = time.perf_counter() - start
print(first, cold, *found.tolist())
"""


def run(*, index: str, small: str, key: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """Each round is a new interpreter; the first ones bring it and its modules into the page cache."""
    result = Result()
    for keep in repeat(**spec):
        imported = float(_print([sys.executable, "-c", IMPORT]))
        start = time.perf_counter()
        _print([sys.executable, "-m", "mqindex", "--help"])
        helped = time.perf_counter() - start
        memory.drop(index)
        look_up = [sys.executable, "-c", LOOK_UP, small, index, key, str(slots), str(entries)]
        first, cold, *found = map(float, _print(look_up).split())
        result.answer(cold_hits=[int(offset) for offset in found])
        if keep:
            for measure, seconds in (("import", imported), ("help", helped), ("first_use", first), ("cold", cold)):
                result.add(measure, seconds, 1)
    return result


def _print(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
