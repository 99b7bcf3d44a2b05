"""Large Kafka segments for benchmarks: batches of 16 records of 1 KiB, as fast as a disk takes them.

Every batch is the same but for its base offset, which no checksum covers, and its two timestamps. A CRC is linear: the
checksum changes with each bit of a timestamp by a word that depends on the bit's place alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mqindex._native.crc import crc32c
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, batch

__all__ = ["BIG_BATCH", "BigSegment", "write_big_segment"]

RECORDS = 16
VALUE = b"x" * 1024
TEMPLATE = batch([KafkaRecord(VALUE, timestamp=FIRST_TIME + i) for i in range(RECORDS)])
BIG_BATCH = len(TEMPLATE)
BLOCK = 1024  # batches that are written at once
COVERED = 21  # where the checksum begins
HEADER = np.dtype(
    {
        "names": ["base_offset", "crc", "base_timestamp", "max_timestamp"],
        "formats": [">i8", ">u4", ">i8", ">i8"],
        "offsets": [0, 17, 27, 35],
        "itemsize": BIG_BATCH,
    }
)


@dataclass(frozen=True)
class BigSegment:
    """What was written."""

    path: str
    base_offset: int
    batches: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.batches * RECORDS


def write_big_segment(directory: str, base_offset: int, total_bytes: int) -> BigSegment:
    """A `.log` of whole batches, `total_bytes` at most. Offset n has the timestamp FIRST_TIME + n; no index."""
    os.makedirs(directory, exist_ok=True)
    segment = BigSegment(os.path.join(directory, f"{base_offset:020d}.log"), base_offset, total_bytes // BIG_BATCH)
    block = np.frombuffer(bytearray(TEMPLATE * min(BLOCK, segment.batches)), HEADER)
    block.setflags(write=True)
    with open(segment.path, "xb") as file:
        for first in range(0, segment.batches, BLOCK):
            rows = block[: min(BLOCK, segment.batches - first)]
            offsets = base_offset + (first + np.arange(len(rows), dtype=np.int64)) * RECORDS
            rows["base_offset"] = offsets
            rows["base_timestamp"] = FIRST_TIME + offsets
            rows["max_timestamp"] = FIRST_TIME + offsets + RECORDS - 1
            rows["crc"] = _checksums(rows["base_timestamp"].astype(np.int64), rows["max_timestamp"].astype(np.int64))
            file.write(rows.tobytes())
    return segment


def _checksums(first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    sums = np.full(len(first), WHOLE, np.uint32)
    for at, times, known in ((27, first, FIRST_TIME), (35, last, FIRST_TIME + RECORDS - 1)):
        changed = (times ^ known).view(np.uint64)
        for bit in range(int(np.bitwise_or.reduce(changed)).bit_length()):
            sums ^= ((changed >> np.uint64(bit) & np.uint64(1)) * np.uint64(WEIGHTS[at][bit])).astype(np.uint32)
    return sums


def _weight(at: int, bit: int) -> int:
    """By what the checksum changes with one bit of the big-endian number at a place."""
    turned = bytearray(TEMPLATE)
    turned[at + 7 - bit // 8] ^= 1 << bit % 8
    return crc32c(turned[COVERED:]) ^ WHOLE


WHOLE = crc32c(TEMPLATE[COVERED:])
WEIGHTS = {at: [_weight(at, bit) for bit in range(64)] for at in (27, 35)}
