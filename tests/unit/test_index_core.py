"""`IndexFile` below its calls: decoding and checking, threads, the buffer."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mqindex._native.index_file import IndexCore
from mqindex.columns.keys import key_batch
from mqindex.errors import ClosedFileError, GeometryError, ReadOnlyFileError
from mqindex.rocketmq import IndexFile
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.java import key_hash as twin_hash
from tests.unit.test_index_file import BYTES, PUTS, T0

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


@pytest.mark.parametrize("at", [40 + 4 * 90, 40 + 4 * 101 + 20 * 150 + 16])
def test_content_that_leads_behind_the_file_does_not_fit(at: int) -> None:
    """Also where it is asked for before its turn: far behind the first slot, or before the last entry."""
    twin = TwinFile(101, 400)
    for i in range(300):
        twin.put(f"k{i}", i, T0)
    data = bytearray(twin.data)
    data[at : at + 4] = (0x7FFFFFF0).to_bytes(4, "big")
    assert not IndexCore(bytes(data), 101, 400, False).fits()


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
        assert index.is_write_full() and index._check() == []
        found = index.select_phy_offsets([f"{n}-{i}" for n in range(threads) for i in range(each)]).to_pylist()
        assert [sorted(hits) for hits in found] == [sorted([i, 7]) for i in range(each * threads)]


def test_readers_beside_a_writer_see_whole_entries_only(path: Path) -> None:
    n = 20000
    with IndexFile.create(path, hash_slot_num=97, index_num=n + 1) as index:
        done = threading.Event()

        def read() -> None:
            hashes = key_batch([f"k{i}" for i in range(50)]).hashes()
            while not done.is_set():
                values, offsets = index._select_hashes(hashes, 10**6)
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
    for options in ({"hash_slot_num": 6, "index_num": 8}, {"hash_slot_num": 10, "index_num": 7}):
        with pytest.raises(GeometryError):
            IndexFile.open(path, **options)
