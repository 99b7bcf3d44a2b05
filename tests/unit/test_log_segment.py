"""`LogSegment`: the document's worked examples, and what is missing, torn, cut, closed or too long."""

from __future__ import annotations

import os
import struct
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from mqindex._native.kafka_recovery import Recovered
from mqindex.errors import (
    BadMagicError,
    ClosedFileError,
    CorruptIndexError,
    IndexFullError,
    OffsetOverflowError,
    OutOfOrderError,
    TruncatedFileError,
)
from mqindex.kafka import LogSegment, OffsetPosition, TimestampOffset
from mqindex.kafka.log import batch_windows, log_bytes
from mqindex.kafka.log.batches import BATCH, batch_rows
from mqindex.kafka.partition.leader_epochs import RUN
from tests.reference import kafka_log as twin
from tests.reference import kafka_partition
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch, marker, messages

T = 1_700_000_000_000
EXAMPLE = bytes.fromhex(
    "0000000000000064 00000048 00000000 02 3834a893 0000 00000001 0000018bcfe56800 0000018bcfe569f4"
    "ffffffffffffffff ffff ffffffff 00000002 14 00 00 00 04 6b30 04 7630 00 16 00 e807 02 04 6b31 04 7631 00"
    "0000000000000066 0000003d 00000000 02 d248282b 0000 00000000 0000018bcfe568c8 0000018bcfe568c8"
    "ffffffffffffffff ffff ffffffff 00000001 16 00 00 00 01 0a 68656c6c6f 00"
    "0000000000000067 00000052 00000001 02 5d8fc851 0000 00000002 0000018bcfe56be8 0000018bcfe56c4c"
    "ffffffffffffffff ffff ffffffff 00000003 14 00 00 00 04 6b33 04 7633 00 12 00 c801 02 04 6b34 01 00"
    "16 00 c701 04 04 6b35 04 7635 00"
)  # 10.1 of the format document
A, B, C = 0, 84, 157
BOTH = bytes.fromhex("00000002 00000054 00000005 0000009d")
TIMES = bytes.fromhex("0000018bcfe569f4 00000001 0000018bcfe56c4c 00000005")


def written(directory: Path, log: bytes, base: int = 100, **indexes: bytes) -> Path:
    path = directory / f"{base:020d}.log"
    path.write_bytes(log)
    for suffix, content in indexes.items():
        path.with_suffix(f".{suffix}").write_bytes(content)
    return path


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return written(tmp_path, EXAMPLE, index=BOTH, timeindex=TIMES)


# ---- the worked examples


@pytest.mark.parametrize(
    ("interval", "index", "timeindex"),
    [
        (0, BOTH, TIMES),
        (72, BOTH, TIMES),
        (73, BOTH[:8], TIMES),
        (83, BOTH[:8], TIMES),
        (84, BOTH[8:], TIMES[12:]),
        (156, BOTH[8:], TIMES[12:]),
        (157, b"", TIMES[12:]),
    ],
)
def test_recovery_of_the_example(interval: int, index: bytes, timeindex: bytes, tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, EXAMPLE)) as segment:
        made = segment.recover(index_interval_bytes=interval)
    assert (made.offset_index, made.time_index) == (index, timeindex)
    assert (made.valid_bytes, made.batches, made.last_offset, made.max_timestamp) == (251, 3, 105, T + 1100)
    assert made.offset_of_max_timestamp == 105


def test_answers_on_the_example(example: Path) -> None:
    with LogSegment.open(example) as segment:
        found = {offset: segment.translate_offset(offset) for offset in (100, 102, 103, 106)}
        assert [None if at is None else tuple(at) for at in found.values()] == [
            (0, 84, 100), (84, 73, 102), (157, 94, 103), None,
        ]  # fmt: skip
        asked = {0: (T, 100), T: (T, 100), T + 300: (T + 500, 101), T + 501: (T + 1000, 103), T + 1000: (T + 1000, 103),
                 T + 1050: (T + 1100, 104), T + 1100: (T + 1100, 104), T + 1101: None}  # fmt: skip
        for time, answer in asked.items():
            assert segment.find_offset_by_timestamp(time) == answer, time
        assert segment.find_offset_of_max_timestamp() == TimestampOffset(T + 1100, 104)
        assert (segment.next_offset, segment.largest_timestamp) == (106, T + 1100)
        assert segment.max_timestamp_so_far == TimestampOffset(T + 1100, 105)
        assert segment.read(104)["key"].to_pylist() == [b"k4", b"k5"]
        assert segment.read(104)["value"].to_pylist() == [None, b"v5"]
        assert segment.read(106).num_rows == 0
        assert segment.damage == []


