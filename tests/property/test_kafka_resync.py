"""Where a damaged log of Kafka goes on: the kernel and the twin, and content that wants it to take forever."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.kafka_log import BatchScan, Resync
from mqindex.kafka.log.batches import batch_rows
from tests.property.test_kafka_log import logs
from tests.reference import kafka_log as twin
from tests.support.kafka_writer import KafkaRecord, batch, messages

few = settings(max_examples=25)
BASE = 1000
LIMIT = BASE + 2**31


def some(offset: int, size: int = 40, magic: int = 2) -> bytes:
    records = [KafkaRecord(bytes([offset % 251]) * size, None, 5)]
    return batch(records, offset) if magic == 2 else messages(records, offset, magic=magic)


@few
@given(logs(BASE, spoilt=True), st.integers(BASE, BASE + 20), st.sampled_from([BASE + 4, BASE + 20, LIMIT]))
def test_the_next_batch_is_that_of_the_twin_from_every_position(log: bytes, floor: int, ceiling: int) -> None:
    resync = Resync(log)
    for at in range(len(log) + 1):
        assert resync.next_batch(at, floor, ceiling) == twin.next_batch(log, at, floor, ceiling)
        assert resync.batch_after(at, floor, ceiling) == twin.batch_after(log, at, floor, ceiling)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_parts_longer_than_a_stride_of_sums_are_compared_right(magic: int) -> None:
    batches = [some(BASE + n, 700 * (n % 3) + 1, magic) for n in range(12)]
    log = bytearray(b"".join(batches))
    log[len(batches[0]) + 9] ^= 0x40  # a length
    found, at, resync = list[int](), 1, Resync(bytes(log))
    while (at := resync.next_batch(at, BASE, LIMIT)) < len(log):
        found.append(at)
        at += 1
    assert found == [sum(map(len, batches[:n])) for n in range(2, 12)]


def test_the_framing_is_believed_before_a_batch_within_a_value() -> None:
    inner = some(BASE + 1)
    records = [KafkaRecord(inner, None, 5)]
    outer, behind = bytearray(batch(records, BASE)), some(BASE + 1)
    outer[-1] ^= 1
    log = bytes(outer) + behind
    assert Resync(log).batch_after(0, BASE, LIMIT) == len(outer)
    assert Resync(log).next_batch(1, BASE, LIMIT) == log.index(inner) < len(outer)
    assert Resync(bytes(outer)).batch_after(0, BASE, LIMIT) == len(outer)  # the log ends with it


def test_a_message_of_an_old_magic_needs_another_batch_or_the_end_behind_it() -> None:
    first, second = some(BASE, magic=1), some(BASE + 1, magic=1)
    resync = Resync(b"x" + first + b"x" + second)
    assert resync.next_batch(0, BASE, LIMIT) == len(first) + 2
    assert Resync(b"x" + first + second + b"x").next_batch(0, BASE, LIMIT) == 1
    assert Resync(b"x" + some(BASE) + b"x").next_batch(0, BASE, LIMIT) == 1  # one of magic 2 does not


def test_offsets_outside_the_line_are_no_batch() -> None:
    log = b"".join(some(BASE + n) for n in range(4))
    size = len(some(BASE))
    assert Resync(log).next_batch(0, BASE + 2, LIMIT) == 2 * size
    assert Resync(log).next_batch(0, BASE, BASE + 1) == 0
    assert Resync(log).next_batch(0, BASE + 4, LIMIT) == len(log)
    assert Resync(log).next_batch(0, BASE - 9, BASE) == len(log)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_a_log_full_of_headers_that_look_right_is_read_in_time_that_grows_with_it(magic: int) -> None:
    """Each claims all that is left: comparing each with its checksum would read 10^13 bytes."""
    step, size = 61, 32 << 20
    number = size // step
    log = bytearray()
    for n in range(number):
        head = struct.pack(">qi4xb6xi", BASE + n, size - n * step - 12, magic, 0)
        log += head + bytes(step - len(head))
    log += bytes(size - len(log)) + some(BASE + number)
    assert Resync(bytes(log)).next_batch(0, BASE, LIMIT) == size


def test_bad_batches_as_long_as_the_log_between_good_ones_cost_no_more() -> None:
    size, good = 2 << 20, some(BASE)
    log, n = bytearray(), 0
    while len(log) < size - 1000:
        log += some(BASE + n)
        bad = bytearray(batch([], BASE + n + 1, crc=n))
        struct.pack_into(">i", bad, 8, size - len(log) - 12 - 100)
        log, n = log + bad, n + 2
    log += bytes(size - len(log)) + good
    content, found, at = bytes(log), 0, 0
    resync = Resync(content)
    while at < len(content):
        scan = BatchScan(content, at, resync=resync)
        for view in scan:
            found += len(batch_rows([view]))
        at = resync.batch_after(scan.end, BASE, LIMIT) if scan.end < len(content) else scan.end
    assert found == n // 2 + 1


def test_noise_holds_no_batch_and_what_follows_it_is_found() -> None:
    noise = random.Random(5).randbytes(1 << 20)
    log = noise + some(BASE)
    assert Resync(log).next_batch(0, 0, 2**62) == len(noise)
    assert Resync(noise).next_batch(0, 0, 2**62) == len(noise)
    assert Resync(b"").next_batch(0, 0, 2**62) == 0
    with pytest.raises(ValueError, match="positions of batches"):
        Resync(noise).batch_after(-1, 0, 5)


def test_a_scan_takes_only_the_sums_of_its_own_log() -> None:
    with pytest.raises(ValueError, match="resync: expected that of the same log"):
        BatchScan(some(BASE), resync=Resync(some(BASE + 1)))
    with pytest.raises(ValueError, match="resync"):
        log = some(BASE)
        BatchScan(log, check_crc=False, resync=Resync(log))
