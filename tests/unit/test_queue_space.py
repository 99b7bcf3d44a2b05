"""What the files of queues will take on the disk, before they are written."""

from __future__ import annotations

import numpy as np
import pytest

from mqindex.rocketmq.pipeline.queue_splits import queue_space
from mqindex.rocketmq.pipeline.queue_stages import QUEUE_RUN, UnitRun
from mqindex.rocketmq.queue.queue_rules import QueueRules


def run(*queues: tuple[int, int, int, int]) -> UnitRun:
    rows = [(0, queue_id, count, first, stop) for queue_id, count, first, stop in queues]
    return UnitRun("", ("T",), np.array(rows, QUEUE_RUN))


@pytest.mark.parametrize(
    ("file_size", "files"),
    [(20, 2 + 5), (60, 1 + 2), (6_000_000, 1 + 1)],
)
def test_each_file_takes_a_block(file_size: int, files: int) -> None:
    """It counted one for each queue, whatever it had of files."""
    runs = [run((0, 2, 0, 2), (1, 2, 0, 2)), run((1, 2, 3, 5))]  # a hole of one unit
    assert queue_space(runs, QueueRules(file_size=file_size), 1 << 20) >= 7 * 20 + files * 4096
    assert queue_space(runs, QueueRules(file_size=file_size), 1 << 20) < 7 * 20 + (files + 1) * 4096


def test_blanks_before_the_first_unit_are_counted() -> None:
    assert queue_space([run((0, 1, 7, 8))], QueueRules(file_size=100), 1 << 20) == 3 * 20 + 4096


def test_an_offset_that_is_far_too_large_makes_no_files() -> None:
    runs = [run((0, 1, 0, 1)), run((0, 1, 1 << 60, (1 << 60) + 1))]
    assert queue_space(runs, QueueRules(file_size=20), 1 << 20) == 2 * (20 + 4096)
