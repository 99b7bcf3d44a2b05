"""Kafka partitions from the format document (sections 2 to 6) with struct alone: a third opinion.

Shares no code with the package nor with the twin. It also writes what no broker would: torn batches, wrong checksums,
offsets that go back. Every append is one batch, as a leader of 4.1.0 writes it and its indexes.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cramjam

__all__ = [
    "CODECS",
    "FIRST_TIME",
    "KafkaRecord",
    "PartitionWriter",
    "batch",
    "compressed",
    "crc32c",
    "marker",
    "messages",
    "snapshot",
]

FIRST_TIME = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_ABORT, _COMMIT = 0, 1


@dataclass(frozen=True)
class KafkaRecord:
    """What a producer sends. offset : None for the one behind the record before."""

    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp: int = FIRST_TIME
    headers: Sequence[tuple[str, bytes | None]] = ()
    offset: int | None = None


# ---- magic 2


def batch(
    records: Sequence[KafkaRecord],
    base_offset: int = 0,
    *,
    codec: str = "none",
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    append_time: int | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
    count: int | None = None,
    magic: int = 2,
    crc: int | None = None,
) -> bytes:
    """One batch. What is None is what a producer or the broker would write; anything else is written as given."""
    offsets = _offsets(records, base_offset)
    base_timestamp = records[0].timestamp if records else -1
    body = b"".join(
        _record(record, record.timestamp - base_timestamp, offset - base_offset)
        for record, offset in zip(records, offsets, strict=True)
    )
    last = last_offset if last_offset is not None else offsets[-1] if offsets else base_offset
    greatest = append_time if append_time is not None else max((record.timestamp for record in records), default=-1)
    attributes = CODECS.index(codec) | (append_time is not None) << 3 | transactional << 4 | control << 5
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        last - base_offset,
        base_timestamp,
        greatest if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records) if count is None else count,
    ) + compressed(codec, body)
    sum_of_it = crc32c(covered) if crc is None else crc
    return struct.pack(">qiibI", base_offset, len(covered) + 9, leader_epoch, magic, sum_of_it) + covered


def marker(
    offset: int,
    producer_id: int,
    *,
    abort: bool = True,
    timestamp: int = FIRST_TIME,
    producer_epoch: int = 0,
    leader_epoch: int = 0,
    coordinator_epoch: int = 0,
) -> bytes:
    """The control batch that ends a transaction."""
    record = KafkaRecord(
        struct.pack(">hi", 0, coordinator_epoch), struct.pack(">hh", 0, _ABORT if abort else _COMMIT), timestamp
    )
    return batch(
        [record], offset, producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True,
        leader_epoch=leader_epoch,
    )  # fmt: skip


def _record(record: KafkaRecord, timestamp_delta: int, offset_delta: int) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _sized(record.key) + _sized(record.value)
    body += varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name.encode()) + _sized(value)
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    """Zigzag, then seven bits a byte, low ones first.

    >>> varint(500).hex(), varint(-1).hex()
    ('e807', '01')
    """
    left, out = (number << 1) ^ (number >> 63), bytearray()
    left &= 2**64 - 1
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


# ---- magic 0 and 1


def messages(
    records: Sequence[KafkaRecord],
    base_offset: int = 0,
    *,
    magic: int = 1,
    codec: str = "none",
    append_time: int | None = None,
    crc: int | None = None,
) -> bytes:
    """Single messages one behind the other, or with a codec one wrapper around them."""
    offsets = _offsets(records, base_offset)
    if codec == "none":
        pairs = zip(offsets, records, strict=True)
        return b"".join(_message(record, offset, magic, 0, append_time, crc) for offset, record in pairs)
    inner = b"".join(
        _message(record, offset - (base_offset if magic == 1 else 0), magic, 0, None, None)
        for offset, record in zip(offsets, records, strict=True)
    )
    around = KafkaRecord(
        compressed(codec, inner, magic), timestamp=max((record.timestamp for record in records), default=-1)
    )
    return _message(around, offsets[-1], magic, CODECS.index(codec), append_time, crc)


def _message(
    record: KafkaRecord, offset: int, magic: int, codec: int, append_time: int | None, crc: int | None
) -> bytes:
    covered = struct.pack(">bb", magic, codec | (append_time is not None) << 3)
    if magic == 1:
        covered += struct.pack(">q", record.timestamp if append_time is None else append_time)
    for part in (record.key, record.value):
        covered += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, len(covered) + 4, zlib.crc32(covered) if crc is None else crc) + covered


def _offsets(records: Sequence[KafkaRecord], base_offset: int) -> list[int]:
    offsets: list[int] = []
    for record in records:
        following = offsets[-1] + 1 if offsets else base_offset
        offsets.append(following if record.offset is None else record.offset)
    return offsets


# ---- codecs and checksums


def compressed(codec: str, data: bytes, magic: int = 2) -> bytes:
    """As a producer's library frames it; in magic 0 the header checksum of lz4 is a wrong one, as it was."""
    if codec == "none":
        return data
    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "snappy":
        framed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
        for at in range(0, len(data), 32768):
            block = bytes(cramjam.snappy.compress_raw(data[at : at + 32768]))
            framed += struct.pack(">i", len(block)) + block
        return framed
    if codec == "lz4":
        frame = struct.pack("<I", 0x184D2204) + b"\x60\x40" + bytes([0x82 if magic else 0x82 ^ 0x55])
        for at in range(0, len(data), 1 << 16):
            block = bytes(cramjam.lz4.compress_block(data[at : at + (1 << 16)], store_size=False))
            frame += struct.pack("<I", len(block)) + block
        return frame + bytes(4)
    return bytes(cramjam.zstd.compress(data))


