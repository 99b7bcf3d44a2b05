"""Arrays that do not lie at a multiple of their width: an answer like any other, from every kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mqindex._native.commit_log import frame_dtype, scan_at
from mqindex._native.consume_queue import are_sound, encode_units, group_units, select_tags
from mqindex._native.kafka_log import BatchScan, batches_at, find_batches, first_not_below
from mqindex._native.kafka_records import RecordColumns
from mqindex._native.log_columns import columns_at, texts_among
from mqindex._native.pieces import pieces_of_offsets
from mqindex.kafka import OffsetIndex, TimeIndex
from mqindex.rocketmq import IndexFile
from mqindex.rocketmq.log.log_entries import UNIT
from tests.support.kafka_writer import KafkaRecord, batch
from tests.support.log_writer import LogMessage, frame


def moved(array: npt.ArrayLike) -> npt.NDArray[np.void]:
    """The same, one byte further than it should lie."""
    values = np.ascontiguousarray(array)
    copied = np.frombuffer(bytearray(b"\0" + values.tobytes()), values.dtype, offset=1)
    assert copied.ctypes.data % 8 == 1
    return copied


NUMBERS = np.arange(100, 164)


def test_of_an_index_file(tmp_path: Path) -> None:
    with IndexFile.create(tmp_path / "index", hash_slot_num=5, index_num=200) as index:
        assert index.put_keys(["k"] * 64, moved(NUMBERS), moved(NUMBERS)) == 64
        assert index.select_phy_offset("k", max_num=100).tolist() == NUMBERS[::-1].tolist()
        hashes = np.zeros(3, np.int32)
        assert np.array_equal(index._select_hashes(moved(hashes))[1], index._select_hashes(hashes)[1])


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_of_kafka_indexes(kind, tmp_path: Path) -> None:
    second = NUMBERS.astype(np.int32) if kind is OffsetIndex else NUMBERS
    with kind.create(tmp_path / "00000000000000000000.index", 0) as index:
        index.append_many(moved(NUMBERS), moved(second))
        for got, wanted in zip(index.lookup_many(moved(NUMBERS)), (NUMBERS, NUMBERS), strict=True):
            assert got.tolist() == wanted.tolist()


def test_of_searches_in_kafka_logs() -> None:
    log = batch([KafkaRecord()]) + batch([KafkaRecord()], 1)
    rows = np.concatenate([np.frombuffer(rows, np.uint8) for rows in BatchScan(log)])
    starts = np.array([0, len(log) // 2])
    assert bytes(batches_at(log, moved(starts))) == rows.tobytes()
    assert find_batches(log, len(log), moved(starts), moved(starts))[0].tolist() == starts.tolist()
    assert first_not_below(moved(NUMBERS), moved([0, 0]), moved([64, 64]), moved([7, 120])).tolist() == [0, 20]
    columns = RecordColumns()
    assert columns.add(log, moved(rows), 0) == (2, False)


def test_of_queues_and_logs() -> None:
    units = np.zeros(8, UNIT)
    units["phy_offset"], units["size"], units["queue"] = np.arange(8) * 10, 10, np.arange(8) % 2
    assert group_units(moved(units), 2)[0].tolist() == group_units(units, 2)[0].tolist()
    assert are_sound(moved(units))
    data = encode_units(moved(units), 0, 0)[0]
    assert data.tolist() == encode_units(units, 0, 0)[0].tolist()
    assert select_tags(data, 0, len(data) // 20, moved(np.zeros(9, np.int32))).tolist() == list(range(len(data) // 20))
    log = frame(LogMessage(), 0) + frame(LogMessage(), len(frame(LogMessage(), 0)))
    frames, valid = scan_at(log, 0, moved([0, len(log) // 2]))
    assert valid.all() and frames.dtype == frame_dtype()
    made, rows = columns_at(log, 0, moved(frames["phy_offset"]), moved(frames["size"]), ("phy_offset",))
    assert rows == 2 and made["phy_offset"].tolist() == [0, len(log) // 2]
    assert texts_among(np.frombuffer(b"ab", np.uint8), moved([0, 1, 2]), (b"b",)).tolist() == [False, True]


def test_of_columns() -> None:
    text = pieces_of_offsets("keys", np.frombuffer(b"abcd", np.uint8), moved([0, 1, 4]), None)
    assert [text.to_bytes(row) for row in range(2)] == [b"a", b"bcd"]
