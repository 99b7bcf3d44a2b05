"""The files of one batch queue, written from the units of its records in the log's order.

A unit is where the one before it ends, so a place is no queue offset: units of records that the log no longer holds are
put between the others by their phy offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex.rocketmq.layout import BATCH_UNIT_SIZE
from mqindex.rocketmq.log.commit_log import CommitLog
from mqindex.rocketmq.log.expiry import LogExpiredError
from mqindex.rocketmq.pipeline.queue_build import PlacedFile
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT, BatchUnits, batch_units, lives
from mqindex.rocketmq.queue.batch.old_batch_queue import OldBatchQueue
from mqindex.rocketmq.queue.unit_places import NO_ODDITIES


class BatchQueueBuilder:
    """Writes one batch queue into `directory`, which exists and is empty; `log` holds the records.

    `old`: the queue's files so far; units of records that the log no longer holds are taken from them.
    `units`: of the log; `kept`: of the old files. `oddities`: as in `UnitPlaces`, `impossible` those of records that
    say of their batch what cannot be.
    """

    def __init__(self, directory: str, file_size: int, log: CommitLog, old: OldBatchQueue | None = None) -> None:
        self._files = PlacedFile(directory, file_size)
        self._log, self._old = log, old
        self._place = -1  # byte of the queue; -1: nothing is written yet
        self._phy_offset = -1  # of the last record
        self._first = -1  # the first queue offset
        self.units = self.kept = 0
        self.oddities = NO_ODDITIES

    def space(self, units: npt.NDArray[Any], log_bytes: int) -> int:
        """Bytes on the disk for the units that follow; there are no holes, however long the log is."""
        return self._files.space(len(units), BATCH_UNIT_SIZE)

    def put(self, units: npt.NDArray[Any]) -> None:
        """The units that follow, in the log's order."""
        for rows in self._of_log(units):
            rows = rows[np.diff(rows["phy_offset"], prepend=self._phy_offset) > 0]  # noqa: PLW2901
            if len(rows):
                self._phy_offset = int(rows["phy_offset"][-1])
            for part in lives(rows):
                self._put(part)

    def _of_log(self, units: npt.NDArray[Any]) -> Iterator[BatchUnits]:
        """Those that are valid, file by file; records that a broker deletes meanwhile have expired."""
        at = 0
        while at < len(units):
            try:
                file, log = self._log._map_at(int(units["phy_offset"][at]))
            except LogExpiredError:
                at += 1
                continue
            stop = at + int(np.searchsorted(units["phy_offset"][at:], file.stop))
            first = units["phy_offset"][at:stop] - file.start
            rows, valid = batch_units(log.windows(first, first + units["size"][at:stop]), file.start, units[at:stop])
            if not valid.all():
                wrong = rows["phy_offset"][~valid]
                self.oddities = self.oddities.noted(int(wrong[0]), impossible=len(wrong))
            yield rows[valid]
            at = stop

    def _put(self, rows: BatchUnits) -> None:
        """Where they begin at the queue offset 0, the topic was created again: what came before no longer counts."""
        first = int(rows["msg_base_offset"][0])
        if first == 0 and self.units:
            at = int(rows["phy_offset"][0])
            self.oddities = self.oddities.noted(at, early=self.units, twice=int(self._first == 0))
            self._files.reset()
            self._place, self.units, self.kept = -1, 0, 0
        if not self.units:
            self._first = first
        if self._old is None:
            self._write(rows)
        else:
            self._write_with_kept(self._old, rows)
        self.units += len(rows)

    def _write_with_kept(self, old: OldBatchQueue, rows: BatchUnits) -> None:
        """And the old units before and between them; before the queue offset 0 they are of an earlier topic."""
        begin = int(rows["phy_offset"][0]) if rows["msg_base_offset"][0] == 0 else -1
        for kept in old.kept_below(int(rows["phy_offset"][-1])):
            kept = kept[kept["phy_offset"] > begin]  # noqa: PLW2901
            if len(kept):
                stop = int(np.searchsorted(rows["phy_offset"], kept["phy_offset"][-1]))
                both = np.concatenate([kept, rows[:stop]])
                self._write(both[np.argsort(both["phy_offset"], kind="stable")])
                self.kept, rows = self.kept + len(kept), rows[stop:]
        self._write(rows)

    def _write(self, rows: BatchUnits) -> None:
        if not len(rows):
            return
        if self._place < 0:
            self._place = 0 if self._old is None or self._first == 0 else self._old.start
        stored = np.ascontiguousarray(rows, BATCH_UNIT)  # arrays put together are in the machine's own byte order
        self._files.write(self._place, stored.view(np.uint8).data)
        self._place += len(rows) * BATCH_UNIT_SIZE

    def finish(self) -> None:
        """Add old units, of lost records, after the log's last unit; where the log has none, all such units."""
        if self._old is not None:
            for kept in self._old.kept_below(2**63 - 1):
                self._write(kept)
                self.kept += len(kept)

    def close(self) -> list[str]:
        """All files written; not yet synced."""
        self._files.close()
        return self._files.paths()
