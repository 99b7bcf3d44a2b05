"""How a recovery goes over a segment's log: by the map or by reads of headers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from mqindex._native.kafka_recovery import Recovered

__all__ = ["WINDOW", "last_offsets_are_indexed", "lost_indexes_are_made", "run_by_headers", "run_with_checksums"]

WINDOW: Final = 32 << 20  # bytes between two checks whether the log was cut
_FIRST_STRETCH: Final = 1 << 20  # bytes, by which the size of batches is judged
_LARGE_BATCH: Final = 32768  # from here on a read of a header costs less than the pages around it, however they lie
_LAST_OFFSETS_SINCE: Final = (2, 0)
_LOST_INDEXES_SINCE: Final = (2, 3)


def run_with_checksums(made: Recovered, whole: Callable[[], object]) -> None:
    """Every byte, from the map. `whole()` raises where others have cut it."""
    running = True
    while running:
        whole()
        running = made.run(made.valid_bytes + WINDOW)


def run_by_headers(made: Recovered, fd: int, whole: Callable[[], object]) -> None:
    """Small batches from the map, of which every page is needed; large ones by a read of each header, from `fd`.

    fd : of the same log; -1: there is none, and all batches are read from the map.
    """
    stop, reads = _FIRST_STRETCH, -1
    while True:
        if reads < 0:
            whole()
        position, batches = made.valid_bytes, made.batches
        if not made.run(stop, reads):
            return
        large = made.valid_bytes - position > _LARGE_BATCH * (made.batches - batches)
        stop, reads = made.valid_bytes + WINDOW, fd if large else -1


def last_offsets_are_indexed(kafka_version: str | None) -> bool:
    """Whether brokers of this version put last offsets into the offset index; first ones before 2.0.

    >>> last_offsets_are_indexed("1.1.1"), last_offsets_are_indexed("3.9"), last_offsets_are_indexed(None)
    (False, True, True)
    """
    return _is_since(_LAST_OFFSETS_SINCE, kafka_version)


def lost_indexes_are_made(kafka_version: str | None) -> bool:
    """Whether brokers of this version recover a segment without `.index` when they load it, however they were stopped.

    >>> lost_indexes_are_made("2.2.2"), lost_indexes_are_made("2.8"), lost_indexes_are_made(None)
    (False, True, True)
    """
    return _is_since(_LOST_INDEXES_SINCE, kafka_version)


def _is_since(first: tuple[int, ...], kafka_version: str | None) -> bool:
    if kafka_version is None:
        return True
    if not re.fullmatch(r"\d+(\.\d+)*", kafka_version):
        raise ValueError(f"kafka_version: expected numbers and dots, as 3.9.1, got {kafka_version!r}")
    return tuple(int(part) for part in kafka_version.split(".")) >= first
