"""The records that a consumer gets next, from the segments that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Columns
from mqindex.errors import FormatError, was_cut
from mqindex.kafka.log.batches import is_control
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.records import no_records, records_from, require_columns
from mqindex.kafka.partition.aborted import AbortedTransactions
from mqindex.kafka.partition.served_segment import ServedSegment


def read_partition(
    segments: Sequence[ServedSegment],
    offset: int,
    stop: int,
    *,
    max_bytes: int,
    aborted: AbortedTransactions | None,
    columns: Iterable[str] | None,
) -> Columns:
    """The records from `offset` on in batches that begin before `stop`, without control batches and aborted ones.

    They are of `max_bytes` of whole batches, or of the first that has any; what is left out counts, too.

    Raises
    ------
    CorruptIndexError : the next record is, or may have been, in damage, and all before it were returned already. A
        broker's consumer has an error there too. At the end of the log, where a recovery cuts it, reading ends.
    FormatError : it is in a batch that does not decompress, or whose records contradict it.

    Notes
    -----
    Source: Kafka 4.1.0 `LocalLog.read`, and of the consumer `CompletedFetch.nextFetchedRecord`. A broker's fetch ends
    with a segment, and its consumer fetches again.
    """
    reading = _Reading(offset, stop, max_bytes, aborted, require_columns(columns))
    try:
        for segment in segments:
            reading.read(segment)
            if reading.is_full:
                break
    except (FormatError, ImportError) as error:  # what comes before is returned; who reads on from there gets it
        if not reading.found or was_cut(error):
            raise
    return Columns.concat(reading.found) if reading.found else no_records(reading.names)


class _Reading:
    """What was `found` so far, and in how many bytes more there may be records."""

    def __init__(
        self, offset: int, stop: int, max_bytes: int, aborted: AbortedTransactions | None, names: tuple[str, ...]
    ) -> None:
        self.names = names
        self.found: list[Columns] = []
        self.is_full = False
        self._offset, self._stop = offset, stop
        self._max_bytes = self._room = max_bytes
        self._aborted = aborted

    def read(self, segment: ServedSegment) -> None:
        """The batches of a segment, until there are enough."""
        next_base = segment.segment.next_base_offset
        end = self._stop if next_base is None else min(self._stop, next_base)
        reached = max(self._offset, segment.base_offset)
        while reached < end or reached == self._offset:  # an open transaction may have begun below the log's start
            rows = segment.segment._fetch(reached, self._room if self.found else self._max_bytes, segment)
            if rows is None:
                return
            used = int(rows["size"].sum(dtype=np.int64))
            if self.found and used > self._room:  # the next batch alone is larger
                self.is_full = True
                return
            reached = int(rows["last_offset"].max()) + 1
            self._room -= used
            self._add(segment.segment, rows[rows["base_offset"] < self._stop])
            self.is_full = bool(self.found) and self._room <= 0
            if self.is_full:
                return

    def _add(self, log: LogSegment, rows: npt.NDArray[Any]) -> None:
        """The records of some batches; before an error those before its batch."""
        hidden = is_control(rows)
        if self._aborted is not None:
            hidden |= self._aborted.flags(rows, self._offset)
        rows = rows[~hidden]
        try:
            self._keep(log, rows)
        except FormatError as error:
            self._keep(log, rows[rows["position"] < (error.at or 0)])
            raise

    def _keep(self, log: LogSegment, rows: npt.NDArray[Any]) -> None:
        if len(rows):
            records = records_from(self._offset, log._log_of(rows), rows, self.names, path=log.path)
            if records.num_rows:
                self.found.append(records)
