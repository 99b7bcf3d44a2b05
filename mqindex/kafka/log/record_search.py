"""Which record of a segment's log has a timestamp: batches by their headers, then the records of one batch."""

from __future__ import annotations

from typing import Any

from mqindex._native.kafka_log import find_batch
from mqindex._native.kafka_records import find_record, first_offset
from mqindex.kafka.index.time_index import TimestampOffset
from mqindex.kafka.log.batches import batch_rows
from mqindex.kafka.log.records import payload_of

__all__ = ["Fault", "find_timestamp", "first_offset_at"]

Fault = tuple[str, int, str, str, str]


def find_timestamp(
    buffer: Any, start: int, timestamp: int, min_offset: int, *, exact: bool = False, path: str | None = None
) -> tuple[TimestampOffset | None, Fault | None]:
    """The first record from a position on that is not before `timestamp`, nor below `min_offset`.

    exact : the first record of the first batch whose greatest timestamp it is, that has it; none of a batch of magic 0,
    which has no times. The second value is why the search ended where it did, if at a bad batch.
    """
    while True:
        row, end, fault = find_batch(buffer, start, None, "max_timestamp", timestamp)
        if row is None:
            return None, fault
        batch = batch_rows([row])
        if not exact or batch["max_timestamp"][0] == timestamp:
            if exact and batch["magic"][0] == 0:
                return None, None
            payload = payload_of(buffer, batch, 0, path=path)
            found = find_record(buffer, payload, batch, 0, timestamp, min_offset, exact, path=path)
            if found is not None or exact:
                return None if found is None else TimestampOffset(*found), None
        start = end


def first_offset_at(buffer: Any, position: int, *, path: str | None = None) -> int:
    """The offset of the first message in the compressed message at a position."""
    row, _, _ = find_batch(buffer, position, position + 1, "last_offset", -(2**63))
    if row is None:
        raise ValueError(f"position: expected that of a batch, got {position}")
    batch = batch_rows([row])
    payload = payload_of(buffer, batch, 0, path=path)
    return int(batch["base_offset"][0]) if payload is None else first_offset(payload, batch, 0, path=path)
