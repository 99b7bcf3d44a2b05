"""`scan`: the records of logs that match, as typed columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple, Unpack, get_args

import numpy as np
import numpy.typing as npt

from mqindex._options import with_options_of
from mqindex.columns.columns import Column, Columns, StringColumn, chosen_columns
from mqindex.columns.numbers import Time
from mqindex.errors import FormatError
from mqindex.files.closable import Closable
from mqindex.files.places.place import given_path
from mqindex.kafka.directories.log_dir import homes_of
from mqindex.kafka.kinds import PartitionDirectory
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.records import COLUMNS, no_records
from mqindex.kafka.options import PartitionArguments, partition_options
from mqindex.kafka.partition.isolation import Visible, visible_to
from mqindex.kafka.partition.partition_log import IsolationLevel
from mqindex.kafka.partition.segment_zones import has_time
from mqindex.kafka.scanning.chosen_segments import ChosenPartition, FirstSeen, chosen_partitions
from mqindex.kafka.scanning.opened_segments import OpenedSegments
from mqindex.kafka.scanning.record_filter import RecordFilter
from mqindex.kafka.scanning.segment_reader import SegmentReader
from mqindex.zones.cache import Cache, ZoneCache

SCAN_COLUMNS: Final = ("topic", "partition", *COLUMNS, "segment")
_NO_TIME: Final = np.datetime64("NaT", "ms")


class ScanDamage(NamedTuple):
    """A place of a log that cannot be read: an item of `Scan.damage`. As str it is the sentence about it.

    Attributes
    ----------
    path : str, of the `.log`
    fault : BatchFault

    Notes
    -----
    Source: Kafka 4.1.0 `RecordBatch.ensureValid`.

    Examples
    --------
    >>> fault = BatchFault("bad-crc", 512, "crc", "1", "2", 640, 40, 43)
    >>> print(ScanDamage("orders-0/00000000000000000000.log", fault))
    bad-crc: orders-0/00000000000000000000.log field crc at byte 512: expected 1, got 2; 128 bytes up to byte 640 left \
