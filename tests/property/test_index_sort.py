"""Bringing entries together against its twin: the same bytes, the same answers, files that verify and go on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.index_file import IndexCore
from mqindex._native.index_sort import sort_into
from mqindex.columns.keys import key_batch, key_hashes
from mqindex.errors import FileStateError
from tests.property.test_index_file import geometries, keys, puts, seeds, times, windows
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.index_sort import sort

Rows = list[tuple[str, int, int]]


def built(geometry: tuple[int, int], seed: tuple[int, int], rows: Rows) -> TwinFile:
    twin = TwinFile(*geometry, *seed)
    for row in rows:
        twin.put(*row)
    return twin


def sorted_core(twin: TwinFile, geometry: tuple[int, int]) -> tuple[bytearray, IndexCore]:
    data = bytearray(40 + 4 * geometry[0] + 20 * geometry[1])
    core = IndexCore(data, *geometry, True)
    sort_into(IndexCore(bytes(twin.data), twin.hash_slot_num, twin.index_num, False), core)
    return data, core


@given(geometries, seeds, puts, st.integers(1, 3000), st.integers(0, 9))
@settings(max_examples=300)
def test_the_bytes_are_the_twin_s(
    geometry: tuple[int, int], seed: tuple[int, int], rows: Rows, slots: int, more: int
) -> None:
    twin = built(geometry, seed, rows)
    for new in (geometry, (slots, geometry[1] + more)):
        data, core = sorted_core(twin, new)
        assert data == sort(twin, *new).data
        assert core.check() == []
        assert core.order()[0] == max(twin.index_count, 1) - 1


@given(geometries, seeds, puts, st.integers(1, 60), st.lists(windows, min_size=1, max_size=4))
@settings(max_examples=200)
def test_answers_and_their_order_stay(
    geometry: tuple[int, int], seed: tuple[int, int], rows: Rows, slots: int, asked: list[tuple[int, int, int]]
) -> None:
    twin = built(geometry, seed, rows)
    names = [key for key, *_ in rows] + ["a", "absent"]
    hashes = key_hashes(names)
    _, same = sorted_core(twin, geometry)
    for most, begin, end in asked:
        values, offsets = same.select_hashes(hashes, most, begin, end)
        assert [values[i:j].tolist() for i, j in pairwise(offsets)] == [
            twin.select(name, most, begin, end) for name in names
        ]
    _, other = sorted_core(twin, (slots, geometry[1]))  # time ends a walk at an entry of the slot, so: all times
    values, offsets = other.select_hashes(hashes, 64, -(1 << 63), (1 << 63) - 1)
    expected = [twin.select(name, 64, -(1 << 63), (1 << 63) - 1) for name in names]
    assert [values[i:j].tolist() for i, j in pairwise(offsets)] == expected


@given(geometries, seeds, puts, st.lists(st.tuples(keys, st.integers(0, 1 << 40), times), max_size=20))
def test_puts_go_on_behind(geometry: tuple[int, int], seed: tuple[int, int], rows: Rows, later: Rows) -> None:
    twin = built(geometry, seed, rows)
    data, core = sorted_core(twin, geometry)
    twin = sort(twin, *geometry)
    stored = sum(twin.put(*row) for row in later)
    names, phys, stamps = zip(*later, strict=True) if later else ((), (), ())
    assert core.put_keys(key_batch(list(names)), np.array(phys, np.int64), np.array(stamps, np.int64)) == stored
    assert data == twin.data
    assert core.check() == []


@given(geometries, seeds, puts, st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**32 - 1)), max_size=6))
@settings(max_examples=200)
def test_any_bytes_end(
    geometry: tuple[int, int], seed: tuple[int, int], rows: Rows, blows: list[tuple[int, int]]
) -> None:
    twin = built(geometry, seed, rows)
    for place, value in blows:
        at = place % (len(twin.data) // 4) * 4
        twin.data[at : at + 4] = value.to_bytes(4, "big")
    _, core = sorted_core(twin, geometry)
    core.check()
    core.order()


def test_a_slot_with_most_entries_does_not_take_their_memory() -> None:
    n = 1_500_000  # of one slot: 30 MB, more than what is sorted in memory
    run = np.zeros(n, np.dtype([("key_hash", "=i4"), ("phy_offset", "=i8"), ("store_timestamp", "=i8")]))
    run["key_hash"] = np.where(np.arange(n) % 1000, 7, np.arange(n) * 13 % 1000)
    run["phy_offset"] = np.arange(n)
    run["store_timestamp"] = 1_700_000_000_000
    source, target = (IndexCore(bytearray(40 + 4 * 1000 + 20 * (n + 1)), 1000, n + 1, True) for _ in range(2))
    assert source.put_run(run) == n
    sort_into(source, target)
    assert target.check() == []
    assert target.order()[0] == n
    values, _ = target.select_hashes(np.array([7], np.int32), 2**31 - 1, 0, 2**62)
    assert np.array_equal(values, run["phy_offset"][run["key_hash"] == 7][::-1])


def test_a_file_that_grew_beyond_the_room_is_said() -> None:
    twin = built((3, 8), (0, 0), [("a", 1, 1), ("b", 2, 2), ("c", 3, 3)])
    with pytest.raises(FileStateError, match="written meanwhile"):
        sorted_core(twin, (3, 3))
