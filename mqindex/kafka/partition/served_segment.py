"""A segment as a broker that starts would serve it: recovered first, where it would recover it."""

from __future__ import annotations

import errno
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_index import Entries
from mqindex._native.kafka_log import Resync
from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import CorruptIndexError, MQIndexError, TruncatedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.kafka.index.abstract_index import AbstractIndex
from mqindex.kafka.index.offset_index import OffsetPosition
from mqindex.kafka.index.time_index import TimestampOffset
from mqindex.kafka.layout import IndexKind
from mqindex.kafka.log.batch_windows import Found
from mqindex.kafka.log.batches import BATCH, batch_rows, is_control, is_transactional
from mqindex.kafka.log.damage import BatchFault, Fault
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.segment_search import SegmentSearch

_MOST: Final = 2**63 - 1


class _Lookups(Protocol):
    def lookup(self, target: int) -> Any: ...
    def lookup_many(self, targets: npt.NDArray[np.int64], /) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]: ...


class _OfFile:
    """Look-ups in an index file, also while its broker trims it."""

    def __init__(self, segment: LogSegment, kind: IndexKind) -> None:
        self._segment, self._kind = segment, kind

    def lookup(self, target: int) -> Any:
        return self._there(self._segment.indexes.ask(self._kind, lambda index: index.lookup(target)))

    def lookup_many(self, targets: npt.NDArray[np.int64], /) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        found: tuple[npt.NDArray[np.int64], npt.NDArray[Any]] = self._there(
            self._segment.indexes.ask(self._kind, lambda index: index.lookup_many(targets))
        )
        return found

    def _there(self, found: Any) -> Any:
        if found is None:
            raise FileNotFoundError(errno.ENOENT, f"its .{self._kind} was removed", self._segment.path)
        return found


