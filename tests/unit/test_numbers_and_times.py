"""Numbers and times in every form that people have them: taken exactly, or refused by the argument's name."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from mqindex import kafka
from mqindex._native.numbers import milliseconds, whole_number
from mqindex.columns.numbers import int64s, times
from mqindex.rocketmq import CommitLog, ConsumeQueue, IndexFile, IndexService, MessageStore, NewMessage

pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")

MS = 1_700_000_000_123
MOMENT = datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)
ELSEWHERE = MOMENT.astimezone(timezone(timedelta(hours=-7)))
NAIVE = datetime(2023, 11, 14, 22, 13, 20)
SAME_TIMES = [
    MS, np.int64(MS), np.array(MS), MOMENT, ELSEWHERE, pd.Timestamp(MOMENT), np.datetime64(MS, "ms"),
    np.datetime64(MS * 1000 + 456, "us"), np.datetime64(MS * 1_000_000 + 456_789, "ns"),
    pd.Timestamp(MOMENT).as_unit("ns"),
]  # fmt: skip
NO_TIMES = [
    1.5,
    float(MS),
    True,
    np.bool_(True),
    "2023-11-14",
    b"1",
    None,
    MOMENT.date(),
    timedelta(1),
    np.timedelta64(1, "s"),
]


@pytest.mark.parametrize("moment", SAME_TIMES, ids=repr)
def test_a_time_is_what_people_have(moment):
    assert milliseconds("begin", moment) == MS


def test_times_before_1970_are_rounded_down():
    moments = [datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=UTC), np.datetime64(-500, "us")]
    assert [milliseconds("t", moment) for moment in moments] == [-1, -1]
    assert times("t", np.array(moments[1:])).tolist() == [-1]


@pytest.mark.parametrize("moment", NO_TIMES, ids=repr)
def test_what_is_no_time_is_refused_by_name(moment):
    with pytest.raises(
        TypeError, match=r"^begin: expected ms since the epoch, an aware datetime or a datetime64, got "
    ):
        milliseconds("begin", moment)


@pytest.mark.parametrize("moment", [NAIVE, pd.Timestamp(NAIVE)])
def test_a_time_without_its_zone_is_asked_for_it(moment):
    with pytest.raises(ValueError, match=r"^end: expected a datetime with a time zone, got 2023-11-14 22:13:20: give"):
        milliseconds("end", moment)


@pytest.mark.parametrize("moment", [pd.NaT, np.datetime64("NaT", "s"), np.datetime64("NaT", "ms")], ids=repr)
def test_no_time_at_all_is_refused(moment):
    with pytest.raises(ValueError, match=r"^end: expected a time, got NaT$"):
        milliseconds("end", moment)


@pytest.mark.parametrize(
    "number", [1.0, 1.7, True, np.True_, "1", None, np.float64(1), np.timedelta64(1, "s"), [1]], ids=repr
)
def test_a_float_is_no_whole_number(number):
    with pytest.raises(TypeError, match=r"^offset: expected a whole number, got "):
        whole_number("offset", number)


@pytest.mark.parametrize(
    "values",
    [
        [MS, MOMENT, ELSEWHERE], np.array([MS]), np.array([MS], ">i8"), np.array([MS], np.uint64), pd.Series([MOMENT]),
        [MOMENT] * 2, (MOMENT, np.datetime64(MS, "ms")), np.array([MS], "datetime64[ms]"), pd.DatetimeIndex([MOMENT]),
        np.array([MS * 1_000_000 + 5], "datetime64[ns]"), np.array([MS], ">M8[ms]"),
        pa.array([MOMENT]), pa.array([MOMENT], pa.timestamp("ms", "UTC")),
        pa.chunked_array([[MS], [MS]]), range(MS, MS + 1), pd.array([MS], "Int64"),
        pd.Series(pa.array([MOMENT]), dtype=pd.ArrowDtype(pa.timestamp("us", tz="UTC"))),
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__}",
)  # fmt: skip
def test_times_of_every_origin(values):
    found = times("t", values)
    assert (set(found.tolist()), found.dtype, len(found)) == ({MS}, np.int64, len(values))


def test_polars_has_times_too(tmp_path):
    pl = pytest.importorskip("polars")
    for values in ([MOMENT], [MS]):
        assert times("t", pl.Series(values)).tolist() == [MS]
    with pytest.raises(ValueError, match=r"^x: null at position 1$"):
        times("x", pl.Series([1, None]))
    with pytest.raises(ValueError, match=r"^x: null at position 1$"):
        int64s("x", pl.Series([1, None]))
    columns = {"topic": ["T"], "body": [b"x"], "queue_offset": [0], "store_timestamp": pl.Series([MOMENT])}
    with CommitLog.open(tmp_path, writable=True) as log:
        log.append_messages(columns)
        log.append_messages(pl.DataFrame(columns))
        assert [moment for batch in log.scan() for moment in batch["store_timestamp"].tolist()] == [MS, MS]


@pytest.mark.parametrize("convert", [int64s, times])
@pytest.mark.parametrize(
    ("values", "error", "sentence"),
    [
        ([1, 1.7], TypeError, "^x: expected whole numbers.* got float64, 1.0 at position 0$"),
        ([0, float("nan")], ValueError, "^x: null at position 1$"),
        (pa.array([1, None]), ValueError, "^x: null at position 1$"),
        (pd.Series([1, None]), ValueError, "^x: null at position 1$"),
        (pd.Series([1, None], dtype="Int64"), ValueError, "^x: null at position 1$"),
        ([1, None], ValueError, "^x: null at position 1$"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), ValueError, "^x: null at position 2$"),
        ([2, True], TypeError, "^x: expected a whole number, got True at position 1$"),
        ([True, False], TypeError, "^x: expected whole numbers.* got bool, True at position 0$"),
        (np.array([5, 2**63], np.uint64), OverflowError, "^x: .* got 9223372036854775808 at position 1$"),
        ([5, 2**64], OverflowError, "^x, position 1: expected 64 bits, got 18446744073709551616$"),
        (["1"], TypeError, "^x: expected whole numbers.* got <U1, 1 at position 0$"),
        ({1, 2}, TypeError, "^x: expected whole numbers.* in one dimension, got set$"),
        ({1: 2}, TypeError, "^x: expected whole numbers.* in one dimension, got dict$"),
        ("12", TypeError, "^x: expected whole numbers.* in one dimension, got str$"),
        (5, TypeError, "^x: expected whole numbers.* in one dimension, got int$"),
        ([[1], [2]], TypeError, "^x: expected whole numbers.* in one dimension, got 2$"),
        ([[1], [2, 3]], TypeError, "^x: expected whole numbers.* in one dimension, got 2$"),
        ([1, "a"], TypeError, "^x: expected whole numbers"),
        (np.array([1], "m8[s]"), TypeError, "^x: expected whole"),
    ],
    ids=lambda value: " ".join(repr(value).split("0x")[0].split())[:40],  # of an object not its address
)  # fmt: skip
def test_numbers_that_would_be_bent_are_refused(convert, values, error, sentence):
    with pytest.raises(error, match=sentence):
        convert("x", values)


def test_times_of_a_sequence_say_which():
    with pytest.raises(ValueError, match=r"^x, position 1: expected a datetime with a time zone"):
        times("x", [MOMENT, NAIVE])
    with pytest.raises(ValueError, match=r"^x: null at position 1$"):
        times("x", np.array([1, "NaT"], "M8[s]"))
    with pytest.raises(TypeError, match=r"^x: expected whole numbers, got datetime64\[s\]"):
        int64s("x", np.array([1], "M8[s]"))


def test_nothing_is_no_numbers():
    assert [len(convert("x", [])) for convert in (int64s, times)] == [0, 0]


# ---- the calls


@pytest.fixture
def index(tmp_path):
    with IndexFile.create(tmp_path / "20231114221320000", hash_slot_num=5, index_num=20) as opened:
        opened.put_keys(["T#a", "T#b"], [100, 200], [MS, MS + 60_000])
        yield opened


LATER = np.datetime64(MS + 30_000, "ms")


def test_index_files_take_times(index):
    """A datetime was "an integer is required"."""
    assert index.put_key("T#a", 300, MOMENT + timedelta(minutes=2))
    assert index.put_keys(["T#a"], [400], [MOMENT + timedelta(minutes=3)]) == 1
    assert index.put_keys(["T#a"], [500], np.array([MS + 240_000], "M8[ms]")) == 1
    assert index.header.end_timestamp == MS + 240_000
    assert index.select_phy_offset("T#a", begin=MOMENT, end=LATER).tolist() == [100]
    assert index.select_phy_offset("T#a", begin=LATER).tolist() == [500, 400, 300]
    assert index.select_phy_offsets(["T#a"], begin=MOMENT, end=LATER).to_pylist() == [[100]]
    assert index.is_time_matched(MOMENT, LATER)


def test_a_rolled_file_takes_its_seed_as_a_time(tmp_path):
    with IndexFile.create(
        tmp_path / "1", hash_slot_num=5, index_num=9, end_phy_offset=7, end_timestamp=MOMENT
    ) as index:
        assert (index.header.begin_phy_offset, index.header.begin_timestamp) == (7, MS)


def test_index_services_take_times(tmp_path):
    with IndexService.open(tmp_path, hash_slot_num=5, index_num=9, writable=True) as service:
        service.build_index("T", ["a", "a"], [1, 2], pa.array([MOMENT, MOMENT + timedelta(minutes=1)]))
        assert service.query_offset("T", "a", begin=MOMENT, end=LATER).phy_offsets.tolist() == [1]
        assert service.query_offsets("T", ["a"], begin=LATER).to_pylist() == [[2]]


def test_bulk_and_single_build_refuse_alike(tmp_path):
    """`build_index([1.7])` stored 1, and a uint64 became negative."""
    with IndexService.open(tmp_path, hash_slot_num=5, index_num=9, writable=True) as service:
        for phys, error in (([1.7], TypeError), (np.array([2**63], np.uint64), OverflowError), ([None], ValueError)):
            with pytest.raises(error, match=r"^phy_offsets"):
                service.build_index("T", ["a"], phys, [MS])
            with pytest.raises(error, match=r"^store_timestamps"):
                service.build_index("T", ["a"], [1], phys)
        assert len(service.files) == 0


def test_stores_take_times(tmp_path):
    with MessageStore.open(tmp_path / "store", writable=True) as store:
        store.put_message(
            NewMessage("T", b"1", keys="a", store_timestamp=MOMENT, born_timestamp=np.datetime64(MS, "ms"))
        )
        columns = {"topic": "T", "body": [b"2"], "keys": ["a"], "store_timestamp": [MOMENT + timedelta(minutes=1)]}
        store.put_messages(columns)
        assert [one.store_timestamp for one in store.query_message("T", "a").messages] == [MS, MS + 60_000]
        found = store.query_message("T", "a", begin=MOMENT, end=LATER).messages
        assert [(one.body, one.born_timestamp) for one in found] == [(b"1", MS)]
        queue = store.consume_queue("T", 0)
        assert queue.get_offset_in_queue_by_time(LATER, store.commit_log, boundary="lower") == 1


@pytest.mark.parametrize("times", [pa.array([MOMENT]), pa.array([MOMENT], pa.timestamp("ns")), [MOMENT], MOMENT])
def test_messages_take_times_of_any_unit(times, tmp_path):
    """Arrow's timestamps of ms went in, those of us and ns were "expected whole numbers, got the Arrow format"."""
    columns = {"topic": ["T"], "body": [b"x"], "queue_offset": [0], "store_timestamp": times}
    with CommitLog.open(tmp_path, writable=True) as log:
        log.append_messages(columns)
        if not isinstance(times, (list, datetime)):
            log.append_messages(pa.table({**columns, "store_timestamp": pa.array(times)}))
        assert {moment for batch in log.scan() for moment in batch["store_timestamp"].tolist()} == {MS}


