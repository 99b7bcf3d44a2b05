"""`optimize` of one index file."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

from bench import memory
from bench.contenders.result import Result, checksum, repeat
from mqindex.rocketmq import optimize

__all__ = ["run"]


def run(*, index: str, slots: int, entries: int, warm: int, scratch: str, **spec: Any) -> Result:
    """Check, sort, check again, fence, filter and publication. Waiting for the disk is a measure of its own."""
    result, out, checked = Result(), os.path.join(scratch, "out"), ""
    source = os.path.join(scratch, "index", os.path.basename(index))
    os.mkdir(os.path.dirname(source))
    os.link(index, source)
    for keep in repeat(**spec):
        memory.warm(warm)
        start = time.perf_counter()
        report = optimize(source, out, hash_slot_num=slots, index_num=entries)
        seconds = time.perf_counter() - start
        if keep:
            result.add("optimize", seconds - report.fsync_seconds, report.entries)
            result.add("fsync", report.fsync_seconds, report.entries)
        checked = checked or checksum(sorted(report.out_files))
        shutil.rmtree(out)
    result.answer(files=checked)
    return result