def changed(at: int, new: bytes) -> bytes:
    return EXAMPLE[:at] + new + EXAMPLE[at + len(new) :]


@pytest.mark.parametrize(
    ("log", "valid", "index", "timeindex"),
    [
        (EXAMPLE[:200], 157, BOTH[:8], TIMES[:12]),
        (EXAMPLE[:158], 157, BOTH[:8], TIMES[:12]),
        (EXAMPLE + bytes(17), 251, BOTH, TIMES),
        (EXAMPLE + bytes(4096), 251, BOTH, TIMES),
        (changed(B + 40, b"\x07"), 84, b"", TIMES[:12]),
        (changed(B + 8, struct.pack(">i", 48)), 84, b"", TIMES[:12]),
        (changed(B + 8, struct.pack(">i", 13)), 84, b"", TIMES[:12]),
        (changed(B + 8, struct.pack(">i", 0x7F00003D)), 84, b"", TIMES[:12]),
        (changed(B + 12, b"\x01"), 251, BOTH, TIMES),
        (changed(B + 16, b"\x03"), 251, BOTH, TIMES),
        (changed(B + 16, b"\x01"), 84, b"", TIMES[:12]),
        (EXAMPLE[:17], 0, b"", b""),
        (b"", 0, b"", b""),
    ],
)
def test_damaged_examples(log: bytes, valid: int, index: bytes, timeindex: bytes, tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, log)) as segment:
        made = segment.recover(index_interval_bytes=10)
    assert (made.valid_bytes, made.offset_index, made.time_index) == (valid, index, timeindex)
    assert made.truncated_bytes == len(log) - valid


@pytest.mark.parametrize(
    ("at", "offset", "error", "where"),
    [(B, 110, OutOfOrderError, C), (C, 99, OutOfOrderError, C), (A, 90, OffsetOverflowError, A)],
)
def test_offsets_that_no_recovery_survives(
    at: int, offset: int, error: type[OutOfOrderError | OffsetOverflowError], where: int, tmp_path: Path
) -> None:
    path = written(tmp_path, changed(at, struct.pack(">q", offset)))
    with LogSegment.open(path) as segment, pytest.raises(error) as raised:
        segment.recover(index_interval_bytes=10)
    assert (raised.value.path, raised.value.at) == (str(path), where)


def test_an_index_that_is_full_before_the_log_ends(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, EXAMPLE)) as segment:
        with pytest.raises(IndexFullError, match="time index is full") as raised:
            segment.recover(index_interval_bytes=10, max_index_size=24)
        assert raised.value.at == C
        assert segment.recover(index_interval_bytes=10, max_index_size=36).offset_index == BOTH
        with pytest.raises(ValueError, match="max_index_size: expected 12 or more, got 11"):
            segment.recover(max_index_size=11)
        with pytest.raises(ValueError, match="index_interval_bytes: expected 0 or more"):
            segment.recover(index_interval_bytes=-1)


def test_what_transactions_are_made_of(tmp_path: Path) -> None:
    parts = [
        batch([KafkaRecord(), KafkaRecord()], 100, producer_id=5, transactional=True),
        batch([KafkaRecord()], 102, producer_id=7),
        marker(103, 5),
        batch([KafkaRecord()], 104),
        batch([KafkaRecord()], 105, producer_id=8, control=True),
        batch([KafkaRecord()], 106, transactional=True, control=True),
    ]
    with LogSegment.open(written(tmp_path, b"".join(parts))) as segment:
        rows = batch_rows([segment.recover().transactional])
    assert rows["base_offset"].tolist() == [100, 103, 105] and rows["producer_id"].tolist() == [5, 5, 8]