@pytest.mark.parametrize("column", [pa.array([2**63], pa.uint64()), np.array([2**63], np.uint64)])
def test_messages_do_not_take_what_is_too_large(column, tmp_path):
    """A column of uint64 came out negative."""
    with (
        CommitLog.open(tmp_path, writable=True) as log,
        pytest.raises(OverflowError, match=r"^queue_offset: expected 64"),
    ):
        log.append_messages({"topic": ["T"], "body": [b"x"], "queue_offset": column})


def test_time_indexes_take_times(tmp_path):
    with kafka.TimeIndex.create(tmp_path / "00000000000000000100.timeindex", 100, max_index_size=120) as index:
        index.maybe_append(MOMENT, 105)
        index.append_many(np.array([MS + 60_000], "M8[ms]"), [110])
        assert index.lookup(LATER) == (MS, 105)
        assert index.lookup(MOMENT + timedelta(hours=1)).offset == 110
        assert index.lookup_many([MOMENT, MOMENT + timedelta(hours=1)])[1].tolist() == [105, 110]
        with pytest.raises(ValueError, match=r"^target: expected a datetime with a time zone"):
            index.lookup(NAIVE)


MESSAGE = bytes.fromhex("00000000000000070000001839268c3301000000018bcfe56800000000016b0000000176")  # at MS - 123


