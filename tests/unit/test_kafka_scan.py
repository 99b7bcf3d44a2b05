"""`kafka.scan`: paths, partitions, snapshots, damage, what is read, and bad arguments."""

from __future__ import annotations

import os
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from mqindex.errors import BadMagicError, ClosedFileError, CorruptIndexError
from mqindex.kafka import LogSegment, Scan, scan
from mqindex.zones.zone_map import ZONE_BYTES
from tests.support.big_segments import BIG_BATCH, RECORDS, write_big_segment
from tests.support.damaged_partition import DAMAGE, damaged_partition
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

pa = pytest.importorskip("pyarrow")

__all__ = ["memory"]  # a fixture
MIB = 1 << 20


def offsets(records: Scan) -> list[int]:
    with records:
        return [offset for batch in records for offset in batch["offset"].tolist()]


def records_at(times: Any, key: bytes | None = b"k") -> list[KafkaRecord]:
    return [KafkaRecord(b"value", key, FIRST_TIME + time) for time in times]


def write(directory: Path, segments: int = 3) -> PartitionWriter:
    """Ten records a segment; offset n has the time FIRST_TIME + n."""
    writer = PartitionWriter(directory)
    for number in range(segments):
        if number:
            writer.roll()
        for first in range(10 * number, 10 * number + 10, 5):
            writer.append(records_at(range(first, first + 5)))
    writer.close()
    return writer


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """orders-0, orders-2, orders-10, other-0, and one that is being deleted."""
    for name in ("orders-10", "orders-2", "other-0", "orders-0", "gone-0.0123456789abcdef0123456789abcdef-delete"):
        write(tmp_path / "logs" / name)
    (tmp_path / "logs" / "meta.properties").write_text("")
    return tmp_path / "logs"


def partitions(records: Scan) -> list[str]:
    places = [
        (topic, number) for batch in records for topic, number in zip(batch["topic"], batch["partition"], strict=True)
    ]
    return [f"{topic}-{number}" for topic, number in dict.fromkeys(places)]


