"""`PartitionLog`: the segments of one partition, and what a broker answers from them."""

from __future__ import annotations

import os
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.columns import Columns
from mqindex.columns.distinct import distinct
from mqindex.columns.numbers import Time, Times, times
from mqindex.files.closable import Closable
from mqindex.files.paths import absolute, parent_of
from mqindex.files.places.place import given_path
from mqindex.kafka.directories.log_dir import require_partition
from mqindex.kafka.directories.offset_checkpoint import Offsets, entry_name, log_start_offsets, start_before
from mqindex.kafka.directories.partition_files import PartitionFiles, while_files_go
from mqindex.kafka.index.time_index import TimestampOffset
from mqindex.kafka.index.transaction_index import AbortedTxn
from mqindex.kafka.log.batches import is_control
from mqindex.kafka.log.damage import BatchFault
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_search import int64
from mqindex.kafka.partition.aborted import AbortedTransactions
from mqindex.kafka.partition.offset_search import find_offsets_by_timestamps
from mqindex.kafka.partition.partition_read import read_partition
from mqindex.kafka.partition.served_segment import ServedSegment
from mqindex.wording.verdict import BEFORE_SEGMENTS

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
_SPECIAL: Final = range(LATEST_TIERED, LATEST + 1)
_MAX_BYTES: Final = 1 << 20  # a consumer's max.partition.fetch.bytes

IsolationLevel = Literal["read_uncommitted", "read_committed"]


class PartitionOffsetPosition(NamedTuple):
    """Where a batch is: the answer of `PartitionLog.translate_offset`.

    Attributes
    ----------
    segment : str, the path of its log
    position, size : int, bytes: where it begins there, and its length
    base_offset : int

    Notes
    -----
    Source: Kafka 4.1.0 `FileRecords.LogOffsetPosition`.
    """

    segment: str
    position: int
    size: int
    base_offset: int


