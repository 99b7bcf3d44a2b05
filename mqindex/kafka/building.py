"""New index files of several partitions, built in a scratch: what rebuild and repair have in common."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from mqindex.engines import Engine
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, recover_segments, write_transactions

_BATCH_BYTES: Final = 64 << 20
_BATCH_SEGMENTS: Final = 256


def recover_partitions(engine: Engine, partitions: Sequence[Sequence[SegmentRecovery]]) -> list[list[RecoveredSegment]]:
    """Build the offset and time indexes of all segments, partition by partition."""
    batches = _batches(list(itertools.chain.from_iterable(partitions)))
    weights = [sum(item.size + 1 for item in batch) for batch in batches]
    recovered = engine.map(recover_segments, batches, name="recover the segments", weights=weights, unit="byte")
    done = itertools.chain.from_iterable(recovered)
    return [list(itertools.islice(done, len(some))) for some in partitions]


def write_transaction_indexes(
    engine: Engine, partitions: Sequence[tuple[str, tuple[tuple[int, bytes], ...]]]
) -> list[dict[int, str]]:
    """Write the `.txnindex` files of each partition, given as a scratch, base offsets and contents.

    Returns the temporary names by base offset.
    """
    items = [item for item in partitions if item[1]]
    written = iter(engine.map(write_transactions, items, name="write transactions") if items else [])
    return [next(written) if contents else {} for _, contents in partitions]


def _batches(items: Sequence[SegmentRecovery]) -> list[list[SegmentRecovery]]:
    """Segments whose files are brought to the disk together: 64 MiB of log or more, if there is so much."""
    batches: list[list[SegmentRecovery]] = []
    size = 0
    for item in items:
        if not batches or size >= _BATCH_BYTES or len(batches[-1]) == _BATCH_SEGMENTS:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += item.size
    return batches
