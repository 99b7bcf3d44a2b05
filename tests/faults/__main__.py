"""`python -m tests.faults [OPERATION[:CALL:FAILURE...]...]`: the matrix, those operations, or single attempts."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.preload import STACK, available, environment, is_loaded

_SHOWN = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev faults", description="make every call that touches a disk fail")
    parser.add_argument("what", nargs="*", metavar="OPERATION[:CALL:FAILURE[:CALL:FAILURE]]")
    parser.add_argument("--sample", type=int, metavar="N", help="only so many attempts of each operation, at random")
    parser.add_argument(
        "--pairs", type=int, default=100, metavar="N", help="and so many in which a second call fails (100)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="which ones")
    parser.add_argument("--list", action="store_true", help="only say the operations")
    given = parser.parse_args()
    if not available():
        print("faults: libraries are loaded before libc on Linux only", file=sys.stderr)
        return 2
    if not is_loaded():
        with tempfile.TemporaryDirectory(prefix="mqindex-faults-") as directory:
            return os.spawnve(
                os.P_WAIT,
                sys.executable,
                [sys.executable, "-m", "tests.faults", *sys.argv[1:]],
                environment(Path(directory)),
            )
    if any(":" in word for word in sys.argv[1:]):
        os.environ[STACK] = "1"
    from tests.faults import matrix

    if given.list:
        print(*matrix.OPERATIONS, sep="\n")
        return 0
    single = [matrix.Attempt.of(what) for what in given.what if ":" in what]
    names = list(dict.fromkeys(what.split(":")[0] for what in given.what)) or list(matrix.OPERATIONS)
    if unknown := [name for name in names if name not in matrix.OPERATIONS]:
        parser.error(f"no such operation: {', '.join(unknown)}; there are: {', '.join(matrix.OPERATIONS)}")
    started = time.monotonic()

    def choose(cells: list[matrix.Attempt]) -> list[matrix.Attempt]:
        mine = [cell for cell in single if cell.operation == cells[0].operation]
        if mine:
            return mine
        source = random.Random(f"{given.seed} {cells[0].operation}")
        some = cells if given.sample is None else source.sample(cells, min(given.sample, len(cells)))
        return [*some, *matrix.pairs(cells, given.pairs, source)]

    totals = matrix.run(names, choose, lambda line: print(line, flush=True))
    for (operation, word, why), found in sorted(totals.bad.items(), key=lambda each: -len(each[1]))[:_SHOWN]:
        print(f"\n{len(found)} x {operation}: {word}: {why}\n    ./dev faults {found[0]}")
        if single:
            print(totals.traces[str(found[0])])
    if len(totals.bad) > _SHOWN:
        print(f"\n... and {len(totals.bad) - _SHOWN} further kinds")
    print(f"\nfaults: {totals}; {time.monotonic() - started:.0f} s")
    return 0 if totals.ok else 1


if __name__ == "__main__":
    sys.exit(main())
