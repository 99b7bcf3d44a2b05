"""Kafka's indexes and the twin: any entries, sorted or not, any targets, any appends."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex._native.kafka_index import available
from mqindex.errors import CapacityError, OutOfOrderError
from mqindex.kafka import OffsetIndex, TimeIndex
from tests.reference import kafka_index as twin

BASES = st.sampled_from([0, 7, 1 << 40, 2**63 - 2**31])
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
sorted_keys = st.lists(st.integers(0, 2**31 - 1), max_size=40, unique=True).map(sorted)
any_keys = st.lists(st.integers(-3, 12) | INT32, max_size=40)


def made(
    kind: type[OffsetIndex] | type[TimeIndex], base: int, entries: Sequence[tuple[int, int]], directory: str
) -> str:
    path = os.path.join(directory, f"{base:020d}.x")
    code = ">ii" if kind is OffsetIndex else ">qi"
    with open(path, "wb") as file:
        file.write(b"".join(struct.pack(code, key, value) for key, value in entries))
    return path


@given(
    BASES, sorted_keys | any_keys, st.lists(INT32, min_size=40, max_size=40), st.lists(INT64, max_size=20), st.data()
)
def test_offset_look_ups(
    base: int, keys: list[int], values: list[int], targets: list[int], data: st.DataObject
) -> None:
    stored = list(zip(keys, values, strict=False))
    entries = [(base + key, value) for key, value in stored]
    near = data.draw(st.lists(st.sampled_from([key for key, _ in entries] or [base]), max_size=20), "near")
    asked = [*targets, *(min(target + step, 2**63 - 1) for target in near for step in (-1, 0, 1))]
    expected = [twin.floor(entries, target, 8, (base, 0)) for target in asked]
    with TemporaryDirectory() as directory, OffsetIndex.open(made(OffsetIndex, base, stored, directory)) as index:
        assert [tuple(index.lookup(target)) for target in asked] == expected
        assert many(index, asked) == expected
        order = sorted(range(len(asked)), key=asked.__getitem__)
        assert many(index, [asked[at] for at in order]) == [expected[at] for at in order]


@given(
    BASES,
    st.lists(INT64 | st.integers(-2, 9), max_size=40),
    st.booleans(),
    st.lists(INT32, min_size=40, max_size=40),
    st.data(),
)
def test_time_look_ups(base: int, keys: list[int], ordered: bool, values: list[int], data: st.DataObject) -> None:
    stored = list(zip(sorted(set(keys)) if ordered else keys, values, strict=False))
    entries = [(key, base + value) for key, value in stored]
    near = data.draw(st.lists(st.sampled_from([key for key, _ in entries] or [0]) | INT64, max_size=20), "near")
    asked = [min(max(target + step, -(2**63)), 2**63 - 1) for target in near for step in (-1, 0, 1)]
    expected = [twin.floor(entries, target, 12, (-1, base)) for target in asked]
    with TemporaryDirectory() as directory, TimeIndex.open(made(TimeIndex, base, stored, directory)) as index:
        assert [tuple(index.lookup(target)) for target in asked] == expected
        assert many(index, asked) == expected
        order = sorted(range(len(asked)), key=asked.__getitem__)
        assert many(index, [asked[at] for at in order]) == [expected[at] for at in order]


def many(index: OffsetIndex | TimeIndex, asked: list[int]) -> list[tuple[int, int]]:
    """The answers of every kernel that this processor can run: they are the same."""
    first, second = index.lookup_many(np.array(asked, np.int64))
    for kernel in available():
        assert np.array_equal(index._core.lookup_many(np.array(asked, np.int64), kernel=kernel), (first, second))
    return list(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 1024, 1025, 2049, 16 * 8 * 16 + 1, 70_000])
def test_every_border_of_nodes_and_layers(n: int) -> None:
    rng = np.random.default_rng(n)
    keys = np.cumsum(rng.integers(1, 30_000 if n == 70_000 else 1000, n))
    asked = np.concatenate([keys - 1, keys, keys + 1, [-5, 2**31 - 1, 2**31, 2**62]])
    rng.shuffle(asked)
    at = np.searchsorted(keys, asked, "right") - 1
    for kind, none in ((OffsetIndex, (100, 0)), (TimeIndex, (-1, 100))):
        with TemporaryDirectory() as directory:
            shift = 100 if kind is OffsetIndex else 0
            stored = list(zip(keys.tolist(), range(n), strict=True))
            with kind.open(made(kind, 100, stored, directory)) as index:
                first, second = index.lookup_many(asked + shift)
                each = [index._core.lookup_many(asked + shift, kernel=kernel) for kernel in available()]
                one = [index.lookup(int(target)) for target in asked[:300] + shift]
            expected = np.where(at >= 0, keys[at] + shift, none[0])
            assert np.array_equal(first, expected)
            assert all(np.array_equal(found, (first, second)) for found in each)
            assert np.array_equal(second, np.where(at >= 0, at + (0 if shift else 100), none[1]))
            assert one == list(zip(first[:300].tolist(), second[:300].tolist(), strict=True))


@given(BASES, sorted_keys | any_keys, INT32, st.booleans())
def test_truncate_to_keeps_what_the_twin_keeps(base: int, keys: list[int], at: int, times: bool) -> None:
    if times:
        entries = [(number, base + key) for number, key in enumerate(keys)]
        stored, size, which = [(number, key) for number, key in enumerate(keys)], 12, 1
    else:
        entries = [(base + key, number) for number, key in enumerate(keys)]
        stored, size, which = [(key, number) for number, key in enumerate(keys)], 8, 0
    kind = TimeIndex if times else OffsetIndex
    with TemporaryDirectory() as directory, kind.open(made(kind, base, stored, directory), writable=True) as index:
        index.truncate_to(base + at)
        assert len(index) == len(twin.truncate_to(entries, base + at, size, lambda entry: entry[which]))


offsets = st.integers(0, 30) | st.sampled_from([-1, 2**31 - 1, 2**31])


@given(BASES, st.lists(st.tuples(offsets, INT32), max_size=12), st.integers(1, 8))
def test_appended_offsets(base: int, given_: list[tuple[int, int]], room: int) -> None:
    entries: list[tuple[int, int]] = []
    why = None
    try:
        for relative, position in given_:
            twin.append_offset(entries, room, base, base + relative, position)
    except twin.Refused as refused:
        why = str(refused)
    with TemporaryDirectory() as directory:
        path = os.path.join(directory, "0.index")
        with OffsetIndex.create(path, base, max_index_size=room * 8 + 5) as index:
            if base + max([relative for relative, _ in given_], default=0) >= 2**63:
                return
            said = raised(lambda: index.append_many([base + r for r, _ in given_], [p for _, p in given_]))
            assert (said is None) == (why is None)
            assert (len(index), index.is_full) == (len(entries), len(entries) >= room)
            index.trim_to_valid_size()
        with open(path, "rb") as file:
            assert file.read() == twin.offset_bytes(entries, base)


@given(
    BASES, st.lists(st.tuples(st.integers(-2, 20), st.integers(0, 30)), max_size=12), st.integers(1, 8), st.booleans()
)
def test_appended_times(base: int, given_: list[tuple[int, int]], room: int, skip: bool) -> None:
    entries: list[tuple[int, int]] = []
    why = None
    try:
        for timestamp, relative in given_:
            twin.maybe_append_time(entries, room, base, timestamp, base + relative, skip)
    except twin.Refused as refused:
        why = str(refused)
    with TemporaryDirectory() as directory:
        path = os.path.join(directory, "0.timeindex")
        with TimeIndex.create(path, base, max_index_size=room * 12) as index:
            times, wanted = [t for t, _ in given_], [base + r for _, r in given_]
            said = raised(lambda: index.maybe_append_many(times, wanted, skip_full_check=skip))
            assert (said is None) == (why is None)
            assert (len(index), index.is_full) == (len(entries), len(entries) >= room - 1)
            index.trim_to_valid_size()
        with open(path, "rb") as file:
            assert file.read() == twin.time_bytes(entries, base)


def raised(call: object) -> Exception | None:
    try:
        call()  # type: ignore[operator]
    except (CapacityError, OutOfOrderError) as error:
        return error
    return None