# ---- the rule up to 1.1


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_first_offset_of_a_batch_is_indexed_up_to_1_1(magic: int, codec: str, tmp_path: Path) -> None:
    log, first = b"", []
    for number in range(4):
        base = 100 + 3 * number
        several = [KafkaRecord(b"v%d" % at) for at in range(1 if codec == "none" and magic < 2 else 3)]
        log += batch(several, base, codec=codec) if magic == 2 else messages(several, base, magic=magic, codec=codec)
        first.append(base)
    firsts = {each.position: base for each, base in zip(twin.headers(log)[0], first, strict=True)}
    expected = twin.recover(
        log, 100, index_interval_bytes=0, max_index_size=1000, first_offset=lambda each: firsts[each.position]
    )
    with LogSegment.open(written(tmp_path, log)) as segment:
        made = segment.recover(index_interval_bytes=0, kafka_version="1.1.1")
        assert (made.offset_index, made.time_index) == expected[:2]
        later = segment.recover(index_interval_bytes=0, kafka_version="2.0")
        assert later.offset_index == twin.recover(log, 100, index_interval_bytes=0, max_index_size=1000).offset_index


def test_a_version_that_is_none(example: Path) -> None:
    with LogSegment.open(example) as segment, pytest.raises(ValueError, match="kafka_version: expected numbers"):
        segment.recover(kafka_version="newest")


# ---- large batches: headers alone are read


@pytest.fixture
def large(tmp_path: Path) -> Path:
    one = bytearray(batch([KafkaRecord(bytes(64 << 10))], 0))
    with open(tmp_path / f"{0:020d}.log", "xb") as file:
        for number in range(40):
            one[:8] = struct.pack(">q", number)
            file.write(one)
    return tmp_path / f"{0:020d}.log"


def test_headers_alone_tell_the_same(large: Path) -> None:
    with LogSegment.open(large) as segment:
        whole, quick = segment.recover(), segment.recover(check_crc=False)
        assert (quick.offset_index, quick.time_index, quick.valid_bytes) == (
            whole.offset_index, whole.time_index, segment.size,
        )  # fmt: skip
        assert len(quick.offset_index) == 39 * 8


def test_headers_that_are_bad_end_the_log(large: Path) -> None:
    size = large.stat().st_size // 40
    with open(large, "r+b") as file:
        file.seek(30 * size + 8)
        file.write(struct.pack(">i", 3))
    with LogSegment.open(large) as segment:
        made = segment.recover(check_crc=False)
        assert (made.valid_bytes, made.batches) == (30 * size, 30)
        assert made.fault is not None and made.fault[:2] == ("bad-length", 30 * size)


def many_batches(count: int, epochs: int) -> bytes:
    """Headers of magic 2 that follow each other, with epochs 0, 1, ... by turns."""
    rows = np.zeros(count, [("base", ">i8"), ("length", ">i4"), ("epoch", ">i4"), ("magic", "i1"), ("rest", "V44")])
    rows["base"], rows["length"], rows["epoch"], rows["magic"] = np.arange(count), 49, np.arange(count) % epochs, 2
    rows["rest"] = bytes(40) + (1).to_bytes(4, "big")
    return rows.tobytes()


def test_an_index_of_thousands_of_entries(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, many_batches(20_000, 1), 0)) as segment:
        made = segment.recover(index_interval_bytes=0, check_crc=False)
    entries = np.frombuffer(made.offset_index, ">u4").reshape(-1, 2)
    assert np.array_equal(entries, np.arange(1, 20_000)[:, None] * [1, 61])


def test_more_changes_of_the_leader_epoch_than_are_kept() -> None:
    """A log of nothing but changes is no broker's; what it tells takes no more memory than so much."""
    made = Recovered(
        many_batches((1 << 20) + 9, 2), 0, index_interval_bytes=4096, max_index_size=1 << 24, check_crc=False
    )
    assert not made.run(1 << 40)
    assert (len(np.frombuffer(made.epochs, RUN)), made.batches) == (1 << 20, (1 << 20) + 9)


