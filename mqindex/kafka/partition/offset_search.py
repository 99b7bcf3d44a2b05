"""From many timestamps to offsets within one segment: indexes, batch headers and records are each read once for all."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mqindex._native.kafka_log import Resync, find_batches, first_not_below
from mqindex.columns.distinct import distinct
from mqindex.errors import TruncatedFileError
from mqindex.files.places.place import Place
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.records import read_records
from mqindex.kafka.partition.served_segment import ServedSegment

_Array = npt.NDArray[np.int64]
_NARROW: Final = ("offset", "timestamp", "position")
_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1


def find_offsets_by_timestamps(
    segment: ServedSegment, timestamps: _Array, starting_offset: int
) -> tuple[_Array, _Array]:
    """For each timestamp the first record that is not before it, nor below `starting_offset`; -1, -1: there is none.

    Notes
    -----
    Source: Kafka 4.1.0 `LogSegment.findOffsetByTimestamp`, `FileRecords.searchForTimestamp`: in the first batch from
    the indexed position on whose max timestamp is not before it; where that has no such record, in the next such batch.
    """
    found_times, found_offsets = np.full((2, len(timestamps)), -1, np.int64)
    _, entry_offsets = segment.times.lookup_many(timestamps)
    starts = segment.positions_of(np.maximum(entry_offsets, starting_offset))
    pending = np.arange(len(timestamps))
    if not _are_ordered(starts, timestamps):
        pending = np.lexsort((timestamps, starts))
        starts = starts[pending]
    while len(pending):
        positions = _positions(segment, starts, timestamps[pending])
        there = positions >= 0
        ended, going = pending[~there], _behind_damage(segment, starts[~there])
        pending, positions = pending[there], positions[there]
        times, offsets = _first_records(segment, positions, timestamps[pending], starting_offset)
        found_times[pending], found_offsets[pending] = times, offsets
        pending, starts = pending[offsets < 0], positions[offsets < 0]
        starts = starts + _sizes(segment, starts)
        pending = np.concatenate([pending, ended[going >= 0]])
        starts = np.concatenate([starts, going[going >= 0]])
        if not _are_ordered(starts, timestamps[pending]):
            order = np.lexsort((timestamps[pending], starts))
            pending, starts = pending[order], starts[order]
    return found_times, found_offsets


def _positions(segment: ServedSegment, starts: _Array, timestamps: _Array) -> _Array:
    """As `find_batches`; of a log elsewhere not more is read than is needed."""
    if not isinstance(segment.path, Place):
        return find_batches(segment._log_bytes(), segment.size, starts, timestamps)[0]
    found = (
        segment._found(start, segment.size, "max_timestamp", time)
        for start, time in zip(starts.tolist(), timestamps.tolist(), strict=True)
    )
    return np.array([-1 if row is None else batch_rows([row])["position"][0] for row, _, _ in found], np.int64)


def _behind_damage(segment: ServedSegment, starts: _Array) -> _Array:
    """For each place where a walk began that found nothing: where it goes on behind damage; -1: it reached the end."""
    going = np.full(len(starts), -1, np.int64)
    reached, behind, resync = -1, -1, None
    for number in np.argsort(starts, kind="stable").tolist():
        if starts[number] >= reached:
            _, reached, fault = segment._found(int(starts[number]), segment.size, "max_timestamp", _GREATEST)
            if reached < segment.size:
                log = segment._log_bytes()
                resync = resync or Resync(log)
                damage = segment._left_out(resync, log, reached, fault)
                behind = -1 if damage is None or damage.end >= segment.size else damage.end
            else:
                behind = -1
        going[number] = behind
    return going


def _are_ordered(starts: _Array, timestamps: _Array) -> bool:
    return bool((starts[1:] >= starts[:-1]).all() and (timestamps[1:] >= timestamps[:-1]).all())


def _first_records(
    segment: ServedSegment, positions: _Array, timestamps: _Array, starting_offset: int
) -> tuple[_Array, _Array]:
    """The first fitting record of the batch at each position; -1, -1: it has none."""
    found_times, found_offsets = np.full((2, len(positions)), -1, np.int64)
    rows = segment.segment._rows_at(distinct(positions))
    order = np.lexsort((timestamps, positions))
    wanted = positions[order]
    for columns in read_records([(segment.segment._log_of(rows), rows)], _NARROW, path=segment.path):
        of_batch, offsets = columns["position"], columns["offset"]
        times = np.where(offsets >= starting_offset, columns["timestamp"], _LEAST)
        first, last = np.searchsorted(wanted, of_batch[[0, -1]] + [0, 1])  # the targets of these batches
        targets = order[first:last]
        open_ones = targets[found_offsets[targets] < 0]
        starts = np.searchsorted(of_batch, positions[open_ones])
        stops = np.searchsorted(of_batch, positions[open_ones], "right")
        at = first_not_below(times, starts, stops, np.maximum(timestamps[open_ones], _LEAST + 1))
        there = at >= 0
        found_times[open_ones[there]] = times[at[there]]
        found_offsets[open_ones[there]] = offsets[at[there]]
    return found_times, found_offsets


def _sizes(segment: ServedSegment, positions: _Array) -> _Array:
    """The sizes of batches that a search has just found; one is missing only if the log was cut since."""
    if not len(positions):
        return positions
    distinct, which = np.unique(positions, return_inverse=True)
    rows = segment.segment._rows_at(distinct)
    if len(rows) < len(distinct):
        raise TruncatedFileError(
            "the log was cut while it was read",
            path=segment.segment.path,
            expected=f"a batch at byte {distinct[len(rows)]}",
            got="none",
        )
    sizes: _Array = rows["size"].astype(np.int64)[which]
    return sizes
