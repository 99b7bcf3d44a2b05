"""`PartitionLog`: what there is of a log, what is refused, and which files it takes its answers from."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import ClosedFileError, CorruptIndexError, FormatError, OffsetOverflowError
from mqindex.kafka import AbortedTxn, PartitionLog, TimestampOffset
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

TXN = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}


def at(*ms: int) -> list[KafkaRecord]:
    return [KafkaRecord(b"%d" % each, timestamp=FIRST_TIME + each) for each in ms]


def written(directory: Path) -> PartitionWriter:
    """Two segments: offsets 0 to 3 and, behind a transaction that was aborted, 6 to 7."""
    writer = PartitionWriter(directory, index_interval=0)
    writer.append(at(0, 10))
    writer.append(at(20, 30))
    writer.roll()
    writer.append(at(40), **TXN)
    writer.marker(5, timestamp=FIRST_TIME + 50)
    writer.append(at(60, 70))
    writer.close()
    return writer


def test_offsets_and_times_of_a_small_log(tmp_path: Path) -> None:
    written(tmp_path)
    with PartitionLog.open(tmp_path) as log:
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset, len(log)) == (0, 8, 8, 2)
        assert log.offset_for_timestamp(FIRST_TIME + 41) == (FIRST_TIME + 50, 5)
        assert log.offset_for_timestamp(FIRST_TIME + 71) is None
        assert [log.offset_for_timestamp(-each) for each in range(1, 6)] == [
            TimestampOffset(-1, 8), (-1, 0), (FIRST_TIME + 70, 7), (-1, 0), None,
        ]  # fmt: skip
        times, offsets = log.offsets_for_timestamps([FIRST_TIME + 25, -1, FIRST_TIME + 71, -3, FIRST_TIME])
        assert offsets.tolist() == [3, 8, -1, 7, 0]
        assert (times - FIRST_TIME)[[0, 3, 4]].tolist() == [30, 70, 0] and times[[1, 2]].tolist() == [-1, -1]
        assert [part.dtype for part in log.offsets_for_timestamps(np.array([], np.int32))] == [np.int64, np.int64]
        with pytest.raises(TypeError, match="ms: expected whole numbers"):
            log.offsets_for_timestamps([1.5])
        assert log.translate_offset(3) == (str(tmp_path / f"{0:020d}.log"), 78, 79, 2)
        assert log.translate_offset(8) is log.translate_offset(-7) is None


def test_many_times_are_answered_as_each_alone_where_an_entry_leads_into_a_batch(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, index_interval=0)
    for number in range(3):
        writer.append(at(10 * number, 10 * number + 1))
    writer.close()
    index = bytearray(writer.path("index").read_bytes())
    index[7] -= 1
    writer.path("index").write_bytes(index)
    asked = [FIRST_TIME + ms for ms in (10, 11, 12, 21)]
    with PartitionLog.open(tmp_path) as log:
        alone = [log.offset_for_timestamp(ms) for ms in asked]
        assert alone == [(FIRST_TIME + 10, 2), (FIRST_TIME + 11, 3), (FIRST_TIME + 20, 4), (FIRST_TIME + 21, 5)]
        assert log.offsets_for_timestamps(asked)[1].tolist() == [2, 3, 4, 5]


def test_a_read_goes_on_until_there_is_something_for_the_consumer(tmp_path: Path) -> None:
    written(tmp_path)
    with PartitionLog.open(tmp_path) as log:
        assert log.read(0, max_bytes=1)["offset"].tolist() == [0, 1]
        assert log.read(1)["offset"].tolist() == [1, 2, 3, 4, 6, 7]  # in the next segments too
        assert log.read(4, max_bytes=1)["offset"].tolist() == [4]
        committed = log.read(4, max_bytes=1, isolation_level="read_committed", columns=["value", "offset"])
        assert list(committed) == ["value", "offset"]
        assert (committed["offset"].tolist(), committed["value"].to_pylist()) == ([6, 7], [b"60", b"70"])
        assert log.read(8).num_rows == 0
        assert log.read(5, columns=["timestamp"])["timestamp"].tolist() == [FIRST_TIME + 60, FIRST_TIME + 70]
        for offset in (-1, 9):
            with pytest.raises(ValueError, match=r"offset: expected 0\.\.8"):
                log.read(offset)
        with pytest.raises(ValueError, match="isolation_level"):
            log.read(0, isolation_level="serializable")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="columns"):
            log.read(0, columns=["nothing"])


def test_an_open_transaction_ends_what_is_stable(tmp_path: Path) -> None:
    writer = written(tmp_path)
    writer.append(at(80), **TXN)
    writer.append(at(90))
    writer.close()
    with PartitionLog.open(tmp_path) as log:
        assert (log.last_stable_offset, log.log_end_offset) == (8, 10)
        assert log.read(8, isolation_level="read_committed").num_rows == 0
        assert log.read(8)["offset"].tolist() == [8, 9]


def test_the_checkpoint_of_the_log_dir_tells_where_a_log_starts(tmp_path: Path) -> None:
    written(tmp_path / "a-b-0")
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    for lines, start, first in (("0\n1\na-b 0 3\n", 3, 3), ("0\n1\nb 0 3\n", 0, 0), ("nonsense", 0, 0)):
        checkpoint.write_text(lines)
        with PartitionLog.open(tmp_path / "a-b-0") as log:
            assert log.log_start_offset == start
            assert log.offset_for_timestamp(FIRST_TIME) == (FIRST_TIME + 10 * first, first)
            assert log.offsets_for_timestamps([FIRST_TIME])[1].tolist() == [first]
            assert [log.translate_offset(at) is None for at in (first - 1, first)] == [True, False]
    checkpoint.write_text("0\n1\na-b 0 100\n")  # behind the end: a broker drops every segment
    with PartitionLog.open(tmp_path / "a-b-0") as log:
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset) == (100, 100, 100)
        assert log.offset_for_timestamp(FIRST_TIME) is None and log.read(100).num_rows == 0


def test_a_log_that_begins_in_tiered_storage_starts_there(tmp_path: Path) -> None:
    """Its start was said to be that of the first segment here, and what is before was answered with that segment."""
    written(tmp_path / "a-b-0")
    for path in (tmp_path / "a-b-0").glob(f"{0:020d}.*"):
        path.unlink()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\na-b 0 2\n")
    with PartitionLog.open(tmp_path / "a-b-0") as log:
        assert log.log_start_offset == 4
        assert log.offset_for_timestamp(-2) == (-1, 2) and log.offset_for_timestamp(-4) == (-1, 4)
        assert log.offsets_for_timestamps([-2, -4, -2])[1].tolist() == [2, 4, 2]
        for ask in (log.offset_for_timestamp, lambda ms: log.offsets_for_timestamps([ms, -2])):
            with pytest.warns(UserWarning, match="offsets 2 to 3 are in tiered storage, .* looks for times in tiered"):
                ask(0)
        assert log.translate_offset(3) is None
        with pytest.raises(ValueError, match=r"offset: expected 4\.\.8, got 2; it is in tiered storage"):
            log.read(2)
        for offset in (1, 9):  # nobody has these
            with pytest.raises(ValueError, match=rf"^offset: expected 4\.\.8, got {offset}$"):
                log.read(offset)


def test_a_directory_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    with PartitionLog.open(tmp_path) as log:
        assert (log.segments, log.log_start_offset, log.log_end_offset) == ((), 0, 0)
        assert [log.offset_for_timestamp(ms) for ms in (-1, -2, -3, 5)] == [(-1, 0), (-1, 0), None, None]
        assert log.offsets_for_timestamps([-1, 5])[1].tolist() == [0, -1]
        assert log.collect_aborted_transactions(0, 9) == []
        assert (log.read(0).num_rows, log.translate_offset(0)) == (0, None)
    with pytest.raises(FileNotFoundError):
        PartitionLog.open(tmp_path / "nothing")


def test_a_corrupt_transaction_index_is_answered_from_the_log(tmp_path: Path) -> None:
    writer = written(tmp_path)
    good = writer.path("txnindex").read_bytes()
    assert struct.unpack(">h4q", good) == (0, 5, 4, 5, 6)
    for bad in (struct.pack(">h4q", 0, 5, 1, 2, 3), struct.pack(">h4q", 0x100, 5, 4, 5, 6)):
        writer.path("txnindex").write_bytes(bad)
        with PartitionLog.open(tmp_path) as log:
            assert log.collect_aborted_transactions(0, 8) == [AbortedTxn(5, 4, 5, 6)]
            assert log.read(4, isolation_level="read_committed")["offset"].tolist() == [6, 7]
        assert writer.path("txnindex").read_bytes() == bad
    writer.path("txnindex").unlink()  # a missing one says that nothing was aborted: so a broker takes it
    with PartitionLog.open(tmp_path) as log:
        assert log.read(4, isolation_level="read_committed")["offset"].tolist() == [4, 6, 7]


def test_segments_that_were_being_exchanged_are_read_under_the_names_they_have(tmp_path: Path) -> None:
    written(tmp_path)
    for path in sorted(tmp_path.glob(f"{0:020d}.*")):
        path.rename(f"{path}.swap")
    before = sorted(os.listdir(tmp_path))
    with PartitionLog.open(tmp_path) as log:
        first = log.segments[0]
        assert first.path.endswith(".log.swap") and first.offset_index is not None and first.time_index is not None
        assert log.offset_for_timestamp(FIRST_TIME + 15) == (FIRST_TIME + 20, 2)
        assert log.read(2)["offset"].tolist() == [2, 3, 4, 6, 7]
    assert sorted(os.listdir(tmp_path)) == before


def test_an_index_that_leads_outside_its_log_is_an_error_that_names_it(tmp_path: Path) -> None:
    writer = written(tmp_path)
    first = tmp_path / f"{0:020d}.index"
    first.write_bytes(struct.pack(">ii", 3, 10_000))
    with PartitionLog.open(tmp_path) as log:
        for call in (log.offset_for_timestamp, lambda ms: log.offsets_for_timestamps([ms])):
            with pytest.raises(CorruptIndexError, match="outside the log"):
                call(FIRST_TIME + 30)
        assert log.offset_for_timestamp(FIRST_TIME + 60) == (FIRST_TIME + 60, 6)
    written(tmp_path / "again")
    last = writer.path("index")
    last.write_bytes(struct.pack(">ii", 3, 10_000))  # of the last segment it is what an unclean stop leaves
    first.unlink()
    with PartitionLog.open(tmp_path) as log:
        assert log.offset_for_timestamp(FIRST_TIME + 30) == (FIRST_TIME + 30, 3)
        assert log.offset_for_timestamp(FIRST_TIME + 70) == (FIRST_TIME + 70, 7)


# ---- damage within a log


def read_all(log: PartitionLog, offset: int = 0, **options: Any) -> Iterator[list[int]]:
    while (got := log.read(offset, columns=["offset"], **options)).num_rows:
        yield got["offset"].tolist()
        offset = int(got["offset"][-1]) + 1


def break_batch(path: Path, position: int, how: str) -> None:
    """Make a batch one that is none."""
    with path.open("r+b") as file:
        if how == "cut":
            file.truncate(position + 40)
            return
        file.seek(position + 8)
        file.write({"short": b"\0\0\0\1", "long": b"\x7f\0\0\0", "negative": b"\xff\xff\xff\xff"}[how])


@pytest.mark.parametrize("how", ["short", "long", "negative", "cut"])
@pytest.mark.parametrize("max_bytes", [1, 100, 1 << 20])
def test_a_corrupt_batch_before_a_later_segment_is_an_error_behind_what_can_be_read(
    tmp_path: Path, how: str, max_bytes: int
) -> None:
    written(tmp_path)
    first = tmp_path / f"{0:020d}.log"
    break_batch(first, 78, how)
    for indexes in ("there", "lost"):
        with PartitionLog.open(tmp_path) as log:
            parts = read_all(log, max_bytes=max_bytes)
            assert next(parts) == [0, 1], indexes
            with pytest.raises(FormatError, match="offset 2 is looked for") as caught:
                next(parts)
            assert (caught.value.path, caught.value.at) == (str(first), 78)
            assert caught.value.expected is not None and caught.value.got is not None
            assert "read on from offset 4;" in str(caught.value)
            with pytest.raises(FormatError):
                log.read(3, max_bytes=max_bytes)
            assert [offset for part in read_all(log, 4, max_bytes=max_bytes) for offset in part] == [4, 6, 7]
        for path in tmp_path.glob("*index"):
            path.unlink()


def test_a_corrupt_batch_before_others_that_the_index_knows_is_an_error(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, index_interval=0)
    for ms in range(5):
        writer.append(at(ms))
    writer.close()
    break_batch(writer.path(), 2 * 69, "short")
    with PartitionLog.open(tmp_path) as log:
        assert (log.log_end_offset, log.read(0)["offset"].tolist()) == (5, [0, 1])
        with pytest.raises(FormatError, match="read on from offset 3;"):
            log.read(2)
        assert log.read(3)["offset"].tolist() == [3, 4]


@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
def test_records_before_a_batch_that_does_not_decompress_are_given_first(tmp_path: Path, max_bytes: int) -> None:
    writer = PartitionWriter(tmp_path, index_interval=0)
    writer.append(at(0))
    bad = writer.path().stat().st_size
    writer.append(at(1), codec="gzip")
    writer.append(at(2))
    writer.close()
    with writer.path().open("r+b") as file:
        file.seek(bad + 61)
        file.write(b"no gzip")
    with PartitionLog.open(tmp_path) as log:
        parts = read_all(log, max_bytes=max_bytes)
        assert next(parts) == [0]
        with pytest.raises(FormatError) as caught:
            next(parts)
        assert (caught.value.path, caught.value.at) == (str(writer.path()), bad)
        assert log.read(2, max_bytes=max_bytes)["offset"].tolist() == [2]


@pytest.mark.parametrize("how", ["short", "long", "cut"])
def test_where_the_recovery_of_the_last_segment_cuts_reading_ends(tmp_path: Path, how: str) -> None:
    writer = written(tmp_path)
    with PartitionLog.open(tmp_path) as log:
        last = log.translate_offset(6)
    assert last is not None
    break_batch(writer.path(), last.position, how)
    with PartitionLog.open(tmp_path) as log:
        assert log.log_end_offset == 6
        assert [offset for part in read_all(log) for offset in part] == [0, 1, 2, 3, 4]
        assert log.read(6).num_rows == 0


def test_bytes_behind_the_last_batch_of_an_earlier_segment_hide_nothing(tmp_path: Path) -> None:
    """All offsets up to the next segment were seen. Where compaction took the last ones, nobody knows."""
    written(tmp_path)
    with (tmp_path / f"{0:020d}.log").open("ab") as file:
        file.write(bytes(100))
    with PartitionLog.open(tmp_path) as log:
        assert [offset for part in read_all(log) for offset in part] == [0, 1, 2, 3, 4, 6, 7]
    writer = PartitionWriter(tmp_path / "gap", index_interval=0)
    writer.append(at(0, 1))
    writer.skip(3)
    writer.roll()
    writer.append(at(2))
    writer.close()
    with PartitionLog.open(tmp_path / "gap") as log:
        assert [offset for part in read_all(log) for offset in part] == [0, 1, 5]
    with (tmp_path / "gap" / f"{0:020d}.log").open("ab") as file:
        file.write(bytes(100))
    with PartitionLog.open(tmp_path / "gap") as log, pytest.raises(FormatError, match="read on from offset 5"):
        list(read_all(log))


def test_what_is_not_stable_is_not_looked_at(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, index_interval=0)
    writer.append(at(0))
    writer.append(at(1), **TXN)
    writer.append(at(2))
    writer.roll()
    writer.append(at(3))
    writer.close()
    first = tmp_path / f"{0:020d}.log"
    break_batch(first, 2 * 69, "short")
    with PartitionLog.open(tmp_path) as log:
        assert (log.last_stable_offset, log.log_end_offset) == (1, 4)
        assert log.read(1, isolation_level="read_committed").num_rows == 0
        assert [offset for part in [log.read(0)["offset"].tolist()] for offset in part] == [0, 1]
        with pytest.raises(FormatError):
            log.read(2)


def test_zeros_behind_the_last_log_are_no_batches(tmp_path: Path) -> None:
    writer = written(tmp_path)
    with open(writer.path(), "ab") as file:  # a log of full length, as a broker that was killed leaves it
        file.write(bytes(4096))
    with PartitionLog.open(tmp_path) as log:
        assert (log.log_end_offset, log.last_stable_offset) == (8, 8)
        assert log.offset_for_timestamp(-3) == (FIRST_TIME + 70, 7)
        assert log.offsets_for_timestamps([FIRST_TIME + 70, FIRST_TIME + 71])[1].tolist() == [7, -1]
        assert log.read(6)["offset"].tolist() == [6, 7]


def test_a_segment_longer_than_positions_reach_is_refused(tmp_path: Path) -> None:
    writer = written(tmp_path)
    os.truncate(writer.path(), 2**31)
    with pytest.raises(OffsetOverflowError):
        PartitionLog.open(tmp_path)
    os.truncate(writer.path(), 2**31 - 1)
    with PartitionLog.open(tmp_path) as log:
        assert (log.log_end_offset, log.offset_for_timestamp(FIRST_TIME + 71)) == (8, None)


def test_nothing_is_answered_after_closing(tmp_path: Path) -> None:
    written(tmp_path)
    log = PartitionLog.open(tmp_path)
    log.close()
    log.close()
    for call in (
        lambda: log.read(0),
        lambda: log.offset_for_timestamp(-1),
        lambda: log.offsets_for_timestamps([5]),
        lambda: log.collect_aborted_transactions(0, 9),
        lambda: log.translate_offset(0),
        lambda: log.log_end_offset,
        lambda: log.last_stable_offset,
    ):
        with pytest.raises(ClosedFileError):
            call()
    assert repr(log) == f"PartitionLog({str(tmp_path)!r}, segments=2)"