# ---- paths and partitions


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (None, ["orders-0", "orders-2", "orders-10", "other-0"]),
        ("orders", ["orders-0", "orders-2", "orders-10"]),
        (["other-0", "orders-2"], ["orders-2", "other-0"]),
        ([("orders", 10), "orders-10", ("orders", np.int32(0))], ["orders-0", "orders-10"]),
        ([], []),
    ],
)
def test_partitions_are_named_by_name_topic_and_number(log_dir: Path, asked: Any, found: list[str]) -> None:
    assert partitions(scan(log_dir, partitions=asked)) == found


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ("order-0", ValueError, r"partitions: expected partitions or topics of .*logs, got 'order-0'; the nearest is"),
        ([("orders", 1)], ValueError, "got 'orders-1'; the nearest is 'orders-"),
        (("orders", 0), TypeError, r"partitions: expected names like .*got 0 among them"),
        (7, TypeError, "partitions: expected names like"),
        ([("orders", 0.5)], TypeError, "partitions: expected a whole number"),
    ],
)
def test_a_partition_that_is_not_there_is_named(log_dir: Path, asked: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        scan(log_dir, partitions=asked)


def test_a_path_is_a_log_dir_a_partition_or_a_log(log_dir: Path) -> None:
    columns = ["topic", "partition", "segment", "offset"]
    assert offsets(scan(log_dir / "orders-2")) == list(range(30))
    (batch,) = scan(log_dir / "orders-2" / "00000000000000000010.log", columns=columns)
    assert batch.to_arrow().to_pylist()[0] == {"topic": "orders", "partition": 2, "segment": 10, "offset": 10}
    assert offsets(scan(log_dir / "gone-0.0123456789abcdef0123456789abcdef-delete")) == list(range(30))
    (log_dir / "orders-2" / "00000000000000000010.log").rename(log_dir / "00000000000000000010.log.deleted")
    assert offsets(scan(log_dir / "00000000000000000010.log.deleted")) == list(range(10, 20))


def test_a_path_of_something_else_is_an_error(tmp_path: Path, log_dir: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadMagicError, match="neither a partition nor a log dir"):
        scan(tmp_path / "empty")
    with pytest.raises(BadMagicError, match="another file of a segment"):
        scan(log_dir / "orders-0" / "00000000000000000010.index")


@pytest.mark.parametrize("etags", [True, False])
def test_a_url_is_read_as_a_path_is(log_dir: Path, memory: Ways, tmp_path: Path, etags: bool) -> None:
    memory.etags = etags
    asked: dict[str, Any] = {"begin": FIRST_TIME + 7, "end": FIRST_TIME + 23, "cache": tmp_path / "cache"}
    url = WAYS.upload(log_dir)
    for _ in range(2):
        assert offsets(scan(url, **asked)) == offsets(scan(log_dir, **asked)) == [*range(7, 23)] * 4
    assert offsets(scan(f"{url}/orders-0", start_offset=12, isolation_level="read_committed")) == list(range(12, 30))
    assert offsets(scan(f"{url}/orders-0/{10:020}.log")) == list(range(10, 20))


# ---- what matches


def test_times_are_given_in_any_form(log_dir: Path) -> None:
    begin = datetime.fromtimestamp((FIRST_TIME + 5) / 1000, UTC)
    end = np.datetime64(FIRST_TIME + 8, "ms")
    assert offsets(scan(log_dir, partitions="other", begin=begin, end=end)) == [5, 6, 7]


@pytest.mark.parametrize("many", [False, True])
def test_keys_are_bytes_or_text_empty_ones_too(tmp_path: Path, many: bool) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord(b"v", key) for key in (None, b"", b"a", b"\xff", "é".encode(), b"ab")])
    more = [f"other-{number}" for number in range(40 * many)]
    for keys, found in (
        ([b"", *more], [1]),
        (["é", b"\xff", *more], [3, 4]),
        ([*more], []),
        (pa.array(["a", "ab", *more]), [2, 5]),
    ):
        assert offsets(scan(writer.directory, keys=keys)) == found
    assert offsets(scan(writer.directory, keys="a", columns=["offset"])) == [2]
    with pytest.raises(TypeError, match="keys: expected bytes or str, or several of them, got None among them"):
        scan(writer.directory, keys=[None])


def test_a_record_without_a_time_is_in_no_period_and_its_time_is_null(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "t-0")
    writer.append([KafkaRecord(b"v", b"k")], magic=0)
    writer.append(records_at([3]))
    times = [time for batch in scan(writer.directory) for time in batch["timestamp"].tolist()]
    assert times[0] is None and times[1] is not None
    assert offsets(scan(writer.directory, begin=-(2**62))) == offsets(scan(writer.directory, end=2**62)) == [1]


def test_no_record_has_the_schema_of_records(log_dir: Path) -> None:
    records = scan(log_dir, partitions="other")
    assert records.empty().to_arrow().schema == next(records).to_arrow().schema
    assert list(records.empty()) == list(records.columns) and len(records.empty()) == 0
    assert scan(log_dir, columns=["segment", "topic"]).columns == ("segment", "topic")