class ServedSegment(SegmentSearch):
    """Look-ups and facts of one segment, after what a starting broker does to it.

    A segment without `.index`, or whose `.txnindex` is corrupt, is recovered; so is one that a broker deletes after it
    was opened, and after an unclean stop the last one: zeros follow its entries, or the log ends inside a batch or
    before they do. A `.timeindex` that alone is missing stays empty, and the time of the log's last change is used for
    its last entry. Nothing is written. Safe from several threads.

    Notes
    -----
    Source: Kafka 4.1.0 `LogLoader.loadSegmentFiles`, `LogSegment.sanityCheck`, `LogSegment.largestTimestamp`.
    """

    def __init__(self, segment: LogSegment, *, last: bool) -> None:
        self.segment = segment
        self.path = segment.path
        self.base_offset = segment.base_offset
        self._last = last

    @cached_property
    def is_to_recover(self) -> bool:
        """Whether a starting broker makes its indexes anew."""
        index, _ = self.segment.offset_index, self.segment.time_index  # both now: a broker may delete them at any time
        if index is None or self.segment.is_deleted:
            return True
        transactions = self.segment.transaction_index
        if transactions is not None:
            try:
                transactions.sanity_check()
            except CorruptIndexError:
                return True
        return self._last and (any(map(self._has_zeros, (IndexKind.OFFSET, IndexKind.TIME))) or self._is_torn(index))

    @cached_property
    def recovered(self) -> Recovered | None:
        """What recovery makes of it; None: the broker takes the files as they are, or could not recover it either."""
        if not self.is_to_recover:
            return None
        try:
            return self.segment.recover()
        except TruncatedFileError:
            raise
        except MQIndexError:  # offsets that go back, more entries than fit: look-ups use the files as they are
            return None

    @cached_property
    def offsets(self) -> _Lookups:
        """Look-ups in the offset index."""
        return self._lookups(IndexKind.OFFSET, self.segment.offset_index, OffsetPosition)

    @cached_property
    def times(self) -> _Lookups:
        """Look-ups in the time index."""
        return self._lookups(IndexKind.TIME, self.segment.time_index, TimestampOffset)

    @cached_property
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The last entry of the time index; (-1, base_offset) without any."""
        if self.recovered is not None:
            return TimestampOffset(self.recovered.max_timestamp, self.recovered.offset_of_max_timestamp)
        if self.is_to_recover:
            return self._greatest()
        return self.segment.max_timestamp_so_far

    @cached_property
    def largest_timestamp(self) -> int:
        """What decides which segment a search by time reads, ms since the epoch."""
        timestamp = self.max_timestamp_so_far.timestamp
        return timestamp if timestamp >= 0 else self.segment.modified

    @cached_property
    def size(self) -> int:
        """Bytes of the log that are served: all, also behind damage, but of the last segment what a recovery keeps."""
        return self.segment.size if self.recovered is None or not self._last else self.recovered.valid_bytes

    @cached_property
    def next_offset(self) -> int:
        """The offset after the last batch; the base offset without any."""
        if self.recovered is None:
            return min(self.segment.next_offset, _MOST)
        last = self.recovered.last_offset
        return self.base_offset if last is None else min(last + 1, _MOST)

    def _log_bytes(self, start: int = 0, stop: int | None = None) -> Any:
        """The log's own, with what a recovery cuts."""
        return self.segment._log_bytes(start, stop)

    def _found(self, start: int, stop: int, column: str, target: int) -> Found:
        """In the log."""
        return self.segment._found(start, stop, column, target)

    def _position_of(self, offset: int) -> int:
        """Where to begin to look for an offset."""
        return int(self.positions_of(np.array([min(max(offset, -_MOST), _MOST)], np.int64))[0])

    def positions_of(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """`position_of` many."""
        _, found = self.offsets.lookup_many(offsets)
        outside = (found < 0) | (found > self.size)
        if outside.any():
            raise CorruptIndexError(
                "an entry leads outside the log", path=self.segment.path, field="position", expected=f"0..{self.size}",
                got=int(found[outside][0]), hint="repair the partition",
            )  # fmt: skip
        positions: npt.NDArray[np.int64] = found.astype(np.int64)
        return positions

    def transactional_rows(self) -> npt.NDArray[Any]:
        """The batches of transactions, markers among them."""
        if self.recovered is not None and self.recovered.valid_bytes == self.size:
            return batch_rows([self.recovered.transactional])
        parts = [
            rows[(rows["producer_id"] >= 0) & (is_transactional(rows) | is_control(rows))]
            for rows in self.segment._batch_arrays(check_crc=False)
        ]
        return np.concatenate(parts) if parts else np.empty(0, BATCH)

    # ---- inside

    def _offset_before(self, timestamp: int) -> int:
        return int(self.times.lookup(timestamp).offset)

    def _left_out(
        self, resync: Resync, log: Any, at: int, fault: Fault | None, last: int | None = None
    ) -> BatchFault | None:
        """The log's own."""
        return self.segment._left_out(resync, log, at, fault, last)

    def _has_zeros(self, kind: IndexKind) -> bool:
        return bool(self.segment.indexes.ask(kind, _ends_in_zeros))

    def _is_torn(self, index: AbstractIndex) -> bool:
        """Whether the log does not go on from the index's last entry, batch after batch, to its very end."""
        position = index.entry(len(index) - 1).position if len(index) else 0
        if len(index) and not 0 <= position < self.segment.size:
            return True
        return not self.segment._reaches(position, self.segment.size, check_crc=False)

    def _lookups(self, kind: IndexKind, index: AbstractIndex | None, entry: type) -> _Lookups:
        made, times = self.recovered, kind is IndexKind.TIME
        if made is None and index is not None and not self.is_to_recover:
            return _OfFile(self.segment, kind)
        entries = b"" if made is None else made.time_index if times else made.offset_index
        return Entries(entries or None, times, self.base_offset, entry, False, str(self.segment.path))

    def _greatest(self) -> TimestampOffset:
        found = TimestampOffset(-1, self.base_offset)
        for rows in self.segment._batch_arrays(check_crc=False):
            at = int(np.argmax(rows["max_timestamp"]))
            if rows["max_timestamp"][at] > found.timestamp:
                found = TimestampOffset(int(rows["max_timestamp"][at]), int(rows["last_offset"][at]))
        return found


def _ends_in_zeros(index: AbstractIndex) -> bool:
    if not len(index):
        return False
    if isinstance(index._file, MappedFile):  # zeros that a broker reserved are holes, which reading ahead would fill
        index._file.advise_random()
    zeros = (0, index.base_offset) if index.kind is IndexKind.TIME else (index.base_offset, 0)
    return bool(index.entry(len(index) - 1) == zeros)
