"""Every record of a segment against the header of its batch: what `verify` does only when it is asked to go deep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mqindex._words import plural
from mqindex.errors import FormatError, was_cut
from mqindex.kafka import catalogue
from mqindex.kafka.log.batches import has_append_time
from mqindex.kafka.log.log_damage import Damage, good_batches
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.log.records import read_records
from mqindex.report import Finding

_NONE = -(2**63)


def check_records(segment: LogSegment, damage: Sequence[Damage], stop: int) -> list[Finding]:
    """Findings of the good batches before position `stop`.

    Every consumer stops at a batch that cannot be read to its last record. A batch whose records are later than its
    header says is skipped by searches by time, in a broker too.
    """
    findings: list[Finding] = []
    first: tuple[int, int, int] | None = None
    count = 0
    for rows in good_batches(segment, damage, stop):
        times, unreadable = _greatest_times(segment, rows)
        findings += unreadable
        wrong = (times > rows["max_timestamp"]) & ~has_append_time(rows) & (rows["magic"] > 0)
        if first is None and wrong.any():
            row = int(np.argmax(wrong))
            first = int(rows["position"][row]), int(rows["max_timestamp"][row]), int(times[row])
        count += int(wrong.sum())
    if first is not None:
        at, said, got = first
        many, kind = plural(count, "batch"), catalogue.LOG_MAX_TIMESTAMP
        findings.append(kind.finding(segment.path, at, "max_timestamp", f"{got} or more", said, many=many))
    return findings


def _greatest_times(segment: LogSegment, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], list[Finding]]:
    """The greatest timestamp of the records of each batch; the least number where there is none."""
    times = np.full(len(rows), _NONE, np.int64)
    findings = []
    first = 0
    while first < len(rows):
        try:
            for positions, stamps in _read(segment, rows[first:]):
                np.maximum.at(times, np.searchsorted(rows["position"], positions), stamps)
            break
        except FormatError as error:
            if was_cut(error):
                raise
            at = int(rows["position"][first]) if error.at is None else error.at
            kind = catalogue.LOG_RECORDS
            findings.append(kind.finding(segment.path, at, error.field, error.expected, error.got, what=error.what))
            first = max(int(np.searchsorted(rows["position"], at, "right")), first + 1)
    return times, findings


def _read(segment: LogSegment, rows: npt.NDArray[Any]) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Positions of batches, and for each the greatest timestamp of its records, as far as one array of records goes."""
    for columns in read_records([(segment.log_bytes(), rows)], ("position", "timestamp"), path=segment.path):
        positions, times = np.asarray(columns["position"]), np.asarray(columns["timestamp"])
        if len(positions):
            begins = np.flatnonzero(np.concatenate([[True], positions[1:] != positions[:-1]]))
            yield positions[begins], np.maximum.reduceat(times, begins)
