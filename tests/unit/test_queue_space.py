"""What the files of queues will take on the disk, before they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqindex.rocketmq.log.log_entries import UNIT
from mqindex.rocketmq.pipeline.queue_build import QueueBuilder, Units
from mqindex.rocketmq.queue.queue_rules import QueueRules

LOG = 1 << 20


def units(*queue_offsets: int) -> Units:
    found = np.zeros(len(queue_offsets), UNIT)
    found["queue_offset"] = queue_offsets
    found["phy_offset"] = np.arange(len(found)) * 1000
    return found


def builder(directory: Path, file_size: int) -> QueueBuilder:
    return QueueBuilder(str(directory), None, QueueRules(file_size=file_size))


@pytest.mark.parametrize(("file_size", "files"), [(20, 5), (60, 2), (6_000_000, 1)])
def test_each_file_takes_a_block(file_size: int, files: int, tmp_path: Path) -> None:
    """It counted one for each queue, whatever it had of files."""
    queue = builder(tmp_path, file_size)
    assert queue.space(units(0, 1, 3, 4), LOG) == 5 * 20 + files * 4096  # a hole of one unit


def test_blanks_before_the_first_unit_are_counted(tmp_path: Path) -> None:
    assert builder(tmp_path, 100).space(units(7), LOG) == 3 * 20 + 4096


def test_an_offset_that_is_far_too_large_makes_no_files(tmp_path: Path) -> None:
    queue = builder(tmp_path, 20)
    assert queue.space(units(0, 1 << 60), LOG) == 2 * (20 + 4096)


def test_a_hole_after_what_is_written_is_counted(tmp_path: Path) -> None:
    queue = builder(tmp_path, 6_000_000)
    queue.put(units(0, 1))
    queue.close()
    assert queue.space(units(2, 3), LOG) == 2 * 20 + 4096
    assert queue.space(units(12), LOG) == 11 * 20 + 4096
    assert queue.space(units(0, 1), LOG) == 2 * 20 + 4096  # again, or of a topic that was created again
