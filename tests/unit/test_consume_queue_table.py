"""`ConsumeQueue` by time, and the table of all queues of a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.errors import (
    ClosedFileError,
    FormatError,
    ReadOnlyFileError,
)
from mqindex.rocketmq import CommitLog, ConsumeQueue, ConsumeQueueTable
from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.queue.queue_units import BLANK
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.tree import contents

FIRST = "0" * 20


def units(*numbers: int) -> Any:
    """The units of these messages of a log of messages of 100 bytes, that all are in one queue."""
    return np.array([(n * 100, n, 0, 0, 100, 0) for n in numbers], UNIT)


# ---- by time


def test_what_is_gone_from_the_log_is_too_old(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", mapped_file_size=1024)
    phys = writer.write(*(LogMessage(store_timestamp=1000 * n, body=bytes(200)) for n in range(1, 13)))
    with ConsumeQueue.open(tmp_path / "0", file_size=200, writable=True) as queue:
        for n, (phy, (_, size)) in enumerate(zip(phys, writer.frames, strict=True)):
            queue.put_message_position_info(phy, size, 0, n)
        for path in Path(queue.directory).iterdir():
            os.utime(path, ns=(0, 12_000 * 1_000_000))
        (tmp_path / "log" / FIRST).unlink()
        with CommitLog.open(tmp_path / "log") as log:
            gone = sum(phy < 1024 for phy in phys)
            assert gone
            assert queue.get_offset_in_queue_by_time(500, log) == gone
            assert queue.get_offset_in_queue_by_time(1000 * gone + 2100, log) == gone + 1
            assert queue.get_offset_in_queue_by_time(99_999, log, boundary="lower") == 12
            assert queue.correct_min_offset(log.min_phy_offset) == gone
            assert queue.get_offset_in_queue_by_time(0, log, boundary="lower") == gone
            assert queue.get_offset_in_queue_by_time(0, log, boundary="upper") == gone


def test_equal_times_have_two_boundaries(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    phys = writer.write(*(LogMessage(store_timestamp=time) for time in (1, 5, 5, 5, 5, 9)))
    with (
        ConsumeQueue.open(tmp_path / "0", file_size=200, writable=True) as queue,
        CommitLog.open(tmp_path / "log") as log,
    ):
        for n, (phy, (_, size)) in enumerate(zip(phys, writer.frames, strict=True)):
            queue.put_message_position_info(phy, size, 0, n)
        found = {
            ms: [queue.get_offset_in_queue_by_time(ms, log, boundary=b) for b in ("lower", "upper")] for ms in range(11)
        }
    assert found == {
        0: [0, 0], 1: [0, 0], 2: [1, 0], 3: [1, 0], 4: [1, 0], 5: [1, 4], 6: [5, 4], 7: [5, 4], 8: [5, 4],
        9: [5, 5], 10: [6, 5],
    }  # fmt: skip


def test_brokers_of_4_x_answer_the_nearest_message_of_a_file_chosen_by_its_time(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    phys = writer.write(*(LogMessage(store_timestamp=1000 * n) for n in range(1, 13)))
    with (
        ConsumeQueue.open(tmp_path / "0", file_size=200, writable=True) as queue,
        CommitLog.open(tmp_path / "log") as log,
    ):
        for n, (phy, (_, size)) in enumerate(zip(phys, writer.frames, strict=True)):
            queue.put_message_position_info(phy, size, 0, n)
        for file, modified in zip(queue.files, (5_000, 12_000), strict=True):
            os.utime(file.path, ns=(0, modified * 1_000_000))
        asked = (0, 1000, 1499, 1500, 1501, 4999, 5000, 5001, 11_499, 11_501, 99_999)
        found = [queue.get_offset_in_queue_by_time(ms, log) for ms in asked]
    # the second file begins with 11 000: what is between the times of both files is not found in the first
    assert found == [0, 0, 0, 0, 1, 4, 4, 10, 10, 11, 11]


# ---- all queues of a store


def test_a_table_makes_queues_and_finds_them_again(tmp_path: Path) -> None:
    root = tmp_path / "consumequeue"
    with ConsumeQueueTable.open(root, file_size=200, writable=True) as table:
        for topic in ("%LMQ%alpha", "T", "消息"):
            for queue_id in (0, 11, 2):
                assert table.find_or_create(topic, queue_id)._put_units(units(0, 1)).written == 2
        table.flush()
        assert table.max_phy_offset == 200
    with ConsumeQueueTable.open(root) as table:
        assert table.queues() == [(topic, n) for topic in ("%LMQ%alpha", "T", "消息") for n in (0, 2, 11)]
        assert table["T", 2].units()["phy_offset"].tolist() == [0, 100]
        assert (table.get("T", 3), table.get("..", 0), len(table), ("T", 0) in table) == (None, None, 9, True)
        assert table.get("T", 2) is table.get("T", 2)
        with pytest.raises(ReadOnlyFileError):
            table.find_or_create("T", 3)


def test_a_new_queue_takes_the_file_size_of_the_others(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=200, writable=True) as table:
        table.find_or_create("T", 0)._put_units(units(0))
    with ConsumeQueueTable.open(tmp_path, writable=True) as table:
        assert (table.find_or_create("U", 0).file_size, table.file_size) == (200, 200)


def test_strangers_in_the_directories_are_told_and_left_alone(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=200, writable=True) as table:
        table.find_or_create("T", 0)._put_units(units(0))
    (tmp_path / "file").write_text("?")
    (tmp_path / "T" / ".mqindex-0").write_text("what a killed writer leaves")
    for name in ("01", "-1", "x", "99999999999"):
        (tmp_path / "T" / name).mkdir()
    (tmp_path / "T" / "7").write_text("?")
    before = contents(tmp_path)
    with ConsumeQueueTable.open(tmp_path, writable=True) as table:
        assert table.queues() == [("T", 0)]
        assert sorted(os.path.basename(skipped.path) for skipped in table.skipped) == sorted(
            ["file", "01", "-1", "x", "99999999999", "7"]
        )
        assert table["T", 0].skipped == ()
    assert contents(tmp_path) == before


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a\0b", "x" * 256, "\ud800"])
def test_a_topic_that_is_no_file_name_gets_no_queue(tmp_path: Path, topic: str) -> None:
    with ConsumeQueueTable.open(tmp_path / "cq", writable=True) as table:
        assert table.get(topic, 0) is None
        with pytest.raises(FormatError, match="no queue can have this name"):
            table.find_or_create(topic, 0)
    assert contents(tmp_path) == {"cq": "directory"}


def test_a_table_of_many_queues_keeps_few_files_open(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=200, writable=True) as table:
        for n in range(700):
            assert table.find_or_create("T", n)._put_units(units(0)).written == 1
        assert sum(table["T", n].units().num_rows for n in range(700)) == 700
        descriptors = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
        assert len(descriptors) < 400
        table.flush()


def test_the_bounds_of_many_queues_are_those_of_each(tmp_path: Path) -> None:
    page = 4096 // 20  # units
    queues = {
        0: units(0, 1, 2),
        1: units(3, 4, 5),  # behind blanks
        2: units(*range(page)),
        3: units(*range(page + 1)),
        4: units(*range(4 * 300 + 7)),  # five files
        5: units(*range(300)),  # one file, full
        6: units(*range(305, 310)),  # a file of blanks that a broker would have left out, and some in the next
    }
    with ConsumeQueueTable.open(tmp_path, file_size=6000, writable=True) as table:
        for number, put in queues.items():
            table.find_or_create("T", number)._put_units(put)
        table.find_or_create("T", 7)
    (tmp_path / "T" / "4" / FIRST).unlink()
    (tmp_path / "T" / "8").mkdir()
    (tmp_path / "T" / "8" / FIRST).write_bytes(BLANK * 300)
    with ConsumeQueueTable.open(tmp_path) as table:
        names = table.queues()
        assert len(names) == 9
        bounds = dict(table._bounds([*names, ("T", 99)]))  # the last was deleted since it was listed
        assert bounds == {name: table[name].bounds() for name in names}
        assert bounds["T", 1][:2] == (3, 6)
        assert bounds["T", 3][:2] == (0, page + 1)
        assert bounds["T", 4][:2] == (300, 1207)
        assert bounds["T", 7] == (0, 0, -1)
        assert bounds["T", 8] == (300, 300, -1)


def test_a_closed_table_closes_its_queues(tmp_path: Path) -> None:
    table = ConsumeQueueTable.open(tmp_path, file_size=200, writable=True)
    queue = table.find_or_create("T", 0)
    table.close()
    table.close()
    for call in (table.queues, lambda: table.get("T", 0), lambda: queue.max_offset_in_queue, table.flush):
        with pytest.raises(ClosedFileError):
            call()
    with pytest.raises(FileNotFoundError):
        ConsumeQueueTable.open(tmp_path / "none")


def test_a_cut_of_all_queues(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=200, writable=True) as table:
        table.find_or_create("T", 0)._put_units(units(0, 1, 2, 3))
        table.find_or_create("T", 1)._put_units(units(0))
        table.truncate_dirty_logic_files(200)
        assert [table["T", n].max_offset_in_queue for n in (0, 1)] == [2, 1]
        table.correct_min_offset(100)
        assert [table["T", n].min_offset_in_queue for n in (0, 1)] == [1, 1]


def test_the_bounds_of_many_queues_need_few_open_files(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=40, writable=True) as table:
        for queue_id in range(30):
            table.find_or_create("T", queue_id).put_message_position_info(0, 100, 0, 0)
    with ConsumeQueueTable.open(tmp_path) as table:
        before = len(os.listdir("/proc/self/fd"))
        opened = [len(os.listdir("/proc/self/fd")) for _ in table._bounds(table.queues())]
    assert max(opened) < before + 10
