"""What a segment consists of, for a health report: counted in the pass that checks it; a few batches decompressed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_records import compressed_part
from mqindex._native.kafka_recovery import Recovered
from mqindex.columns.distinct import distinct
from mqindex.errors import FormatError, was_cut
from mqindex.files.paths import size_of, status_of
from mqindex.kafka.directories.survey import Survey
from mqindex.kafka.layout import MAX_LOG_SIZE, IndexKind
from mqindex.kafka.log.batches import codec_of
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.log_tally import LogTally, tally_of
from mqindex.kafka.log.records import payload_of
from mqindex.kafka.log.segment_files import SegmentFiles

DETAILED: Final = 100
"""How many partitions of a log dir are reported one by one."""

_POINTS: Final = 200  # stretches of a partition's log
_LOOKED_AT: Final = 64  # batches of a segment, from which the sample is taken
_PART, _PART_IF_DEEP = 4096, 32  # one byte in so many of the logs is decompressed,
_AT_LEAST: Final = 1 << 17  # or so many of all together,
_AT_ONCE: Final = 1 << 16  # by segments that get so many or more


@dataclass(frozen=True, slots=True)
class Counting:
    """What is counted of a segment: `stretch` bytes of its log together; `sample`: bytes to decompress at most."""

    stretch: int
    sample: int


@dataclass(slots=True)
class Expanded:
    """Batches that were decompressed: how many, their bytes as stored and as they came out."""

    batches: int = 0
    stored: int = 0
    expanded: int = 0

    def add(self, other: Expanded) -> None:
        """Add those of another segment."""
        self.batches += other.batches
        self.stored += other.stored
        self.expanded += other.expanded


@dataclass(slots=True)
class CountedSegment:
    """`expanded`: by codec. `index_bytes`, `entries`: of the indexes that are there; `log_bytes`: of the whole file.
    `max_timestamp`: the greatest of the good batches, -1: none; `modified`: when the log was modified, in ms.
    """

    tally: LogTally
    log_bytes: int
    max_timestamp: int
    modified: int
    index_bytes: dict[IndexKind, int]
    entries: dict[IndexKind, int]
    expanded: dict[int, Expanded] = field(default_factory=dict)


def plan_counting(found: Survey, *, deep: bool) -> list[list[Counting]]:
    """For each segment of each partition: stretches for the largest partitions, and a small sample.

    Where the bytes to decompress would be too few for each segment, only one segment in several gets some.
    """
    largest = set(sorted(range(len(found.partitions)), key=lambda number: -found.partitions[number].bytes)[:DETAILED])
    least = _AT_LEAST // max(1, sum(len(partition.segments) for partition in found.partitions))
    plans, saved = [], _AT_ONCE
    for number, partition in enumerate(found.partitions):
        stretch = partition.bytes // _POINTS + 1 if number in largest else MAX_LOG_SIZE
        plan = []
        for size in partition.sizes:
            saved += size // (_PART_IF_DEEP if deep else _PART) + least
            sample, saved = (saved, 0) if saved >= _AT_ONCE else (0, saved)
            plan.append(Counting(stretch, sample))
        plans.append(plan)
    return plans


def count_segment(
    files: SegmentFiles, segment: LogSegment, made: Recovered, entries: Mapping[IndexKind, int], sample: int
) -> CountedSegment | None:
    """None: the recovery did not count. `entries`: of the offset and the time index."""
    tally = tally_of(made)
    if tally is None:
        return None
    sizes = {kind: size_of(path) for kind, path in files.indexes.items()}
    transactions = sizes.get(IndexKind.TRANSACTION, 0) // IndexKind.TRANSACTION.entry_size
    return CountedSegment(
        tally=tally,
        log_bytes=segment.size,
        max_timestamp=made.max_timestamp,
        modified=status_of(files.log).st_mtime_ns // 1_000_000,
        index_bytes=sizes,
        entries={**entries, IndexKind.TRANSACTION: transactions},
        expanded=_expanded(segment, _spread(segment, made), sample) if sample and made.batches else {},
    )


def _spread(segment: LogSegment, made: Recovered) -> npt.NDArray[Any]:
    """Batches from all over the log: those that the rebuilt index points to, which are about as far from each other."""
    positions = np.frombuffer(made.offset_index, IndexKind.OFFSET.entry)["position"].astype(np.int64)
    positions = np.concatenate([[0], positions])
    picked = distinct(np.linspace(0, len(positions) - 1, _LOOKED_AT).astype(np.int64))
    return segment._rows_at(positions[picked])


def _expanded(segment: LogSegment, rows: npt.NDArray[Any], allowed: int) -> dict[int, Expanded]:
    """Some batches of each codec, within `allowed` bytes. Only `deep` reports those that do not decompress."""
    codecs = codec_of(rows)
    compressed = distinct(codecs[codecs > 0]).tolist()
    found = {codec: Expanded() for codec in compressed}
    for codec in compressed:
        left = allowed // len(compressed)
        for row in np.flatnonzero((codecs == codec) & (rows["count"] > 0)).tolist():
            try:
                log = segment._log_of(rows[row : row + 1])
                start, stop = compressed_part(log, rows, row)
                if stop - start > left:
                    continue
                payload = payload_of(log, rows, row)
            except ImportError:  # the extra is not installed: the ratio is not known
                break
            except FormatError as error:
                if was_cut(error):
                    raise
                continue
            left -= stop - start
            found[codec].add(Expanded(1, stop - start, len(payload or b"")))
    return found
