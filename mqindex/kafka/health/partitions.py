"""Partitions: what each is, from what was found and counted of its segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.files.paths import join
from mqindex.health import Histogram, Text
from mqindex.kafka.checks.diagnosis import DiagnosedPartition, Replayed
from mqindex.kafka.checks.segment_check import CheckedSegment
from mqindex.kafka.checks.segment_count import CountedSegment, Expanded
from mqindex.kafka.directories.offset_checkpoint import Offsets, entry_name, readable_offsets
from mqindex.kafka.health.partition_health import (
    BatchSpan,
    CodecShare,
    IndexHealth,
    LeaderEpoch,
    OpenTransaction,
    PartitionHealth,
    Producer,
    Producers,
    SegmentHealth,
    Totals,
    Transactions,
)
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.codecs import CODECS
from mqindex.kafka.log.log_tally import COUNTS, PRODUCER, STRETCH

_STRETCHES, _SEGMENTS, _EPOCHS, _BIGGEST, _LISTED = 200, 200, 100, 20, 20
_MIB: Final = 1 << 20
_UNCOMPRESSED: Final = 0


def partition_of(done: DiagnosedPartition, offsets: KnownOffsets) -> PartitionHealth:
    """The health of one partition."""
    partition, counted = done.partition, _counted(done)
    counts, entry = _sum(counted), entry_name(partition.path)
    rows = np.concatenate([np.empty(0, STRETCH), *(one.tally.stretches for one in counted)])
    times = [one.max_timestamp for one in counted]
    segments = [segment_of(one) for one in done.segments]
    ends = [one.log.last_offset for one in done.segments if one.log.last_offset is not None]
    epochs = _leader_epochs(done.segments)
    return PartitionHealth(
        name=Text.of(partition.name),
        path=partition.path,
        errors=_count(done, "error"),
        warnings=_count(done, "warning"),
        infos=_count(done, "info"),
        totals=totals_of(done),
        first_offset=int(rows["base_offset"][0]) if len(rows) else None,
        next_offset=max(ends) + 1 if ends else None,
        log_start_offset=offsets.log_start.get(entry),
        recovery_point=offsets.recovery_point.get(entry),
        high_watermark=offsets.high_watermark.get(entry),
        min_timestamp=min((int(at) for at in rows["min_timestamp"] if at >= 0), default=None),
        max_timestamp=known(max(times, default=-1)),
        codecs=codecs_of(counted),
        magics=tuple(counts["magics"].tolist()),
        wrapped=int(counts["wrapped"]),
        batch_bytes=_by_power(counts["sizes"]),
        batch_records=_by_power(counts["counts"]),
        offset_entries_per_mib=_density(segments, lambda one: one.offset_index.entries),
        time_entries_per_mib=_density(segments, lambda one: one.time_index.entries),
        append_time_batches=int(counts["append_time"]),
        untimed_batches=int(counts["untimed"]),
        late_batches=int(counts["late"]),
        furthest_back=_furthest_back(counted),
        stretches=_stretches(rows),
        transactions=_transactions(done.transactions, counts, done.segments),
        leader_epochs=epochs[-_EPOCHS:],
        leader_epoch_count=len(epochs),
        checkpoint_epochs=len(done.epochs),
        producers=_producers(counted, counts),
        time_indexes_lost=sum(map(lost_its_times, segments)),
        segments=tuple(segments[-_SEGMENTS:]),
    )


def totals_of(done: DiagnosedPartition) -> Totals:
    """What is in one partition."""
    return Totals(
        partitions=1,
        segments=len(done.segments),
        unread=sum(one.counted is None for one in done.segments),
        bytes=done.partition.bytes,
        batches=sum(one.log.batches for one in done.segments),
        records=sum(int(one.tally.counts["codecs"]["records"].sum()) for one in _counted(done)),
    )


def sum_of(parts: Iterable[Totals]) -> Totals:
    """What is in them all.

    >>> sum_of([Totals(1, 2, 0, 30, 4, 5), Totals(1, 1, 1, 10, 1, 1)])
    Totals(partitions=2, segments=3, unread=1, bytes=40, batches=5, records=6)
    """
    return Totals(*map(sum, zip(*(astuple(one) for one in parts), strict=True)))


def codecs_of(counted: Sequence[CountedSegment]) -> tuple[CodecShare, ...]:
    """What is compressed with which codec, and how well, as far as it was decompressed."""
    expanded: dict[int, Expanded] = {}
    for codec, more in chain.from_iterable(one.expanded.items() for one in counted):
        expanded.setdefault(codec, Expanded()).add(more)
    sums = _sum(counted)["codecs"]
    return tuple(
        _codec(number, sums[number], expanded.get(number, Expanded()))
        for number in range(len(sums))
        if sums[number]["batches"]
    )


def _codec(number: int, row: Any, expanded: Expanded) -> CodecShare:
    ratio = 1.0 if number == _UNCOMPRESSED else None
    if expanded.stored:
        ratio = round(expanded.expanded / expanded.stored, 3)
    name = CODECS[number] if number < len(CODECS) else str(number)
    return CodecShare(name, int(row["batches"]), int(row["records"]), int(row["bytes"]), expanded.batches, ratio)


# ---- sums over the segments


def _counted(done: DiagnosedPartition) -> list[CountedSegment]:
    return [one.counted for one in done.segments if one.counted is not None]


def _sum(counted: Sequence[CountedSegment]) -> Any:
    """The counts of all segments in one row; the greatest `furthest_back` is not their sum."""
    numbers = [one.tally.counts.view(np.int64) for one in counted]
    summed = np.sum(numbers, axis=0) if numbers else np.zeros(COUNTS.itemsize // 8, np.int64)
    return summed.view(COUNTS)[0]


def _count(done: DiagnosedPartition, severity: str) -> int:
    return sum(finding.severity == severity for finding in done.findings)


def _by_power(counts: npt.NDArray[np.int64]) -> Histogram:
    """Counts of numbers from 2^(n-1) up to 2^n."""
    found = {number: int(count) for number, count in enumerate(counts) if count}
    return Histogram.of(found, lambda number: 1 << number >> 1)


def _density(segments: Sequence[Any], entries: Callable[[Any], int | None]) -> float | None:
    """Entries a MiB, in the segments that have the index and a log."""
    pairs = [(count, one.bytes) for one in segments if (count := entries(one)) is not None and one.bytes]
    size = sum(size for _, size in pairs)
    return round(sum(count for count, _ in pairs) * _MIB / size, 3) if size else None


def _furthest_back(counted: Sequence[CountedSegment]) -> int:
    greatest, back = -1, 0
    for one in counted:
        least = min((int(at) for at in one.tally.stretches["min_timestamp"] if at >= 0), default=greatest)
        back = max(back, int(one.tally.counts[0]["furthest_back"]), greatest - least)
        greatest = max(greatest, one.max_timestamp)
    return back


def _stretches(rows: npt.NDArray[Any]) -> tuple[BatchSpan, ...]:
    """Merge neighbours until they are few, with about the same number of bytes each."""
    if not len(rows):
        return ()
    before = np.cumsum(rows["bytes"]) - rows["bytes"]
    group = before * _STRETCHES // max(1, int(rows["bytes"].sum())) if len(rows) > _STRETCHES else np.arange(len(rows))
    begins = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    none = np.iinfo(np.int64).max
    least = np.minimum.reduceat(np.where(rows["min_timestamp"] < 0, none, rows["min_timestamp"]), begins)
    greatest = np.maximum.reduceat(rows["max_timestamp"], begins)
    sums = [np.add.reduceat(rows[name], begins).tolist() for name in ("batches", "records", "bytes")]
    lasts = rows["last_offset"][np.concatenate([begins[1:], [len(rows)]]) - 1]
    return tuple(
        BatchSpan(first, last, None if low == none else low, known(high), *counts)
        for first, last, low, high, *counts in zip(
            rows["base_offset"][begins].tolist(), lasts.tolist(), least.tolist(), greatest.tolist(), *sums, strict=True
        )
    )


def _transactions(done: Replayed, counts: Any, segments: Sequence[CheckedSegment]) -> Transactions:
    oldest = sorted(done.open.items(), key=lambda one: one[1])[:_LISTED]
    return Transactions(
        committed=sum(done.committed),
        aborted=sum(map(len, done.aborted)),
        open=len(done.open),
        listed=tuple(OpenTransaction(producer, offset) for producer, offset in oldest),
        batches=int(counts["transactional"] - counts["control"]),
        control_batches=int(counts["control"]),
        whole=all(one.log.readable for one in segments),
    )


def _leader_epochs(segments: Sequence[CheckedSegment]) -> tuple[LeaderEpoch, ...]:
    found: list[LeaderEpoch] = []
    for one in segments:
        for epoch, offset in zip(
            one.log.epochs["leader_epoch"].tolist(), one.log.epochs["base_offset"].tolist(), strict=True
        ):
            if not found or found[-1].epoch != epoch:
                found.append(LeaderEpoch(epoch, offset))
    return tuple(found)


def _producers(counted: Sequence[CountedSegment], counts: Any) -> Producers:
    rows = np.concatenate([np.empty(0, PRODUCER), *(one.tally.producers for one in counted)])
    ids, which = np.unique(rows["producer_id"], return_inverse=True)
    batches, records, size = (np.zeros(len(ids), np.int64) for _ in range(3))
    for column, name in ((batches, "batches"), (records, "records"), (size, "bytes")):
        np.add.at(column, which, rows[name])
    order = np.argsort(-size, kind="stable")[:_BIGGEST]
    others = int(counts["other_producers"]["batches"])
    biggest = (Producer(*(int(column[at]) for column in (ids, batches, records, size))) for at in order)
    return Producers(len(ids), others == 0, int(batches.sum()) + others, tuple(biggest))


def known(timestamp: int) -> int | None:
    """A timestamp of the log, None for -1: there is none."""
    return None if timestamp < 0 else timestamp


def segment_of(one: CheckedSegment) -> SegmentHealth:
    """The health of one segment."""
    counted = one.counted
    stretches = np.empty(0, STRETCH) if counted is None else counted.tally.stretches
    least = [at for at in stretches["min_timestamp"].tolist() if at >= 0]
    time_index = _index_of(one, IndexKind.TIME)
    greatest = None if counted is None else known(counted.max_timestamp)
    modified = None if counted is None else counted.modified
    return SegmentHealth(
        base_offset=one.files.base_offset,
        last_offset=one.log.last_offset,
        bytes=0 if counted is None else counted.log_bytes,
        batches=one.log.batches,
        records=int(stretches["records"].sum()),
        min_timestamp=min(least, default=None),
        max_timestamp=greatest,
        retention_timestamp=greatest if time_index.entries else modified,
        modified=modified,
        cut=one.log.cut,
        refusal=one.log.refusal,
        offset_index=_index_of(one, IndexKind.OFFSET),
        time_index=time_index,
        transaction_index=_index_of(one, IndexKind.TRANSACTION),
    )


def lost_its_times(one: SegmentHealth) -> bool:
    """Whether its time index has nothing of records that have timestamps."""
    return one.time_index.state in ("missing", "wrong") and not one.time_index.entries and one.max_timestamp is not None


def _index_of(one: CheckedSegment, kind: IndexKind) -> IndexHealth:
    if one.counted is None:
        return IndexHealth("unknown", None, None)
    size = one.counted.index_bytes.get(kind)
    entries = None if size is None else one.counted.entries.get(kind)
    if kind in one.fate.wrong:
        return IndexHealth("wrong" if size is not None else "missing", size, entries)
    place = one.files.place_of(kind)
    if any(finding.path == place and finding.severity == "error" for finding in one.findings):
        return IndexHealth("wrong" if size is not None else "missing", size, entries)
    if size is None:
        return IndexHealth("none", None, None)
    return IndexHealth("differs" if kind in one.differing else "good", size, entries)


_CHECKPOINTS: Final = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


@dataclass(frozen=True, slots=True)
class KnownOffsets:
    """By the result of `entry_name`. A checkpoint that no broker can read says nothing; verify reports it."""

    log_start: Offsets = field(default_factory=dict)
    recovery_point: Offsets = field(default_factory=dict)
    high_watermark: Offsets = field(default_factory=dict)


def known_offsets(log_dir: str) -> KnownOffsets:
    """A task: read the checkpoints."""
    return KnownOffsets(*(readable_offsets(join(log_dir, name)) for name in _CHECKPOINTS))
