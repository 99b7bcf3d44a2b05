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


def store_with_offsets_given_again(
    root: Path, count: int, again: range, config: dict[str, int]
) -> tuple[list[int], bytearray]:
    """Messages, and later ones at the queue offsets `again`, with which the queue ends; what it had, and its bytes."""
    offsets = [*range(count), *again]
    writer = LogWriter(root / "commitlog", mapped_file_size=1 << 20)
    writer.write(*(
        LogMessage("T", queue_offset=offset, keys=f"k{number}", store_timestamp=FIRST_TIME + number)
        for number, offset in enumerate(offsets)
    ))  # fmt: skip
    rebuild(root, root / "out", config=config)
    for part in ("index", "consumequeue"):
        (root / "out" / part).rename(root / part)
    first = phy_offsets(root)
    assert len(first) == count
    (queue,) = (root / "consumequeue/T/0").iterdir()
    data, step = bytearray(queue.read_bytes()), first[-1] - first[-2]
    for number, place in enumerate(again, 1):
        data[place * 20 : place * 20 + 8] = (first[-1] + number * step).to_bytes(8, "big")
    data[again.stop * 20 :] = bytes(len(data) - again.stop * 20)
    queue.write_bytes(data)
    return first, data


def test_messages_that_consumers_get_leave_a_queue_only_when_that_is_asked_for(tmp_path: Path) -> None:
    first, _ = store_with_offsets_given_again(tmp_path, 50, range(40, 42), CONFIG)
    served = phy_offsets(tmp_path)
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
    config = {**CONFIG, "mappedFileSizeConsumeQueue": 20_000}
    _, data = store_with_offsets_given_again(tmp_path, 800, range(600, 630), config)
    (queue,) = (tmp_path / "consumequeue/T/0").iterdir()
    for place in range(10, 210):
        data[place * 20 : place * 20 + 8] = (7).to_bytes(8, "big")
    queue.write_bytes(data)
    assert KIND in {one.kind for one in verify(tmp_path, config=config).findings}
    with pytest.raises(FileStateError, match="replace_served=True"):
        repair(tmp_path, config=config)
    assert queue.read_bytes() == data