def test_a_recovery_that_has_ended_says_the_same_again() -> None:
    made = Recovered(EXAMPLE, 100, index_interval_bytes=0, max_index_size=1 << 20)
    assert (made.run(1 << 40), made.run(1 << 40), made.batches) == (False, False, 3)
    full = Recovered(EXAMPLE, 100, index_interval_bytes=0, max_index_size=12)
    for _ in range(2):
        with pytest.raises(IndexFullError):
            full.run(1 << 40)


# ---- missing, torn, too long


def test_a_segment_without_indexes_is_read_from_its_begin(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, EXAMPLE)) as segment:
        assert segment.offset_index is segment.time_index is segment.transaction_index is None
        assert segment.translate_offset(105) == (157, 94, 103)
        assert segment.find_offset_by_timestamp(T + 501) == (T + 1000, 103)
        assert segment.fetch_upper_bound_offset(OffsetPosition(0, 0), 1) is None
        assert (segment.next_offset, segment.max_timestamp_so_far) == (106, (-1, 100))
    assert [path.name for path in tmp_path.iterdir()] == [f"{100:020d}.log"]  # nothing came beside it


def test_the_time_of_the_last_change_stands_for_a_missing_time_index(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE, timeindex=b"")
    os.utime(path, ns=(0, 1_234_567_891_234_999_999))
    with LogSegment.open(path) as segment:
        assert segment.largest_timestamp == 1_234_567_891_234


def test_a_segment_without_batches(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, b"", index=b"", timeindex=b"")) as segment:
        assert (segment.size, segment.next_offset, segment.batches().num_rows) == (0, 100, 0)
        assert segment.batches()["magic"].dtype == np.int8
        assert list(segment.records()) == [] and segment.read(100).num_rows == 0
        assert segment.translate_offset(100) is segment.find_offset_by_timestamp(0) is None
        assert segment.find_offset_of_max_timestamp() is None
        made = segment.recover()
        assert (made.last_offset, made.max_timestamp, made.time_index) == (None, -1, b"")


def test_zeros_behind_the_batches_end_the_log(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, EXAMPLE + bytes(100), index=BOTH, timeindex=TIMES)) as segment:
        assert segment.batches().num_rows == 3 and segment.next_offset == 106
        assert segment.find_offset_by_timestamp(T + 1101) is None
        assert segment.damage == []
        segment.next_base_offset = 110  # but not where another segment follows
        assert segment.batches().num_rows == 3
        assert [fault[:2] + fault[5:8] for fault in segment.damage] == [("bad-length", 251, 351, 106, 109)]


def test_bytes_too_few_for_any_batch_are_no_fault(tmp_path: Path) -> None:
    for noise, kinds in ((17, []), (18, ["bad-length"])):
        with LogSegment.open(written(tmp_path, EXAMPLE + b"\xee" * noise)) as segment:
            assert segment.batches().num_rows == 3
            assert [fault.kind for fault in segment.damage] == kinds


def test_a_negative_magic_is_read_as_magic_1(tmp_path: Path) -> None:
    covered = struct.pack(">bbqii", -3, 0, T, -1, -1)
    log = struct.pack(">qiI", 100, len(covered) + 4, zlib.crc32(covered)) + covered
    with LogSegment.open(written(tmp_path, log)) as segment:
        assert segment.batches(check_crc=True)["max_timestamp"].tolist() == [T]
        assert segment.recover().max_timestamp == T
        (columns,) = segment.records()
    assert (columns["timestamp"].tolist(), columns["value"].to_pylist()) == ([T], [None])


def test_a_batch_with_a_wrong_checksum_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, changed(B + 70, b"!"))) as segment:
        assert segment.batches(check_crc=False).num_rows == 3 and segment.damage == []
        assert segment.batches()["position"].tolist() == [A, C]
        assert [part["offset"].tolist() for part in segment.records()] == [[100, 101], [103, 104, 105]]
        assert [fault.kind for fault in segment.damage] == ["bad-crc"]


