"""The records of some batches that match: what is compared is decoded first, values of batches that have a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mqindex.columns.columns import Columns
from mqindex.kafka.log.log_segment import LogSegment
from mqindex.kafka.scanning.record_filter import RecordFilter

_COPIED: Final = ("value", "headers")  # columns whose bytes are copied only of batches that match


def matching_records(
    segment: LogSegment,
    log: Any,
    rows: npt.NDArray[Any],
    wanted: RecordFilter,
    columns: tuple[str, ...],
    *,
    look_first: bool,
) -> Iterator[Columns]:
    """The records of the batches `rows` of `log` that match, with at least the columns.

    look_first : values are decoded of batches with a match alone, which costs a pass over what is compared
    """
    if look_first and len(rows) and not set(_COPIED).isdisjoint(columns):
        rows = rows[_have_matches(segment, log, rows, wanted)]
    names = tuple(dict.fromkeys((*columns, *wanted.columns)))
    if not len(rows):
        return
    for records in segment._records_of([(log, rows)], names):
        matching = wanted.matching(records)
        found = records if matching is None or matching.all() else records.take(matching)
        if len(found):
            yield found


def _have_matches(segment: LogSegment, log: Any, rows: npt.NDArray[Any], wanted: RecordFilter) -> npt.NDArray[np.bool_]:
    """Which batches have a record that matches."""
    found = np.zeros(len(rows), np.bool_)
    for records in segment._records_of([(log, rows)], ("position", *wanted.columns)):
        matching = wanted.matching(records)
        found[np.searchsorted(rows["position"], records["position"][matching])] = True
    return found
