"""A broker that had lost a queue's end gave queue offsets again: messages that consumers get leave only when asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqindex.errors import FileStateError
from mqindex.rocketmq import ConsumeQueue, rebuild, repair, verify
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 256, "mappedFileSizeConsumeQueue": 2000}
KIND = "offsets-served-twice"


def phy_offsets(root: Path) -> list[int]:
    with ConsumeQueue.open(root / "consumequeue/T/0") as queue:
        return [int(one) for one in np.asarray(queue.units()["phy_offset"])]


def store_with_two_given_again(root: Path) -> tuple[list[int], list[int]]:
    """50 messages, then two at the offsets 40 and 41 of a queue that had 40 units; returns what it has, and all."""
    offsets = [*range(50), 40, 41]
    writer = LogWriter(root / "commitlog", mapped_file_size=1 << 16)
    writer.write(*(
        LogMessage("T", queue_offset=offset, keys=f"k{number}", store_timestamp=FIRST_TIME + number)
        for number, offset in enumerate(offsets)
    ))  # fmt: skip
    rebuild(root, root / "out", config=CONFIG)
    for part in ("index", "consumequeue"):
        (root / "out" / part).rename(root / part)
    first = phy_offsets(root)
    assert len(first) == 50
    (queue,) = (root / "consumequeue/T/0").iterdir()
    data = bytearray(queue.read_bytes())
    step = first[49] - first[48]
    for place, number in ((40, 1), (41, 2)):
        data[place * 20 : place * 20 + 8] = (first[49] + number * step).to_bytes(8, "big")
    data[42 * 20 :] = bytes(len(data) - 42 * 20)
    queue.write_bytes(data)
    return phy_offsets(root), first


def test_messages_that_consumers_get_leave_a_queue_only_when_that_is_asked_for(tmp_path: Path) -> None:
    served, first = store_with_two_given_again(tmp_path)
    for report in (verify(tmp_path, config=CONFIG), repair(tmp_path, config=CONFIG, dry_run=True)):
        (one,) = (one for one in report.findings if one.kind == KIND)
        assert str(one.got) == f"2 later messages at queue offsets 40 to 41, phy offsets {served[40]}, {served[41]}"
    with pytest.raises(FileStateError, match="replace_served=True"):
        repair(tmp_path, config=CONFIG)
    assert phy_offsets(tmp_path) == served
    assert repair(tmp_path, config=CONFIG, replace_served=True).ok
    assert phy_offsets(tmp_path) == first
    assert verify(tmp_path, config=CONFIG).ok


def test_where_more_differs_than_is_listed_a_repair_asks_too(tmp_path: Path) -> None:
    """30 later messages behind 200 wrong units left the queue without a word."""
    offsets = [*range(800), *range(600, 630)]
    config = {**CONFIG, "mappedFileSizeConsumeQueue": 20_000}
    LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 20).write(*(
        LogMessage("T", queue_offset=offset, keys=f"k{number}", store_timestamp=FIRST_TIME + number)
        for number, offset in enumerate(offsets)
    ))  # fmt: skip
    rebuild(tmp_path, tmp_path / "out", config=config)
    for part in ("index", "consumequeue"):
        (tmp_path / "out" / part).rename(tmp_path / part)
    first = phy_offsets(tmp_path)
    (queue,) = (tmp_path / "consumequeue/T/0").iterdir()
    data, step = bytearray(queue.read_bytes()), first[-1] - first[-2]
    for number, place in enumerate(range(600, 630), 1):
        data[place * 20 : place * 20 + 8] = (first[-1] + number * step).to_bytes(8, "big")
    data[630 * 20 :] = bytes(len(data) - 630 * 20)
    for place in range(10, 210):
        data[place * 20 : place * 20 + 8] = (7).to_bytes(8, "big")
    queue.write_bytes(data)
    assert KIND in {one.kind for one in verify(tmp_path, config=config).findings}
    with pytest.raises(FileStateError, match="replace_served=True"):
        repair(tmp_path, config=config)
    assert queue.read_bytes() == data
