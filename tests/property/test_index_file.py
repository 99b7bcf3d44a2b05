"""The kernels against the twin, on random files: every put, every look-up, damaged bytes included."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.index_file import IndexCore
from mqindex.columns.keys import key_batch, key_hashes
from tests.reference.index_file import MAX_TIME
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.java import decode_utf8
from tests.reference.java import key_hash as twin_hash

RUN = np.dtype([("key_hash", "<i4"), ("phy_offset", "<i8"), ("store_timestamp", "<i8")])
T0 = 1_700_000_000_000
INT64 = st.integers(-(1 << 63), MAX_TIME)
times = st.one_of(st.integers(T0, T0 + 100_000), st.sampled_from([0, -1, 1, T0 - 5000, MAX_TIME, -(1 << 63)]), INT64)
keys = st.one_of(
    st.sampled_from(["a", "b", "Aa", "BB", "", "消息", "polygenelubricants", "\ud83d"]), st.text(max_size=40)
)
puts = st.lists(st.tuples(keys, INT64, times), max_size=60)
geometries = st.tuples(st.integers(1, 30), st.integers(1, 50))
seeds = st.tuples(st.sampled_from([0, 5, -5]), st.sampled_from([0, T0, -1, MAX_TIME - 10]))
blows = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from([0, 1, 2, 7, 49, 50, 2**31 - 1, 2**32 - 1])), max_size=6
)
windows = st.tuples(st.sampled_from([0, 1, 3, 64]), st.one_of(times, st.just(0)), st.one_of(times, st.just(MAX_TIME)))


def columns(rows: list[tuple[str, int, int]]) -> tuple[list[str], Any, Any]:
    names, phys, stamps = zip(*rows, strict=True) if rows else ((), (), ())
    return list(names), np.array(phys, np.int64), np.array(stamps, np.int64)


def twin_and_core(geometry: tuple[int, int], seed: tuple[int, int]) -> tuple[TwinFile, bytearray, IndexCore]:
    twin, data = TwinFile(*geometry, *seed), bytearray(40 + 4 * geometry[0] + 20 * geometry[1])
    core = IndexCore(data, *geometry, True)
    core.seed(*seed)
    return twin, data, core


@given(geometries, seeds, puts, st.integers(0, 60))
def test_puts_in_bulk_leave_the_twin_s_bytes(
    geometry: tuple[int, int], seed: tuple[int, int], rows: list[tuple[str, int, int]], cut: int
) -> None:
    twin, data, core = twin_and_core(geometry, seed)
    stored = [twin.put(*row) for row in rows]
    for part, expected in ((rows[:cut], stored[:cut]), (rows[cut:], stored[cut:])):
        names, phys, stamps = columns(part)
        assert core.put_keys(key_batch(names), phys, stamps) == sum(expected)
    assert data == twin.data


@given(geometries, seeds, puts, st.integers(0, 60))
def test_puts_of_runs_leave_the_twin_s_bytes(
    geometry: tuple[int, int], seed: tuple[int, int], rows: list[tuple[str, int, int]], cut: int
) -> None:
    twin, data, core = twin_and_core(geometry, seed)
    stored = sum(twin.put(*row) for row in rows)
    run = np.array([(twin_hash(key), phy, time) for key, phy, time in rows], RUN)
    assert core.put_run(run[:cut]) + core.put_run(run[cut:]) == stored
    assert data == twin.data


@given(geometries, seeds, puts, blows, st.lists(windows, min_size=1, max_size=4))
@settings(max_examples=300)
def test_look_ups_in_any_bytes_are_the_twin_s(
    geometry: tuple[int, int],
    seed: tuple[int, int],
    rows: list[tuple[str, int, int]],
    damage: list[tuple[int, int]],
    asked: list[tuple[int, int, int]],
) -> None:
    built = TwinFile(*geometry, *seed)
    for row in rows:
        built.put(*row)
    data = built.data
    for place, value in damage:
        at = place % (len(data) // 4) * 4
        data[at : at + 4] = value.to_bytes(4, "big")
    twin = TwinFile.load(bytes(data), *geometry)
    core = IndexCore(bytes(data), *geometry, False)
    names = [key for key, *_ in rows] + ["a", "absent"]
    hashes = key_hashes(names)
    for most, begin, end in asked:
        expected = [twin.select(name, most, begin, end) for name in names]
        for limits in (most, np.full(len(names), most, np.int32)):
            values, offsets = core.select_hashes(hashes, limits, begin, end)
            assert [values[i:j].tolist() for i, j in pairwise(offsets)] == expected
    assert list(zip(*(column.tolist() for column in core.entries()), strict=True)) == list(twin.entries())
    assert core.slots().tolist() == [twin.slot(number) for number in range(geometry[0])]
    assert len(core.check()) <= 100
    core.fits()
    core.fits(16)


@given(geometries, seeds, puts)
def test_what_was_put_has_no_fault_and_fits(
    geometry: tuple[int, int], seed: tuple[int, int], rows: list[tuple[str, int, int]]
) -> None:
    twin = TwinFile(*geometry, *seed)
    for row in rows:
        twin.put(*row)
    core = IndexCore(bytes(twin.data), *geometry, False)
    assert core.check() == []
    assert core.fits() and core.fits(16)


@given(st.lists(st.text(max_size=80), max_size=40), st.one_of(st.none(), st.text(max_size=20)))
def test_any_text_hashes_as_the_twin_s(words: list[str], topic: str | None) -> None:
    prefix = "" if topic is None else topic + "#"
    expected = [twin_hash(prefix + word) for word in words]
    assert key_hashes(words, topic=topic).tolist() == expected
    wide = np.array([word + "." for word in words], "U")
    assert key_hashes(wide, topic=topic).tolist() == [twin_hash(f"{prefix}{word}.") for word in words]


@given(st.lists(st.binary(max_size=60), max_size=40))
def test_any_bytes_hash_as_the_twin_s(words: list[bytes]) -> None:
    array = np.array([word + b"." for word in words], "S")
    assert key_hashes(array).tolist() == [twin_hash(decode_utf8(word + b".")) for word in words]