class PartitionLog(Closable):
    """One partition's segments, open for reading, with the answers of a broker that has just started on them.

    What a starting broker deletes, renames or recovers is taken as it would be afterwards; no file is changed, and what
    is appended after opening is not seen. Segments that a broker deletes meanwhile are still read, as they were; those
    deleted before they are opened are missing, and the log starts after them. Safe from several threads.

    Attributes
    ----------
    directory : str
    segments : tuple of LogSegment, by base offset
    log_start_offset : int, the first offset that can be read here.

    Notes
    -----
    Source: Kafka 4.1.0 `org.apache.kafka.storage.internals.log.UnifiedLog`, `LocalLog`, `LogLoader`. The log's start is
    the greater of the first segment's base offset and what `log-start-offset-checkpoint` of the log dir says: tiered
    storage is not read, and a broker that uses it begins before, and answers times from there first. Of what is there
    only the start is known, where the checkpoint has one before the first segment.

    Examples
    --------
    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> with open(directory + "/00000000000000000007.log", "xb") as file:  # one message of magic 1: offset 7, k, v
    ...     size = file.write(bytes.fromhex("00000000000000070000001839268c3301000000018bcfe56800000000016b0000000176"))
    >>> with PartitionLog.open(directory) as log:
    ...     log.offset_for_timestamp(1_699_999_999_000), log.offset_for_timestamp(-1)
    ...     log.read(7)["value"].to_pylist()
    (TimestampOffset(timestamp=1700000000000, offset=7), TimestampOffset(timestamp=-1, offset=8))
    [b'v']
    """

    _thing = "partition"
    _path_attribute = "directory"

    def __init__(
        self, files: PartitionFiles, segments: tuple[LogSegment, ...], opened: ExitStack, starts: Offsets
    ) -> None:
        self.directory = files.directory
        self.segments = segments
        self._opened = opened
        self._served = tuple(ServedSegment(segment, last=segment is segments[-1]) for segment in segments)
        self._bases = [segment.base_offset for segment in segments]
        oldest = self._bases[0] if segments else 0
        self.log_start_offset = max(starts.get(entry_name(self.directory), 0), oldest)
        self._start_before = start_before(self.directory, oldest, starts)
        self._aborted = AbortedTransactions(self._served, files.snapshots, self.log_start_offset)

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None
    ) -> PartitionLog:
        """Open a partition's directory.

        Parameters
        ----------
        directory : path or URL
        storage_options : dict, optional; for a URL, as of `PartitionArguments`

        Raises
        ------
        FileNotFoundError, NotADirectoryError
        BadMagicError : a log dir with partitions in it, or a directory of something else
        OffsetOverflowError : a log longer than 2^31 - 1 bytes, which no position reaches
        """
        where = absolute(given_path("directory", directory, storage_options))
        require_partition(where)
        return cls._of(where)

    @classmethod
    def _of(cls, directory: str, starts: Offsets | None = None) -> PartitionLog:
        """`open` of a directory that is surely a partition's, also where all that is in it is strange.

        `starts`: what `log_start_offsets` says of its log dir, for who opens many; None: read it.
        """
        known = log_start_offsets(parent_of(directory)) if starts is None else starts
        return while_files_go(directory, partial(cls._of_files, starts=known))

    @classmethod
    def _of_files(cls, files: PartitionFiles, starts: Offsets) -> PartitionLog:
        with ExitStack() as opened:
            segments = tuple(opened.enter_context(LogSegment._of_files(segment)) for segment in files.segments)
            return cls(files, segments, opened.pop_all(), starts)

    @property
    def damage(self) -> tuple[BatchFault, ...]:
        """What the calls so far have met of damage: that of each segment."""
        return tuple(fault for segment in self.segments for fault in segment.damage)

    # ---- offsets

    @cached_property
    def log_end_offset(self) -> int:
        """The offset of the next record; where the log's start is greater, that."""
        self._require_open()
        return max(self._served[-1].next_offset if self._served else 0, self.log_start_offset)

    @cached_property
    def last_stable_offset(self) -> int:
        """Where `read_committed` ends: the first offset of the oldest open transaction, else the log's end."""
        self._require_open()
        opened = self._aborted.open_at(self.log_end_offset)
        return max(min(opened, default=self.log_end_offset), self.log_start_offset)

    def translate_offset(self, offset: int) -> PartitionOffsetPosition | None:
        """The first batch whose last offset is not below `offset`; None: the log ends before, or starts behind it.

        As a fetch finds it: in the segment of the offset, and where compaction left nothing there, in a later one.
        """
        self._require_open()
        offset = whole_number("offset", offset)
        if offset < self.log_start_offset:
            return None
        for served in self._served[max(bisect_right(self._bases, offset) - 1, 0) :]:
            found = served.translate_offset(offset)
            if found is not None:
                return PartitionOffsetPosition(served.segment.path, *found)
        return None

    # ---- times

    def offset_for_timestamp(self, ms: Time) -> TimestampOffset | None:
        """The first record at `ms` (since the epoch) or later, as the broker's offsets-for-times; None: there is none.

        `ms` may be an aware datetime or a datetime64.
        -1 asks for the log's end, -2 for its start, which may be in tiered storage, -4 for `log_start_offset` (all with
        the timestamp -1), -3 for the first record with the greatest timestamp; -5, the end of tiered storage, is None.
        Of a partition of tiered storage a UserWarning says that a broker looks for other times there first.

        Raises
        ------
        CorruptIndexError : an entry of an index leads outside its log.
        FormatError : a batch does not decompress.
        ImportError : snappy, lz4 and zstd need the extra `codecs`.

        Notes
        -----
        Source: Kafka 4.1.0 `UnifiedLog.fetchOffsetByTimestamp`. Brokers of 3.0 to 3.7 answer -3 with the time index's
        offset, the last one of its batch, unchanged; for `read_committed` they answer nothing from
        `last_stable_offset` on.
        """
        self._require_open()
        ms = milliseconds("ms", ms)
        if ms in _SPECIAL:
            return self._special(ms)
        ms = int64(ms)
        self._warn_of_times()
        for served in self._served:
            if served.largest_timestamp >= ms:
                return served.find_offset_by_timestamp(ms, self.log_start_offset)
        return None

    def offsets_for_timestamps(self, ms: Times) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """`offset_for_timestamp` of each time, as two arrays; -1 and -1 where there is none.

        Parameters
        ----------
        ms : int64[n], ms since the epoch, or datetime64[n], aware datetimes, Arrow timestamps, in any order; increasing
            ones cost least.

        Returns
        -------
        timestamps, offsets : int64[n] each. Indexes, batches and records are each read once for all times.
        """
        self._require_open()
        asked = times("ms", ms)
        found_times, offsets = np.full((2, len(asked)), -1, np.int64)
        if len(asked) == 1:  # as of each of many partitions: not all segments are asked for what they have
            one = self.offset_for_timestamp(int(asked[0]))
            if one is not None:
                found_times[0], offsets[0] = one
            return found_times, offsets
        special = (asked >= LATEST_TIERED) & (asked <= LATEST)
        for which in distinct(asked[special]).tolist():
            found = self._special(which)
            if found is not None:
                found_times[asked == which], offsets[asked == which] = found
        if not special.all():
            self._warn_of_times()
        largest = np.maximum.accumulate(np.array([served.largest_timestamp for served in self._served], np.int64))
        chosen = np.searchsorted(largest, asked)  # the first segment whose largest timestamp is not before the time
        chosen[special] = len(largest)
        order = np.argsort(chosen, kind="stable")
        bounds = np.searchsorted(chosen[order], np.arange(len(largest) + 1))
        for served, start, stop in zip(self._served, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            if start < stop:
                mine = order[start:stop]
                found_times[mine], offsets[mine] = find_offsets_by_timestamps(
                    served, asked[mine], self.log_start_offset
                )
        return found_times, offsets

    def _warn_of_times(self) -> None:
        if self._start_before is not None:
            what = BEFORE_SEGMENTS.format(self._start_before, self._bases[0] - 1)
            warnings.warn(f"{self.directory}: {what}; a broker looks for times in tiered storage first", stacklevel=3)

    def _special(self, ms: int) -> TimestampOffset | None:
        if ms == LATEST:
            return TimestampOffset(-1, self.log_end_offset)
        if ms == EARLIEST and self._start_before is not None:
            return TimestampOffset(-1, self._start_before)
        if ms in (EARLIEST, EARLIEST_LOCAL):
            return TimestampOffset(-1, self.log_start_offset)
        if ms == MAX_TIMESTAMP and self._served:
            latest = max(self._served, key=lambda served: served.max_timestamp_so_far.timestamp)
            return latest.find_offset_of_max_timestamp()
        return None

    # ---- transactions

    def collect_aborted_transactions(self, start: int, upper: int) -> list[AbortedTxn]:
        """The aborted transactions that a reader of the offsets [start, upper) may have to leave out.

        From the segment of `start` to the first whose index shows that no more can follow; those that ended in the
        segment of `start` before `start` are included. Source: Kafka 4.1.0 `UnifiedLog.collectAbortedTransactions`.
        """
        self._require_open()
        start, upper = whole_number("start", start), whole_number("upper", upper)
        return self._aborted.collect(start, upper, self.log_start_offset)

    def _are_committed(self, batches: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which batches a reader of committed records gets.

        Parameters
        ----------
        batches : array of `BATCH`, neighbours in one of the segments

        Returns
        -------
        bool[n] : False for control batches, for those of aborted transactions, and from `last_stable_offset` on
        """
        self._require_open()
        if not len(batches):
            return np.empty(0, np.bool_)
        hidden = is_control(batches) | self._aborted.flags(batches, int(batches["base_offset"][0]))
        committed: npt.NDArray[np.bool_] = ~hidden & (batches["base_offset"] < self.last_stable_offset)
        return committed

    # ---- records

    def read(
        self,
        offset: int,
        *,
        max_bytes: int = _MAX_BYTES,
        isolation_level: IsolationLevel = "read_uncommitted",
        columns: Iterable[str] | None = None,
    ) -> Columns:
        """The next records that a consumer at `offset` gets; none only where the log, or its stable part, ends.

        Parameters
        ----------
        max_bytes : int, of whole batches in the log, of one segment after the other; what is left out counts too. One
            batch is read in any case, and what comes before damage is given alone.
        isolation_level : "read_committed" ends at `last_stable_offset` and leaves out what was aborted
        columns : names; None: all of `LogSegment.records`. Go on from the last "offset" + 1.

        Raises
        ------
        ValueError : an offset below the log's start or above its end, for which a broker has an error too
        CorruptIndexError : the log is damaged where the next record is, or may have been (checksums are compared); all
            records before it were returned already. It names the offset to go on from. At the end of the log, where a
            broker's recovery would cut it, reading just ends.
        FormatError : the next batch does not decompress, or its records contradict it.
        """
        self._require_open()
        if isolation_level not in ("read_uncommitted", "read_committed"):
            raise ValueError(f"isolation_level: expected read_uncommitted or read_committed, got {isolation_level!r}")
        offset, max_bytes = whole_number("offset", offset), whole_number("max_bytes", max_bytes)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            here = f"expected {self.log_start_offset}..{self.log_end_offset}, got {offset}"
            raise ValueError(f"offset: {here}{self._why_not_here(offset)}")
        committed = isolation_level == "read_committed"
        first = max(bisect_right(self._bases, offset) - 1, 0)
        return read_partition(
            self._served[first:],
            offset,
            self.last_stable_offset if committed else self.log_end_offset,
            max_bytes=max_bytes,
            aborted=self._aborted if committed else None,
            columns=columns,
        )

    def _why_not_here(self, offset: int) -> str:
        if self._start_before is None or not self._start_before <= offset < self.log_start_offset:
            return ""
        return "; it is in tiered storage, which is not read, or was deleted since the checkpoint of the log's start"

    # ---- closing

    def close(self) -> None:
        """Close every segment. May be called twice."""
        self._closed = True
        self._opened.close()

    def __len__(self) -> int:
        return len(self.segments)

    def __repr__(self) -> str:
        return f"PartitionLog({self.directory!r}, segments={len(self.segments)})"