def test_a_part_of_the_log(tmp_path: Path) -> None:
    with LogSegment.open(written(tmp_path, EXAMPLE)) as segment:
        assert segment.batches(B, C)["position"].tolist() == [B]
        assert segment.batches(B)["position"].tolist() == [B, C]
        assert next(segment.records(C, columns=["offset"]))["offset"].tolist() == [103, 104, 105]
        with pytest.raises(ValueError, match=r"start: expected 0\.\.251"):
            segment.batches(252)
        with pytest.raises(ValueError, match="columns: expected some of offset"):
            segment.records(columns=["partition"])
        with pytest.raises(TypeError, match="columns: expected a sequence of names"):
            segment.records(columns="offset")


@pytest.mark.parametrize("position", [252, -1])
def test_an_index_that_leads_outside_its_log(position: int, tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE, index=struct.pack(">ii", 2, position), timeindex=TIMES)
    with LogSegment.open(path) as segment:
        for ask in (segment.translate_offset, segment.read):
            with pytest.raises(CorruptIndexError, match="leads outside the log") as raised:
                ask(104)
            assert raised.value.path == str(path.with_suffix(".index"))
        with pytest.raises(CorruptIndexError):
            segment.next_offset  # noqa: B018


def test_a_segment_that_no_position_reaches_the_end_of(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE)
    os.truncate(path, 2**31)
    with pytest.raises(OffsetOverflowError, match="longer than positions reach"):
        LogSegment.open(path)
    os.truncate(path, 2**31 - 1)
    with LogSegment.open(path) as segment:
        assert segment.recover(index_interval_bytes=10).valid_bytes == len(EXAMPLE)
        assert segment.recover(check_crc=False).truncated_bytes == 2**31 - 1 - len(EXAMPLE)
        assert segment.batches().num_rows == 3


def test_one_batch_as_long_as_a_segment_can_be(tmp_path: Path) -> None:
    path = written(tmp_path, struct.pack(">qiib", 100, 2**31 - 1 - 12, 0, 2) + bytes(44))
    os.truncate(path, 2**31 - 1)
    with LogSegment.open(path) as segment:
        assert segment.batches(check_crc=False)["size"].tolist() == [2**31 - 1]
        assert segment.recover(check_crc=False).valid_bytes == 2**31 - 1
        assert list(segment.records(check_crc=False)) == []
        assert segment.damage[0].kind.startswith("record 0 of the batch is broken: not as many")


def test_the_base_offset_is_the_names_or_the_one_given(tmp_path: Path) -> None:
    path = tmp_path / "part.log"
    path.write_bytes(EXAMPLE)
    with pytest.raises(BadMagicError, match="the name has no base offset"):
        LogSegment.open(path)
    with LogSegment.open(path, base_offset=90) as segment:
        assert segment.base_offset == 90 and segment.recover(index_interval_bytes=157).last_offset == 105
    with pytest.raises(FileNotFoundError):
        LogSegment.open(tmp_path / f"{1:020d}.log")


def test_a_log_that_is_cut_while_it_is_open(large: Path) -> None:
    with LogSegment.open(large) as segment:
        os.truncate(large, 100_000)
        for ask in (
            segment.batches, segment.recover, lambda: segment.recover(check_crc=False),
            lambda: segment.translate_offset(5), lambda: list(segment.records()),
        ):  # fmt: skip
            with pytest.raises(TruncatedFileError, match="cut while it was"):
                ask()


