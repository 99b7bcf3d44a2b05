"""The topic's index.interval.bytes, as the entries of intact offset indexes bound it.

A broker gives a batch an entry where it begins more bytes behind the last entry's than the interval. So the interval is
below the bytes between the batches of neighbouring entries, and not below those up to the batch before the later one.
An index that was written otherwise, as by followers or across a restart, mostly contradicts itself.

Source: Kafka 4.1.0 `LogSegment.append`, `recover`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from mqindex.errors import MQIndexError
from mqindex.kafka.index.index_entries import read_entries
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles

_FILES, _ENTRIES, _BYTES = 4, 64, 1 << 24  # looked at: closed segments, of each so many entries in so much of its log


def interval_bounds(segments: Sequence[SegmentFiles]) -> tuple[int, int, int] | None:
    """The least and the greatest interval with which these have their entries, and of how many files; None: none."""
    found = [each for each in map(_bounds, segments[:_FILES]) if each is not None]
    low, high = max((each[0] for each in found), default=0), min((each[1] for each in found), default=-1)
    return (low, high, len(found)) if low <= high else None


def roundest(low: int, high: int) -> int:
    """What people set, of [low, high].

    >>> roundest(973, 1046), roundest(500, 530), roundest(2950, 3049), roundest(17, 17)
    (1000, 512, 3000, 17)
    """
    powers: list[int] = [*(10**power for power in range(10)), *(2**power for power in range(31))]
    round_ones = [each for each in powers if low <= each <= high]
    for step in powers[9::-1]:
        round_ones += [] if (each := -(-low // step) * step) > high else [each]
    return round_ones[0]


def _bounds(files: SegmentFiles) -> tuple[int, int] | None:
    path = files.indexes.get(IndexKind.OFFSET)
    if path is None:
        return None
    with contextlib.suppress(MQIndexError, OSError), LogSegment.open(files.log, base_offset=files.base_offset) as log:
        entries = read_entries(path, IndexKind.OFFSET, _ENTRIES).second
        entries = entries[entries < min(_BYTES, log.size)]
        if len(entries) > 1 and entries[0] > 0 and (np.diff(entries) > 0).all():
            views = log.batch_arrays(0, int(entries[-1]) + 1, check_crc=False)
            batches = np.concatenate([np.zeros(0, np.int64), *(rows["position"].astype(np.int64) for rows in views)])
            at = np.searchsorted(batches, entries)
            if len(batches) > at[-1] and (batches[at] == entries).all():
                before = np.concatenate([[0], entries[:-1]])
                return int((batches[at - 1] - before).max()), int((entries - before).min()) - 1
    return None
