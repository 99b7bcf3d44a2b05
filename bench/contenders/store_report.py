"""What a page costs beside the `verify` that it accompanies: whole commands, in fresh processes, in turn."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from bench.contenders.result import Result, repeat

__all__ = ["run"]


def run(*, store: str, slots: int, entries: int, scratch: str, **spec: Any) -> Result:
    """`verify` and `report --out`, with as many workers as there are processors."""
    result, out = Result(), os.path.join(scratch, "page.html")
    settings = ["--hash-slot-num", str(slots), "--index-num", str(entries), "--broker-version", "4.9.3"]
    for keep in repeat(**spec):
        for name, words in (("verify", []), ("report", ["--out", out, "--force"])):
            command = [sys.executable, "-m", "mqindex", name, store, *words, *settings]
            start = time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            if keep:
                result.add(name, time.perf_counter() - start, 1)
            result.answer(**{name: done.stdout.splitlines()[0].removeprefix(store)})
    with open(out, encoding="utf-8") as page:
        result.answer(pictures=page.read().count("<svg "))
    return result
