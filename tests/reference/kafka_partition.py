"""A partition's answers: sections 1.2, 4.2, 5.5 and 6 of the format document, a record at a time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import cramjam

from tests.reference.kafka_index import Entries, floor

__all__ = ["Batch", "Partition", "Record", "Segment", "batches", "read_partition", "records"]


class Batch(NamedTuple):
    """What of a batch decides answers. `data` begins behind the first 12 bytes."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    attributes: int
    producer_id: int
    data: bytes

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and self.attributes & 0x20 != 0

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and self.attributes & 0x10 != 0


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


# ---- section 6


def batches(log: bytes, start: int = 0) -> Iterator[Batch]:
    """Whole batches; ends where the log does, or at a length that none has."""
    while start < len(log) - 17:
        offset, length = struct.unpack_from(">qi", log, start)
        if length < 14 or start + 12 + length > len(log):
            return
        data = log[start + 12 : start + 12 + length]
        magic = data[4] if data[4] < 128 else -1
        last, greatest, attributes, producer = offset, -1, data[5], -1
        if magic >= 2:
            if length < 49:
                return
            attributes, delta, _, greatest, producer = struct.unpack_from(">hiqqq", data, 9)
            last = offset + delta
        elif magic != 0 and length >= 22:
            (greatest,) = struct.unpack_from(">q", data, 6)
        yield Batch(start, 12 + length, offset, last, greatest, magic, attributes, producer, data)
        start += 12 + length


def records(batch: Batch) -> list[Record]:
    """The records of a sound batch."""
    return _records_2(batch) if batch.magic >= 2 else _records_1(batch)


