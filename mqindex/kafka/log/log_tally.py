"""What a segment's log consists of, as a recovery counts it in the same pass: see `LogSegment.recover`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_recovery import Recovered

_SUM: Final = np.dtype([("batches", "=i8"), ("records", "=i8"), ("bytes", "=i8")])
_POWERS: Final = 32

COUNTS: Final = np.dtype(
    [
        ("codecs", _SUM, 8),
        ("magics", "=i8", 3),
        ("sizes", "=i8", _POWERS),
        ("counts", "=i8", _POWERS),
        ("wrapped", "=i8"),
        ("transactional", "=i8"),
        ("control", "=i8"),
        ("append_time", "=i8"),
        ("untimed", "=i8"),
        ("late", "=i8"),
        ("furthest_back", "=i8"),
        ("other_producers", _SUM),
    ]
)
"""Of a whole log. codecs, magics: by their numbers. sizes, counts: batches by bytes and by records, number n has those
from 2^(n-1) up to 2^n, number 0 those without any. wrapped: compressed messages of magic 0 and 1, each counted as one
record. transactional, control, append_time (the broker's time), untimed: batches. late: batches whose timestamp is
below the greatest before them, furthest_back: by how many ms at most. other_producers: of those that are in no row."""

STRETCH: Final = np.dtype(
    [
        (name, "=i8")
        for name in (
            "position",
            "base_offset",
            "last_offset",
            "min_timestamp",
            "max_timestamp",
            "batches",
            "records",
            "bytes",
        )
    ]
)
"""The batches that begin in one stretch of the log. Timestamps: the least and the greatest of theirs, -1: none."""

PRODUCER: Final = np.dtype([("producer_id", "=i8"), *((name, "=i8") for name in _SUM.names or ())])
"""What one producer wrote; of the first few hundred that a log shows."""


@dataclass(frozen=True, slots=True)
class LogTally:
    """Of one log, up to its last good batch. `counts`: a row of `COUNTS`."""

    counts: npt.NDArray[Any]
    stretches: npt.NDArray[Any]
    producers: npt.NDArray[Any]


def tally_of(made: Recovered) -> LogTally | None:
    """None: a recovery that did not count."""
    if made.tally is None:
        return None
    counts, stretches, producers = made.tally
    return LogTally(
        np.frombuffer(counts, COUNTS), np.frombuffer(stretches, STRETCH), np.frombuffer(producers, PRODUCER)
    )
