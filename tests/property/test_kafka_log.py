"""The kernels of Kafka's log and the twin: any batches, of any magic, intact and not."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.kafka_log import BatchScan, find_batch
from mqindex._native.kafka_records import RecordColumns, compressed_part, find_record
from mqindex._native.kafka_recovery import Recovered, recover
from mqindex.errors import FormatError, IndexFullError, MQIndexError, OffsetOverflowError, OutOfOrderError
from mqindex.kafka.log.batches import BATCH, batch_rows
from mqindex.kafka.log.codecs import decompress
from mqindex.kafka.log.log_tally import tally_of
from mqindex.kafka.log.records import COLUMNS, read_records
from tests.reference import kafka_log as twin
from tests.reference import kafka_partition
from tests.reference.kafka_index import Refused
from tests.support.kafka_writer import CODECS, KafkaRecord, batch, marker, messages

REFUSED = {"full": IndexFullError, "order": OutOfOrderError, "overflow": OffsetOverflowError}
few = settings(max_examples=60)

keys = st.none() | st.binary(max_size=5)
times = st.integers(0, 9).map(lambda n: 1_700_000_000_000 + n) | st.sampled_from([-1, 0, 2**62])
headers = st.lists(st.tuples(st.text(max_size=3), keys), max_size=2)
records = st.lists(st.builds(KafkaRecord, keys, keys, times, headers), min_size=1, max_size=4)
plain = records.map(lambda given: [KafkaRecord(record.value, record.key, record.timestamp) for record in given])


@st.composite
def a_batch(draw: st.DrawFn, offset: int) -> tuple[bytes, int]:
    """Bytes, and the offset behind them."""
    kind = draw(st.sampled_from(["2", "2", "2", "1", "0", "marker", "empty", "odd"]))
    if kind == "marker":
        return marker(offset, draw(st.integers(0, 2)), abort=draw(st.booleans())), offset + 1
    if kind == "empty":
        return batch([], offset, last_offset=offset + 3, max_timestamp=draw(times)), offset + 4
    if kind in "01":
        given_records, codec = draw(plain), draw(st.sampled_from(CODECS[:4]))
        time = draw(st.none() | st.just(1_700_000_000_005)) if kind == "1" else None
        data = messages(given_records, offset, magic=int(kind), codec=codec, append_time=time)
        return data, offset + len(given_records)
    given_records, codec, sequence = draw(records), draw(st.sampled_from(CODECS)), draw(st.integers(-1, 3))
    data = batch(
        given_records, offset, codec=codec, producer_id=draw(st.integers(-1, 2)), base_sequence=sequence,
        transactional=draw(st.booleans()), append_time=draw(st.none() | times),
        magic=draw(st.integers(3, 127)) if kind == "odd" else 2,
    )  # fmt: skip
    return data, offset + len(given_records)


@st.composite
def logs(draw: st.DrawFn, base: int = 0, *, spoilt: bool = False) -> bytes:
    offset, data = base, b""
    for _ in range(draw(st.integers(0, 8))):
        part, offset = draw(a_batch(offset))
        offset += draw(st.sampled_from([0, 0, 0, 5]))
        data += part
    if not spoilt:
        return data
    content = bytearray(data + draw(st.binary(max_size=30)))
    for at in draw(st.lists(st.integers(0, max(len(content) - 1, 0)), max_size=3)) if content else []:
        content[at] = draw(st.integers(0, 255))
    return bytes(content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content)


def rows_of(log: bytes, check_crc: bool) -> tuple[Any, BatchScan]:
    scan = BatchScan(log, check_crc=check_crc)
    return batch_rows(scan), scan


@few
@given(logs(spoilt=True) | logs(), st.booleans())
def test_a_walk_gives_the_headers_of_the_twin(log: bytes, check_crc: bool) -> None:
    expected, fault = twin.headers(log, check_crc=check_crc)
    rows, scan = rows_of(log, check_crc)
    assert [tuple(row.tolist()) for row in rows] == [tuple(header) for header in expected]
    assert (None if scan.fault is None else scan.fault[:2]) == fault
    assert scan.end == sum(header.size for header in expected)


@few
@given(logs(spoilt=True) | logs(), st.integers(-2, 40) | times, st.integers(0, 8))
def test_a_search_finds_the_first_batch_of_the_twin(log: bytes, target: int, skipped: int) -> None:
    expected, _ = twin.headers(log, check_crc=False)
    start = expected[min(skipped, len(expected) - 1)].position if expected else 0
    for column in ("last_offset", "max_timestamp"):
        said = next((each for each in expected if each.position >= start and getattr(each, column) >= target), None)
        row, end, _ = find_batch(log, start, None, column, target)
        assert (None if row is None else tuple(batch_rows([row])[0].tolist())) == said
        assert end == (sum(each.size for each in expected) if said is None else said.position + said.size)


@few
@given(
    st.sampled_from([0, 7, 2**40]).flatmap(lambda base: st.tuples(st.just(base), logs(base, spoilt=True) | logs(base))),
    st.sampled_from([0, 60, 100, 300]),
    st.sampled_from([12, 24, 60, 10_485_760]),
    st.booleans(),
    st.integers(1, 200),
    st.booleans(),
)
def test_a_recovery_gives_the_bytes_of_the_twin(
    given_log: tuple[int, bytes], interval: int, size: int, check_crc: bool, step: int, past_damage: bool
) -> None:
    base, log = given_log
    options: Any = {
        "index_interval_bytes": interval, "max_index_size": size, "check_crc": check_crc, "past_damage": past_damage
    }  # fmt: skip
    try:
        expected = twin.recover(log, base, **options)
    except Refused as refused:
        with pytest.raises(REFUSED[str(refused)]):
            recover(log, base, **options)
        return
    in_steps = Recovered(log, base, **options)
    while in_steps.run(in_steps.end_bytes + step):
        pass
    for made in (recover(log, base, **options), in_steps):
        assert (made.offset_index, made.time_index, made.end_bytes) == expected[:3]
        plain = twin.recover(log, base, **{**options, "past_damage": False, "max_index_size": 10_485_760})
        assert made.valid_bytes == plain.valid_bytes
        assert [tuple(row) for row in batch_rows([made.transactional]).tolist()] == expected.transactional
        assert made.truncated_bytes == len(log) - made.valid_bytes


@few
@given(logs(spoilt=True) | logs(), st.integers(1, 400), st.booleans(), st.integers(1, 200))
def test_a_recovery_counts_what_the_twin_counts(log: bytes, stretch: int, check_crc: bool, step: int) -> None:
    options: Any = {"index_interval_bytes": 0, "max_index_size": 10_485_760, "check_crc": check_crc}
    made = Recovered(log, 0, stretch=stretch, **options)
    refused = None
    try:
        while made.run(made.valid_bytes + step):
            pass
    except MQIndexError as error:
        refused = error
    found, _ = twin.headers(log, check_crc=check_crc)
    good = [each for each in found if refused is None or each.position < (refused.at or 0)]
    counts, stretches, producers = twin.tally(good, stretch)
    tally = tally_of(made)
    assert tally is not None
    row = tally.counts[0]
    assert {name: np.asarray(row[name].tolist()).tolist() for name in counts} == counts
    assert [tuple(each) for each in tally.stretches.tolist()] == stretches
    assert {one: list(own) for one, *own in tally.producers.tolist()} == producers
    assert recover(b"", 0, **options).tally is None


def test_producers_without_a_place_are_counted_together() -> None:
    log = b"".join(
        batch([KafkaRecord(b"k", b"v", 5)], offset, producer_id=offset * 1024, base_sequence=0) for offset in range(600)
    )
    tally = tally_of(recover(log, 0, index_interval_bytes=4096, max_index_size=12_000, stretch=1 << 20))
    assert tally is not None
    assert tally.producers["producer_id"].size == 512
    assert sorted(tally.producers["producer_id"].tolist()) == [offset * 1024 for offset in range(512)]
    assert tally.counts[0]["other_producers"]["batches"] == 88


def as_rows(parts: Any) -> list[tuple[Any, ...]]:
    names = ("offset", "timestamp", "key", "value", "headers")
    return [
        row
        for part in parts
        for row in zip(
            *(part[name].to_pylist() if hasattr(part[name], "to_pylist") else part[name].tolist() for name in names),
            strict=True,
        )
    ]


@few
@given(logs(), st.sampled_from([1, 2, 65536]), st.sampled_from([1, 10, 1 << 20]))
def test_records_are_those_of_the_twin(log: bytes, max_rows: int, max_bytes: int) -> None:
    rows, _ = rows_of(log, True)
    expected = [tuple(record) for each in kafka_partition.batches(log) for record in kafka_partition.records(each)]
    parts = list(read_records([(log, rows)], tuple(COLUMNS), max_rows=max_rows, max_column_bytes=max_bytes))
    assert as_rows(parts) == expected
    assert all(part.num_rows <= max_rows for part in parts)


@few
@given(logs(), times, st.integers(-1, 30), st.booleans())
def test_a_record_is_found_by_its_time(log: bytes, time: int, least: int, exact: bool) -> None:
    rows, _ = rows_of(log, True)
    for number, each in enumerate(kafka_partition.batches(log)):
        said = next(
            (
                (record.timestamp, record.offset)
                for record in kafka_partition.records(each)
                if record.offset >= least and (record.timestamp == time if exact else record.timestamp >= time)
            ),
            None,
        )
        codec = int(rows["attributes"][number]) & 7
        payload = None
        if codec:
            start, stop = compressed_part(log, rows, number)
            payload = decompress(codec, log[start:stop], magic=int(rows["magic"][number]))
        assert find_record(log, payload, rows, number, time, least, exact) == said


@few
@given(logs(spoilt=True))
def test_spoilt_records_are_records_or_an_error(log: bytes) -> None:
    rows, _ = rows_of(log, False)
    for number in range(len(rows)):
        try:
            for part in read_records([(log, rows[number : number + 1])], tuple(COLUMNS)):
                as_rows([part])
        except MQIndexError as error:
            assert isinstance(error, FormatError)


@few
@given(st.binary(max_size=80), st.integers(0, 5), st.sampled_from([0, 1, 2, 5]), st.booleans())
def test_any_payload_is_records_or_an_error(payload: bytes, count: int, magic: int, append_time: bool) -> None:
    row = batch_rows([bytes(BATCH.itemsize)]).copy()
    row["count"], row["magic"], row["attributes"], row["base_offset"] = count, magic, 1 | append_time << 3, 2
    columns = RecordColumns()
    try:
        assert columns.add_payload(payload, row, 0)
    except FormatError as error:
        assert error.at == 0
    else:
        assert magic < 2 or len(columns) == count
    columns.take()


@pytest.mark.parametrize("length", [-1, 0, 13, 2**31 - 1, -(2**31)])
def test_a_length_that_none_has_ends_the_walk(length: int) -> None:
    good = batch([KafkaRecord()])
    log = good + struct.pack(">qi", 5, length) + bytes(60)
    rows, scan = rows_of(log, True)
    assert (len(rows), scan.end) == (1, len(good))
    assert (scan.fault is None) == (length == 2**31 - 1)
