"""The driver of a rebuild between its stages, which are answered at once: no log is there, and none is read."""

from __future__ import annotations

import time
from pathlib import Path

from bench.contenders.result import Result
from tests.support.simulated_log import SimulatedLog, rebuild_simulated

__all__ = ["simulated"]


def simulated(*, files: int, queues: int, scratch: str) -> Result:
    """The driver's own seconds of a processor, without those of the tasks; the largest thing that travels, in bytes."""
    result, log = Result(), SimulatedLog(files, queues)
    began = time.process_time()
    report = rebuild_simulated(log, Path(scratch))
    result.add("own", time.process_time() - began - log.elsewhere, log.splits)
    result.add("largest", log.largest, 1)
    result.add("crossed", log.crossed, 1)
    result.answer(splits=log.splits, messages=report.messages, entries=report.entries, units=report.units)
    return result
