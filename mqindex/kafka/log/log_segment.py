"""`LogSegment`: one `.log` file and the indexes beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_log import BatchScan, Resync
from mqindex._native.kafka_recovery import Recovered
from mqindex._native.numbers import whole_number
from mqindex.columns.columns import Columns
from mqindex.errors import CorruptIndexError
from mqindex.kafka.brokers import FIRST_OFFSETS_INDEXED, broker_of, follows
from mqindex.kafka.index.offset_index import OffsetIndex, OffsetPosition
from mqindex.kafka.index.time_index import TimeIndex, TimestampOffset
from mqindex.kafka.index.transaction_index import TransactionIndex
from mqindex.kafka.kinds import beside
from mqindex.kafka.layout import IndexKind, base_offset_of, require_file
from mqindex.kafka.log.batch_windows import CACHED
from mqindex.kafka.log.batches import BATCH, batch_columns, batch_rows
from mqindex.kafka.log.damage import BatchFault, Fault, left_out, unreadable
from mqindex.kafka.log.log_bytes import LogBytes
from mqindex.kafka.log.opened_indexes import OpenedIndexes
from mqindex.kafka.log.records import first_offset_at, no_records, readable_records, records_from, require_columns
from mqindex.kafka.log.segment_files import SegmentFiles
from mqindex.kafka.log.segment_search import SegmentSearch, int64
from mqindex.kafka.settings import INDEX_INTERVAL, INDEX_SIZE

_MAX_BYTES: Final = 1 << 20


class LogSegment(LogBytes, SegmentSearch):
    """The batches of one segment, and its indexes, as far as they are there. Nothing is ever written.

    Safe from several threads. What was appended after opening is not seen.

    Attributes
    ----------
    path : str, of the `.log`
    base_offset : int
    size : int, bytes
    damage : list of BatchFault: what the reads so far have left out. They go on at the next valid batch. Zeros, or a
        part of a batch, at the end of a partition's last segment are where its log ends, and no damage.
    next_base_offset : int or None, the base offset of the partition's next segment; None: it is the last one, or not
        known. It may be set.

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.LogSegment`, `FileRecords`; batches of magic 0, 1 and 2.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/00000000000000000007.log"
    >>> with open(path, "xb") as file:  # one message of magic 0: offset 7, key k, value v
    ...     file.write(bytes.fromhex("0000000000000007000000101fecd70a0000000000016b0000000176"))
    28
    >>> with LogSegment.open(path) as segment:
    ...     segment.batches()["last_offset"].tolist(), segment.next_offset, segment.translate_offset(7)
    ([7], 8, LogOffsetPosition(position=0, size=28, base_offset=7))
    """

    def __init__(self, files: SegmentFiles) -> None:
        super().__init__(files.log)
        self.base_offset = files.base_offset
        self.damage: list[BatchFault] = []
        self._told: set[int] = set()
        self.next_base_offset = files.next_base_offset
        self.indexes = OpenedIndexes(files.log, files.base_offset, files.indexes)

    @classmethod
    def _of_files(cls, files: SegmentFiles) -> LogSegment:
        """Open a segment of a listed partition; its files may have the names of an exchange (`.swap`)."""
        return cls(files)

    @classmethod
    def open(
        cls,
        log_path: str | os.PathLike[str],
        *,
        base_offset: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> LogSegment:
        """Open the segment of `log_path` for reading; its indexes are opened when they are first needed.

        Parameters
        ----------
        log_path : path, also of a log that a broker has deleted and not yet removed (`.log.deleted`, whose indexes have
            such names too); or a URL: of a log elsewhere only what is needed is read, part by part, and of one that is
            damaged all. It is one version of the file that is read: another in its place is a `FileStateError`.
        base_offset : int or None; None: from the file's name
        storage_options : dict, optional; for a URL, as of `PartitionArguments`

        Raises
        ------
        FileNotFoundError
        BadMagicError : the name has no base offset, or is that of an index
        OffsetOverflowError : longer than 2^31 - 1 bytes, which no position reaches
        """
        path = require_file(log_path, "log", "log_path", storage_options)
        return cls(
            SegmentFiles(base_offset_of(path, base_offset), path, {kind: beside(path, kind) for kind in IndexKind})
        )

    # ---- the indexes

    @property
    def offset_index(self) -> OffsetIndex | None:
        """The `.index`, read-only; None: it is missing."""
        found: OffsetIndex | None = self.indexes.get(IndexKind.OFFSET)
        return found

    @property
    def time_index(self) -> TimeIndex | None:
        """The `.timeindex`, read-only; None: it is missing."""
        found: TimeIndex | None = self.indexes.get(IndexKind.TIME)
        return found

    @property
    def transaction_index(self) -> TransactionIndex | None:
        """The `.txnindex`, read-only; None: it is missing, as where no transaction was aborted."""
        found: TransactionIndex | None = self.indexes.get(IndexKind.TRANSACTION)
        return found

    # ---- batches

    def batches(self, start: int = 0, stop: int | None = None, *, check_crc: bool = True) -> Columns:
        """The headers of the batches that begin at the positions [start, stop), in their order.

        What is no batch is left out, and `damage` says what.

        Parameters
        ----------
        start, stop : int, bytes; start must be the position of a batch. stop None: to the end.
        check_crc : bool; False: batches with a wrong checksum are among them

        Returns
        -------
        Columns : position int64, base_offset int64, last_offset int64, base_timestamp int64, max_timestamp int64 (ms),
            producer_id int64, size int32 (bytes), leader_epoch int32, crc uint32, count int32, base_sequence int32,
            attributes int16, producer_epoch int16, magic int8, delete_horizon int64 (ms, from when on the cleaner may
            drop tombstones and the marker in it; it stands in place of the base timestamp; -1: none). Of magic 0 and 1
            the offsets are those of the message or wrapper, the count is 1, and what only magic 2 has is -1; so is a
            timestamp of magic 0.
        """
        parts = list(self._batch_arrays(start, stop, check_crc=check_crc))
        return batch_columns(np.concatenate(parts) if parts else np.empty(0, BATCH))

    def _batch_arrays(
        self, start: int = 0, stop: int | None = None, *, check_crc: bool = True
    ) -> Iterator[npt.NDArray[Any]]:
        """The same as structured arrays of `BATCH`, a few thousand batches each."""
        return (rows for _, rows in self._batch_parts(start, stop, check_crc=check_crc))

    def _batch_parts(
        self, start: int = 0, stop: int | None = None, *, check_crc: bool = True
    ) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        """The same, each with a buffer that has these batches until the next ones are asked for."""
        if not 0 <= whole_number("start", start) <= self.size:
            raise ValueError(f"start: expected 0..{self.size}, got {start}")
        stop = self.size if stop is None else min(whole_number("stop", stop), self.size)
        resync: Resync | None = None
        last = None if start else self.base_offset - 1
        walk, fault = self._new_walk(start, stop, CACHED), None
        while walk.at < stop:
            for log, limit in walk:
                scan = BatchScan(log, walk.at, limit, check_crc=check_crc, resync=resync if check_crc else None)
                for view in scan:
                    rows = batch_rows([view])
                    last = int(rows["last_offset"][-1])
                    yield log, rows
                walk.at, fault = scan.end, scan.fault
            if walk.at < stop:
                log = walk.whole()
                resync = resync or Resync(log)
                damage = self._left_out(resync, log, walk.at, fault, last)
                if damage is None:
                    return
                walk.at = damage.end

    def recover(
        self,
        *,
        index_interval_bytes: int = INDEX_INTERVAL.default,
        max_index_size: int = INDEX_SIZE.default,
        kafka_version: str | None = None,
        check_crc: bool = True,
        stretch: int = 0,
        past_damage: bool = False,
    ) -> Recovered:
        """What a broker's recovery of this log would write. Nothing is written here.

        Parameters
        ----------
        index_interval_bytes : int (index.interval.bytes)
        max_index_size : int, bytes (segment.index.bytes)
        kafka_version : str or None; None: as 4.4. Up to 1.1 the offset index gets first offsets.
        check_crc : bool; False: batches with a wrong checksum count as good
        stretch : int, bytes; the batches are counted in the same pass, in groups of so much log. 0: they are not
        past_damage : bool; True: not what a broker does: go on at the next good batch behind a bad one. All that is
            returned but `valid_bytes`, `truncated_bytes` and `fault` is of all good batches then, `damage` says where
            they do not follow each other, and the first behind bytes that no length leads over has an entry

        Returns
        -------
        Recovered : offset_index bytes and time_index bytes, as the files; valid_bytes, truncated_bytes, batches,
            max_timestamp (-1: none), last_offset (None: no batch), transactional, fault, tally (None: not counted)

        Raises
        ------
        OutOfOrderError, OffsetOverflowError, IndexFullError : a broker's recovery fails on these too: offsets
            that do not increase, or are too far from the base offset, more entries than the index may have

        Notes
        -----
        Source: Kafka 4.1.0 `LogSegment.recover`.
        """
        file = self._again()
        log = b"" if file is None else memoryview(file.map)
        firsts = follows(broker_of(kafka_version), FIRST_OFFSETS_INDEXED)
        made = Recovered(
            log, self.base_offset, index_interval_bytes=index_interval_bytes, max_index_size=max_index_size,
            check_crc=check_crc, first_offset=partial(first_offset_at, log, path=self.path) if firsts else None,
            path=self.path, stretch=stretch, past_damage=past_damage,
        )  # fmt: skip
        self._run(made, file, every_byte=check_crc)
        return made

    # ---- records

    def records(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        columns: Iterable[str] | None = None,
        check_crc: bool = True,
    ) -> Iterator[Columns]:
        """Columns of the records of the batches that begin at the positions [start, stop), in their order.

        What is no batch is left out, and what does not decompress, and `damage` says what.

        Parameters
        ----------
        start, stop : int, bytes; start must be the position of a batch. stop None: to the end.
        columns : names; None: all
        check_crc : bool; False: batches with a wrong checksum are among them

        Yields
        ------
        Columns of at most 16384 rows, fewer where values are large: offset int64, timestamp int64 (ms, -1: none),
            timestamp_type int8 (0 of the producer, 1 of the broker, -1 none), key and value (bytes, null where there is
            none), headers (lists of (key, value)), position int64 (of the batch), leader_epoch int32,
            producer_id int64, producer_epoch int16, sequence int32 (these -1 where there is none), is_transactional,
            is_control bool

        Raises
        ------
        ImportError : snappy, lz4 and zstd need the extra `codecs`
        ValueError : a column that does not exist

        Notes
        -----
        Source: Kafka 4.1.0 `DefaultRecordBatch`, `DefaultRecord`, `AbstractLegacyRecordBatch`.
        """
        chosen = require_columns(columns)
        return self._records_of(self._batch_parts(start, stop, check_crc=check_crc), chosen)

    def _records_of(self, parts: Iterable[tuple[Any, npt.NDArray[Any]]], names: tuple[str, ...]) -> Iterator[Columns]:
        """Columns of the records of some of `batch_parts`; `damage` has those that cannot be read."""
        return readable_records(parts, names, lambda *bad: self._remember(unreadable(*bad)), path=self.path)

    def read(self, offset: int, *, max_bytes: int = _MAX_BYTES, columns: Iterable[str] | None = None) -> Columns:
        """The records from `offset` on, of whole batches of at most `max_bytes` together; of one batch at least.

        They end before damage. Records of control batches are among them. There is no row where the segment ends before
        `offset`. Columns and other errors as of `records`.

        Raises
        ------
        CorruptIndexError : the log is damaged where `offset` is, or may have been. It names the offset to go on from.
        """
        chosen = require_columns(columns)
        max_bytes = whole_number("max_bytes", max_bytes)
        rows = self._fetch(whole_number("offset", offset), max_bytes, self)
        if rows is None:
            return no_records(chosen)
        return records_from(offset, self._log_of(rows), rows, chosen, path=self.path)

    def _fetch(self, offset: int, max_bytes: int, search: SegmentSearch) -> npt.NDArray[Any] | None:
        """Good batches from that of `offset` on, found by `search`, as many as a fetch gets, up to damage.

        None: the segment ends before. Errors as of `read`.
        """
        where = f"the log is damaged where offset {offset} is looked for"
        start = search._position_of(offset)
        while True:
            row, _, damage = search._first_batch(min(start, search.size), "last_offset", int64(offset))
            found = None if row is None else batch_rows([row])[0]
            if damage is not None and damage._may_hold(offset, found is None or damage.end == found["position"]):
                raise damage._error(self.path, where)
            if found is None:
                return None
            start = int(found["position"])
            stop = min(start + max(max_bytes, int(found["size"])), search.size)
            scan = BatchScan(self._window(self._file, start, stop), start, stop)
            rows = batch_rows(scan)
            if len(rows):
                within: npt.NDArray[Any] = rows[rows["position"] + rows["size"] <= stop]
                return within
            log = self._log_bytes()
            damage = self._left_out(Resync(log), log, start, scan.fault)
            if damage is None:
                return None
            if damage._may_hold(offset):
                raise damage._error(self.path, where)
            start = damage.end

    # ---- offsets and times

    def fetch_upper_bound_offset(self, fetch: OffsetPosition, fetch_size: int) -> int | None:
        """The offset of the first index entry at or after `fetch.position + fetch_size`; None: there is none.

        Only bounds a search for aborted transactions. Source: Kafka 4.1.0, `fetchUpperBoundOffset`.
        """
        entry = self.indexes.ask(IndexKind.OFFSET, lambda index: index.fetch_upper_bound_offset(fetch, fetch_size))
        return None if entry is None else entry.offset

    @property
    def next_offset(self) -> int:
        """The offset after the last batch, found from the offset index's last entry on; the base offset without any.

        Source: Kafka 4.1.0, `readNextOffset`.
        """
        indexed = self.indexes.ask(IndexKind.OFFSET, lambda index: index.last_offset)
        found = self.translate_offset(self.base_offset if indexed is None else indexed)
        for start in (self.size if found is None else found.position, 0):
            last = self.base_offset - 1
            for rows in self._batch_arrays(start, check_crc=False):
                last = int(rows["last_offset"][-1])
            if last >= self.base_offset:
                break  # else the index led astray
        return last + 1

    @property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The time index's last entry; (-1, base_offset) without any."""
        last = self.indexes.ask(IndexKind.TIME, lambda index: index.last_entry)
        return TimestampOffset(-1, self.base_offset) if last is None else last

    @property
    def largest_timestamp(self) -> int:
        """What decides which segment a search by time reads, ms since the epoch.

        The timestamp of the time index's last entry; where there is none, the time of the `.log`'s last change.
        Source: Kafka 4.1.0, `largestTimestamp`.
        """
        timestamp = self.max_timestamp_so_far.timestamp
        return timestamp if timestamp >= 0 else self.modified

    def _position_of(self, offset: int) -> int:
        """Where to begin to look for an offset, by the offset index; 0 without one."""
        entry = self.indexes.ask(IndexKind.OFFSET, lambda index: index.lookup(int64(offset)))
        if entry is None:
            return 0
        if not 0 <= entry.position <= self.size:
            raise CorruptIndexError(
                "an entry leads outside the log", path=self.indexes.paths[IndexKind.OFFSET], field="position",
                expected=f"0..{self.size}", got=entry.position, hint="rebuild it from the segment's log",
            )  # fmt: skip
        return int(entry.position)

    # ---- closing

    def close(self) -> None:
        """Close the log and its indexes. May be called twice; a read that still runs ends normally."""
        super().close()
        self.indexes.close()

    def __repr__(self) -> str:
        return f"LogSegment({self.path!r}, base_offset={self.base_offset}, size={self.size})"

    # ---- inside

    def _offset_before(self, timestamp: int) -> int:
        entry = self.indexes.ask(IndexKind.TIME, lambda index: index.lookup(timestamp))
        return self.base_offset if entry is None else entry.offset

    def _left_out(
        self, resync: Resync, log: Any, at: int, fault: Fault | None, last: int | None = None
    ) -> BatchFault | None:
        """What is left out at `at`, where a walk has ended, remembered; None: the log ends there."""
        found = left_out(resync, log, at, fault, self.base_offset, self.next_base_offset, last)
        if found is not None:
            self._remember(found)
        return found

    def _remember(self, found: BatchFault) -> None:
        if found.at not in self._told:
            self._told.add(found.at)
            self.damage.append(found)