def test_a_log_that_is_cut_while_its_headers_are_read(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LogSegment.open(large) as segment:
        whole = segment._log_bytes()
        monkeypatch.setattr(segment, "_log_bytes", lambda: os.truncate(large, 2 << 20) or whole)
        with pytest.raises(TruncatedFileError, match="cut while it was read") as raised:
            segment.recover(check_crc=False)
        assert raised.value.at is not None and raised.value.at > 1 << 20


@pytest.mark.parametrize("another", [True, False])
def test_a_log_whose_name_a_broker_took_away_is_recovered_as_it_was_opened(large: Path, another: bool) -> None:
    """Cleaning a log gives the name to another file; headers were read from that one, at places of the first."""
    with LogSegment.open(large) as segment:
        expected = segment.recover(check_crc=False)
        if another:
            cleaned = large.with_suffix(".swap")
            cleaned.write_bytes(b"".join(batch([KafkaRecord(b"x" * 700_000)], at) for at in range(0, 40, 3)))
            cleaned.replace(large)
        else:
            large.unlink()
        found = segment.recover(check_crc=False)
    assert (found.offset_index, found.time_index, found.valid_bytes, found.fault) == (
        expected.offset_index, expected.time_index, expected.valid_bytes, None,
    )  # fmt: skip


def test_closed_means_closed(example: Path) -> None:
    segment = LogSegment.open(example)
    running = segment._batch_arrays()
    later = segment.records()
    segment.close()
    segment.close()
    for ask in (
        lambda: next(running), lambda: next(later), segment.batches, segment.recover,
        lambda: segment.translate_offset(1), lambda: segment.offset_index,
    ):  # fmt: skip
        with pytest.raises(ClosedFileError):
            ask()


def test_reads_of_several_threads(large: Path) -> None:
    with LogSegment.open(large) as segment:
        expected, found = segment.recover(check_crc=False).offset_index, []
        threads = [
            threading.Thread(target=lambda: found.append(segment.recover(check_crc=False).offset_index))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 4


def test_windows_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = b"".join(batch([KafkaRecord(b"x" * (7 * at % 50))], at) for at in range(50))
    path = written(tmp_path, log, 0)
    expected = [tuple(header) for header in twin.headers(log)[0]]
    for window in (1, 80, 100, 5000):
        monkeypatch.setattr(batch_windows, "STEP", window)
        monkeypatch.setattr(log_bytes, "STEP", window)
        monkeypatch.setattr(log_bytes, "_FIRST_STRETCH", window)
        monkeypatch.setattr(log_bytes, "_LARGE_BATCH", window % 90)  # some windows mapped, some read
        with LogSegment.open(path) as segment:
            assert [row for rows in segment._batch_arrays() for row in rows.tolist()] == expected
            made = twin.recover(log, 0, index_interval_bytes=150, max_index_size=1000)
            for check_crc in (True, False):
                found = segment.recover(index_interval_bytes=150, check_crc=check_crc)
                assert (found.offset_index, found.time_index) == made[:2]


def test_reading_takes_whole_batches_up_to_a_limit_and_one_at_least(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE, index=BOTH, timeindex=TIMES)
    with LogSegment.open(path) as segment:
        for limit, offsets in (
            (0, [100, 101]),
            (156, [100, 101]),
            (157, [100, 101, 102]),
            (251, list(range(100, 106))),
        ):
            assert segment.read(100, max_bytes=limit)["offset"].tolist() == offsets
        assert segment.read(98, columns=["value"], max_bytes=1)["value"].to_pylist() == [b"v0", b"v1"]


def test_a_row_of_a_batch_is_as_the_kernels_have_it() -> None:
    from mqindex._native.kafka_log import BatchScan

    (view,) = BatchScan(EXAMPLE)
    assert len(view) == 3 * BATCH.itemsize


def test_columns_of_records(tmp_path: Path) -> None:
    headers = [("h", b"\1\2"), ("n", None)]
    parts = [
        batch([KafkaRecord(b"a", b"k", FIRST_TIME, headers), KafkaRecord(None, None, FIRST_TIME + 2)], 100,
              producer_id=9, producer_epoch=3, base_sequence=2**31 - 1, leader_epoch=6),
        marker(102, 9, timestamp=FIRST_TIME + 5),
        batch([KafkaRecord(b"b", timestamp=FIRST_TIME)], 103, append_time=FIRST_TIME + 9),
        messages([KafkaRecord(b"c", b"0")], 104, magic=0),
    ]  # fmt: skip
    with LogSegment.open(written(tmp_path, b"".join(parts))) as segment:
        (columns,) = segment.records()
    assert columns["offset"].tolist() == [100, 101, 102, 103, 104]
    assert columns["timestamp"].tolist() == [FIRST_TIME, FIRST_TIME + 2, FIRST_TIME + 5, FIRST_TIME + 9, -1]
    assert columns["timestamp_type"].tolist() == [0, 0, 0, 1, -1]
    assert columns["key"].to_pylist()[:2] == [b"k", None] and columns["value"].to_pylist()[3:] == [b"b", b"c"]
    assert columns["headers"].to_pylist() == [headers, [], [], [], []]
    assert columns["sequence"].tolist() == [2**31 - 1, 0, -1, -1, -1]
    assert columns["producer_id"].tolist() == [9, 9, 9, -1, -1]
    assert columns["producer_epoch"].tolist() == [3, 3, 0, -1, -1]
    assert columns["leader_epoch"].tolist() == [6, 6, 0, 0, -1]
    assert columns["is_control"].tolist() == [False, False, True, False, False]
    assert columns["is_transactional"].tolist() == [False, False, True, False, False]
    sizes = [len(part) for part in parts]
    assert columns["position"].tolist() == [0, 0, sizes[0], sum(sizes[:2]), sum(sizes[:3])]


def test_columns_of_records_are_an_arrow_stream(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    log = batch([KafkaRecord(b"a", None, headers=[("h", None)]), KafkaRecord(b"\xff", b"k")], 100)
    with LogSegment.open(written(tmp_path, log)) as segment:
        (columns,) = segment.records()
    table = pyarrow.table(columns)
    assert table["value"].to_pylist() == [b"a", b"\xff"] and table["key"].to_pylist() == [None, b"k"]
    assert table["headers"].to_pylist() == [[{"key": "h", "value": None}], []]
    assert columns["headers"][1:].to_pylist() == [[]] and columns["headers"][0] == [("h", None)]


def test_every_length_of_a_log_is_read_as_by_the_twin(tmp_path: Path) -> None:
    log = EXAMPLE[:157] + messages([KafkaRecord(b"m")], 103) + marker(104, 3)
    for length in range(len(log) + 1):
        path = written(tmp_path, log[:length])
        expected = twin.recover(log[:length], 100, index_interval_bytes=10, max_index_size=1000)
        with LogSegment.open(path) as segment:
            made = segment.recover(index_interval_bytes=10)
            assert (made.offset_index, made.time_index, made.valid_bytes) == expected[:3]
            offsets = [offset for part in segment.records() for offset in part["offset"].tolist()]
        whole = [
            record.offset for each in kafka_partition.batches(log[:length]) for record in kafka_partition.records(each)
        ]
        assert offsets == whole


def test_a_deleted_segment_is_read_with_its_indexes(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0", 40, index_interval=0)
    for _ in range(3):
        writer.append([KafkaRecord(b"gone")])
    writer.close()
    for path in (tmp_path / "t-0").iterdir():
        path.rename(f"{path}.deleted")
    with LogSegment.open(tmp_path / "t-0" / f"{40:020d}.log.deleted") as segment:
        assert segment.base_offset == 40 and segment.read(41)["value"].to_pylist() == [b"gone"] * 2
        assert segment.offset_index is not None and len(segment.offset_index) == 2
        assert segment.time_index is not None


def test_the_delete_horizon_of_a_batch_is_told_and_times_count_from_it(tmp_path: Path) -> None:
    """The golden batches of the cleaner are of a broker that had set one."""
    horizons = []
    for path in sorted(PartitionCase("410-compacted").closed(tmp_path).glob("*.log")):
        with LogSegment.open(path) as segment:
            batches = segment.batches()
            greatest = {
                position: int(times.max())
                for records in segment.records()
                for position in set(records["position"].tolist())
                if len(times := records["timestamp"][records["position"] == position])
            }
        for at in np.flatnonzero(batches["delete_horizon"] >= 0).tolist():
            horizons.append(int(batches["delete_horizon"][at]))
            assert batches["attributes"][at] & 0x40 and batches["base_timestamp"][at] == horizons[-1]
            assert greatest[int(batches["position"][at])] == batches["max_timestamp"][at] < horizons[-1]
    assert horizons == [1795247786934] * 3
