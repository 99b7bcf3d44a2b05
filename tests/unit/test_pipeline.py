"""Between the stages: byte ranges, slices and the cuts into files, checked against plain lists."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqindex.rocketmq.log.log_entries import NO_TAGS, LogSpan
from mqindex.rocketmq.pipeline.splits import LogRange, assign, cut, take
from mqindex.rocketmq.pipeline.stages import Slice


def numbered(slices):
    """A slice as the entries it names."""
    return [(piece.path, piece.first + i) for piece in slices for i in range(piece.count)]


COUNTS = st.lists(st.integers(0, 9), max_size=6)
RUNS = COUNTS.map(lambda counts: [Slice(f"run{i}", 0, n) for i, n in enumerate(counts)])


@given(RUNS, st.integers(0, 30), st.integers(0, 60))
def test_take_is_a_slice_of_the_sequence(runs, skip, count):
    left = deque(runs)
    assert numbered(take(left, skip)) == numbered(runs)[:skip]
    assert numbered(take(left, count)) == numbered(runs)[skip : skip + count]
    assert numbered(left) == numbered(runs)[skip + count :]


@given(RUNS, st.integers(2, 7), st.booleans())
def test_files_take_index_num_minus_one_entries_each(runs, index_num, more):
    parts = assign(runs, out="", geometry=(5, index_num), more=more, empty=True)
    entries, capacity = numbered(runs), index_num - 1
    expected = [entries[at : at + capacity] for at in range(0, len(entries), capacity)] or [[]]
    if more and len(expected[-1]) == capacity:
        expected.append([])
    assert [numbered(part.slices) for part in parts] == expected
    for before, part in zip(expected, parts[1:], strict=False):
        assert numbered([part.seed]) == before[-1:]
    assert parts[0].seed is None


@given(RUNS, st.integers(2, 7), st.integers(1, 6))
def test_a_file_with_room_is_continued_first(runs, index_num, room):
    room = min(room, index_num - 1)
    parts = assign(runs, out="", geometry=(5, index_num), seed=(1, 2), base="old", room=room)
    entries = numbered(runs)
    if not entries:
        assert parts == []
    else:
        assert (parts[0].base, parts[0].seed) == ("old", None)
        assert numbered(parts[0].slices) == entries[:room]
        assert [entry for part in parts for entry in numbered(part.slices)] == entries


@pytest.mark.parametrize(("room", "more", "files"), [(0, True, 1), (0, False, 0), (3, True, 0)])
def test_behind_a_full_file_a_message_without_keys_gets_an_empty_file(room, more, files):
    parts = assign([], out="", geometry=(5, 4), seed=(7, 8), room=room, more=more)
    assert [part.seed for part in parts] == [(7, 8)] * files


@given(st.lists(st.integers(1, 50), min_size=1, max_size=4), st.integers(1, 60), st.integers(0, 99), st.integers(0, 99))
def test_splits_tile_a_stretch_without_crossing_a_file(sizes, split_size, start, stop):
    spans, at = [], 0
    for i, size in enumerate(sizes):
        spans.append(LogSpan(f"log{i}", at, at + size))
        at += size
    splits = cut(spans, LogRange(start, stop), split_size, tags=NO_TAGS, out=None)
    assert [b for split in splits for b in range(split.start, split.stop)] == list(range(start, min(stop, at)))
    for split in splits:
        assert split.span.file_start <= split.start < split.stop <= split.span.stop
        assert split.stop - split.start <= split_size
        assert split.resync == (split.start not in (start, split.span.file_start))
