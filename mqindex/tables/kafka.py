"""The tables of Kafka's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex import kafka
from mqindex.columns.columns import Columns
from mqindex.files import disk
from mqindex.files.paths import absolute, parent_of, size_of, status_of
from mqindex.kafka.directories.log_dir import named_partition
from mqindex.kafka.directories.partition_files import list_segments
from mqindex.kafka.directories.producer_state import read_producers
from mqindex.kafka.directories.survey import partitions_at
from mqindex.kafka.index.index_entries import places_with_data
from mqindex.kafka.index.transaction_index import aborted_columns
from mqindex.kafka.kinds import first_offset, segment_name
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batches import BATCH, batch_columns
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.scanning.chosen_segments import FirstSeen
from mqindex.tables.bounds import Bounds, Interval
from mqindex.tables.table import (
    BLOCK,
    Opened,
    Options,
    Table,
    as_times,
    cheapest_first,
    may_have,
    named,
    no_rows,
    number_range,
    period,
    read_all,
    tell,
    texts,
)
from mqindex.wording.text import deleted_meanwhile

_OF_SEGMENT: Final = {"topic": "text", "partition": "i4", "segment": "i8"}
_PRODUCERS: Final = no_rows({
    "producer_id": "i8", **_OF_SEGMENT, "producer_epoch": "i2", "last_sequence": "i4", "last_offset": "i8",
    "offset_delta": "i4", "timestamp": "M8[ms]", "coordinator_epoch": "i4", "first_offset": "i8",
})  # fmt: skip
_SEGMENTS: Final = no_rows({
    "segment": "i8", "topic": "text", "partition": "i4", "path": "text", "log_size": "i8", "offset_index_size": "i8",
    "time_index_size": "i8", "transaction_index_size": "i8", "modified": "M8[ms]",
})  # fmt: skip
_BATCH_TIMES: Final = ("base_timestamp", "max_timestamp")


class Place(NamedTuple):
    """A partition's files, or some of them. `topic`, `partition`: as its directory is named; None and -1: it is not."""

    topic: str | None
    partition: int
    segments: tuple[SegmentFiles, ...]
    snapshots: Mapping[int, str]


# ---- records


def records(path: str, kind: str, options: Options) -> Table:
    """The records of logs, as `kafka.scan` gives them, each time up to the same ends."""
    with kafka.scan(path, **options) as scan:
        empty = scan.empty()
    return Table(cheapest_first(empty, "offset"), partial(_records, path, kind, options, FirstSeen()))


def _records(
    path: str, kind: str, options: Options, seen: FirstSeen, columns: Sequence[str], bounds: Bounds
) -> Iterator[Columns]:
    seen.begin(path)
    asked = _asked(bounds)
    if kind == "log-dir" and not bounds.keys().isdisjoint(("topic", "partition")):
        asked["partitions"] = [
            (home.topic, home.partition)
            for home in partitions_at(absolute(path))
            if home.state is None and may_have(bounds, topic=home.topic, partition=home.partition)
        ]
        if not asked["partitions"]:
            return
    yield from read_all(kafka.scan(path, columns=columns, **{**asked, **options})._until(seen))


def _asked(bounds: Bounds) -> dict[str, Any]:
    """What a filter asks of `kafka.scan`: it gives every record that passes the filter, and maybe more."""
    start, stop = number_range(bounds, "offset")
    begin, end = period(bounds, "timestamp")
    keys = bounds.get("key", Interval()).among
    asked: dict[str, Any] = {
        "begin": begin,
        "end": end,
        "start_offset": start,
        "end_offset": stop,
        "keys": sorted(keys) if keys and all(isinstance(key, bytes) and key for key in keys) else None,
    }
    return {name: value for name, value in asked.items() if value is not None}


# ---- what every partition has