def test_partitions_take_times(tmp_path):
    log = tmp_path / "T-0" / "00000000000000000007.log"
    log.parent.mkdir()
    log.write_bytes(MESSAGE)
    with kafka.PartitionLog.open(log.parent) as partition:
        assert partition.offset_for_timestamp(MOMENT - timedelta(seconds=1)).offset == 7
        assert partition.offset_for_timestamp(LATER) is None
        assert partition.offsets_for_timestamps([MOMENT - timedelta(seconds=1), MOMENT])[1].tolist() == [7, -1]
    with kafka.LogSegment.open(log) as segment:
        assert segment.find_offset_by_timestamp(MOMENT - timedelta(seconds=1)).offset == 7


# ---- periods that nothing can be in


def periods(tmp_path, index):
    with IndexService.open(tmp_path) as service:
        yield lambda **period: index.select_phy_offset("T#a", **period).tolist()
        yield lambda **period: index.select_phy_offsets(["T#a"], **period)[0].tolist()
        yield lambda **period: service.query_offset("T", "a", **period).phy_offsets.tolist()
        yield lambda **period: service.query_offsets("T", ["a"], **period)[0].tolist()


def test_a_period_that_ends_before_it_begins_is_told(tmp_path, index):
    """It was answered with nothing, without a word."""
    for ask in periods(tmp_path, index):
        with pytest.warns(UserWarning, match=f"^begin {MS} is after end {MS - 1}: ") as told:
            assert ask(begin=MS, end=MOMENT - timedelta(milliseconds=1)) == []
        assert [warning.filename for warning in told] == [__file__]


