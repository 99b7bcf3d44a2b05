"""Records behind their codec: what makes a batch a broken one, and what does not."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from mqindex._native.kafka_log import BatchScan
from mqindex._native.kafka_records import RecordColumns, compressed_part, find_record, first_offset, row_dtype
from mqindex.errors import FormatError
from mqindex.kafka.log.batches import batch_rows
from tests.support.kafka_writer import KafkaRecord, batch, messages, varint

GZIP = 1


def row(*, magic: int = 2, offset: int = 10, count: int = 1, attributes: int = GZIP) -> Any:
    made = batch_rows(BatchScan(batch([KafkaRecord()]))).copy()
    made["magic"], made["base_offset"], made["count"], made["attributes"] = magic, offset, count, attributes
    made["base_timestamp"], made["max_timestamp"] = 1000, 2000
    return made


def offsets(payload: bytes, rows: Any) -> list[tuple[int, int]]:
    columns = RecordColumns()
    assert columns.add_payload(payload, rows, 0)
    taken = np.frombuffer(columns.take()[0], row_dtype())
    return list(zip(taken["offset"].tolist(), taken["timestamp"].tolist(), strict=True))


def record(body: bytes, length: int | None = None) -> bytes:
    return varint(len(body) if length is None else length) + body


SOUND = b"\0" + varint(5) + varint(2) + varint(-1) + varint(-1) + varint(0)


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        (record(SOUND), 1),
        (record(b"\x7f" + SOUND[1:]), 1),  # attributes mean nothing
        (record(b"\0\x8a\x80\x80\x00" + SOUND[2:]), 1),  # a varint longer than it must be
        (record(b"\0" + varint(5) + varint(2) + varint(-9) + varint(-2) + varint(0)), 1),  # any negative length is null
        (b"", 0),
    ],
)
def test_sound_records(payload: bytes, count: int) -> None:
    assert offsets(payload, row(count=count)) == [(12, 1005)] * count


def test_deltas_of_every_width() -> None:
    deltas = [(-(2**63), -(2**31)), (2**63 - 1 - 1000, 2**31 - 1), (63, -64), (500, -100)]
    payload = b"".join(
        record(b"\0" + varint(time) + varint(offset) + varint(-1) + varint(-1) + varint(0)) for time, offset in deltas
    )
    expected = [(10 + offset, (1000 + time + 2**63) % 2**64 - 2**63) for time, offset in deltas]
    assert offsets(payload, row(count=4)) == expected


@pytest.mark.parametrize(
    ("payload", "count", "why"),
    [
        (record(SOUND), 2, "not as many"),
        (record(SOUND) * 2, 1, "not as many"),
        (record(SOUND), 0, "not as many"),
        (record(SOUND), -1, "not as many"),
        (b"", 1, "not as many"),
        (record(SOUND), 2**31 - 1, "not as many"),
        (record(SOUND[:-2] + varint(8) + bytes(8) + varint(0)), 2, "not as many"),
        (record(SOUND[:-2] + varint(8) + bytes(8) + varint(0)) + b"\xff", 2, "reaches beyond"),
        (record(SOUND, 7), 1, "reaches beyond"),
        (record(SOUND, 0) + bytes(9), 1, "reaches beyond"),
        (record(SOUND, -1) + bytes(9), 1, "reaches beyond"),
        (record(SOUND + b"x"), 1, "do not fill"),
        (record(SOUND[:-1]) + varint(0), 1, "reaches beyond"),
        (record(b"\0" + varint(0) * 2 + varint(1) + b"k" + varint(2) + b"v"), 1, "reaches beyond"),
        (record(b"\0" + varint(0) * 2 + varint(9) + b"k" + varint(-1) + varint(0)), 1, "reaches beyond"),
        (record(b"\0" + b"\xff" * 10 + SOUND[2:]), 1, "does not end"),
        (record(SOUND[:2] + b"\xff" * 5 + SOUND[3:]), 1, "does not end"),
        (record(SOUND[:-1] + varint(-1)), 1, "not as many"),
        (record(SOUND[:-1] + varint(1)), 1, "reaches beyond"),
        (record(SOUND[:-1] + varint(2**31 - 1)), 1, "reaches beyond"),
        (record(SOUND[:-1] + varint(1) + varint(-1) + varint(-1)), 1, "a header has no key"),
    ],
)
def test_broken_records(payload: bytes, count: int, why: str) -> None:
    with pytest.raises(FormatError, match=why) as error:
        offsets(payload, row(count=count))
    assert (error.value.at, error.value.field) == (0, "records")
    with pytest.raises(FormatError, match=why):
        find_record(b"", payload, row(count=count), 0, 2**62, 0, False)


def inner(first: int, n: int = 2, *, magic: int = 1) -> bytes:
    return messages([KafkaRecord(timestamp=1000 + at) for at in range(n)], first, magic=magic)


@pytest.mark.parametrize(
    ("payload", "magic", "wrapper_offset", "expected"),
    [
        (inner(0), 1, 9, [(8, 1000), (9, 1001)]),
        (inner(3), 1, 9, [(8, 1000), (9, 1001)]),
        (inner(0), 1, 0, [(0, 1000), (1, 1001)]),  # as some old clients sent them
        (inner(4, magic=0), 0, 5, [(4, -1), (5, -1)]),
        (inner(4, magic=0), 0, 77, [(4, -1), (5, -1)]),  # absolute, whatever the wrapper says
        (inner(4, magic=1), 0, 5, [(4, 1000), (5, 1001)]),
        (inner(0, magic=0), 1, 9, [(8, -1), (9, -1)]),  # it is the wrapper that decides
        (inner(0) + inner(2)[:20], 1, 9, [(8, 1000), (9, 1001)]),  # a part of a message ends them
    ],
)
def test_messages_of_a_wrapper(
    payload: bytes, magic: int, wrapper_offset: int, expected: list[tuple[int, int]]
) -> None:
    rows = row(magic=magic, offset=wrapper_offset)
    assert offsets(payload, rows) == expected
    assert first_offset(payload, rows, 0) == expected[0][0]


@pytest.mark.parametrize(
    ("payload", "wrapper_offset", "why"),
    [
        (b"", 5, "nothing inside"),
        (inner(0)[:11], 5, "nothing inside"),
        (inner(0, 5), 2, "wrapper's offset is below"),
        (inner(0)[:8] + struct.pack(">i", 13) + bytes(30), 5, "reaches beyond"),
        (messages([KafkaRecord()], 0, codec="gzip"), 5, "a compressed message inside another"),
        (inner(0, 1)[:26] + struct.pack(">i", 99) + inner(0, 1)[30:], 5, "reaches beyond"),
    ],
)
def test_broken_wrappers(payload: bytes, wrapper_offset: int, why: str) -> None:
    for ask in (offsets, lambda payload, rows: first_offset(payload, rows, 0)):
        with pytest.raises(FormatError, match=why):
            ask(payload, row(magic=1, offset=wrapper_offset))


def test_append_time_is_the_batchs() -> None:
    assert offsets(record(SOUND), row(attributes=GZIP | 8)) == [(12, 2000)]
    assert offsets(inner(0), row(magic=1, offset=9, attributes=GZIP | 8)) == [(8, 2000), (9, 2000)]
    assert offsets(inner(0, magic=0), row(magic=1, offset=9, attributes=GZIP | 8)) == [(8, -1), (9, -1)]


def test_where_the_compressed_bytes_are() -> None:
    log = batch([KafkaRecord()], codec="gzip") + messages([KafkaRecord()], 1, codec="gzip")
    rows = batch_rows(BatchScan(log))
    assert [log[slice(*compressed_part(log, rows, number))][:2] for number in (0, 1)] == [b"\x1f\x8b"] * 2
    without_value = messages([KafkaRecord(None)], 1)
    rows = batch_rows(BatchScan(without_value))
    with pytest.raises(FormatError, match="has no value"):
        compressed_part(without_value, rows, 0)


def test_rows_of_another_log_are_refused() -> None:
    log = batch([KafkaRecord()])
    rows = batch_rows(BatchScan(log))
    with pytest.raises(ValueError, match="rows: expected those that a scan of this log gave"):
        RecordColumns().add(log[:-1], rows, 0)
    with pytest.raises(IndexError, match="number: expected one of the rows, got 1"):
        compressed_part(log, rows, 1)
    with pytest.raises(ValueError, match="max_rows, max_bytes"):
        RecordColumns(max_rows=0)


def test_full_columns_go_on_where_they_stopped() -> None:
    log = batch([KafkaRecord(b"v%d" % at) for at in range(5)])
    rows = batch_rows(BatchScan(log))
    columns, found = RecordColumns(max_rows=2), []
    number, full = columns.add(log, rows, 0)
    while full:
        found.append(bytes(columns.take()[2]))
        number, full = columns.add(log, rows, number)
    assert [*found, bytes(columns.take()[2])] == [b"v0v1", b"v2v3", b"v4"] and number == 1