def _table() -> list[int]:
    table = []
    for byte in range(256):
        left = byte
        for _ in range(8):
            left = left >> 1 ^ (0x82F63B78 if left & 1 else 0)
        table.append(left)
    return table


_CRC32C = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C, a byte at a time.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# ---- a partition


def snapshot(path: Path, *opened: tuple[int, int]) -> None:
    """The producers' state, in a file: producer ids and where the transactions of each began, -1: none is open."""
    entries = b"".join(struct.pack(">qhiqiqiq", producer, 0, 0, first, 0, 0, 0, first) for producer, first in opened)
    body = struct.pack(">i", len(opened)) + entries
    path.write_bytes(struct.pack(">hI", 1, crc32c(body)) + body)


class PartitionWriter:
    """Segments of one directory and their indexes, as a broker of 4.1.0 leaves them after a clean stop (`close`)."""

    def __init__(
        self, directory: Path, base_offset: int = 0, *, index_interval: int = 4096, segment_bytes: int = 2**31 - 1
    ) -> None:
        self.directory = directory
        self.next_offset = base_offset
        self.index_interval = index_interval
        self.segment_bytes = segment_bytes
        self._open: dict[int, int] = {}  # producer -> first offset
        directory.mkdir(parents=True, exist_ok=True)
        self.roll()

    def append(self, records: Sequence[KafkaRecord], *, magic: int = 2, codec: str = "none", **fields: object) -> int:
        """One batch at the end (of magic 0 and 1 without codec: a batch a record); its base offset."""
        base = self.next_offset
        if magic < 2 and codec == "none":
            for record in records:
                self.append_bytes(
                    messages([record], self.next_offset, magic=magic, **fields),  # type: ignore[arg-type]
                    self.next_offset if record.offset is None else record.offset,
                    -1 if magic == 0 else _greatest([record], fields),
                )
            return base
        last = _offsets(records, base)[-1] if records else base
        if magic < 2:
            data = messages(records, base, magic=magic, codec=codec, **fields)  # type: ignore[arg-type]
            greatest = -1 if magic == 0 else _greatest(records, fields)
        else:
            data = batch(records, base, codec=codec, **fields)  # type: ignore[arg-type]
            last, greatest = base + struct.unpack_from(">i", data, 23)[0], struct.unpack_from(">q", data, 35)[0]
            if fields.get("transactional"):
                self._open.setdefault(int(str(fields["producer_id"])), base)
        self.append_bytes(data, last, greatest)
        return base

    def marker(self, producer_id: int, *, abort: bool = True, timestamp: int = FIRST_TIME) -> int:
        """End the producer's transaction; the marker's offset."""
        at = self.next_offset
        first = self._open.pop(producer_id, None)
        self.append_bytes(marker(at, producer_id, abort=abort, timestamp=timestamp), at, timestamp)
        if abort and first is not None:
            stable = min(self._open.values(), default=at + 1)
            self._write("txnindex", struct.pack(">hqqqq", 0, producer_id, first, at, stable))
        return at

    def append_bytes(self, data: bytes, last_offset: int, max_timestamp: int) -> None:
        """Anything at all, indexed as one batch."""
        if self._size and self._size > self.segment_bytes - len(data):
            self.roll()
        if max_timestamp > self._greatest[0]:
            self._greatest = (max_timestamp, last_offset)
        if self._since > self.index_interval:
            self._write("index", struct.pack(">ii", last_offset - self._base, self._size))
            self._index_time()
            self._since = 0
        self._write("log", data)
        self._size += len(data)
        self._since += len(data)
        self.next_offset = last_offset + 1

    def skip(self, offsets: int) -> None:
        """Leave offsets out, as compaction does."""
        self.next_offset += offsets

    def roll(self) -> None:
        """Close the segment and begin another."""
        self.close()
        self._base, self._size, self._since = self.next_offset, 0, 0
        self._greatest = self._indexed = (-1, self._base)
        for kind in ("log", "index", "timeindex"):
            self._write(kind, b"")

    def close(self) -> None:
        """The closing entry of the last segment."""
        if hasattr(self, "_base"):
            self._index_time()

    def restart(self) -> None:
        """Go on as a broker that was stopped and started: it counts the bytes up to the next entry anew."""
        self.close()
        self._since = 0

    def path(self, kind: str = "log") -> Path:
        """A file of the last segment."""
        return self.directory / f"{self._base:020d}.{kind}"

    def preallocate(self, size: int = 10_485_760) -> None:
        """The indexes of the last segment as a running broker has them: full length, zeros behind the entries."""
        for kind, entry in (("index", 8), ("timeindex", 12)):
            os.truncate(self.path(kind), size // entry * entry)

    def _index_time(self) -> None:
        if self._greatest[0] > self._indexed[0]:
            self._write("timeindex", struct.pack(">qi", self._greatest[0], self._greatest[1] - self._base))
            self._indexed = self._greatest

    def _write(self, kind: str, data: bytes) -> None:
        with open(self.path(kind), "ab") as file:
            file.write(data)


def _greatest(records: Sequence[KafkaRecord], fields: dict[str, object]) -> int:
    given = fields.get("append_time")
    return max((record.timestamp for record in records), default=-1) if given is None else int(str(given))
