"""Consume queues against their twin: puts, cuts and expiry in any order, reopened in between; the kernels alone too."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native import consume_queue as native
from mqindex.rocketmq import CommitLog, ConsumeQueue
from mqindex.rocketmq.log.log_entries import UNIT
from tests.reference import consume_queue as twin
from tests.support.log_writer import LogMessage, LogWriter

INT64 = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
INT32 = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
OFFSETS = st.one_of(st.integers(0, 12), st.integers(0, 2**63 // 20 - 1000))


@st.composite
def raw_units(draw: st.DrawFn, *, queues: int = 1) -> Any:
    """Any units, in a log's order or not."""
    row = st.tuples(INT64, st.integers(-2, 20), INT64, INT64, INT32, st.integers(0, queues - 1))
    return np.array(draw(st.lists(row, max_size=40)), UNIT)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[Any, ...]]]:
    """A file size, and steps: puts of messages that follow each other in the log, cuts, reopening."""
    steps: list[tuple[Any, ...]] = []
    phy, queue_offset = draw(st.integers(0, 3)) * 50, draw(OFFSETS)
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["put", "put", "put", "one", "cut", "reopen"]))
        if kind == "put":
            rows = []
            for _ in range(draw(st.integers(0, 14))):
                jump = draw(st.sampled_from([0, 0, 0, 0, 0, 1, -1, -3, 5]))
                size = draw(st.integers(91, 120))
                rows.append((phy, max(queue_offset + jump, 0), draw(INT64), 0, size, 0))
                phy, queue_offset = phy + size, queue_offset + 1
            steps.append((kind, rows))
        elif kind == "one":  # perhaps again, perhaps from the start of the queue
            again = draw(st.integers(0, 300))
            place = draw(st.sampled_from([0, queue_offset]))
            steps.append((kind, (max(phy - again, 0), place, draw(INT64), 0, draw(st.integers(1, 120)), 0)))
        elif kind == "cut":
            phy = draw(st.integers(0, phy + 50))
            steps.append((kind, phy))
        else:
            steps.append((kind,))
    return 20 * draw(st.integers(1, 6)), steps


def test_a_message_before_the_cut_of_an_empty_queue_is_put_no_more(tmp_path: Path) -> None:
    """`ConsumeQueue.truncateDirtyLogicFiles` sets maxPhysicOffset before it looks for files (4.9.3)."""
    with ConsumeQueue.open(tmp_path, file_size=20, writable=True) as queue:
        queue.truncate_dirty_logic_files(1)
        assert queue._put_units(np.array([(0, 0, 0, 0, 1, 0)], UNIT)) == (0, 1, 0)
        assert queue._put_units(np.array([(1, 0, 0, 0, 1, 0)], UNIT)) == (1, 0, 0)


@given(histories(), st.data())
def test_a_queue_does_what_its_twin_does(
    tmp_path_factory: Any, history: tuple[int, list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    size, steps = history
    directory = tmp_path_factory.mktemp("queue")
    other, queue = twin.ConsumeQueue(size), ConsumeQueue.open(directory, file_size=size, writable=True)
    for kind, *argument in steps:
        if kind in ("put", "one"):
            rows = argument[0] if kind == "put" else argument
            fates = [other.put(row[0], row[4], row[2], row[1]) for row in rows]
            counts = [fates.count(fate) for fate in ("repeated", "misplaced")]
            assert queue._put_units(np.array(rows, UNIT)) == (len(rows) - counts[0], *counts)
        elif kind == "cut":
            other.truncate(argument[0])
            queue.truncate_dirty_logic_files(argument[0])
        else:
            queue.close()
            queue = ConsumeQueue.open(directory, file_size=size, writable=True)
            if other.first >= other.end:
                other.max_phy_offset = -1  # what memory knew of an empty queue
        same(queue, other)
    queue.flush()
    queue.close()
    assert {int(path.name): path.read_bytes() for path in directory.iterdir()} == other.files
    with ConsumeQueue.open(directory, file_size=size) as reader:
        same(reader, other)
        low = data.draw(st.integers(0, max(other.max_phy_offset, 0) + 60))
        start, stop = data.draw(OFFSETS), data.draw(OFFSETS)
        assert rows_of(reader, start, stop) == other.units(start, stop)
        assert reader.correct_min_offset(low) == reader.min_offset_in_queue == other.min_offset(low)


def same(queue: ConsumeQueue, other: twin.ConsumeQueue) -> None:
    assert queue.max_offset_in_queue == other.end
    assert rows_of(queue, None, None) == other.units()
    if other.first < other.end:
        assert (queue.min_offset_in_queue, queue.max_phy_offset) == (other.first, other.max_phy_offset)


def rows_of(queue: ConsumeQueue, start: int | None, stop: int | None) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in queue.units(start, stop).values()), strict=True))


