"""How a recovery goes over a segment's log: by the map or by reads of headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mqindex._native.kafka_recovery import Recovered

WINDOW: Final = 32 << 20  # bytes between two checks whether the log was cut
_FIRST_STRETCH: Final = 1 << 20  # bytes, by which the size of batches is judged
_LARGE_BATCH: Final = 32768  # from here on a read of a header costs less than the pages around it, however they lie


def run_with_checksums(made: Recovered, whole: Callable[[], object]) -> None:
    """Every byte, from the map. `whole()` raises where others have cut it."""
    running = True
    while running:
        whole()
        running = made.run(made.end_bytes + WINDOW)


def run_by_headers(made: Recovered, fd: int, whole: Callable[[], object]) -> None:
    """Small batches from the map, of which every page is needed; large ones by a read of each header, from `fd`.

    fd : of the same log; -1: there is none, and all batches are read from the map.
    """
    stop, reads = _FIRST_STRETCH, -1
    while True:
        if reads < 0:
            whole()
        position, batches = made.end_bytes, made.batches
        if not made.run(stop, reads):
            return
        large = made.end_bytes - position > _LARGE_BATCH * (made.batches - batches)
        stop, reads = made.end_bytes + WINDOW, fd if large else -1