def _places(path: str, kind: str) -> Iterator[Place]:
    """The partitions that a path names, by topic and number; a file is of the partition that its directory is."""
    where = absolute(path)
    if kind in ("log-dir", "partition"):
        for home in partitions_at(where):
            if home.state is None or home.path == where:
                try:
                    found = list_segments(home.path)
                except FileNotFoundError:  # deleted meanwhile
                    continue
                yield Place(_topic(home.topic, home.partition), home.partition, found.segments, found.snapshots)
        return
    home, name = named_partition(parent_of(where)), segment_name(where)
    base, topic = 0 if name is None else name.base_offset, _topic(home.topic, home.partition)
    if kind == "producer-snapshot":
        yield Place(topic, home.partition, (), {base: where})
    elif kind == "segment":
        base = base if name is not None else max(first_offset(where), 0)
        yield Place(topic, home.partition, (SegmentFiles(base, where),), {})
    else:
        index = next(one for one in IndexKind if one.label == kind)
        yield Place(topic, home.partition, (SegmentFiles(base, "", {index: where}),), {})


def _topic(topic: str, partition: int) -> str | None:
    return topic if partition >= 0 else None


def _segments(path: str, kind: str, bounds: Bounds) -> Iterator[tuple[dict[str, Any], SegmentFiles]]:
    """The segments that may be asked for, each with the topic and partition of its rows."""
    for place in _places(path, kind):
        of = {"topic": place.topic, "partition": place.partition}
        for segment in place.segments:
            if may_have(bounds, segment=segment.base_offset, **of):
                yield of, segment


@contextmanager
def _told_if_deleted(file: str, path: str) -> Iterator[None]:
    """Go on where a file of `path` is gone since it was listed, and say so."""
    try:
        yield
    except FileNotFoundError:
        if file == absolute(path):
            raise
        tell([deleted_meanwhile(file)])


def _rows(of: Mapping[str, Any], segment: int, found: Mapping[str, Any], rows: int) -> Columns:
    return Columns({**named(rows, **of), "segment": np.full(rows, segment, np.int64), **found}, rows)


# ---- batches


def batches(path: str, kind: str, options: Options) -> Table:
    """The headers of the batches of logs."""
    empty = {**no_rows({"base_offset": "i8", **_OF_SEGMENT}), **_with_times(np.empty(0, BATCH))}
    return Table(Columns(empty, 0), partial(_batches, path, kind, options))


