"""`python -m bench.contenders MODULE.FUNCTION JSON`: one run, one JSON line."""

from __future__ import annotations

import importlib
import json
import sys

if __name__ == "__main__":
    module, _, function = sys.argv[1].rpartition(".")
    contender = getattr(importlib.import_module(f"bench.contenders.{module}"), function)
    print("\n" + contender(**json.loads(sys.argv[2])).line(), flush=True)
