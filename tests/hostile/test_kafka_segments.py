"""Segments of garbage: whatever their files hold, a read ends in an answer or in one clear error."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex.errors import MQIndexError
from mqindex.kafka import LogSegment, OffsetPosition
from tests.support.kafka_writer import KafkaRecord, batch, marker, messages

BASE = 100
LOG = (
    batch([KafkaRecord(b"a", b"k", headers=[("h", b"1")]), KafkaRecord(b"b")], BASE)
    + batch([KafkaRecord(b"c")] * 3, BASE + 2, codec="zstd")
    + messages([KafkaRecord(b"d")] * 2, BASE + 5, codec="lz4", magic=0)
    + messages([KafkaRecord(b"e")] * 2, BASE + 7, codec="snappy")
    + marker(BASE + 9, 3)
)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)


@st.composite
def spoilt_logs(draw: st.DrawFn) -> bytes:
    log = bytearray(LOG)
    for at, byte in draw(st.lists(st.tuples(st.integers(0, len(LOG) - 1), st.integers(0, 255)), max_size=5)):
        log[at] = byte
    return bytes(log[: draw(st.integers(0, len(log)))] if draw(st.booleans()) else log) + draw(st.binary(max_size=40))


def entries(code: str, first: Any, second: Any) -> st.SearchStrategy[bytes]:
    made = st.lists(st.tuples(first, second), max_size=6)
    return made.map(lambda pairs: b"".join(struct.pack(code, *pair) for pair in pairs)) | st.binary(max_size=40)


def asked(offset: int, time: int) -> list[Callable[[LogSegment], object]]:
    return [
        lambda segment: segment.batches(check_crc=True),
        lambda segment: segment.recover(index_interval_bytes=0, kafka_version="1.0"),
        lambda segment: segment.recover(index_interval_bytes=0, check_crc=False, max_index_size=40),
        lambda segment: [part["headers"].to_pylist() for part in segment.records()],
        lambda segment: segment.read(offset)["value"].to_pylist(),
        lambda segment: segment.translate_offset(offset),
        lambda segment: segment.fetch_upper_bound_offset(OffsetPosition(offset, 0), 1000),
        lambda segment: segment.find_offset_by_timestamp(time, offset),
        lambda segment: segment.find_offset_of_max_timestamp(),
        lambda segment: segment.next_offset,
        lambda segment: segment.largest_timestamp,
    ]


@settings(max_examples=60)
@given(
    spoilt_logs(),
    entries(">ii", st.integers(0, 9) | INT32, st.integers(0, len(LOG)) | INT32),
    entries(">qi", st.integers(0, 9) | INT64, st.integers(0, 9) | INT32),
    st.integers(BASE - 1, BASE + 11) | INT64 | st.integers(2**63, 2**64),
    INT64 | st.integers(-(2**70), 2**70),
)
def test_garbage_ends_in_an_answer_or_an_error(
    log: bytes, index: bytes, timeindex: bytes, offset: int, time: int
) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / f"{BASE:020d}.log"
        before = {".log": log, ".index": index, ".timeindex": timeindex}
        for suffix, content in before.items():
            path.with_suffix(suffix).write_bytes(content)
        with LogSegment.open(path) as segment:
            for ask in asked(offset, time):
                try:
                    ask(segment)
                except MQIndexError as error:
                    assert str(error)
        assert {each.suffix: each.read_bytes() for each in Path(directory).iterdir()} == before
