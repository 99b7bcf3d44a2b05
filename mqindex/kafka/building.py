"""New index files of several partitions, built in a scratch: what rebuild and repair have in common."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from mqindex.engines import Engine
from mqindex.kafka.checks.diagnosis import map_segments
from mqindex.kafka.stages import RecoveredSegment, SegmentRecovery, recover_segments, write_transactions

__all__ = ["recover_partitions", "write_transaction_indexes"]


def recover_partitions(engine: Engine, partitions: Sequence[Sequence[SegmentRecovery]]) -> list[list[RecoveredSegment]]:
    """Build the offset and time indexes of all segments, partition by partition."""
    items = list(itertools.chain.from_iterable(partitions))
    sizes = [item.size for item in items]
    done = iter(map_segments(engine, recover_segments, items, sizes, name="recover the segments"))
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
