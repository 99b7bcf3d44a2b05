"""A broker's recovery: sections 4.3, 5.3, 6.6 and 8.1 of the format document, a batch at a time."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from tests.reference.kafka_index import (
    Refused,
    append_offset,
    maybe_append_time,
    offset_bytes,
    time_bytes,
)
from tests.reference.kafka_log import headers_past_damage
from tests.reference.kafka_partition import Batch, batches, records
from tests.support.kafka_writer import crc32c

__all__ = ["RecoveredTwin", "aborted_transactions", "recover"]


class RecoveredTwin(NamedTuple):
    index: bytes
    timeindex: bytes
    valid_bytes: int
    batches: list[Batch]


def recover(
    log: bytes,
    base: int,
    *,
    interval: int,
    max_index_size: int = 10_485_760,
    first_offsets: bool = False,
    past_damage: bool = False,
) -> RecoveredTwin:
    """Raises `Refused` where the broker's recovery does not survive. `past_damage`: goes on at the next good batch; one
    that no length leads to has an entry for its first offset.
    """
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    rooms = max_index_size // 8, max_index_size // 12
    valid, indexed, greatest, good = 0, 0, (-1, base), []
    due = set[int]()
    found = itertools.takewhile(intact, batches(log))
    if past_damage:
        headers, due = headers_past_damage(log, base)
        found = itertools.chain.from_iterable(itertools.islice(batches(log, each.position), 1) for each in headers)
    for batch in found:
        valid = batch.position
        if not 0 <= batch.last_offset - base < 1 << 31:
            raise Refused("overflow")
        if batch.max_timestamp > greatest[0]:
            greatest = batch.max_timestamp, batch.last_offset
        if valid in due or valid - indexed > interval:
            offset = batch.base_offset if valid in due else batch.last_offset
            append_offset(offsets, rooms[0], base, first_of(batch) if first_offsets else offset, valid)
            maybe_append_time(times, rooms[1], base, *greatest, False)
            indexed = valid
        valid += batch.size
        good.append(batch)
    maybe_append_time(times, rooms[1], base, *greatest, True)
    return RecoveredTwin(offset_bytes(offsets, base), time_bytes(times, base), valid, good)


def intact(batch: Batch) -> bool:
    if batch.magic >= 2:
        return batch.size >= 61 and struct.unpack_from(">I", batch.data, 5)[0] == crc32c(batch.data[9:])
    return bool(struct.unpack_from(">I", batch.data)[0] == zlib.crc32(batch.data[4:]))


def first_of(batch: Batch) -> int:
    if batch.magic >= 2 or not batch.attributes & 7:
        return batch.base_offset
    return records(batch)[0].offset


def aborted_transactions(segments: Sequence[Sequence[Batch]], begun: dict[int, int] | None = None) -> list[bytes]:
    """The `.txnindex` of each segment."""
    going = dict(begun or {})
    files = []
    for segment in segments:
        entries = b""
        for batch in segment:
            if batch.magic < 2 or batch.producer_id < 0:
                continue
            if batch.is_control:
                marks = records(batch)
                first = going.get(batch.producer_id)
                if not marks or first is None:
                    continue
                del going[batch.producer_id]
                if struct.unpack(">hh", (marks[0].key or b"")[:4])[1] == 0:
                    stable = min(going.values(), default=batch.base_offset + 1)
                    entries += struct.pack(">hqqqq", 0, batch.producer_id, first, batch.base_offset, stable)
            elif batch.is_transactional:
                going.setdefault(batch.producer_id, batch.base_offset)
        files.append(entries)
    return files
