"""The checksums of one large log, compared by several threads: for one segment there is no other work to share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from mqindex._native.kafka_log import BatchScan
from mqindex._native.kafka_recovery import Recovered
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.log_segment import LogSegment

__all__ = ["recover_with_threads"]

_WORTH_IT = 64 << 20  # bytes for each thread


def recover_with_threads(segment: LogSegment, threads: int, recover: Callable[..., Recovered]) -> Recovered:
    """`recover(check_crc=True)`, from its headers alone where no checksum is wrong: those are compared side by side."""
    threads = min(threads, segment.size // _WORTH_IT)
    if threads > 1:
        made = recover(check_crc=False)
        if _checksums_hold(segment, made, threads):
            return made
    return recover(check_crc=True)


def _checksums_hold(segment: LogSegment, made: Recovered, threads: int) -> bool:
    positions = np.frombuffer(made.offset_index, IndexKind.OFFSET.entry)["position"]
    inner = [int(positions[len(positions) * n // threads]) for n in range(1, threads) if len(positions)]
    cuts = sorted({0, *inner, made.valid_bytes})
    log = segment.log_bytes()
    with ThreadPoolExecutor(threads, thread_name_prefix="mqindex-crc") as pool:
        return all(pool.map(lambda piece: _good(log, *piece), pairwise(cuts)))


def _good(log: Any, start: int, stop: int) -> bool:
    scan = BatchScan(log, start, stop)
    for _ in scan:
        pass
    return scan.fault is None and scan.end == stop
