"""`python -m tests.powercut [CUTS]`: so many cuts of writers, a rebuild, a repair, an undo, an optimize."""

from __future__ import annotations

import os
import sys
import time

from tests.powercut.disk import why_not

_INSIDE = "MQINDEX_POWERCUT_INSIDE"


def main() -> int:
    if reason := why_not():
        print(f"powercut: {reason}", file=sys.stderr)
        return 2
    if _INSIDE not in os.environ:  # a mount namespace of its own: whatever happens, nothing stays mounted
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, "-m", "tests.powercut", *sys.argv[1:]])
    from tests.powercut.cutting import cut_often
    from tests.powercut.trials import TRIALS

    cuts, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(os.environ.get("MQINDEX_TEST_SEED") or time.time())
    lost = 0
    for kind in TRIALS:
        try:
            result = cut_often(kind, cuts, seed)
        except OSError as error:
            print(f"powercut: {error}", file=sys.stderr)
            return 2
        print(f"powercut: {result}", *result.lost, sep="\n", flush=True)
        lost += len(result.lost)
    if lost:
        print(f"powercut: again with MQINDEX_TEST_SEED={seed}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
