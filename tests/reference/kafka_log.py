"""A segment's log and its recovery: sections 5.3 and 6 of the format document, a batch at a time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.reference.kafka_index import Entries, Refused, append_offset, maybe_append_time, offset_bytes, time_bytes
from tests.support.kafka_writer import crc32c

__all__ = [
    "Header",
    "Recovered",
    "batch_after",
    "headers",
    "headers_past_damage",
    "is_whole",
    "next_batch",
    "recover",
    "scan",
    "tally",
]


class Header(NamedTuple):
    """The fields of one batch, named and filled as rows of batches are."""

    position: int
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    size: int
    leader_epoch: int
    crc: int
    count: int
    base_sequence: int
    attributes: int
    producer_epoch: int
    magic: int


class Recovered(NamedTuple):
    offset_index: bytes
    time_index: bytes
    valid_bytes: int
    transactional: list[Header]


class Corrupt(Exception):
    """The scan ends here, and not where the file ends."""


def scan(log: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
    """(position, size) of each batch."""
    at = start
    while at < len(log) - 17:
        (length,) = struct.unpack_from(">i", log, at + 8)
        if length < 14:
            raise Corrupt("bad-length", at)
        if at + 12 + length > len(log):
            return
        yield at, 12 + length
        at += 12 + length


def is_whole(log: bytes, at: int, size: int, *, check_crc: bool = True) -> None:
    """Size and checksum of one batch."""
    magic = _magic(log, at)
    if magic >= 2 and size < 61:
        raise Corrupt("bad-length", at)
    if not check_crc:
        return
    (stored,) = struct.unpack_from(">I", log, at + (17 if magic >= 2 else 12))
    found = crc32c(log[at + 21 : at + size]) if magic >= 2 else zlib.crc32(log[at + 16 : at + size])
    if found != stored:
        raise Corrupt("bad-crc", at)


def headers(log: bytes, *, check_crc: bool = True) -> tuple[list[Header], tuple[str, int] | None]:
    """What a walk gives, and why and where it ended at a bad batch."""
    found: list[Header] = []
    try:
        for at, size in scan(log):
            is_whole(log, at, size, check_crc=check_crc)
            found.append(header(log, at, size))
    except Corrupt as corrupt:
        return found, corrupt.args
    return found, None


def header(log: bytes, at: int, size: int) -> Header:
    (offset,) = struct.unpack_from(">q", log, at)
    magic = _magic(log, at)
    if magic >= 2:
        epoch, _, crc, attributes, delta, base_timestamp, greatest, producer, producer_epoch, sequence, count = (
            struct.unpack_from(">ibIhiqqqhii", log, at + 12)
        )
        return Header(
            at, offset, _wrapped(offset + delta), base_timestamp, greatest, producer, size, epoch, crc, count, sequence,
            attributes, producer_epoch, magic,
        )  # fmt: skip
    crc, _, attributes = struct.unpack_from(">Ibb", log, at + 12)
    time = -1 if magic == 0 else struct.unpack_from(">q", log, at + 18)[0]
    return Header(at, offset, offset, time, time, -1, size, -1, crc, 1, -1, attributes, -1, magic)


# ---- where a damaged log goes on


def next_batch(log: bytes, at: int, floor: int, ceiling: int) -> int:
    """The first position from `at` on where a valid batch begins; the log's length: there is none."""
    return next((each for each in range(at, len(log)) if is_valid(log, each, floor, ceiling)), len(log))


def batch_after(log: bytes, bad: int, floor: int, ceiling: int) -> int:
    """Behind a bad batch: where its length leads, if that is the end or a valid batch, else at the next valid one."""
    behind = next((bad + size for at, size in scanned(log, bad)), None)
    if behind is not None and (behind == len(log) or is_valid(log, behind, floor, ceiling)):
        return behind
    return next_batch(log, bad + 1, floor, ceiling)


def scanned(log: bytes, at: int) -> list[tuple[int, int]]:
    """The batch at a position, if its size is one."""
    try:
        at, size = next(scan(log, at))
        is_whole(log, at, size, check_crc=False)
    except (Corrupt, StopIteration):
        return []
    return [(at, size)]


def is_valid(log: bytes, at: int, floor: int, ceiling: int) -> bool:
    """A message of magic 0 or 1 has the end, or another batch above its offset, behind it."""
    found = sound(log, at, floor, ceiling)
    if found is None or found.magic == 2 or at + found.size == len(log):
        return found is not None
    return sound(log, at + found.size, found.last_offset + 1, ceiling) is not None


def sound(log: bytes, at: int, floor: int, ceiling: int) -> Header | None:
    """A batch whose size, offsets, count and checksum are right."""
    if not scanned(log, at):
        return None
    found = header(log, at, scanned(log, at)[0][1])
    least = {0: 26, 1: 34, 2: 61}.get(found.magic, 2**31)
    if found.size < least or found.base_offset < floor or not found.base_offset <= found.last_offset < ceiling:
        return None
    if found.magic == 2 and not 0 <= found.count <= found.last_offset - found.base_offset + 1:
        return None
    try:
        is_whole(log, at, found.size)
    except Corrupt:
        return None
    return found


