"""`IndexFile`: the worked examples of the format document, refusals, states, threads."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._keys import key_batch
from mqindex._native.index_file import IndexCore
from mqindex.errors import ClosedFileError, GeometryError, ReadOnlyFileError, TruncatedFileError
from mqindex.rocketmq import IndexFile
from mqindex.rocketmq.layout import MAX_TIMESTAMP, RUN_ENTRY_SIZE
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.java import key_hash as twin_hash

T0 = 1_700_000_000_000
PUTS = [("T#k1", 0, T0), ("T#k2", 200, T0 + 999), ("T#k6", 400, T0 + 2500), ("T#k4", 600, T0 - 1000)]
BYTES = bytes.fromhex(
    "0000018bcfe56800 0000018bcfe56418 0000000000000000 0000000000000258 00000003 00000005"
    "00000003 00000002 00000000 00000004 00000000"
    "00000000 0000000000000000 00000000 00000000"
    "0026bfb5 0000000000000000 00000000 00000000"
    "0026bfb6 00000000000000c8 00000000 00000000"
    "0026bfba 0000000000000190 00000002 00000001"
    "0026bfb8 0000000000000258 00000000 00000000"
) + bytes(60)
RUN = np.dtype([("key_hash", "<i4"), ("phy_offset", "<i8"), ("store_timestamp", "<i8")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "20231114221320000"


@pytest.fixture
def index(path: Path) -> Iterator[IndexFile]:
    with IndexFile.create(path, hash_slot_num=5, index_num=8) as file:
        yield file


def core_of(data: bytearray, slots: int = 5, entries: int = 8) -> IndexCore:
    return IndexCore(data, slots, entries, True)


# ---- the worked examples (rocketmq.md 2.12)


def test_puts_one_by_one_leave_the_documented_bytes(index: IndexFile, path: Path) -> None:
    assert all(index.put_key(*put) for put in PUTS)
    assert path.read_bytes() == BYTES
    assert tuple(index.header) == (T0, T0 - 1000, 0, 600, 3, 5)


def test_puts_in_bulk_leave_the_documented_bytes(index: IndexFile, path: Path) -> None:
    keys, phys, times = zip(*PUTS, strict=True)
    assert index.put_keys([key[2:] for key in keys], phys, times, topic="T") == 4
    assert path.read_bytes() == BYTES


def test_puts_of_a_run_leave_the_documented_bytes() -> None:
    data = bytearray(len(BYTES))
    run = np.array([(twin_hash(key), phy, time) for key, phy, time in PUTS], RUN)
    assert RUN.itemsize == RUN_ENTRY_SIZE
    assert core_of(data).put_run(run) == 4
    assert data == BYTES


def test_documented_queries(index: IndexFile) -> None:
    for put in PUTS:
        index.put_key(*put)
    assert index.select_phy_offset("T#k1").tolist() == [0]
    assert index.select_phy_offset("T#k6", begin=T0, end=T0 + 2000).tolist() == [400]
    assert index.select_phy_offset("T#k9").tolist() == []
    assert index.select_phy_offsets(["k1", "k9", "k6"], topic="T").to_pylist() == [[0], [], [400]]


def test_rolled_file_keeps_the_quirk_of_its_first_entry(path: Path) -> None:
    seeds = {"end_phy_offset": 600, "end_timestamp": T0 + 2500}
    with IndexFile.create(path, hash_slot_num=5, index_num=8, **seeds) as index:
        assert path.read_bytes()[:40].hex() == "0000018bcfe571c4" * 2 + "0000000000000258" * 2 + "00" * 8
        assert index.put_key("T#k5", 800, T0 + 10000)
        assert index.entries()["time_diff"].tolist() == [7]
        assert index.select_phy_offset("T#k5", begin=T0 + 10000, end=T0 + 10000).tolist() == []
        assert index.select_phy_offset("T#k5", begin=T0 + 10000, end=T0 + 17000).tolist() == [800]


def test_file_of_eight_takes_seven_keys(index: IndexFile) -> None:
    assert [index.put_key(f"k{i}", i, T0) for i in range(9)] == [True] * 7 + [False] * 2
    assert index.is_write_full()
    assert index.put_keys(["more"], [1], [T0]) == 0


def test_bulk_put_says_how_many_had_room(index: IndexFile) -> None:
    assert not index.is_write_full()
    assert index.put_keys([f"k{i}" for i in range(100)], np.arange(100), np.full(100, T0)) == 7
    assert index.entries()["phy_offset"].tolist() == list(range(7))


def test_geometry_is_found_in_the_content(path: Path) -> None:
    with IndexFile.create(path, hash_slot_num=101, index_num=400) as index:
        index.put_keys([f"k{i}" for i in range(300)], np.arange(300), np.full(300, T0))
    with IndexFile.open(path) as found:
        assert (found.hash_slot_num, found.index_num) == (101, 400)
        assert found.select_phy_offset("k7").tolist() == [7]


def test_file_without_puts_says_0_until_it_is_flushed(index: IndexFile, path: Path) -> None:
    assert index.header.index_count == 1
    assert path.read_bytes() == bytes(220)
    index.flush()
    assert path.read_bytes()[36:40] == b"\0\0\0\1"


# ---- limits of a query


def test_max_num_may_be_anything(index: IndexFile, path: Path) -> None:
    with IndexFile.create(path.with_name("big"), hash_slot_num=3, index_num=5000) as big:
        big.put_keys(["a"] * 4999, np.arange(4999), np.full(4999, T0))
        newest_first = list(range(4998, -1, -1))
        for most in (0, 1, 63, 64, 65, 256, 257, 4998, 4999, 5000, 1 << 31, 1 << 62):
            assert big.select_phy_offset("a", max_num=most).tolist() == newest_first[:most]
            assert big.select_phy_offsets(["a", "b", "a"], max_num=most).to_pylist() == [
                newest_first[:most],
                [],
                newest_first[:most],
            ]


def test_each_key_may_have_its_own_limit(index: IndexFile) -> None:
    index.put_keys(["a"] * 7, np.arange(7), np.full(7, T0))
    hashes = key_batch(["a", "b", "a", "a"]).hashes()
    values, offsets = index.select_hashes(hashes, np.array([2, 5, 0, -1], np.int32))
    assert values.tolist() == [6, 5] and offsets.tolist() == [0, 2, 2, 2, 2]
    with pytest.raises(ValueError, match="limits"):
        index.select_hashes(hashes, np.array([1], np.int32))


def test_negative_max_num_is_refused(index: IndexFile) -> None:
    with pytest.raises(ValueError, match="max_num"):
        index.select_phy_offset("a", max_num=-1)
    with pytest.raises(ValueError, match="max_num"):
        index.select_phy_offsets(["a"], max_num=-1)


def test_more_keys_than_a_block_answer_in_their_order(path: Path) -> None:
    with IndexFile.create(path, hash_slot_num=7000, index_num=20000) as index:
        keys = [f"k{i % 9000}" for i in range(18000)]
        index.put_keys(keys, np.arange(18000), np.full(18000, T0))
        asked = [f"k{i * 31 % 12000}" for i in range(12000)]
        expected = [[9000 + int(key[1:]), int(key[1:])] if int(key[1:]) < 9000 else [] for key in asked]
        assert index.select_phy_offsets(asked).to_pylist() == expected


def test_times_at_the_end_of_64_bits_wrap_as_java(path: Path) -> None:
    """Bulk look-ups have a code path of their own for them."""
    for begin in (MAX_TIMESTAMP - 5000, MAX_TIMESTAMP - (2**31 - 1) * 1000, -5000):
        twin, data = TwinFile(3, 40), bytearray(40 + 12 + 800)
        core = core_of(data, 3, 40)
        puts = [(f"k{i % 4}", i, begin + 700 * i) for i in range(8)]
        for put in puts:
            twin.put(*put)
        names, phys, times = zip(*puts, strict=True)
        core.put_keys(key_batch(names), np.array(phys), np.array(times))
        assert data == twin.data
        for low, high in ((0, MAX_TIMESTAMP), (begin, begin + 1000), (begin + 2000, MAX_TIMESTAMP), (-(2**63), 0)):
            for diff in (None, 2**31 - 1):
                if diff is not None:
                    twin.data[52 + 7 * 20 + 12 : 52 + 7 * 20 + 16] = diff.to_bytes(4, "big")
                    data[:] = twin.data
                keys = [f"k{i}" for i in range(5)]
                hashes = key_batch(keys).hashes()
                values, at = core.select_hashes(hashes, 64, low, high)
                assert [values[i:j].tolist() for i, j in pairwise(at)] == [
                    twin.select(key, 64, low, high) for key in keys
                ]
        core.close()


# ---- wrong arguments


def test_lengths_must_agree(index: IndexFile, path: Path) -> None:
    before = path.read_bytes()
    for keys, phys, times in ((["a"], [1, 2], [1]), (["a"], [1], []), (["a", "b"], [1], [1])):
        with pytest.raises(ValueError, match="one length"):
            index.put_keys(keys, phys, times)
    with pytest.raises(ValueError, match="position 1"):
        index.put_keys(["a", None], [1, 2], [1, 2])
    assert path.read_bytes() == before


@pytest.mark.parametrize("key", [None, 1, b"a", ["a"]])
def test_key_must_be_text(index: IndexFile, key: Any) -> None:
    with pytest.raises(TypeError, match="key"):
        index.put_key(key, 1, 1)
    with pytest.raises(TypeError, match="key"):
        index.select_phy_offset(key)


def test_numpy_scalars_are_integers_and_floats_are_not(index: IndexFile) -> None:
    assert index.put_key("a", np.int64(5), np.int32(7))
    assert index.select_phy_offset(np.str_("a")).tolist() == [5]
    with pytest.raises(TypeError):
        index.put_key("a", 1.5, 1)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        index.put_key("a", 1 << 63, 1)
    for bad in ([1.5], [float("nan")], ["1"], [None], np.array(["2020-01-01"], "M8[ms]")):
        with pytest.raises(TypeError, match="phy_offsets"):
            index.put_keys(["a"], bad, [1])
        with pytest.raises(TypeError, match="store_timestamps"):
            index.put_keys(["a"], [1], bad)
    with pytest.raises(OverflowError, match="phy_offsets"):
        index.put_keys(["a"], [1 << 63], [1])
    with pytest.raises(TypeError):
        index.put_keys(["a"], [[1]], [1])
    assert index.put_keys([], [], []) == 0


def test_arrays_of_another_kind_are_refused_below_the_public_call() -> None:
    core = core_of(bytearray(220))
    batch = key_batch(["a"])
    good = np.zeros(1, np.int64)
    for bad in (np.zeros(1), np.zeros(1, np.int32), np.zeros((1, 1), np.int64), np.zeros(1, ">i8"), b"12345678"):
        with pytest.raises(TypeError):
            core.put_keys(batch, bad, good)
        with pytest.raises(TypeError):
            core.put_keys(batch, good, bad)
    with pytest.raises((TypeError, BufferError, ValueError)):
        core.put_keys(batch, np.zeros(2, np.int64)[::2], np.zeros(4, np.int64)[::2])
    with pytest.raises(ValueError, match="multiple"):
        core.put_run(bytes(21))
    with pytest.raises(ValueError):
        core.put_keys(batch, good, good, 2)


# ---- states


def test_closed_file_is_an_error_of_its_own(path: Path) -> None:
    index = IndexFile.create(path, hash_slot_num=5, index_num=8)
    before = path.read_bytes()
    index.close()
    index.close()
    assert index.closed
    calls: list[Any] = [
        lambda: index.put_key("a", 1, 1),
        lambda: index.select_phy_offset("a"),
        lambda: index.put_keys(["a"], [1], [1]),
        lambda: index.select_phy_offsets(["a"]),
        lambda: index.header,
        lambda: index.is_time_matched(1, 2),
        index.is_write_full,
        index.entries,
        index.slots,
        index.flush,
        index.check,
    ]
    for call in calls:
        with pytest.raises(ClosedFileError) as caught:
            call()
        assert caught.value.path == str(path)
    assert path.read_bytes() == before


def test_read_only_file_refuses_puts_and_stays_as_it_is(path: Path) -> None:
    path.write_bytes(BYTES)
    path.chmod(0o444)
    with IndexFile.open(path, hash_slot_num=5, index_num=8) as index:
        for call in (lambda: index.put_key("a", 1, 1), lambda: index.put_keys(["a"], [1], [1])):
            with pytest.raises(ReadOnlyFileError, match="writable=True"):
                call()
        index.flush()
        assert index.select_phy_offset("T#k6").tolist() == [400]
    assert path.read_bytes() == BYTES


def test_file_that_is_there_is_not_created_again(path: Path) -> None:
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        IndexFile.create(path, hash_slot_num=5, index_num=8)
    assert path.read_bytes() == b"precious"


def test_wrong_geometry_names_the_options(path: Path) -> None:
    path.write_bytes(BYTES)
    with pytest.raises(GeometryError, match=r"hash_slot_num= and index_num=") as caught:
        IndexFile.open(path, hash_slot_num=6, index_num=8)
    assert (caught.value.expected, caught.value.got) == (224, 220)
    with pytest.raises(GeometryError):
        IndexCore(bytearray(220), 5, 9, False)
    with pytest.raises(TruncatedFileError):
        path.write_bytes(b"")
        IndexFile.open(path, hash_slot_num=6, index_num=8)


def test_reader_sees_what_another_writer_puts(path: Path, index: IndexFile) -> None:
    with IndexFile.open(path, hash_slot_num=5, index_num=8) as reader:
        assert reader.select_phy_offset("a").tolist() == []
        index.put_key("a", 5, T0)
        assert reader.select_phy_offset("a").tolist() == [5]
        assert reader.header.index_count == 2
        index.put_keys(["a"], [6], [T0])
        assert reader.select_phy_offsets(["a"]).to_pylist() == [[6, 5]]


def test_file_cut_while_open_is_an_error_and_no_signal(path: Path) -> None:
    with IndexFile.create(path, hash_slot_num=5, index_num=40000) as index:
        os.truncate(path, 4096)
        for call in (
            lambda: index.select_phy_offsets(["a"]),
            lambda: index.put_keys(["a"], [1], [1]),
            index.entries,
            index.slots,
            index.check,
        ):
            with pytest.raises(TruncatedFileError, match="cut"):
                call()


def test_sparse_file_takes_its_space_as_it_fills(path: Path) -> None:
    with IndexFile.create(path, hash_slot_num=1000, index_num=1_000_000, sparse=True) as index:
        assert path.stat().st_blocks * 512 < 1 << 20
        assert index.put_key("a", 1, T0)
        assert index.put_keys(["b"] * 200_000, np.arange(200_000), np.full(200_000, T0)) == 200_000
        assert 4_000_000 <= path.stat().st_blocks * 512 < 12_000_000
    with IndexFile.open(path, hash_slot_num=1000, index_num=1_000_000, writable=True) as index:
        assert index.put_key("a", 2, T0)
        assert index.select_phy_offset("a").tolist() == [2, 1]


def test_created_file_owns_its_space(path: Path) -> None:
    with IndexFile.create(path, hash_slot_num=1000, index_num=100_000):
        assert path.stat().st_blocks * 512 >= 2_000_000


# ---- decoding and checking


def test_entries_are_clamped_to_those_that_exist(index: IndexFile) -> None:
    for put in PUTS:
        index.put_key(*put)
    columns = index.entries()
    assert {name: column.tolist() for name, column in columns.items()} == {
        "key_hash": [twin_hash(key) for key, *_ in PUTS],
        "phy_offset": [0, 200, 400, 600],
        "time_diff": [0, 0, 2, 0],
        "prev_index": [0, 0, 1, 0],
    }
    ranges = [(2, 4), (-5, 3), (4, 99), (5, None), (3, 2), (99, None), (1, 0), (1, -1)]
    lengths = [index.entries(*part).num_rows for part in ranges]
    assert lengths == [2, 2, 1, 0, 0, 0, 0, 0]
    assert index.slots().tolist() == [3, 2, 0, 4, 0]


FAULTS = [  # (byte, bytes, kind, number)
    (36, "00000009", "index_count", -1),
    (36, "ffffffff", "index_count", -1),
    (32, "00000009", "hash_slot_count", -1),
    (16, "0000000000000001", "begin_phy_offset", -1),
    (24, "0000000000000001", "end_phy_offset", -1),
    (8, "0000018bcfe56ff0", "end_timestamp", -1),
    (40, "00000009", "slot", 0),
    (40, "ffffffff", "slot", 0),
    (40, "00000001", "slot_head", 0),
    (48, "00000002", "slot_head", 2),
    (60 + 20 * 2, "ffffffff", "key_hash", 2),
    (60 + 20 * 2 + 12, "ffffffff", "time_diff", 2),
    (60 + 20 * 3 + 16, "00000000", "prev_index", 3),
    (60 + 20 * 3 + 16, "00000003", "prev_index", 3),
    (60 + 20 * 3 + 16, "00000002", "prev_index", 3),
]


@pytest.mark.parametrize(("at", "value", "kind", "number"), FAULTS)
def test_every_contradiction_is_found_where_it_is(at: int, value: str, kind: str, number: int) -> None:
    data = bytearray(BYTES)
    assert core_of(bytearray(data)).check() == []
    data[at : at + len(value) // 2] = bytes.fromhex(value)
    faults = core_of(data).check()
    assert (kind, number, at) in {fault[:3] for fault in faults}
    for _, _, _, expected, got in faults:
        assert expected != got


def test_both_ways_of_counting_slots_are_sound() -> None:
    data = bytearray(BYTES)
    data[32:36] = (4).to_bytes(4, "big")  # brokers up to 4.7.0 count entries
    assert core_of(data).check() == []


def test_faults_are_told_up_to_a_hundred() -> None:
    assert len(core_of(bytearray(b"\x7f" * (40 + 4000 + 20000)), 1000, 1000).check()) == 100


def test_content_fits_its_geometry_and_no_other() -> None:
    twin = TwinFile(101, 400)
    for i in range(300):
        twin.put(f"k{i}", i, T0)
    for slots in range(1, 500, 5):
        core = IndexCore(bytes(twin.data), slots, 400 - (slots - 101) // 5, False)
        assert core.fits() == (slots == 101)
        assert core.fits(16) == (slots == 101)


def test_put_that_a_kill_cut_short_still_fits() -> None:
    """Entry written, slot set, not yet counted: the broker accepts a head that equals the count."""
    data = bytearray(BYTES)
    data[36:40] = (4).to_bytes(4, "big")
    core = core_of(data)
    assert core.fits() and core.fits(16)
    assert [kind for kind, *_ in core.check() if kind == "slot_head"] == ["slot_head"]


# ---- threads


def test_puts_of_many_threads_are_all_there(path: Path) -> None:
    each, threads = 3000, 4
    with IndexFile.create(path, hash_slot_num=997, index_num=2 * each * threads + 1) as index:

        def fill(number: int) -> None:
            keys = [f"{number}-{i}" for i in range(each)]
            phys = np.arange(each) + number * each
            for start in range(0, each, 500):
                part = slice(start, start + 500)
                assert index.put_keys(keys[part], phys[part], np.full(500, T0)) == 500
                for key in keys[part]:
                    assert index.put_key(key, 7, T0)

        run_threads([threading.Thread(target=fill, args=(number,)) for number in range(threads)])
        assert index.is_write_full() and index.check() == []
        found = index.select_phy_offsets([f"{n}-{i}" for n in range(threads) for i in range(each)]).to_pylist()
        assert [sorted(hits) for hits in found] == [sorted([i, 7]) for i in range(each * threads)]


def test_readers_beside_a_writer_see_whole_entries_only(path: Path) -> None:
    n = 20000
    with IndexFile.create(path, hash_slot_num=97, index_num=n + 1) as index:
        done = threading.Event()

        def read() -> None:
            hashes = key_batch([f"k{i}" for i in range(50)]).hashes()
            while not done.is_set():
                values, offsets = index.select_hashes(hashes, 10**6)
                for i in range(50):
                    hits = values[offsets[i] : offsets[i + 1]]
                    assert (hits % 50 == i).all() and (np.diff(hits) < 0).all()
                assert (index.select_phy_offset("k7") % 50 == 7).all()

        readers = [threading.Thread(target=read) for _ in range(2)]
        for thread in readers:
            thread.start()
        for start in range(0, n, 100):
            numbers = np.arange(start, start + 100)
            index.put_keys([f"k{i % 50}" for i in numbers], numbers, T0 + numbers)
        done.set()
        for thread in readers:
            thread.join()


def test_closing_under_load_is_safe(path: Path) -> None:
    IndexFile.create(path, hash_slot_num=97, index_num=5000).close()
    for _ in range(20):
        index = IndexFile.open(path, hash_slot_num=97, index_num=5000, writable=True)
        ended: list[BaseException] = []

        def use(index: IndexFile = index, ended: list[BaseException] = ended) -> None:
            keys = [f"k{i}" for i in range(3000)]
            try:
                while True:
                    index.select_phy_offsets(keys)
                    index.select_phy_offset("k1")
                    index.put_key("k1", 1, T0)
            except BaseException as error:
                ended.append(error)  # noqa: B023 - bound by the except clause

        users = [threading.Thread(target=use) for _ in range(3)]
        for thread in users:
            thread.start()
        index.close()
        for thread in users:
            thread.join()
        assert [type(error) for error in ended] == [ClosedFileError] * 3


def run_threads(threads: list[threading.Thread]) -> None:
    failures: list[BaseException] = []
    hook, threading.excepthook = threading.excepthook, lambda told: failures.append(told.exc_value)  # type: ignore[arg-type,return-value]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = hook
    assert failures == []


# ---- the buffer


def test_buffer_is_pinned_until_close() -> None:
    data = mmap.mmap(-1, 220)
    core = IndexCore(data, 5, 8, True)
    with pytest.raises(BufferError):
        data.close()
    core.close()
    assert core.closed
    data.close()


def test_read_only_buffer_is_no_place_for_puts() -> None:
    with pytest.raises((BufferError, TypeError)):
        IndexCore(bytes(220), 5, 8, True)
    core = IndexCore(bytes(220), 5, 8, False)
    for call in (
        lambda: core.put_run(b""),
        lambda: core.seed(1, 1),
        core.flush_header,
        lambda: core.put_keys(key_batch(["a"]), np.zeros(1, np.int64), np.zeros(1, np.int64)),
    ):
        with pytest.raises(ReadOnlyFileError):
            call()


def test_failed_open_leaves_nothing_open(path: Path) -> None:
    path.write_bytes(BYTES)
    for options in ({"hash_slot_num": 6, "index_num": 8}, {"hash_slot_num": 0, "index_num": 1}):
        with pytest.raises(GeometryError):
            IndexFile.open(path, **options)