def _records_2(batch: Batch) -> list[Record]:
    (count,) = struct.unpack_from(">i", batch.data, 45)
    (base_timestamp,) = struct.unpack_from(">q", batch.data, 15)
    body, at, found = _decompressed(batch.attributes & 7, batch.data[49:], 2), 0, []

    def varint() -> int:
        nonlocal at
        shift = number = 0
        while True:
            byte = body[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number >> 1 ^ -(number & 1)

    def sized() -> bytes | None:
        nonlocal at
        length = varint()
        if length < 0:
            return None
        at += length
        return body[at - length : at]

    for _ in range(count):
        varint()
        at += 1
        timestamp, offset = base_timestamp + varint(), batch.base_offset + varint()
        key, value = sized(), sized()
        headers = [((sized() or b"").decode(), sized()) for _ in range(varint())]
        found.append(Record(offset, _time(batch, timestamp), key, value, headers))
    return found


def _records_1(batch: Batch) -> list[Record]:
    timestamp, key, value = _message(batch.data, batch.magic)
    if not batch.attributes & 7:
        return [Record(batch.base_offset, timestamp, key, value, [])]
    inner = list(batches(_decompressed(batch.attributes & 7, value or b"", batch.magic)))
    shift = batch.last_offset - inner[-1].base_offset if batch.magic == 1 and batch.last_offset else 0
    found = []
    for each in inner:
        timestamp, key, value = _message(each.data, each.magic)
        found.append(Record(each.base_offset + shift, _time(batch, timestamp), key, value, []))
    return found


def _message(data: bytes, magic: int) -> tuple[int, bytes | None, bytes | None]:
    at = 14 if magic == 1 else 6
    parts: list[bytes | None] = []
    for _ in range(2):
        (length,) = struct.unpack_from(">i", data, at)
        parts.append(None if length < 0 else data[at + 4 : at + 4 + length])
        at += 4 + max(length, 0)
    return struct.unpack_from(">q", data, 6)[0] if magic == 1 else -1, parts[0], parts[1]


def _time(batch: Batch, timestamp: int) -> int:
    return batch.max_timestamp if batch.magic > 0 and batch.attributes & 8 else timestamp


def _decompressed(codec: int, data: bytes, magic: int) -> bytes:
    if codec == 0:
        return data
    if codec == 1:
        return zlib.decompress(data, 31)
    if codec == 3:
        if magic == 0:  # a wrong header checksum: read the blocks, each behind its length
            return _lz4_blocks(data)
        return bytes(cramjam.lz4.decompress(data))
    if codec == 4:
        return bytes(cramjam.zstd.decompress(data))
    at, blocks = 16, b""
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        blocks += bytes(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return blocks


def _lz4_blocks(data: bytes) -> bytes:
    at, blocks = 7, b""
    while (length := struct.unpack_from("<I", data, at)[0]) != 0:
        block = data[at + 4 : at + 4 + (length & 0x7FFFFFFF)]
        at += 4 + len(block)
        if not length >> 31:
            block = bytes(cramjam.lz4.decompress_block(block, output_len=1 << 20))
        blocks += block
    return blocks


# ---- sections 5.5 and 4.2


@dataclass
class Segment:
    """One segment in memory. index, times: entries as they stand in the files."""

    base: int
    log: bytes
    index: Entries
    times: Entries
    mtime: int
    txns: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def last_time(self) -> tuple[int, int]:
        return self.times[-1] if self.times else (-1, self.base)

    @property
    def largest(self) -> int:
        return self.last_time[0] if self.last_time[0] >= 0 else self.mtime

    def position(self, offset: int) -> int:
        return floor(self.index, offset, 8, (self.base, 0))[1]

    def translate(self, offset: int) -> Batch | None:
        found = batches(self.log, self.position(offset))
        return next((batch for batch in found if batch.last_offset >= offset), None)

    def find(self, timestamp: int, starting_offset: int) -> tuple[int, int] | None:
        """Timestamp and offset of the first record at or behind the time."""
        entry = floor(self.times, timestamp, 12, (-1, self.base))
        for batch in batches(self.log, self.position(max(entry[1], starting_offset))):
            if batch.max_timestamp >= timestamp:
                for record in records(batch):
                    if record.timestamp >= timestamp and record.offset >= starting_offset:
                        return record.timestamp, record.offset
        return None

    @property
    def next_offset(self) -> int:
        start = self.translate(self.index[-1][0] if self.index else self.base)
        last = self.base - 1
        for batch in batches(self.log, len(self.log) if start is None else start.position):
            last = batch.last_offset
        return last + 1


@dataclass
class Partition:
    """Segments by base offset."""

    segments: list[Segment]
    log_start: int

    @property
    def log_end(self) -> int:
        return self.segments[-1].next_offset

    def fetch(self, timestamp: int) -> tuple[int, int] | None:
        """What the log answers to offsets-for-times; -1 is its end, -2 its start, -3 the greatest timestamp."""
        if timestamp == -1:
            return -1, self.log_end
        if timestamp in (-2, -4):
            return -1, self.log_start
        if timestamp == -5:
            return None
        if timestamp == -3:
            return self.greatest()
        for segment in self.segments:
            if segment.largest >= timestamp:
                return segment.find(timestamp, self.log_start)
        return None

    def greatest(self) -> tuple[int, int] | None:
        best = self.segments[0]
        for segment in self.segments:
            if segment.last_time[0] > best.last_time[0]:
                best = segment
        timestamp, offset = best.last_time
        for batch in batches(best.log, best.position(offset)):
            if batch.max_timestamp == timestamp:
                if batch.magic == 0:
                    return None
                of = next((record.offset for record in records(batch) if record.timestamp == timestamp), None)
                return None if of is None else (timestamp, of)
        return None

    def aborted(self, start: int, upper: int) -> list[tuple[int, int, int, int]]:
        """producer id, first, last and last stable offset of what `collectAbortedTransactions` gives."""
        if not self.segments or start < self.segments[0].base:
            return []
        first = max(at for at, segment in enumerate(self.segments) if segment.base <= start)
        found = []
        for segment in self.segments[first:]:
            for txn in segment.txns:
                if txn[2] >= self.log_start and txn[1] < upper:
                    found.append(txn)
                if txn[3] >= upper:
                    return found
        return found

    def read(self, offset: int, *, committed: bool = False, stable: int | None = None) -> list[Record]:
        """What a consumer gets from `offset` on."""
        pending = sorted(self._aborted_for(offset), key=lambda txn: txn[1])
        end = self.log_end if stable is None else stable
        aborting: set[int] = set()
        found = []
        for segment in self.segments:
            for batch in batches(segment.log):
                if batch.last_offset < offset or batch.base_offset >= end:
                    continue
                if committed:
                    while pending and pending[0][1] <= batch.last_offset:
                        aborting.add(pending.pop(0)[0])
                    if batch.is_control:
                        if records(batch)[0].key == b"\0\0\0\0":
                            aborting.discard(batch.producer_id)
                    elif batch.is_transactional and batch.producer_id in aborting:
                        continue
                if not batch.is_control:
                    found += [record for record in records(batch) if record.offset >= offset]
        return found

    def _aborted_for(self, offset: int) -> list[tuple[int, int, int, int]]:
        return [txn for segment in self.segments for txn in segment.txns if txn[2] >= offset]


def read_partition(directory: Path, log_start: int | None = None) -> Partition:
    """The segments of a cleanly closed directory, as their files are."""
    segments = []
    for path in sorted(directory.glob("*.log")):
        base = int(path.stem)
        index = [(base + rel, at) for rel, at in struct.iter_unpack(">ii", _whole(path.with_suffix(".index"), 8))]
        times = [(ms, base + rel) for ms, rel in struct.iter_unpack(">qi", _whole(path.with_suffix(".timeindex"), 12))]
        entries = struct.iter_unpack(">hqqqq", _whole(path.with_suffix(".txnindex"), 34))
        txns = [(producer, first, last, stable) for _, producer, first, last, stable in entries]
        mtime = path.stat().st_mtime_ns // 1_000_000
        segments.append(Segment(base, path.read_bytes(), index, times, mtime, txns))
    return Partition(segments, segments[0].base if log_start is None else log_start)


def _whole(path: Path, entry_size: int) -> bytes:
    data = path.read_bytes() if path.exists() else b""
    return data[: len(data) - len(data) % entry_size]
