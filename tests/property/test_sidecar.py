"""Look-ups by fence and filter are those of the slots: any file, any window, whatever was appended or damaged since."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.key_filter import AskedHashes
from mqindex.columns.keys import key_hashes
from mqindex.rocketmq import IndexFile
from mqindex.rocketmq.layout import INDEX_ENTRY_SIZE
from mqindex.rocketmq.sidecar.layout import FENCE_HEADER_SIZE, FENCE_SAMPLE
from mqindex.rocketmq.sidecar.names import FILTER
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import KeyFilter, fence_of, optimised
from tests.support.optimised import NAME, never_in_memory, put_store

T0 = 1_700_000_000_000
KEYS = [f"T#{number}" for number in range(400)] + ["", "T#Aa", "T#BB", "polygenelubricants"]
OTHERS = [f"T#absent {number}" for number in range(300)]
rows = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(0, 1 << 40), st.integers(T0 - 5000, T0 + 60_000)), min_size=1
)
numbers = st.tuples(st.integers(1, 900), st.integers(0, 6), st.integers(0, 1 << 30))
windows = st.tuples(
    st.sampled_from([0, 1, 3, 64]),
    st.one_of(st.just(0), st.integers(T0 - 9000, T0 + 60_000)),
    st.one_of(st.just((1 << 63) - 1), st.integers(T0 - 9000, T0 + 60_000)),
)


@pytest.fixture(scope="module", autouse=True)
def _cold() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        never_in_memory(patch)
        yield


@st.composite
def files(draw: st.DrawFn) -> TwinFile:
    """Some of few entries, some of several pages."""
    slots, many, seed = draw(numbers)
    extra = draw(rows)
    puts = [*extra, *((KEYS[(seed + 7 * i * i) % len(KEYS)], i, T0 + 10 * i) for i in range(100 * many))]
    twin = TwinFile(slots, len(puts) + draw(st.integers(1, 40)))
    for put in puts:
        twin.put(*put)
    return twin


def require_answers(path: Path, twin: TwinFile, asked: list[tuple[int, int, int]], *, used: bool | None = None) -> None:
    """Single calls and one in bulk, as the twin answers."""
    names = KEYS + OTHERS
    with IndexFile.open(path, hash_slot_num=twin.hash_slot_num, index_num=twin.index_num) as index:
        if used is not None:
            assert (index._sidecars is not None) == used
        for most, begin, end in asked:
            expected = [twin.select(name, most, begin, end) for name in names]
            values, offsets = index._select_hashes(key_hashes(names), most, begin=begin, end=end)
            assert [values[i:j].tolist() for i, j in pairwise(offsets)] == expected
            for name, hits in zip(names[::7], expected[::7], strict=True):
                assert index._select_between(name, most, begin, end).tolist() == hits


@given(files(), st.lists(windows, min_size=1, max_size=2))
@settings(max_examples=25)
def test_answers_are_those_of_the_slots(twin: TwinFile, asked: list[tuple[int, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), twin)
        moved = optimised(twin)
        for name in KEYS:
            assert moved.select(name) == twin.select(name)
        require_answers(path, moved, asked, used=True)


@given(files())
@settings(max_examples=25)
def test_the_files_are_as_the_format_says(twin: TwinFile) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), twin)
        moved = optimised(twin)
        side = Path(root, "mqindex-index")
        slots = (side / f"{NAME}.fence").read_bytes()[FENCE_HEADER_SIZE:]
        assert [int.from_bytes(slots[i : i + 4], "big") for i in range(0, len(slots), 4)] == fence_of(moved)
        keys = KeyFilter((side / FILTER).read_bytes(), 0)
        there = {hashed for hashed, *_ in moved.entries()}
        assert all(keys.may_hold(hashed) for hashed in there)
        asked = key_hashes(KEYS + OTHERS).tolist()
        expected = [moved.slot(hashed % twin.hash_slot_num) if keys.may_hold(hashed) else 0 for hashed in asked]
        with IndexFile.open(path, hash_slot_num=twin.hash_slot_num, index_num=twin.index_num) as index:
            assert index._sidecars is not None
            found = index._sidecars.search.heads(index._core, AskedHashes(key_hashes(KEYS + OTHERS)))
            assert found is not None and found.tolist() == expected
            assert index._sidecars.search.wrong_page(index._core) is None
            assert index._sidecars.filter is not None
            assert index._sidecars.filter.rows.missing_entry(0, index._core, index._sidecars.covered) is None
        if len(there) > 50:
            wrongly = sum(map(keys.may_hold, set(asked) - there))
            assert wrongly <= 12  # of some 300, where 1 of 256 is expected


@given(files(), rows, st.lists(windows, min_size=1, max_size=2))
@settings(max_examples=25)
def test_entries_that_were_appended_are_found(
    twin: TwinFile, more: list[tuple[str, int, int]], asked: list[tuple[int, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), twin)
        moved = optimised(twin)
        geometry = {"hash_slot_num": twin.hash_slot_num, "index_num": twin.index_num}
        with IndexFile.open(path, **geometry) as reader, IndexFile.open(path, **geometry, writable=True) as writer:
            assert reader._sidecars is not None
            for put in more:
                writer.put_key(*put)
                moved.put(*put)
                assert reader._select_between(put[0], 64, 0, T0 * 2).tolist() == moved.select(put[0], 64, 0, T0 * 2)
        require_answers(path, moved, asked, used=moved.index_count == twin.index_count)


@given(
    files(),
    st.sampled_from([f"{NAME}.fence", FILTER]),
    st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(1, 255)), min_size=1, max_size=3),
    st.booleans(),
)
@settings(max_examples=50)
def test_damaged_side_files_change_no_answer(
    twin: TwinFile, kind: str, damage: list[tuple[int, int]], cut: bool
) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), twin)
        side = Path(root, "mqindex-index", kind)
        data = bytearray(side.read_bytes())
        for place, mask in damage:
            data[place % len(data)] ^= mask
        side.write_bytes(data[: damage[0][0] % len(data)] if cut else data)
        require_answers(path, optimised(twin), [(64, 0, (1 << 63) - 1)])


@given(st.integers(1, 500), st.integers(0, 0x7FFFFFFF))
@settings(max_examples=60)
def test_a_damaged_hash_costs_no_more_keys_than_in_the_slots(number: int, hashed: int) -> None:
    twin = TwinFile(5000, 600)
    for i in range(500):
        twin.put(f"T#{i % 190}", i, T0 + 10 * i)
    damaged = optimised(twin)
    taken = {entry % twin.hash_slot_num for entry, *_ in damaged.entries()}
    while hashed % twin.hash_slot_num in taken:
        hashed = (hashed + 1) & 0x7FFFFFFF
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), twin)
        struct.pack_into(">i", damaged.data, 40 + 4 * twin.hash_slot_num + 20 * number, hashed)
        path.write_bytes(damaged.data)
        require_answers(path, damaged, [(64, 0, (1 << 63) - 1)])


@given(files(), files())
@settings(max_examples=10)
def test_side_files_of_another_file_are_not_used(one: TwinFile, other: TwinFile) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = put_store(Path(root), one)
        same = optimised(one).data == optimised(other).data
        if len(one.data) == len(other.data) and not same and one.hash_slot_num == other.hash_slot_num:
            path.write_bytes(optimised(other).data)
            require_answers(path, optimised(other), [(64, 0, (1 << 63) - 1)], used=False)
        if optimised(one).data != one.data and one.index_count > 1:
            path.write_bytes(one.data)  # rebuilt in the order of the log: the header is the same
            with IndexFile.open(path, hash_slot_num=one.hash_slot_num, index_num=one.index_num) as index:
                if index._sidecars is not None:  # the order differs, but nowhere in the sample
                    sample = slice(40 + 4 * one.hash_slot_num, None)
                    same = INDEX_ENTRY_SIZE * (FENCE_SAMPLE + 1)
                    assert one.data[sample][:same] == optimised(one).data[sample][:same]
