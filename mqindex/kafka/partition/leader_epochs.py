"""Leader epochs: those of the batches of a partition, and those of its `leader-epoch-checkpoint`.

```
0                     version
2                     number of entries
0 0                   epoch, first offset: it holds up to the next entry's
3 1842
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.files.paths import join
from mqindex.kafka import catalogue
from mqindex.kafka.directories.offset_checkpoint import read_checkpoint, split_fields, whole_number
from mqindex.report import Finding

CHECKPOINT: Final = "leader-epoch-checkpoint"
RUN: Final = np.dtype(
    [("position", "=i8"), ("base_offset", "=i8"), ("last_base_offset", "=i8"), ("leader_epoch", "=i4")]
)
"""Neighbours in a log that have one epoch: where the first is, its base offset and the last one's."""

Epochs = tuple[tuple[int, int], ...]
"""Epochs and their first offsets, both increasing."""


def read_epochs(directory: str) -> Epochs:
    """The entries of a partition's checkpoint as a broker takes them; none where there is no file.

    Raises
    ------
    CorruptIndexError : a file that a broker cannot read, which puts its whole log dir offline.

    Notes
    -----
    Source: Kafka 4.1.0 `CheckpointFile.read`, `LeaderEpochFileCache.assign`: an entry removes those before it that are
    not below it in both epoch and offset. Entries below the log's start were removed by the broker, or moved to it.
    """
    entries = read_checkpoint(join(directory, CHECKPOINT), _entry, "an epoch and an offset a line")
    kept: list[tuple[int, int]] = []
    for epoch, offset in entries:
        while kept and (kept[-1][0] >= epoch or kept[-1][1] >= offset):
            kept.pop()
        kept.append((epoch, offset))
    return tuple(kept)


def _entry(line: str) -> tuple[int, int]:
    epoch, offset = split_fields(line, 2)
    found = whole_number(epoch, 32), whole_number(offset, 64)
    if min(found) < 0:
        raise ValueError(repr(line[:80]))
    return found


# ---- the batches against it


def check_epochs(logs: Sequence[tuple[str, npt.NDArray[Any]]], epochs: Epochs) -> list[Finding]:
    """Runs of the segments that contradict the checkpoint or their order: of each log the first one.

    Batches before the first entry are checked for their order only: old formats, and a log start that moves, remove
    entries. Batches without an epoch (-1) are in no run.

    Notes
    -----
    Source: Kafka 4.1.0 `UnifiedLog.append`: a batch's epoch is assigned and on the disk before the batch is; a
    truncation removes entries at once.
    """
    starts = np.array([offset for _, offset in epochs], np.int64)
    epoch_at = np.array([-1, *(epoch for epoch, _ in epochs)], np.int64)
    greatest = -1
    found = []
    for path, runs in logs:
        first, last = (
            epoch_at[np.searchsorted(starts, runs[name], "right")] for name in ("base_offset", "last_base_offset")
        )
        stored = runs["leader_epoch"].astype(np.int64)
        early = (first >= 0) & (first != stored)
        late = (last >= 0) & (last != stored)
        before = np.maximum.accumulate(np.concatenate([[greatest], np.where(early | late, -1, stored)]))
        back = (stored < before[:-1]) | (stored < 0)
        wrong = early | late | back
        greatest = int(before[-1])
        if wrong.any():
            row = int(np.argmax(wrong))
            at = int(runs["position"][row]) if early[row] or not late[row] else None
            expected = int(first[row] if early[row] else last[row]) if early[row] or late[row] else None
            wanted = f"{max(int(before[row]), 0)} or more" if expected is None else f"{expected}, by {CHECKPOINT}"
            found.append(_wrong(path, at, wanted, int(stored[row]), int(wrong.sum())))
    return found


def _wrong(path: str, at: int | None, expected: str, got: int, count: int) -> Finding:
    many = f"{count} stretches" if count > 1 else None
    return catalogue.LOG_LEADER_EPOCH.finding(path, at, "leader_epoch", expected, got, many=many)