def _batches(path: str, kind: str, options: Options, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    check_crc = options.get("check_crc", True)
    for of, files in _segments(path, kind, bounds):
        with _told_if_deleted(files.log, path), kafka.LogSegment._of_files(files) as segment:
            for rows in segment._batch_arrays(check_crc=check_crc):
                yield _rows(of, files.base_offset, _with_times(rows), len(rows))
            tell(fault.words(segment.path) for fault in segment.damage)


def _with_times(rows: Any) -> dict[str, Any]:
    found = dict(batch_columns(rows))
    return {**found, **{name: as_times(found[name]) for name in _BATCH_TIMES}}


# ---- indexes


def offset_index(path: str, kind: str, options: Options) -> Table:
    """The entries of offset indexes, before the zeros at their end."""
    empty = no_rows({"number": "i8", **_OF_SEGMENT, "offset": "i8", "position": "i4"})
    return Table(empty, partial(_entries, IndexKind.OFFSET, path, kind))


def time_index(path: str, kind: str, options: Options) -> Table:
    """The entries of time indexes, before the zeros at their end."""
    empty = no_rows({"number": "i8", **_OF_SEGMENT, "timestamp": "M8[ms]", "offset": "i8"})
    return Table(empty, partial(_entries, IndexKind.TIME, path, kind))


def _entries(index: IndexKind, path: str, kind: str, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    opened_by = kafka.OffsetIndex if index is IndexKind.OFFSET else kafka.TimeIndex
    for of, files in _segments(path, kind, bounds):
        place = files.indexes.get(index)
        if place is None:
            continue
        with _told_if_deleted(place, path), opened_by.open(place, base_offset=files.base_offset) as opened:
            for places in places_with_data(place, index):
                for first in range(places.start, places.stop, BLOCK):
                    found = dict(opened.entries(first, min(first + BLOCK, places.stop)))
                    rows = len(found["offset"])
                    if "timestamp" in found:
                        found["timestamp"] = as_times(found["timestamp"])
                    yield _rows(of, files.base_offset, {"number": np.arange(first, first + rows), **found}, rows)


def transactions(path: str, kind: str, options: Options) -> Table:
    """The aborted transactions that transaction indexes have."""
    empty = {**no_rows({"first_offset": "i8", **_OF_SEGMENT}), **aborted_columns([])}
    return Table(Columns(empty, 0), partial(_transactions, path, kind))


def _transactions(path: str, kind: str, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    for of, files in _segments(path, kind, bounds):
        if (place := files.indexes.get(IndexKind.TRANSACTION)) is not None:
            with _told_if_deleted(place, path):
                with kafka.TransactionIndex.open(place, base_offset=files.base_offset) as index:
                    found = aborted_columns(index.entries())
                status_of(place)  # one that is not there reads as if it were empty
                yield _rows(of, files.base_offset, found, len(found))


# ---- producers


def producers(path: str, kind: str, options: Options) -> Table:
    """The producers in snapshots; `segment` is the offset that a snapshot is named by."""
    return Table(_PRODUCERS, partial(_producers, path, kind))


def _producers(path: str, kind: str, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    for place in _places(path, kind):
        of = {"topic": place.topic, "partition": place.partition}
        for offset, snapshot in place.snapshots.items():
            if may_have(bounds, segment=offset, **of):
                with _told_if_deleted(snapshot, path):
                    found = read_producers(snapshot)
                    fields = {name: _native(found[name]) for name in found.dtype.names or ()}
                    yield _rows(of, offset, {**fields, "timestamp": as_times(fields["timestamp"])}, len(found))


def _native(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return column.astype(column.dtype.newbyteorder("="))


# ---- segments


def segments(path: str, kind: str, options: Options) -> Table:
    """The segments of partitions, with the bytes of their files; -1: there is no such file."""
    return Table(_SEGMENTS, partial(_of_segments, path, kind))


def _of_segments(path: str, kind: str, columns: Sequence[str], bounds: Bounds) -> Iterator[Columns]:
    for of, files in _segments(path, kind, bounds):
        try:
            status = status_of(files.log)
        except FileNotFoundError:  # deleted meanwhile
            continue
        sizes = {f"{index.name.lower()}_index_size": _size(files.indexes.get(index)) for index in IndexKind}
        found = {
            "path": texts([files.log]),
            "log_size": np.array([status.st_size]),
            **{name: np.array([size]) for name, size in sizes.items()},
            "modified": np.array([status.st_mtime_ns // 1_000_000]).view("M8[ms]"),
        }
        yield _rows(of, files.base_offset, found, 1)


def _size(path: str | None) -> int:
    return -1 if path is None or not disk.exists(path) else size_of(path)


_OF_INDEX: Final = {"offset_index": offset_index, "time_index": time_index, "transactions": transactions}
_OF_PARTITION: Final[dict[str, Opened]] = {
    "records": records, "batches": batches, **_OF_INDEX, "producers": producers, "segments": segments,
}  # fmt: skip
_TABLES: Final[dict[str, dict[str, Opened]]] = {
    "log-dir": _OF_PARTITION,
    "partition": _OF_PARTITION,
    "segment": {"records": records, "batches": batches},
    "offset-index": {"offset_index": offset_index},
    "time-index": {"time_index": time_index},
    "transaction-index": {"transactions": transactions},
    "producer-snapshot": {"producers": producers},
}
"""By the kind of a path its tables, the one that is meant where none is named first."""


def tables_of_files(kind: str | None) -> Mapping[str, Opened] | None:
    """The tables of a path of this kind, by their names; None: it has none."""
    return _TABLES.get(kind or "")