@given(st.binary(max_size=300), st.data())
def test_units_of_any_bytes_are_read_as_struct_reads_them(data: bytes, draw: st.DataObject) -> None:
    places = len(data) // 20
    start = draw.draw(st.integers(0, places))
    stop = draw.draw(st.integers(start, places))
    rows = [struct.unpack_from(">qiq", data, 20 * n) for n in range(start, stop)]
    assert list(zip(*(column.tolist() for column in native.decode_units(data, start, stop)), strict=True)) == rows
    assert [native.unit_at(data, n) for n in range(start, stop)] == rows
    assert native.check_units(data, start, stop) == start + twin.valid_units(data[20 * start : 20 * stop])
    hashes = draw.draw(st.lists(INT32, max_size=3)) + [(r[2] & 0xFFFFFFFF ^ 2**31) - 2**31 for r in rows[::2]]
    wanted = {value & 0xFFFFFFFF for value in hashes}
    passing = [n for n, row in enumerate(rows, start) if row[2] & 0xFFFFFFFF in wanted or row[2] < -(2**31)]
    assert native.select_tags(data, start, stop, np.array(hashes, np.int32)).tolist() == passing


@st.composite
def log_and_units(draw: st.DrawFn) -> tuple[list[tuple[int, int]], bytes]:
    """The files of a log, with holes between them and a last one that is not full, and units around their borders."""
    log, at = [], draw(st.integers(0, 100))
    for size in draw(st.lists(st.integers(1, 50), max_size=4)):
        log.append((at, at + size))
        at += size + draw(st.sampled_from([0, 0, 30]))
    borders = [place for part in log for place in part] or [0]
    near = st.tuples(st.sampled_from(borders), st.integers(-12, 12)).map(sum)
    codes = st.one_of(st.integers(-2, 6), INT64)
    units = st.tuples(st.one_of(near, near, INT64), st.one_of(st.integers(0, 12), INT32), codes)
    return log, b"".join(struct.pack(">qiq", *unit) for unit in draw(st.lists(units, max_size=40)))


