"""Where an offset or a time is in one segment: an index entry leads to a position, from which headers are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from mqindex._native.kafka_log import Resync
from mqindex._native.kafka_records import find_record
from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.numbers import Time
from mqindex.kafka.index.time_index import TimestampOffset
from mqindex.kafka.log.batch_windows import Found
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.damage import BatchFault, Fault
from mqindex.kafka.log.records import payload_of

_LEAST, _GREATEST = -(2**63), 2**63 - 1


class LogOffsetPosition(NamedTuple):
    """Where a batch is in its log: the answer of `LogSegment.translate_offset`.

    Attributes
    ----------
    position, size : int, bytes: where it begins, and its length
    base_offset : int

    Notes
    -----
    Source: Kafka 4.1.0 `FileRecords.LogOffsetPosition`.
    """

    position: int
    size: int
    base_offset: int


class SegmentSearch(ABC):
    """Look-ups in a segment by two indexes: those of its files, or those that a recovery would write.

    Attributes
    ----------
    path : str, of the log. base_offset : int.
    """

    path: str
    base_offset: int

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the log that are searched."""

    @property
    @abstractmethod
    def max_timestamp_so_far(self) -> TimestampOffset:
        """The time index's last entry; (-1, base_offset) without any."""

    @abstractmethod
    def _log_bytes(self, start: int = 0, stop: int | None = None) -> Any:
        """The log, mapped, for kernels; empty bytes where it is empty. Positions are those of this buffer.

        Of a log elsewhere only the bytes [start, stop) are there, and what was read before.
        """

    @abstractmethod
    def _found(self, start: int, stop: int, column: str, target: int) -> Found:
        """As `find_batch`."""

    @abstractmethod
    def _position_of(self, offset: int) -> int:
        """The position in the offset index's entry for an offset: no batch before has it, or a greater one.

        Raises
        ------
        CorruptIndexError : an entry leads outside the log.
        """

    @abstractmethod
    def _offset_before(self, timestamp: int) -> int:
        """The offset in the time index's entry for a timestamp."""

    @abstractmethod
    def _left_out(
        self, resync: Resync, log: Any, at: int, fault: Fault | None, last: int | None = None
    ) -> BatchFault | None:
        """What is left out at `at`, where a walk has ended, remembered; None: the log ends there."""

    def translate_offset(self, offset: int, starting_position: int = 0) -> LogOffsetPosition | None:
        """The first batch whose last offset is not below `offset`; None: the segment ends before.

        Only headers are read; behind one that leads nowhere the search goes on at the next valid batch.
        `starting_position`: bytes, a batch that begins at or before it.
        Source: Kafka 4.1.0 `LogSegment.translateOffset`.
        """
        offset = whole_number("offset", offset)
        start = max(self._position_of(offset), whole_number("starting_position", starting_position))
        row, _, _ = self._first_batch(min(start, self.size), "last_offset", int64(offset))
        if row is None:
            return None
        batch = batch_rows([row])[0]
        return LogOffsetPosition(int(batch["position"]), int(batch["size"]), int(batch["base_offset"]))

    def _first_batch(self, start: int, column: str, target: int) -> tuple[bytes | None, int, BatchFault | None]:
        """As `find_batch`, from `start` on and behind damage; and the last damage that it met."""
        resync, damage = None, None
        while True:
            row, end, fault = self._found(start, self.size, column, target)
            if row is not None or end >= self.size:
                return row, end, damage
            log = self._log_bytes()
            resync = resync or Resync(log)
            damage = self._left_out(resync, log, end, fault)
            if damage is None or damage.end >= self.size:
                return None, end, damage
            start = damage.end

    def find_offset_by_timestamp(self, ms: Time, starting_offset: int | None = None) -> TimestampOffset | None:
        """The first record that is not before `ms` (since the epoch), nor below `starting_offset`; None: there is none.

        `ms` may be an aware datetime or a datetime64. Errors as of `records`.
        Source: Kafka 4.1.0 `LogSegment.findOffsetByTimestamp`.
        """
        first = self.base_offset if starting_offset is None else whole_number("starting_offset", starting_offset)
        timestamp = int64(milliseconds("ms", ms))
        return self._find(max(self._offset_before(timestamp), first), timestamp, int64(first))

    def find_offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The first record that has the greatest timestamp, which the time index's last entry names; None: none has.

        Source: Kafka 4.1.0 `UnifiedLog.fetchOffsetByTimestamp` (a timestamp of -3), `RecordBatch.offsetOfMaxTimestamp`.
        """
        timestamp, offset = self.max_timestamp_so_far
        return self._find(offset, timestamp, _LEAST, exact=True)

    def _find(self, offset: int, timestamp: int, min_offset: int, *, exact: bool = False) -> TimestampOffset | None:
        """exact : the first record with just this timestamp, in the first batch whose greatest it is; batches of magic
        0 have no times.
        """
        start = self._position_of(offset)
        while True:
            row, start, _ = self._first_batch(start, "max_timestamp", timestamp)
            if row is None:
                return None
            batch = batch_rows([row])
            if not exact or batch["max_timestamp"][0] == timestamp:
                if exact and batch["magic"][0] == 0:
                    return None
                at = int(batch["position"][0])
                log = self._log_bytes(at, at + int(batch["size"][0]))
                payload = payload_of(log, batch, 0, path=self.path)
                found = find_record(log, payload, batch, 0, timestamp, min_offset, exact, path=self.path)
                if found is not None or exact:
                    return None if found is None else TimestampOffset(*found)


def int64(number: int) -> int:
    """The nearest number of 64 bits."""
    return min(max(number, _LEAST), _GREATEST)
