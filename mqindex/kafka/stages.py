"""The stages of rebuild and repair: plain functions of picklable values, which an engine maps over a list.

```
recover_segments     segments of a few MiB together, or a large one   ->  .index and .timeindex of each, in a scratch
write_transactions   what the driver made of all segments' events    ->  .txnindex files, in a scratch
```

Every task writes under names of its own, so that a retried or duplicated task harms nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.engines.python_turn import python_turn
from mqindex.errors import FileStateError, MQIndexError
from mqindex.files import disk
from mqindex.files.reading.residency import read_ahead
from mqindex.files.results.delivery import deliver_all, workshop
from mqindex.kafka.checks.log_check import log_findings, refused, require_all
from mqindex.kafka.checks.segment_log import events_in
from mqindex.kafka.kinds import segment_file
from mqindex.kafka.layout import MIN_BATCH_SIZE, IndexKind
from mqindex.kafka.log.log_damage import damage_in, recovered_past_damage
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.options import PartitionOptions
from mqindex.kafka.partition.segment_zones import SegmentZones
from mqindex.kafka.partition.transactions import EVENT
from mqindex.report import Finding
from mqindex.zones.cache import FileZones

_SMALL: Final = 256 << 10  # bytes of a log, below which opening it and making its files takes longer than reading it


@dataclass(frozen=True, slots=True)
class SegmentRecovery:
    """One segment to recover. `size`: of its log; `out`: the directory of the new files, `kinds`: which ones;
    `last`: of its partition; `zones`: make its zone map, for which every record is read.
    """

    files: SegmentFiles
    size: int
    options: PartitionOptions
    out: str
    last: bool
    kinds: frozenset[IndexKind]
    zones: bool = False


@dataclass(slots=True)
class RecoveredSegment:
    """`paths`: the new files by kind, under temporary names; the other fields as in `CheckedSegment`."""

    files: SegmentFiles
    paths: dict[IndexKind, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    readable: bool = False
    events: npt.NDArray[Any] = field(default_factory=lambda: np.empty(0, EVENT))
    batches: int = 0
    entries: int = 0
    fsync_seconds: float = 0.0
    gone: bool = False
    zones: FileZones | None = None


def needed_space(options: PartitionOptions, sizes: Sequence[int]) -> int:
    """Bytes of offset and time indexes of logs of these lengths, at most."""
    apart = max(options.index_interval_bytes + 1, MIN_BATCH_SIZE)
    entry = IndexKind.OFFSET.entry_size + IndexKind.TIME.entry_size
    return sum(min((size // apart + 1) * entry, 2 * options.max_index_size) for size in sizes)


def recover_segments(items: Sequence[SegmentRecovery]) -> list[RecoveredSegment]:
    """Write what a broker's recovery writes; a segment that it refuses gets no files, and a finding."""
    if not items:
        return []
    with workshop(items[0].out) as home:
        if home == items[0].out:  # else all of them go to one place
            return _recover_here(items)
        return _brought(_recover_here([replace(item, out=home) for item in items]), items[0].out)


def _recover_here(items: Sequence[SegmentRecovery]) -> list[RecoveredSegment]:
    small = sum(item.size for item in items) < _SMALL * len(items)
    with python_turn(mostly_python=small):
        if small:  # what is not in memory then comes together, instead of one log after the other
            for item in items:
                read_ahead(item.files.log, item.size)
        done = [_recover(item) for item in items]
    done[0].fsync_seconds = disk.sync_files([path for one in done for path in one.paths.values()])
    return done


def _brought(done: list[RecoveredSegment], out: str) -> list[RecoveredSegment]:
    """The same with the new files elsewhere."""
    files = [(one, kind) for one in done for kind in one.paths]
    places = deliver_all([one.paths[kind] for one, kind in files], out)
    for (one, kind), place in zip(files, places, strict=True):
        one.paths[kind] = place
    return done


def _recover(item: SegmentRecovery) -> RecoveredSegment:
    options, done = item.options, RecoveredSegment(item.files)
    try:
        with LogSegment.open(item.files.log, base_offset=item.files.base_offset) as segment:
            zones = SegmentZones(segment) if item.zones else None
            recover = partial(
                segment.recover,
                index_interval_bytes=options.index_interval_bytes,
                max_index_size=options.max_index_size,
                kafka_version=options.kafka_version,
                check_crc=options.check_crc,
            )
            made, _ = recovered_past_damage(recover)
            others = (partial(recover, index_interval_bytes=each) for each in options.other_intervals)
            unclear = any(recovered_past_damage(each)[0].offset_index != made.offset_index for each in others)
            done.events = events_in(segment, made)
            done.findings = log_findings(segment, made, damage_in(segment, made), last=item.last)
            done.readable = made.fault is None and (made.truncated_bytes == 0 or item.last)
            if zones is not None and done.readable and options.check_crc:
                done.zones = _made(zones, segment._batch_parts(0, made.end_bytes, check_crc=False))
    except FileNotFoundError:
        done.gone = True
        return done
    except MQIndexError as error:
        require_all(error, item.files.log)
        done.findings.append(refused(item.files.log, error, item.files.base_offset))
        return done
    if unclear:
        raise FileStateError(
            "the entries of its index depend on what is not known", path=item.files.log, field="index.interval.bytes",
            expected="one value", got=f"{options.other_intervals[0]} to {options.other_intervals[1]} by other indexes",
            hint="give the topic's (--index-interval-bytes, index_interval_bytes=)",
        )  # fmt: skip
    done.batches = made.batches
    for kind, data in ((IndexKind.OFFSET, made.offset_index), (IndexKind.TIME, made.time_index)):
        if kind in item.kinds:
            done.paths[kind] = _write(item.out, item.files.base_offset, kind, data)
            done.entries += len(data) // kind.entry_size
    return done


def _made(zones: SegmentZones, parts: Iterator[tuple[Any, npt.NDArray[Any]]]) -> FileZones | None:
    """The map; None: a codec is not installed, which no index needs."""
    try:
        for _ in zones.gather(parts):
            pass
    except ImportError:
        return None
    return zones.made()


def write_transactions(item: tuple[str, tuple[tuple[int, bytes], ...]]) -> dict[int, str]:
    """Write the `.txnindex` of each base offset; the temporary names."""
    out, contents = item
    with workshop(out) as home:
        paths = [_write(home, base_offset, IndexKind.TRANSACTION, data) for base_offset, data in contents]
        disk.sync_files(paths)
        return dict(zip((base for base, _ in contents), deliver_all(paths, out), strict=True))


def _write(out: str, base_offset: int, kind: IndexKind, data: bytes) -> str:
    path = disk.temporary(out, segment_file(base_offset, kind))
    disk.write_new(path, data)
    return path