def test_a_period_in_seconds_is_told(tmp_path, index):
    for ask in periods(tmp_path, index):
        with pytest.warns(UserWarning, match=r"^begin 1700000000 is a time in 1970: .* in seconds\?$") as told:
            assert ask(begin=1_700_000_000) == [100]  # the broker's answer all the same
        assert [warning.filename for warning in told] == [__file__]
        with pytest.warns(UserWarning, match=r"^end 1700000000 is"):
            assert ask(end=1_700_000_000) == []


def test_a_store_tells_it_once(tmp_path):
    with MessageStore.open(tmp_path / "store", writable=True) as store:
        store.put_message(NewMessage("T", b"1", keys="a", store_timestamp=MS))
        with pytest.warns(UserWarning, match="in seconds") as told:
            assert len(store.query_message("T", "a", begin=1_700_000_000).messages) == 1
        assert [warning.filename for warning in told] == [__file__]


def test_ordinary_periods_are_answered_silently(tmp_path, index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in periods(tmp_path, index):
            assert ask() == ask(begin=0, end=MS + 1000) == ask(begin=MS, end=MS) == [100]


# ---- a float where an int is meant


def whole_calls(index, service, log, queue, offsets, segment, partition, aborted):
    yield "phy_offset", lambda number: index.put_key("T#a", number, MS)
    yield "max_num", lambda number: index.select_phy_offset("T#a", max_num=number)
    yield "max_num", lambda number: index.select_phy_offsets(["T#a"], max_num=number)
    yield "start", index.entries
    yield "stop", lambda number: index.entries(1, number)
    yield "max_num", lambda number: service.query_offset("T", "a", max_num=number)
    yield "max_num", lambda number: service.query_offsets("T", ["a"], max_num=number)
    yield "min_phy_offset", service.delete_expired_file
    yield "start", lambda number: next(log.scan(number))
    yield "stop", lambda number: next(log.scan(0, number))
    yield "phy_offset", log.get_message
    yield "queue_offset", lambda number: log.append_message(NewMessage("T", b"x"), queue_offset=number)
    yield "queue_id", lambda number: NewMessage("T", b"x", queue_id=number)
    yield "flag", lambda number: NewMessage("T", b"x", flag=number)
    yield "start", queue.units
    yield "stop", lambda number: queue.units(0, number)
    yield "start", lambda number: queue.select(["a"], number)
    yield "phy_offset", lambda number: queue.put_message_position_info(number, 100, 0, 0)
    yield "size", lambda number: queue.put_message_position_info(0, number, 0, 0)
    yield "tags_code", lambda number: queue.put_message_position_info(0, 100, number, 0)
    yield "queue_offset", lambda number: queue.put_message_position_info(0, 100, 0, number)
    yield "min_phy_offset", queue.correct_min_offset
    yield "phy_offset", queue.truncate_dirty_logic_files
    yield "target", offsets.lookup
    yield "targets", lambda number: offsets.lookup_many([number])
    yield "offset", lambda number: offsets.append(number, 0)
    yield "position", lambda number: offsets.append(100, number)
    yield "offset", offsets.truncate_to
    yield "new_size", offsets.resize
    yield "number", offsets.entry
    yield "start", offsets.entries
    yield "stop", lambda number: offsets.entries(0, number)
    yield "start", segment.batches
    yield "stop", lambda number: segment.batches(0, number)
    yield "offset", segment.read
    yield "max_bytes", lambda number: segment.read(7, max_bytes=number)
    yield "offset", segment.translate_offset
    yield "starting_position", lambda number: segment.translate_offset(7, number)
    yield "starting_offset", lambda number: segment.find_offset_by_timestamp(MS, number)
    yield "offset", partition.read
    yield "max_bytes", lambda number: partition.read(7, max_bytes=number)
    yield "offset", partition.translate_offset
    yield "start", lambda number: partition.collect_aborted_transactions(number, 9)
    yield "upper", lambda number: partition.collect_aborted_transactions(7, number)
    yield "fetch_offset", lambda number: aborted.collect_aborted_txns(number, 9)
    yield "upper_bound_offset", lambda number: aborted.collect_aborted_txns(0, number)
    yield "offset", aborted.truncate_to


@pytest.mark.parametrize("number", [1.5, 7.0, True], ids=repr)
def test_a_float_where_an_int_is_meant_is_not_cut(number, tmp_path, index):
    log_file = tmp_path / "T-0" / "00000000000000000007.log"
    log_file.parent.mkdir()
    log_file.write_bytes(MESSAGE)
    with (
        IndexService.open(tmp_path / "index", hash_slot_num=5, index_num=9, writable=True) as service,
        CommitLog.open(tmp_path / "log", writable=True) as log,
        ConsumeQueue.open(tmp_path / "queue", writable=True) as queue,
        kafka.OffsetIndex.create(tmp_path / "00000000000000000000.index", 0, max_index_size=80) as offsets,
        kafka.LogSegment.open(log_file) as segment,
        kafka.PartitionLog.open(log_file.parent) as partition,
        kafka.TransactionIndex.open(tmp_path / "00000000000000000000.txnindex", writable=True) as aborted,
    ):
        log.append_message(NewMessage("T", b"x"), queue_offset=0)
        offsets.append_many([1, 2, 3], [10, 20, 30])
        bent = []
        for name, call in whole_calls(index, service, log, queue, offsets, segment, partition, aborted):
            try:
                call(number)
                bent.append((name, "taken"))
            except (TypeError, ValueError) as error:
                if not (isinstance(error, TypeError) and str(error).startswith(f"{name}: expected ")):
                    bent.append((name, str(error)))
        assert bent == []


EDGES = sorted({sign * (1 << power) + step for power in (0, 15, 29, 30, 31, 45, 59, 60, 61, 62) for step in (-1, 0, 1)
                for sign in (1, -1)} | {2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63})  # fmt: skip


def test_single_calls_take_every_number_of_64_bits(tmp_path: Path) -> None:
    with IndexFile.create(tmp_path / "1", hash_slot_num=5, index_num=200) as index:
        for number in EDGES:
            assert index.put_key("T#a", number, 1_700_000_000_000)
        with index.writer() as writer:
            for number in EDGES:
                assert writer.put_key("T#a", number, 1_700_000_000_000)
        assert index.entries()["phy_offset"].tolist() == EDGES * 2
        for number in (2**63, -(2**63) - 1, 2**64, 2**90):
            with pytest.raises(OverflowError, match="phy_offset: expected 64 bits"):
                index.put_key("T#a", number, 1_700_000_000_000)
