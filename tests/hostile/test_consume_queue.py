"""Consume queues that no broker leaves: every cut, garbage, strangers, holes; an answer or an `MQIndexError`."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mqindex.errors import MQIndexError
from mqindex.rocketmq import CommitLog, ConsumeQueue, ConsumeQueueTable
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.serving.get_messages import LogParts, get_messages
from mqindex.rocketmq.serving.tag_filter import TagFilter
from tests.reference.consume_queue import UNIT as PACKED
from tests.reference.consume_queue import valid_units
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.tree import contents

FILE_SIZE = 100
COUNT = 13


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A queue of 13 units in three files of 5, and a log that they lead into."""
    writer = LogWriter(tmp_path / "log", mapped_file_size=1024)
    phys = writer.write(*(LogMessage(store_timestamp=1000 * n, queue_offset=n) for n in range(COUNT)))
    with ConsumeQueue.open(tmp_path / "T" / "0", file_size=FILE_SIZE, writable=True) as queue:
        rows = zip(phys, (size for _, size in writer.frames), strict=True)
        queue._put_units(np.array([(phy, n, n, 0, size, 0) for n, (phy, size) in enumerate(rows)], UNIT))
    return tmp_path / "T" / "0"


def paths(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def ask_everything(directory: Path) -> list[int]:
    """Every question once, without changing a byte; the queue offsets that have units."""
    before = contents(directory)
    with ConsumeQueue.open(directory) as queue, CommitLog.open(directory.parents[1] / "log") as log:
        offsets: list[int] = queue.units()["queue_offset"].tolist()
        assert sorted(set(offsets)) == offsets
        assert all(queue.min_offset_in_queue <= offset < queue.max_offset_in_queue for offset in offsets)
        assert set(queue.select(range(COUNT))) <= set(offsets)
        for boundary in (None, "lower", "upper"):
            for ms in (-1, 0, 4500, 2**63 - 1):
                assert queue.get_offset_in_queue_by_time(ms, log, boundary=boundary) >= 0  # type: ignore[arg-type]
        assert queue.max_phy_offset >= -1 or offsets
        for phy_offset in (0, 700, 2**62):
            queue.correct_min_offset(phy_offset)
            assert queue.min_offset_in_queue <= queue.max_offset_in_queue
        repr(queue.files), repr(queue.skipped)
    assert contents(directory) == before
    return offsets


def put_after(directory: Path) -> None:
    """A writer either refuses, or goes on behind what a reader sees, and a reader sees it."""
    with ConsumeQueue.open(directory) as reader:
        known = reader.units()["phy_offset"].tolist()
        end, phy_offset = reader.max_offset_in_queue, max(reader.max_phy_offset, 0)
    with contextlib.suppress(MQIndexError), ConsumeQueue.open(directory, writable=True) as queue:
        if phy_offset > 2**60 or end > 2**50:
            return
        assert queue._put_units(np.array([(phy_offset, end, 0, 0, 100, 0)], UNIT)).written == 1
        with ConsumeQueue.open(directory) as reader:
            assert reader.units()["phy_offset"].tolist() == [*known, phy_offset]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_any_file_cut_anywhere(directory: Path, number: int) -> None:
    whole = {path: path.read_bytes() for path in paths(directory)}
    cut = paths(directory)[number]
    for length in range(FILE_SIZE + 1):
        for path in paths(directory):
            path.unlink()
        for path, data in whole.items():
            path.write_bytes(data[:length] if path == cut else data)
        kept = [n for n in range(COUNT) if n // 5 != number or n % 5 < length // 20]
        assert ask_everything(directory) == kept
        put_after(directory)


def test_a_file_that_is_cut_while_it_is_read(directory: Path) -> None:
    with ConsumeQueue.open(directory) as queue:
        assert queue.units().num_rows == COUNT
        os.truncate(paths(directory)[1], 41)
        assert queue.units()["queue_offset"].tolist() == [*range(7), *range(10, COUNT)]
        os.truncate(paths(directory)[0], 0)
        assert queue.units()["queue_offset"].tolist() == [5, 6, *range(10, COUNT)]


@pytest.mark.parametrize("value", [-(2**63), -1, 0, 1, 2**31 - 1, 2**31, 2**62, 2**63 - 1])
@pytest.mark.parametrize("field", [0, 1, 2])
@pytest.mark.parametrize("number", range(0, COUNT, 3))
def test_each_field_with_any_value(directory: Path, number: int, field: int, value: int) -> None:
    path = paths(directory)[number // 5]
    data = bytearray(path.read_bytes())
    unit = list(PACKED.unpack_from(data, number % 5 * 20))
    unit[field] = value if field != 1 else (value + 2**31) % 2**32 - 2**31
    data[number % 5 * 20 : number % 5 * 20 + 20] = PACKED.pack(*unit)
    path.write_bytes(data)
    valid, blank = unit[0] >= 0 and unit[1] > 0, unit == [0, 2**31 - 1, 0]
    assert ask_everything(directory) == list(range(blank, COUNT if valid else number))
    put_after(directory)


def test_garbage_of_any_kind(directory: Path, rng: random.Random) -> None:
    for _ in range(150):
        for path in paths(directory):
            kind = rng.randrange(4)
            if kind == 0:
                path.write_bytes(rng.randbytes(rng.randrange(3 * FILE_SIZE)))
            elif kind == 1:
                fields = (rng.randrange(2**63), rng.randrange(1, 2**31), rng.randrange(-(2**63), 2**63))
                path.write_bytes(PACKED.pack(*fields) * rng.randrange(12))
            elif kind == 2:
                path.write_bytes(bytes(rng.randrange(2 * FILE_SIZE)))
        ask_everything(directory)
        with contextlib.suppress(MQIndexError), ConsumeQueue.open(directory, writable=True) as queue:
            queue._put_units(np.array([(2**40, rng.randrange(50), 0, 0, 100, 0)], UNIT))
            queue.truncate_dirty_logic_files(rng.randrange(2**41))


def test_units_end_where_the_first_garbage_is(directory: Path, rng: random.Random) -> None:
    (first, *others) = paths(directory)
    for path in others:
        path.unlink()
    for _ in range(100):
        data = first.read_bytes()[: rng.randrange(FILE_SIZE)] + rng.randbytes(rng.randrange(100))
        first.write_bytes(data or b"\0")
        assert len(ask_everything(directory)) == valid_units(first.read_bytes())
        first.write_bytes(b"".join(PACKED.pack(100 * n, 100, n) for n in range(5)))


def test_zero_length_files_are_no_files(directory: Path) -> None:
    for number in range(3):
        keep = paths(directory)[number].read_bytes()
        paths(directory)[number].write_bytes(b"")
        assert ask_everything(directory) == [n for n in range(COUNT) if n // 5 != number]
        paths(directory)[number].write_bytes(keep)


def test_a_zero_length_last_file_is_made_anew_by_the_writer(directory: Path) -> None:
    paths(directory)[2].write_bytes(b"")
    put_after(directory)
    assert [path.stat().st_size for path in paths(directory)] == [FILE_SIZE] * 3


@pytest.mark.parametrize("missing", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_holes_between_files(directory: Path, missing: tuple[int, ...]) -> None:
    for number in reversed(missing):
        paths(directory)[number].unlink()
    assert ask_everything(directory) == [n for n in range(COUNT) if n // 5 not in missing]


def test_strangers_are_passed_over_and_named(directory: Path) -> None:
    strangers = [
        "README",
        "0",
        "00000000000000000100.bak",
        "0000000000000000010x",
        "00000000000000000007",
        "00000000000000000110",
    ]
    for name in strangers:
        (directory / name).write_bytes(PACKED.pack(1, 1, 1) * 5)
    (directory / f"{500:020d}").mkdir()
    (directory / "99999999999999999999").write_bytes(bytes(20))
    assert ask_everything(directory) == list(range(COUNT))
    with ConsumeQueue.open(directory) as queue:
        named = {os.path.basename(one.path) for one in queue.skipped}
    assert named == {*strangers, f"{500:020d}", "99999999999999999999"}


def test_a_file_far_away_is_where_its_name_says(directory: Path) -> None:
    far = 2**62 - 2**62 % 100
    (directory / f"{far:020d}").write_bytes(PACKED.pack(5, 5, 5).ljust(FILE_SIZE, b"\0"))
    assert ask_everything(directory) == list(range(COUNT))
    (paths(directory)[2]).write_bytes(b"".join(PACKED.pack(2000 + n, 100, 0) for n in range(5)))
    assert ask_everything(directory) == [*range(15), far // 20]


def test_messages_on_both_sides_of_a_huge_hole(directory: Path, time_bound: Callable[[float], None]) -> None:
    time_bound(60)
    (_, second, third) = paths(directory)
    far = 2**62 - 2**62 % 100
    third.unlink()
    (directory / f"{far:020d}").write_bytes(second.read_bytes())
    with ConsumeQueue.open(directory) as queue, CommitLog.open(directory.parents[1] / "log") as log:
        assert queue.max_offset_in_queue == far // 20 + 5
        bounds, parts = queue.bounds(), LogParts().of(log)
        for tags in (None, "TagA"):
            asked = queue, bounds, log, parts, 0, 100, TagFilter(tags), ("queue_offset",)
            found = get_messages(*asked)
            assert found.messages["queue_offset"].tolist() == ([] if tags else [*range(10), *range(5, 10)])
            assert found.next_begin_offset == far // 20 + 5
            places = get_messages(*asked, exact=False)
            assert places.messages["queue_offset"].tolist() == (
                [] if tags else [*range(10), *range(far // 20, far // 20 + 5)]
            )
            assert places.next_begin_offset == far // 20 + 5


def test_files_of_several_sizes(directory: Path) -> None:
    (first, second, third) = paths(directory)
    first.write_bytes(first.read_bytes() + PACKED.pack(7, 7, 7) * 9)
    third.write_bytes(third.read_bytes()[:40])
    second.write_bytes(second.read_bytes()[:99])
    assert ask_everything(directory) == [*range(9), 10, 11]


def test_links_and_pipes_in_place_of_files(directory: Path) -> None:
    (directory / f"{300:020d}").symlink_to(directory / "nowhere")
    os.mkfifo(directory / f"{400:020d}")
    with ConsumeQueue.open(directory) as queue:
        assert queue.units()["queue_offset"].tolist() == list(range(COUNT))
        assert len(queue.skipped) == 2


def test_foreign_names_in_a_table(directory: Path) -> None:
    root = directory.parent.parent / "table"
    for name in (b"T/0", b"\xff\xfe/0", b"T/x", b"T/-0", b"T/ 1", b"T/\xd9\xa1", b"a\nb/0"):
        os.makedirs(os.fsencode(root) + b"/" + name)
    with ConsumeQueueTable.open(root) as table:
        assert table.queues() == [("T", 0), ("a\nb", 0)]
        assert len(table.skipped) == 5
        assert [table[name].max_offset_in_queue for name in table] == [0, 0]


def test_a_full_store_of_units_that_lead_nowhere(directory: Path) -> None:
    for path in paths(directory):
        path.write_bytes(b"".join(PACKED.pack(2**50 + n, 100, n) for n in range(5)))
    assert ask_everything(directory) == list(range(15))
