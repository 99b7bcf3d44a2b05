"""`IndexFile`: the worked examples of the format document, refusals, states."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.index_file import IndexCore
from mqindex.columns.keys import key_batch
from mqindex.errors import ClosedFileError, GeometryError, ReadOnlyFileError, TruncatedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import IndexFile, optimize
from mqindex.rocketmq.index import geometry
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
    values, offsets = index._select_hashes(hashes, np.array([2, 5, 0, -1], np.int32))
    assert values.tolist() == [6, 5] and offsets.tolist() == [0, 2, 2, 2, 2]
    with pytest.raises(ValueError, match="limits"):
        index._select_hashes(hashes, np.array([1], np.int32))


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
    for bad, error in (([1.5], TypeError), ([float("nan")], ValueError), (["1"], TypeError), ([None], ValueError)):
        with pytest.raises(error, match="phy_offsets"):
            index.put_keys(["a"], bad, [1])
        with pytest.raises(error, match="store_timestamps"):
            index.put_keys(["a"], [1], bad)
    with pytest.raises(TypeError, match="phy_offsets"):
        index.put_keys(["a"], np.array(["2020-01-01"], "M8[ms]"), [1])
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
        index._check,
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


def filled(path: Path, entries: int = 300) -> None:
    with IndexFile.create(path, hash_slot_num=101, index_num=400) as index:
        index.put_keys([f"k{i}" for i in range(entries)], np.arange(entries), np.full(entries, T0))


@pytest.mark.parametrize("given", [{"hash_slot_num": 6}, {"index_num": 399}, {"hash_slot_num": 96, "index_num": 401}])
@pytest.mark.parametrize("writable", [False, True])
def test_geometry_that_the_content_refutes_is_refused(path: Path, given: dict[str, int], writable: bool) -> None:
    """Of the right length, because one half follows from it: every answer was rubbish, and no error."""
    filled(path)
    before = path.read_bytes()
    with pytest.raises(GeometryError, match="another geometry than was given") as caught:
        IndexFile.open(path, writable=writable, **given)
    assert caught.value.path == str(path)
    assert caught.value.expected == "hash_slot_num 101, index_num 400, by their content"
    assert all(f"{name} {value}" in str(caught.value.got) for name, value in given.items())
    assert path.read_bytes() == before
    with IndexFile.open(path, writable=writable, hash_slot_num=101) as index:
        assert index.select_phy_offset("k7").tolist() == [7]


@pytest.mark.parametrize("what", ["no entry", "damaged", "zeros"])
def test_what_shows_no_other_geometry_refutes_none(path: Path, what: str) -> None:
    filled(path, 0 if what == "no entry" else 300)
    if what == "damaged":
        with path.open("r+b") as file:
            file.seek(40)
            file.write(b"\0\0\1\0" * 101)
    elif what == "zeros":
        path.write_bytes(bytes(path.stat().st_size))
    with IndexFile.open(path, hash_slot_num=96) as index:
        assert (index.hash_slot_num, index.index_num) == (96, 401)


def test_geometry_of_an_optimized_file_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    filled(tmp_path / "index" / "20231114221320000")
    optimize(tmp_path / "index", tmp_path / "out")
    with IndexFile.open(tmp_path / "out" / "index" / "20231114221320000", hash_slot_num=101) as index:
        assert index.select_phy_offset("k7").tolist() == [7]
    with pytest.raises(GeometryError, match="another geometry than was given"):
        IndexFile.open(tmp_path / "out" / "index" / "20231114221320000", hash_slot_num=96)


def test_a_given_geometry_that_fits_is_told_by_a_few_pages(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the default length may be cold."""
    filled(path)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the whole file is read")

    monkeypatch.setattr(MappedFile, "populate", refuse)
    monkeypatch.setattr(geometry, "infer", refuse)
    with IndexFile.open(path, hash_slot_num=101) as index:
        assert index.select_phy_offset("k7").tolist() == [7]


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
            index._check,
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


def test_only_what_is_in_use_is_read_ahead(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it a file that a broker left sparse would fill the page cache with zeros."""
    asked: list[int | None] = []
    monkeypatch.setattr(MappedFile, "populate", lambda _, stop=None: asked.append(stop))
    with IndexFile.create(path, hash_slot_num=5, index_num=1000) as index:
        index._check()
        index.put_keys(["a", "b", "c"], [0, 1, 2], [T0] * 3)
        index._check()
        set_count(path, 2**31 - 1)
        index._check()
    assert asked == [40 + 5 * 4 + 20, 40 + 5 * 4 + 4 * 20, path.stat().st_size]


def set_count(path: Path, index_count: int) -> None:
    with path.open("r+b") as file:
        file.seek(36)
        file.write(index_count.to_bytes(4, "big"))