def test_rows_are_counted_without_a_column(log_dir: Path) -> None:
    assert sum(len(batch) for batch in scan(log_dir, columns=[])) == 120


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"begin": "today"}, TypeError, "begin: expected"),
        ({"end": 1.5}, TypeError, "end: expected"),
        ({"start_offset": "5"}, TypeError, "start_offset: expected"),
        ({"end_offset": True}, TypeError, "end_offset: expected"),
        ({"keys": 5}, TypeError, "keys: expected bytes or str"),
        ({"isolation_level": "serializable"}, ValueError, "isolation_level: expected read_uncommitted or read_commit"),
        ({"columns": ["offset", "vlaue"]}, ValueError, "columns: expected some of topic, .*, got 'vlaue'"),
        ({"cache": 5}, TypeError, "cache: expected"),
        ({"partition": "orders-0"}, TypeError, "Did you mean 'partitions'"),
    ],
)
def test_a_wrong_argument_is_named(log_dir: Path, asked: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        scan(log_dir, **asked)


def test_a_scan_that_is_closed_gives_no_more(log_dir: Path) -> None:
    with scan(log_dir) as records:
        next(records)
    records.close()
    with pytest.raises(ClosedFileError, match="the scan is closed"):
        next(records)


# ---- what is read


def test_a_window_of_a_large_segment_reads_that_window(tmp_path: Path) -> None:
    segment = write_big_segment(str(tmp_path / "t-0"), 0, 64 * MIB)
    middle = segment.next_offset // 2
    window: dict[str, Any] = {"begin": FIRST_TIME + middle, "end": FIRST_TIME + middle + 50 * RECORDS}
    first, again = (scan(tmp_path / "t-0", **window, cache=tmp_path / "cache") for _ in range(2))
    assert offsets(first) == offsets(again) == list(range(middle, middle + 50 * RECORDS))
    assert first.bytes_read == segment.batches * BIG_BATCH
    assert again.bytes_read <= 50 * BIG_BATCH + 2 * ZONE_BYTES + BIG_BATCH < 50 * BIG_BATCH + MIB
    for cache in (tmp_path / "cache", False):
        some = scan(tmp_path / "t-0", start_offset=middle + 3, end_offset=middle + 40, cache=cache)
        assert offsets(some) == list(range(middle + 3, middle + 40)) and some.bytes_read < MIB


def test_segments_of_other_offsets_are_not_opened(tmp_path: Path) -> None:
    directory = write(tmp_path / "t-0").directory
    some = scan(directory, start_offset=10, end_offset=20)
    assert offsets(some) == list(range(10, 20)) and some.files_read == 1
    assert offsets(scan(directory, start_offset=9, end_offset=11)) == [9, 10]
    assert offsets(scan(directory, start_offset=30)) == [] == offsets(scan(directory, start_offset=5, end_offset=5))


def test_what_a_log_has_grown_by_is_read_and_kept_too(tmp_path: Path) -> None:
    writer, cache = write(tmp_path / "t-0", segments=1), tmp_path / "cache"
    for number in range(10, 60, 5):
        assert offsets(scan(writer.directory, begin=FIRST_TIME + 8, cache=cache)) == list(range(8, number))
        again = scan(writer.directory, begin=FIRST_TIME + number, cache=cache)
        assert offsets(again) == [] and again.bytes_read == 0
        before = writer.path().stat().st_size
        writer.append(records_at(range(number, number + 5)))
        grown = scan(writer.directory, begin=FIRST_TIME + number, cache=cache)
        assert offsets(grown) == list(range(number, number + 5))
        assert grown.bytes_read == writer.path().stat().st_size - before


def test_scans_of_a_log_that_grows_give_what_was_there(tmp_path: Path) -> None:
    """Each has all that the one before had, by a map that each makes longer; segments are closed meanwhile."""
    writer, cache = write(tmp_path / "t-0", segments=1), tmp_path / "cache"

    def append() -> None:
        for number in range(10, 1000, 5):
            if not number % 100:
                writer.roll()
            writer.append(records_at(range(number, number + 5)))

    thread = Thread(target=append)
    thread.start()
    before = 0
    while before < 1000:
        alive = thread.is_alive()
        found = offsets(scan(writer.directory, begin=FIRST_TIME, cache=cache))
        assert found == list(range(len(found))) and len(found) >= before
        assert alive or len(found) == 1000
        before = len(found)
    thread.join()


def test_a_log_that_was_cut_and_written_anew_is_read_anew(tmp_path: Path) -> None:
    writer, cache = write(tmp_path / "t-0", segments=1), tmp_path / "cache"
    assert offsets(scan(writer.directory, begin=FIRST_TIME + 100, cache=cache)) == []
    shutil.rmtree(writer.directory)
    other = PartitionWriter(writer.directory)
    for _ in range(5):
        other.append(records_at(range(100, 105)))
    assert offsets(scan(other.directory, begin=FIRST_TIME + 100, cache=cache)) == list(range(25))


def test_of_a_log_that_a_broker_cut_the_map_is_not_believed(tmp_path: Path) -> None:
    """It stays the same file: shorter than the map's end, as long again, and longer, with other times in the middle."""
    writer, cache = PartitionWriter(tmp_path / "t-0"), tmp_path / "cache"
    sizes = [writer.append([KafkaRecord(bytes(MIB // 8), b"k", FIRST_TIME + time)]) for time in range(16)]
    log = writer.path()
    whole = log.read_bytes()
    one = len(whole) // len(sizes)
    assert offsets(scan(tmp_path / "t-0", begin=FIRST_TIME, cache=cache)) == list(range(16))
    other = PartitionWriter(tmp_path / "other-0")
    for time in (*range(5), *[100] * 20):
        other.append([KafkaRecord(bytes(MIB // 8), b"k", FIRST_TIME + time)])
    anew = other.path().read_bytes()
    for count in (4, 5, 10, 15, 16, 17, 25):
        for data in (anew[: count * one], whole):
            with log.open("r+b") as file:
                file.truncate(4 * one)
                file.seek(4 * one)
                file.write(data[4 * one :])
            late = [at for at in range(len(data) // one) if data is not whole and at >= 5]
            assert offsets(scan(tmp_path / "t-0", begin=FIRST_TIME + 50, cache=cache)) == late
            early = [at for at in range(len(data) // one) if at not in late]
            assert offsets(scan(tmp_path / "t-0", end=FIRST_TIME + 50, cache=cache)) == early


def test_a_closed_segment_of_another_version_is_read_anew(tmp_path: Path) -> None:
    writer, cache = write(tmp_path / "t-0"), tmp_path / "cache"
    offsets(scan(writer.directory, begin=FIRST_TIME, cache=cache))
    os.utime(writer.directory / f"{0:020}.log")
    again = scan(writer.directory, begin=FIRST_TIME + 100, cache=cache)
    assert offsets(again) == [] and again.bytes_read == (writer.directory / f"{0:020}.log").stat().st_size


def test_zeros_of_a_preallocated_log_are_its_end(tmp_path: Path) -> None:
    writer, cache = write(tmp_path / "t-0"), tmp_path / "cache"
    size = writer.path().stat().st_size
    os.truncate(writer.path(), size + 4096)
    for _ in range(2):
        some = scan(writer.directory, begin=FIRST_TIME + 25, cache=cache)
        assert offsets(some) == list(range(25, 30)) and some.damage == []
    with writer.path().open("r+b") as file:  # the length stays
        file.seek(size)
        file.write((writer.directory / f"{0:020}.log").read_bytes())
    stamp = writer.path().stat()
    os.utime(writer.path(), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert len(offsets(scan(writer.directory, begin=FIRST_TIME, cache=cache))) == 40


# ---- logs that change, logs that are damaged


def test_a_scan_sees_the_logs_as_they_were_when_it_began(tmp_path: Path) -> None:
    writer = write(tmp_path / "t-0")
    for asked in ({}, {"begin": FIRST_TIME}, {"start_offset": 1}):
        expected = offsets(scan(writer.directory, **asked))
        records = scan(writer.directory, cache=tmp_path / "cache", **asked)
        writer.append(records_at([1000]))
        writer.roll()
        writer.append(records_at([1001]))
        assert offsets(records) == expected
    assert writer.next_offset == 36


def test_a_batch_of_which_a_part_was_there_is_not_seen(tmp_path: Path) -> None:
    writer = write(tmp_path / "t-0")
    whole = writer.path().read_bytes()
    os.truncate(writer.path(), len(whole) - 10)
    for asked in ({}, {"begin": FIRST_TIME}):
        records = scan(writer.directory, cache=tmp_path / "cache", **asked)
        writer.path().write_bytes(whole)
        assert offsets(records) == list(range(25))
        os.truncate(writer.path(), len(whole) - 10)


def test_what_retention_deletes_before_it_is_read_is_said(tmp_path: Path) -> None:
    directory = write(tmp_path / "t-0").directory
    records = scan(directory)
    oldest = directory / f"{0:020}.log"
    oldest.unlink()
    assert offsets(records) == list(range(10, 30)) and records.expired == [str(oldest)]
    records = scan(directory, end_offset=15)
    shutil.rmtree(directory)
    assert offsets(records) == [] and records.expired == [str(directory / f"{10:020}.log")]


@pytest.mark.parametrize("etags", [True, False])
def test_what_is_deleted_elsewhere_is_said_too(tmp_path: Path, memory: Ways, etags: bool) -> None:
    memory.etags = etags
    url = WAYS.upload(write(tmp_path / "t-0").directory)
    for asked in ({}, {"begin": 0}):
        records, gone = scan(url, **asked), f"{url}/{10:020}.log"
        data = WAYS.files(url)[f"{10:020}.log"]
        WAYS.store.delete(gone.removeprefix("memory://"))
        assert offsets(records) == [*range(10), *range(20, 30)] and records.expired == [gone]
        WAYS.put(gone, data)


@pytest.mark.parametrize("name", ["410-txn", "410-txn-open"])
@pytest.mark.parametrize("lost", ["removed", "zeros", "of another segment", "of another kind"])
def test_committed_records_are_there_whatever_is_wrong_with_an_offset_index(
    name: str, lost: str, tmp_path: Path
) -> None:
    """With bytes of another kind the log ended before its last segment began."""
    partition = PartitionCase(name).closed(tmp_path)
    expected = offsets(scan(partition, isolation_level="read_committed", cache=False))
    first, *_, last = sorted(partition.glob("*.index"))
    others = {"zeros": bytes(last.stat().st_size), "of another segment": first.read_bytes()}
    others["of another kind"] = first.with_suffix(".txnindex").read_bytes()
    last.unlink()
    if lost in others:
        last.write_bytes(others[lost])
    assert offsets(scan(partition, isolation_level="read_committed", cache=False)) == expected != []


def lose_first_txnindex(partition: Path, lost: str) -> Path:
    first, *_, last = sorted(partition.glob("*.txnindex"))
    other = last.read_bytes()
    first.unlink()
    if lost != "removed":
        first.write_bytes(b"" if lost == "empty" else other)
    return first


@pytest.mark.parametrize("name", ["410-txn", "410-txn-open"])
@pytest.mark.parametrize("lost", ["removed", "empty", "of another"])
def test_records_that_were_aborted_and_whose_index_is_lost_are_said(name: str, lost: str, tmp_path: Path) -> None:
    """They are among the answer, as a broker gives them, and nothing said so."""
    partition = PartitionCase(name).closed(tmp_path)
    committed = offsets(scan(partition, isolation_level="read_committed", cache=False))
    first = lose_first_txnindex(partition, lost)
    found = scan(partition, isolation_level="read_committed", cache=False)
    assert set(offsets(found)) > set(committed)
    (said,) = map(str, found.damage)
    assert said.startswith(f"the index lacks aborted transactions, and their records are among the answer: {first}: ")
    assert said.endswith(" got none; `mqindex repair` writes the index"), said


@pytest.mark.parametrize("name", ["410-txn", "410-txn-open"])
@pytest.mark.parametrize("lost", ["removed", "empty", "of another"])
def test_a_scan_with_bounds_says_too_whose_index_is_lost(
    name: str, lost: str, tmp_path: Path, rng: random.Random
) -> None:
    """Wherever its bounds are: also where the transaction ends behind them."""
    partition, cache = PartitionCase(name).closed(tmp_path), tmp_path / "zones"
    times = np.concatenate([batch["timestamp"] for batch in scan(partition, cache=False)]).astype(np.int64).tolist()
    committed = offsets(scan(partition, isolation_level="read_committed", cache=False))
    first = lose_first_txnindex(partition, lost)
    wrong, met = set(offsets(scan(partition, isolation_level="read_committed", cache=False))) - set(committed), 0
    for _ in range(60):
        at, time = rng.choice(sorted(wrong) if rng.random() < 0.5 else committed), rng.choice(times)
        bounds: dict[str, int] = rng.choice([
            {"start_offset": at, "end_offset": at + 1}, {"start_offset": at}, {"end_offset": at + 1},
            {"begin": time, "end": time + 1}, {"begin": time}, {"end": time},
        ])  # fmt: skip
        found = scan(partition, isolation_level="read_committed", cache=cache, **bounds)
        if not wrong.isdisjoint(offsets(found)):
            met += 1
            (said,) = map(str, found.damage)
            assert said.startswith(
                f"the index lacks aborted transactions, and their records are among the answer: {first}"
            )
        else:
            assert len(found.damage) <= 1
    assert met > 5


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_whole_indexes_lack_no_aborted_transaction(name: str, tmp_path: Path, rng: random.Random) -> None:
    for partition in {log.parent for log in PartitionCase(name).unpack(tmp_path).rglob("*.log")}:
        last = max(offsets(scan(partition, cache=False)), default=0)
        starts = [rng.randint(0, last) for _ in range(20)]
        some = [{"start_offset": start, "end_offset": start + rng.choice([1, 20, 200])} for start in starts]
        for bounds in [{}, *some]:
            found = scan(partition, isolation_level="read_committed", cache=False, **bounds)
            assert offsets(found) is not None
            assert not [one for one in found.damage if isinstance(one, CorruptIndexError)]


def test_a_segment_that_is_open_is_read_whoever_deletes_it(tmp_path: Path) -> None:
    directory = write(tmp_path / "t-0").directory
    records = scan(directory, columns=["offset"])
    found = next(records)["offset"].tolist()
    shutil.rmtree(directory)
    assert found + offsets(records) == list(range(30)) and records.expired == []


def test_what_a_broker_has_cleaned_is_read_as_it_left_it(tmp_path: Path) -> None:
    """Two segments become one, of another file: with more bytes than the first had, or fewer."""
    directory = write(tmp_path / "t-0").directory
    records = scan(directory)
    first, second = (directory / f"{base:020}.log" for base in (0, 10))
    (directory / "cleaned").write_bytes(first.read_bytes() + second.read_bytes())
    (directory / "cleaned").rename(first)
    second.unlink()
    assert offsets(records) == list(range(30)) and records.expired == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_left_out_and_said_each_time(tmp_path: Path, kind: str) -> None:
    damaged_partition(tmp_path / "t-0", kind)
    damage, cache = DAMAGE[kind], tmp_path / "cache"
    path = str(tmp_path / "t-0" / f"{damage.segment:020}.log")
    for asked in ({}, {"begin": FIRST_TIME + 75}, {"begin": FIRST_TIME + 75}):
        records = scan(tmp_path / "t-0", cache=cache, **asked)
        assert offsets(records) == [offset for offset in damage.left if not asked or offset >= 75]
        ((where, fault),) = records.damage
        assert (where, fault.kind, fault.last_offset) == (path, damage.kind, damage.last)
        assert str(records.damage[0]).startswith(f"{damage.kind}: {path}")


@pytest.mark.parametrize("length", [2 * BIG_BATCH - 12, BIG_BATCH + 100, 100, 2**30])
def test_a_length_that_leads_elsewhere_hides_no_more_than_in_a_plain_read(tmp_path: Path, length: int) -> None:
    """No checksum covers it. From the first batch it leads to the third, into the second, or nowhere."""
    segment = write_big_segment(str(tmp_path / "t-0"), 0, 4 * BIG_BATCH)
    with open(segment.path, "r+b") as file:
        file.seek(8)
        file.write(length.to_bytes(4, "big"))
    with LogSegment.open(segment.path) as log:
        left = [offset for batch in log.records() for offset in batch["offset"].tolist()]
    for start in (RECORDS, RECORDS + 5, 2 * RECORDS):
        for end in (2 * RECORDS + 1, segment.next_offset):
            asked = scan(tmp_path / "t-0", start_offset=start, end_offset=end)
            assert offsets(asked) == [offset for offset in left if start <= offset < end] and len(left) >= 2 * RECORDS


def test_a_scan_that_compares_no_checksum_keeps_no_map(tmp_path: Path) -> None:
    damaged_partition(tmp_path / "t-0", "value")
    some = scan(tmp_path / "t-0", begin=0, check_crc=False, cache=tmp_path / "cache")
    assert len(offsets(some)) == 200 and some.damage == [] and not (tmp_path / "cache").exists()