@given(log_and_units(), st.one_of(st.none(), st.lists(st.integers(-2, 6), max_size=7)), st.integers(0, 45), st.data())
def test_units_are_taken_while_there_is_room_and_those_that_the_log_lacks_have_no_size(
    given_: tuple[list[tuple[int, int]], bytes], hashes: list[int] | None, room: int, draw: st.DataObject
) -> None:
    log, data = given_
    cut = draw.draw(st.integers(0, len(data) // 20))
    unsigned = None if hashes is None else {value & 0xFFFFFFFF for value in hashes}
    parts = np.array([[begin for begin, _ in log], [end for _, end in log]], np.int64)
    wanted = None if hashes is None else np.array(hashes, np.int32)
    taker = native.UnitTaker(wanted, parts, room, codes=True)
    first, at = twin.taken(data[: 20 * cut], 0, unsigned, log, room)
    assert taker.take(data, 0, cut, 100) == at
    second, at = twin.taken(data, cut, unsigned, log, room - len(first))
    assert taker.take(data, cut, len(data) // 20, 200) == at  # as the units of another file
    expected = [(q + 100, *rest) for q, *rest in first] + [(q + 200, *rest) for q, *rest in second]
    assert list(zip(*(column.tolist() for column in taker.columns()), strict=True)) == expected
    gone = sum(size == 0 for _, _, size, _ in expected)
    assert (taker.found, taker.gone, taker.full) == (len(expected), gone, len(expected) == room)


@given(raw_units(queues=5))
def test_grouping_is_a_stable_sort(units: Any) -> None:
    into, same = native.group_units(units, 5, np.empty(45, UNIT))
    grouped, offsets = native.group_units(units, 5)
    assert (into == grouped).all() and (same == offsets).all()
    line, phys, places = 0, [5, *units["phy_offset"].tolist()], units["queue_offset"].tolist()
    while line < len(units) and phys[line] < phys[line + 1] and 0 <= places[line] == places[0] + line < 9:
        line += 1
    assert native.count_in_line(units, 5, 9) == line
    assert native.are_sound(units) == all(phy >= 0 and size > 0 for phy, _, _, _, size, _ in units.tolist())
    for queue in range(5):
        assert (grouped[offsets[queue] : offsets[queue + 1]] == units[units["queue"] == queue]).all()
    assert offsets[0] == 0 and offsets[-1] == len(units)


@given(raw_units(), st.integers(0, 12), st.integers(-1, 300))
def test_encoding_keeps_and_drops_as_the_broker(units: Any, next_offset: int, max_phy_offset: int) -> None:
    expected, repeated, misplaced = bytearray(), 0, 0
    at, end = next_offset, max_phy_offset
    for phy, queue_offset, code, _, size, _ in units.tolist():
        behind = (phy + size + 2**63) % 2**64 - 2**63
        if behind <= end or (queue_offset != 0 and queue_offset < at):
            repeated += 1
            continue
        misplaced += queue_offset > at
        expected += struct.pack(">qiq", phy, size, code)
        at, end = at + 1, behind
    data, *rest = native.encode_units(units, next_offset, max_phy_offset)
    assert (bytes(data), rest) == (bytes(expected), [end, repeated, misplaced])
    first = next_offset - 1
    stored = [(units["phy_offset"][n], units["size"][n], units["tags_code"][n]) for n in range(len(units))]
    there = [struct.unpack_from(">qiq", bytes(data), at) for at in range(0, len(data), 20)]
    differing = [
        n
        for n, queue_offset in enumerate(units["queue_offset"].tolist())
        if not 0 <= queue_offset - first < len(there) or there[queue_offset - first] != stored[n]
    ]
    assert native.compare_units(data, first, units).tolist() == differing


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 1000]), min_size=1, max_size=20),
    st.integers(1, 4),
    st.integers(0, 4),
    st.data(),
)
def test_times_that_never_decrease_are_found_at_their_boundaries(
    tmp_path_factory: Any, steps: list[int], units_in_file: int, begin: int, data: st.DataObject
) -> None:
    root: Path = tmp_path_factory.mktemp("times")
    times = np.cumsum(steps).tolist()
    writer = LogWriter(root / "log")
    phys = writer.write(*(LogMessage(store_timestamp=time + 1, queue_offset=begin + n) for n, time in enumerate(times)))
    sizes = [size for _, size in writer.frames]
    times = [time + 1 for time in times]
    with (
        ConsumeQueue.open(root / "queue", file_size=20 * units_in_file, writable=True) as queue,
        CommitLog.open(root / "log") as log,
    ):
        for n, phy in enumerate(phys):
            queue.put_message_position_info(phy, sizes[n], 0, begin + n)
        ms = data.draw(st.one_of(st.sampled_from(times), st.integers(0, times[-1] + 3)))
        later = [n for n, time in enumerate(times, begin) if time >= ms]
        earlier = [n for n, time in enumerate(times, begin) if time <= ms]
        expected = later[0] if later else begin + len(times)
        assert queue.get_offset_in_queue_by_time(ms, log, boundary="lower") == expected
        assert queue.get_offset_in_queue_by_time(ms, log, boundary="upper") == (earlier[-1] if earlier else begin)
