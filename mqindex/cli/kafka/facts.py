"""What `mqindex info` prints of each kind of path of Kafka, as plain data."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mqindex.cli.kafka import kinds
from mqindex.cli.kafka.segments import open_segment
from mqindex.cli.trouble import Trouble
from mqindex.errors import MQIndexError, reason
from mqindex.files import disk, lock
from mqindex.files.paths import absolute, base_name, join, size_of
from mqindex.files.places.place import Place, require_answer
from mqindex.health import a_day

if TYPE_CHECKING:
    from mqindex.kafka import LogSegment
    from mqindex.kafka.directories.partition_files import PartitionFiles
    from mqindex.kafka.kinds import PartitionDirectory
    from mqindex.kafka.log.segment_files import SegmentFiles

Facts = dict[str, Any]
_MOST_NAMED: Final = 100  # producers of open transactions


def kafka_facts(kind: str, path: str) -> Facts:
    """The facts of `path`. Parts that cannot be read have an `error` instead of facts."""
    return _FACTS[kind](path)


def _index(name: str, path: str) -> Facts:
    """Of an offset or time index, by the name of its class."""
    from mqindex import kafka
    from mqindex.kafka.index.index_entries import entries_before_zeros

    with getattr(kafka, name).open(path) as index:
        entries = min(entries_before_zeros(path, index.kind), len(index))
        size = size_of(path)
        facts = {"base_offset": index.base_offset, "size": size, "entries": entries, "places": len(index)}
        if entries:
            first, last = index.entry(0)._asdict(), index.entry(entries - 1)._asdict()
            key = next(iter(first))
            facts |= {f"first_{key}": first[key], **{f"last_{field}": value for field, value in last.items()}}
    return facts


def _transaction_index(path: str) -> Facts:
    from mqindex.kafka import TransactionIndex

    with TransactionIndex.open(path) as index:
        txns = list(index.entries())
    facts: Facts = {"base_offset": index.base_offset, "size": size_of(path), "entries": len(txns)}
    if txns:
        facts |= {
            "producers": len({txn.producer_id for txn in txns}),
            "first_offset": min(txn.first_offset for txn in txns),
            "last_offset": txns[-1].last_offset,
        }
    return facts


def _snapshot(path: str) -> Facts:
    from mqindex.kafka.directories.producer_state import read_producers
    from mqindex.kafka.layout import base_offset_of

    producers = read_producers(path)
    return {
        "offset": base_offset_of(path),
        "size": size_of(path),
        "producers": len(producers),
        "open_transactions": int((producers["first_offset"] >= 0).sum()),
    }


def _segment(path: str) -> Facts:
    from mqindex.kafka.kinds import beside, is_deleted
    from mqindex.kafka.layout import IndexKind
    from mqindex.kafka.log.active_segment import greatest_timestamp

    with open_segment(path) as segment:
        facts: Facts = {
            **({"state": "deleted"} if is_deleted(path) else {}),
            "base_offset": segment.base_offset,
            "size": segment.size,
            **_next_offset(segment),
            "largest_timestamp": greatest_timestamp(segment),
        }
    return facts | {kind.value: _part(beside(path, kind), _FACTS[kind.label]) for kind in IndexKind}


def _part(path: str, facts: Callable[[str], Facts]) -> Facts | None:
    try:
        return {"path": path, **facts(path)} if disk.is_there(path) else None
    except (MQIndexError, OSError) as error:
        return {"path": path, "error": reason(error)}


def _partition(path: str) -> Facts:
    from mqindex.kafka.directories import partition_files
    from mqindex.kafka.kinds import is_partition

    if not is_partition(path):
        raise Trouble(f"{path} is no partition: expected segments, as 00000000000000000000.log")
    return partition_files.while_files_go(path, partial(_of_partition, path))


def _of_partition(path: str, files: PartitionFiles) -> Facts:
    from mqindex.kafka.directories import log_dir
    from mqindex.kafka.directories.offset_checkpoint import log_start_offset, start_before

    directory = absolute(path)
    rows = [_row(segment) for segment in files.segments]
    oldest = files.segments[0].base_offset if files.segments else None
    facts: Facts = {
        **_name(log_dir.named_partition(path)),
        "lock": lock.state(join(log_dir.log_dir_of(path), ".lock")),
        "log_start_offset": None if oldest is None else max(log_start_offset(directory), oldest),
        "start_before_segments": None if oldest is None else start_before(directory, oldest),
        **_end(files),
        "size": sum(row["size"] for row in rows),
        "segments": rows,
        "snapshots": len(files.snapshots),
        "strays": [base_name(name) for name in (*files.leftovers, *files.orphans, *files.skipped)],
    }
    return {**facts, "glance": glance_of_partition(facts, files)}


def _name(named: PartitionDirectory) -> Facts:
    if named.partition < 0:
        return {}
    return {"topic": named.topic, "partition": named.partition, **({"state": named.state} if named.state else {})}


def _row(segment: SegmentFiles) -> Facts:
    """One segment: the entries of its indexes, None where one is not there."""
    from mqindex.kafka.index.index_entries import entries_before_zeros
    from mqindex.kafka.layout import IndexKind

    entries = {kind: entries_before_zeros(path, kind) for kind, path in segment.indexes.items()}
    return {
        "base_offset": segment.base_offset,
        "size": size_of(segment.log),
        **{kind.value: entries.get(kind) for kind in IndexKind},
    }


def _end(files: PartitionFiles) -> Facts:
    from mqindex.kafka import LogSegment

    if not files.segments:
        return {"next_offset": None}
    with LogSegment.open(files.segments[-1].log, base_offset=files.segments[-1].base_offset) as segment:
        return _next_offset(segment)


def _next_offset(segment: LogSegment) -> Facts:
    """The next offset, found by the offset index, which may be wrong."""
    try:
        return {"next_offset": segment.next_offset}
    except MQIndexError as error:
        return {"next_offset": None, "error": str(error)}


def _log_dir(path: str) -> Facts:
    from mqindex.kafka.directories import log_dir, partition_files

    rows: list[Facts] = []
    lost: Counter[str] = Counter()
    found = log_dir.list_partitions(path)
    for named in found:
        with contextlib.suppress(FileNotFoundError):  # deleted, or renamed to be
            extent, unindexed = partition_files.while_files_go(named.path, _extent)
            lost.update(unindexed)
            rows.append({"topic": named.topic, "partition": named.partition, "state": named.state, **extent})
    duplicates = log_dir.duplicate_directories(found)
    facts: Facts = {
        "lock": lock.state(join(path, ".lock")),
        "clean_shutdown": log_dir.was_clean(path) is True,
        "size": sum(row["size"] for row in rows),
        "partitions": rows,
        "strays": [base_name(name) for name in log_dir.stray_directories(path)],
        "duplicates": [[base_name(name) for name in both] for both in duplicates],
    }
    return {**facts, "glance": {"unindexed": lost}}


def _extent(files: PartitionFiles) -> tuple[Facts, Counter[str]]:
    """Segments, bytes and open transactions of a partition, and what `unindexed_bytes` says."""
    from mqindex.kafka.partition.open_transactions import newest_state

    rows: list[Facts] = [
        {"size": size_of(each.log), **{kind.value: at for kind, at in each.indexes.items()}} for each in files.segments
    ]
    state = None if isinstance(files.directory, Place) else newest_state(files, 0)  # elsewhere each is a question
    opened = () if state is None else state.transactions
    extent: Facts = {
        "segments": len(rows),
        "size": sum(row["size"] for row in rows),
        "open_transactions": len(opened) or None,
        "open_from": opened[0][1] if opened else None,
    }
    return extent, unindexed_bytes(rows)


_FACTS: Final[dict[str, Callable[[str], Facts]]] = {
    kinds.LOG_DIR: _log_dir,
    kinds.PARTITION: _partition,
    kinds.SEGMENT: _segment,
    kinds.OFFSET_INDEX: partial(_index, "OffsetIndex"),
    kinds.TIME_INDEX: partial(_index, "TimeIndex"),
    kinds.TRANSACTION_INDEX: _transaction_index,
    kinds.SNAPSHOT: _snapshot,
}

_INDEXES = ("index", "timeindex")


def unindexed_bytes(segments: Collection[Facts]) -> Counter[str]:
    """By the name of an index: the bytes of the logs beside which it is not there."""
    return Counter({name: sum(row["size"] for row in segments if row.get(name) is None) for name in _INDEXES})


def glance_of_partition(facts: Facts, files: PartitionFiles) -> Facts:
    """What its indexes cover, its open transactions, by what time its oldest segment goes, and how fast it grows."""
    from mqindex.kafka.log.active_segment import greatest_timestamp

    return {
        "unindexed": unindexed_bytes(facts["segments"]),
        "transactions": _transactions(facts, files),
        "retention_timestamp": _ask(files.segments[:1], greatest_timestamp),
        "rates": _rates(facts, files.segments),
        "deleted": _deleted(files),
    }


def _deleted(files: PartitionFiles) -> Facts | None:
    """The segments that a broker has deleted and not yet removed; None: there are none."""
    from mqindex.kafka.kinds import is_deleted
    from mqindex.kafka.layout import base_offset_of

    logs = [path for path in files.leftovers if is_deleted(path) and ".log." in base_name(path)]
    sizes = []
    for path in logs:
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            sizes.append(size_of(path))
    first = min(map(base_offset_of, logs), default=None)
    return {"segments": len(sizes), "size": sum(sizes), "first_offset": first} if sizes else None


def _transactions(facts: Facts, files: PartitionFiles) -> Facts | None:
    """The open transactions, oldest first, and where readers of committed records stop; None: it is not known."""
    from mqindex.kafka.partition.open_transactions import open_at_end

    try:
        found = open_at_end(files, facts["log_start_offset"] or 0)
    except (MQIndexError, OSError) as error:
        require_answer(error, files.directory)
        return None
    if found is None:
        return None
    firsts = [first for _, first in found.transactions]
    end = facts["next_offset"] if found.offset is None else None  # else it may have been reached since
    return {
        "open": len(firsts),
        "as_of_offset": found.offset,
        "last_stable_offset": max(firsts[0], facts["log_start_offset"] or 0) if firsts else end,
        "producers": [
            {"producer_id": producer, "first_offset": first} for producer, first in found.transactions[:_MOST_NAMED]
        ],
    }


def _rates(facts: Facts, segments: Sequence[SegmentFiles]) -> Facts | None:
    """Bytes and records a day, between the first time in the first segment and the greatest of the last one."""
    with_records = [one for one in segments if size_of(one.log)]
    first, last = _ask(segments[:1], _first_time), _ask(with_records[-1:], _last_time)
    size = a_day(facts["size"], first, last)
    if size is None:
        return None
    begin, end = segments[0].base_offset, facts["next_offset"]
    return {
        "first_timestamp": first,
        "last_timestamp": last,
        "bytes_a_day": size,
        "records_a_day": None if end is None else a_day(end - begin, first, last),
    }


def _first_time(segment: LogSegment) -> int | None:
    rows = next(segment._batch_arrays(check_crc=False), None)
    return None if rows is None or not len(rows) else int(rows["max_timestamp"][0])


def _last_time(segment: LogSegment) -> int | None:
    from mqindex.kafka.log.active_segment import greatest_timestamp

    return greatest_timestamp(segment) if segment.time_index is not None else None


def _ask(segments: Sequence[SegmentFiles], question: Callable[[LogSegment], int | None]) -> int | None:
    """What one segment answers; None: there is none, or it cannot be read."""
    from mqindex.kafka import LogSegment

    for each in segments:
        try:
            with LogSegment.open(each.log, base_offset=each.base_offset) as segment:
                return question(segment)
        except MQIndexError as error:
            require_answer(error, each.log)
    return None
