"""The checksums of one large log, compared by several threads: one segment has no other work to share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final

import numpy as np

from mqindex._native.kafka_recovery import Recovered
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batches import batches_reach
from mqindex.kafka.log.log_segment import LogSegment

__all__ = ["recover_with_threads"]

_WORTH_A_THREAD: Final = 64 << 20  # bytes


def recover_with_threads(
    segment: LogSegment, threads: int, recover: Callable[..., Recovered], *, past_damage: bool
) -> Recovered:
    """`recover(check_crc=True)`; a large log is recovered by its headers while threads, if they can be started, compare
    the checksums.
    """
    threads = min(threads, segment.size // _WORTH_A_THREAD)
    if threads > 1:
        made = recover(check_crc=False, past_damage=past_damage)
        if not made.damage and _checksums_hold(segment, made, threads):
            return made
    return recover(check_crc=True, past_damage=past_damage)


def _checksums_hold(segment: LogSegment, made: Recovered, threads: int) -> bool:
    positions = np.frombuffer(made.offset_index, IndexKind.OFFSET.entry)["position"]
    inner = [int(positions[len(positions) * n // threads]) for n in range(1, threads) if len(positions)]
    cuts = sorted({0, *inner, made.end_bytes})
    log = segment.log_bytes()
    try:
        with ThreadPoolExecutor(threads, thread_name_prefix="mqindex-crc") as pool:
            return all(pool.map(lambda piece: batches_reach(log, *piece), pairwise(cuts)))
    except RuntimeError:  # the system allows no more threads
        return False