def recover(
    log: bytes,
    base: int,
    *,
    index_interval_bytes: int,
    max_index_size: int,
    check_crc: bool = True,
    first_offset: Callable[[Header], int] | None = None,
    past_damage: bool = False,
) -> Recovered:
    """Raises `Refused` where the broker's recovery raises."""
    offsets: Entries = []
    times: Entries = []
    transactional = []
    valid = last_indexed = 0
    greatest, of_greatest = -1, base
    room_offsets, room_times = max_index_size // 8, max_index_size // 12
    found, due = headers(log, check_crc=check_crc)[0], set[int]()
    if past_damage:
        found, due = headers_past_damage(log, base, check_crc=check_crc)
    for batch in found:
        valid = batch.position
        if not 0 <= _wrapped(batch.last_offset - base) <= 2**31 - 1:
            raise Refused("overflow")
        if batch.max_timestamp > greatest:
            greatest, of_greatest = batch.max_timestamp, batch.last_offset
        if valid in due or valid - last_indexed > index_interval_bytes:
            offset = batch.last_offset if first_offset is None else first_offset(batch)
            offset = batch.base_offset if valid in due and first_offset is None else offset
            append_offset(offsets, room_offsets, base, offset, valid)
            maybe_append_time(times, room_times, base, greatest, of_greatest, False)
            last_indexed = valid
        valid += batch.size
        if batch.magic >= 2 and batch.producer_id >= 0 and batch.attributes & 0x30:
            transactional.append(batch)
    maybe_append_time(times, room_times, base, greatest, of_greatest, True)
    return Recovered(offset_bytes(offsets, base), time_bytes(times, base), valid, transactional)


def headers_past_damage(log: bytes, base: int, *, check_crc: bool = True) -> tuple[list[Header], set[int]]:
    """All good batches; and where one begins that the lengths of those before do not lead to."""
    found, due, at = list[Header](), set[int](), 0
    while True:
        part = [moved(header, at) for header in headers(log[at:], check_crc=check_crc)[0]]
        found += part
        at = found[-1].position + found[-1].size if part else at
        last = found[-1].last_offset if found else base - 1
        following = batch_after(log, at, last + 1, base + 2**31)
        if following == len(log):
            return found, due
        if following not in walk(log, at):
            due.add(following)
        at = following


def moved(header: Header, by: int) -> Header:
    return header._replace(position=header.position + by)


def walk(log: bytes, at: int) -> list[int]:
    """Where lengths lead from a position on."""
    found = []
    while part := scanned(log, at):
        at += part[0][1]
        found.append(at)
    return found


def _magic(log: bytes, at: int) -> int:
    return int(struct.unpack_from(">b", log, at + 16)[0])


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


# ---- what a log consists of


def tally(found: list[Header], stretch: int) -> tuple[dict[str, object], list[tuple[int, ...]], dict[int, list[int]]]:
    """Counts by name, a row for each stretch, and batches, records and bytes of each producer."""
    counts = {
        "codecs": [summed([each for each in found if each.attributes & 7 == codec]) for codec in range(8)],
        "magics": [sum(min(max(each.magic, 1 if each.magic else 0), 2) == n for each in found) for n in range(3)],
        "sizes": [sum(power(each.size) == n for each in found) for n in range(32)],
        "counts": [sum(power(each.count) == n for each in found) for n in range(32)],
        "wrapped": sum(each.magic < 2 and each.attributes & 7 > 0 for each in found),
        "transactional": sum(each.magic >= 2 and each.attributes & 0x10 > 0 for each in found),
        "control": sum(each.magic >= 2 and each.attributes & 0x20 > 0 for each in found),
        "append_time": sum(each.magic != 0 and each.attributes & 8 > 0 for each in found),
        "untimed": sum(each.max_timestamp < 0 for each in found),
    }
    back = [
        max(before.max_timestamp for before in found[: number + 1]) - each.max_timestamp
        for number, each in enumerate(found)
        if each.max_timestamp >= 0
    ]
    counts["late"], counts["furthest_back"] = sum(ms > 0 for ms in back), max(back, default=0)
    parts: dict[int, list[Header]] = {}
    producers: dict[int, list[Header]] = {}
    for each in found:
        parts.setdefault(each.position // stretch, []).append(each)
        if each.producer_id >= 0:
            producers.setdefault(each.producer_id, []).append(each)
    return counts, [row(part) for part in parts.values()], {one: summed(own) for one, own in producers.items()}


def row(part: list[Header]) -> tuple[int, ...]:
    times = [each.max_timestamp for each in part if each.max_timestamp >= 0]
    first, last = part[0], part[-1]
    span = min(times, default=-1), max(times, default=-1)
    return first.position, first.base_offset, last.last_offset, *span, *summed(part)


def summed(part: list[Header]) -> list[int]:
    return [len(part), sum(max(each.count, 0) for each in part), sum(each.size for each in part)]


def power(number: int) -> int:
    return max(number, 0).bit_length()