out, offsets 40 to 43
    """

    path: str
    fault: BatchFault

    def __str__(self) -> str:
        return self.fault.words(self.path)


@with_options_of(partition_options)
def scan(
    path: str | os.PathLike[str],
    *,
    partitions: str | Iterable[str | tuple[str, int]] | None = None,
    begin: Time | None = None,
    end: Time | None = None,
    start_offset: int | None = None,
    end_offset: int | None = None,
    keys: str | bytes | Iterable[str | bytes] | None = None,
    isolation_level: IsolationLevel | None = None,
    columns: Iterable[str] | None = None,
    cache: Cache = None,
    **given: Unpack[PartitionArguments],
) -> Scan:
    """The records of partitions that match all that is given: by topic and number, each in the log's order.

    The logs alone decide what matches: `.index` and `.timeindex` are not asked. Where a period is given, the first scan
    reads the times of all records once, and keeps the least and greatest of each quarter of a MiB in `cache`; later
    scans read what can match.

    Parameters
    ----------
    path : path or URL of a log dir, of a partition, or of one `.log`
    partitions : names like "orders-0", of a topic for all of its, or pairs like ("orders", 0); None: all in use
    begin, end : ms since the epoch, an aware datetime or a datetime64, of the record's timestamp: begin <= t < end.
        A record without a timestamp is in no period.
    start_offset, end_offset : int: start_offset <= offset < end_offset, in each partition
    keys : bytes or str, or several: records that have one of them as their key
    isolation_level : None: every record that is in the log; "read_uncommitted": without the markers of transactions;
        "read_committed": also without what was aborted, and only up to the first open transaction, as a broker with
        these `.txnindex` and snapshots of producers says; `verify` tells where the log says otherwise
    columns : names; None: all: topic, partition int32, those of `LogSegment.records` with timestamp datetime64[ms]
        (UTC, NaT where there is none), segment int64 (its base offset)
    cache : a directory; None: `mqindex/zones` in the user's cache directory; False: nothing is kept
    check_crc : bool; False: batches with a wrong checksum are among them
    kafka_version, index_interval_bytes, max_index_size, storage_options : partition options; of these a scan needs the
        last one alone

    Returns
    -------
    Scan : an iterator of `Columns`

    Raises
    ------
    ValueError, TypeError : a partition or a column that does not exist, an argument of another kind
    FileNotFoundError, BadMagicError : there is no log
    ImportError : snappy, lz4 and zstd need the extra `codecs`

    Notes
    -----
    Offsets are those that a broker's reader relies on: a segment has those from its base offset up to the next one's,
    and they increase. Records below the log's start that are still there are among the answer.
    Source: Kafka 4.1.0 `FileRecords`, `DefaultRecordBatch`, and of the consumer `CompletedFetch.nextFetchedRecord`.

    Examples
    --------
    >>> with scan("orders-0", begin=1_700_000_015_000, end=1_700_000_015_100, columns=["offset", "value"]) as records:
    ...     for batch in records:
    ...         print(batch["offset"].tolist(), batch["value"][0][:15])
    [628, 629] b'leader8 replica'
    """
    options = partition_options(**given)
    if isolation_level is not None and isolation_level not in get_args(IsolationLevel):
        raise ValueError(f"isolation_level: expected read_uncommitted or read_committed, got {isolation_level!r}")
    chosen = SCAN_COLUMNS if columns is None else chosen_columns(columns, SCAN_COLUMNS)
    wanted = RecordFilter.of(begin, end, start_offset, end_offset, keys)
    where = given_path("path", path, given.get("storage_options"))
    found = chosen_partitions(where, partitions)
    kept = ZoneCache.of(cache, lambda: homes_of(where))
    return Scan(where, found, wanted, chosen, isolation_level, kept, check_crc=options.check_crc)


class Scan(Closable):
    """The answer of `scan`: an iterator of `Columns`, and a context manager. For one thread.

    Attributes
    ----------
    path : str
    columns : tuple of str
    bytes_read, files_read : int, so far: bytes of the batches that were walked, logs that were opened
    damage : list of what was left out so far, each with its sentence as str; reading goes on at the next valid batch.
        Of committed records also what a `.txnindex` lacks, of which too much is among the answer
    expired : list of str: logs that were deleted before the scan came to their partition, elsewhere before all of them
        was read; they are left out, too

    Notes
    -----
    The segments and their lengths are those of the call of `scan`: what is appended later is not seen.
    Source: Kafka 4.1.0 `FileRecords`.

    Examples
    --------
    >>> from mqindex import kafka
    >>> records = kafka.scan("orders-0", partitions="orders", start_offset=1047, columns=["topic", "timestamp", "key"])
    >>> for batch in records:
    ...     print(batch["topic"].to_pylist(), batch["timestamp"], batch["key"].to_pylist())
    ['orders'] ['2023-11-14T22:13:44.901'] [b'k12201']
    >>> records.files_read, records.damage, records.columns
    (1, [], ('topic', 'timestamp', 'key'))
    """

    _thing = "scan"

    def __init__(
        self,
        path: str,
        partitions: list[ChosenPartition],
        wanted: RecordFilter,
        columns: tuple[str, ...],
        isolation_level: IsolationLevel | None,
        cache: ZoneCache,
        *,
        check_crc: bool,
    ) -> None:
        self.path = path
        self.columns = columns
        self.bytes_read = self.files_read = 0
        self.damage: list[ScanDamage | FormatError] = []
        self.expired: list[str] = []
        self._wanted, self._level, self._cache, self._check_crc = wanted, isolation_level, cache, check_crc
        self._of_records = tuple(name for name in columns if name in COLUMNS)
        self._partitions, self._first_seen = partitions, FirstSeen()
        self._batches = self._of_partitions(partitions)

    def _until(self, seen: FirstSeen) -> Scan:
        """The same of what the first of several scans found; `seen` was begun before this one."""
        self._first_seen, self._partitions = seen, seen.of(self._partitions)
        self._batches = self._of_partitions(self._partitions)
        return self

    def empty(self) -> Columns:
        """The columns, without a row."""
        return self._finished(no_records(self._of_records), "", 0, 0)

    def __iter__(self) -> Iterator[Columns]:
        return self

    def __next__(self) -> Columns:
        self._require_open()
        return next(self._batches)

    def close(self) -> None:
        """Let the logs go; may be called twice."""
        self._closed = True
        self._batches.close()  # type: ignore[attr-defined]

    # ---- inside

    def _of_partitions(self, partitions: list[ChosenPartition]) -> Iterator[Columns]:
        for partition in partitions:
            place = partition.place
            with OpenedSegments(partition, self._wanted) as opened:
                self.files_read += len(opened.segments)
                self.expired += opened.expired
                if opened.segments:
                    stable = partial(self._first_seen.stable, place.path)
                    with visible_to(self._level, place.path, self.damage.append, stable=stable) as visible:
                        for segment, size in opened.segments:
                            yield from self._of_segment(segment, size, place, visible)
                            segment.close()

    def _of_segment(
        self, segment: LogSegment, size: int, place: PartitionDirectory, visible: Visible
    ) -> Iterator[Columns]:
        reader = SegmentReader(
            segment, size, self._wanted, self._of_records, visible=visible, check_crc=self._check_crc,
            read=self._count,
        )  # fmt: skip
        try:
            for records in self._noting(segment, reader):
                yield self._finished(records, place.topic, place.partition, segment.base_offset)
        except FileNotFoundError:  # of a place elsewhere, where nothing stays open
            self.expired.append(segment.path)

    def _noting(self, segment: LogSegment, reader: SegmentReader) -> Iterator[Columns]:
        """The records of a segment; what is left out is told as soon as it is met."""
        told = 0
        for records in reader.records(self._cache):
            self.damage += [ScanDamage(segment.path, fault) for fault in segment.damage[told:]]
            told = len(segment.damage)
            yield records
        self.damage += [ScanDamage(segment.path, fault) for fault in segment.damage[told:]]

    def _count(self, read: int) -> None:
        self.bytes_read += read

    def _finished(self, records: Columns, topic: str, partition: int, segment: int) -> Columns:
        """The columns that were asked for, of records of one segment."""
        made: dict[str, Column] = {}
        for name in self.columns:
            if name == "topic":
                made[name] = _repeated(topic, len(records))
            elif name == "partition":
                made[name] = np.full(len(records), partition, np.int32)
            elif name == "segment":
                made[name] = np.full(len(records), segment, np.int64)
            else:
                made[name] = _times(records[name]) if name == "timestamp" else records[name]
        return Columns._of_length(made, len(records))


def _repeated(text: str, rows: int) -> StringColumn:
    data = np.frombuffer(text.encode(), np.uint8)
    return StringColumn(np.tile(data, rows), np.arange(rows + 1) * len(data))


def _times(timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.datetime64]:
    times: npt.NDArray[np.datetime64] = timestamps.view("M8[ms]")
    return np.where(has_time(timestamps), times, _NO_TIME)
