"""config/timercheck beyond its queue: brokers before 5.3.2 go by it, and deliver nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqindex.rocketmq import verify
from tests.support.golden import case


@pytest.mark.parametrize(
    ("offsets", "version", "said"),
    [
        ((7, 9), "5.1.4", True),
        ((7, 9), "5.3.1", True),
        ((7, 9), None, True),
        ((7, 9), "5.3.2", False),
        ((7, 9), "4.9.3", False),  # it has no timers
        ((7, 0), "5.1.4", False),  # the smaller one counts
        ((0, 9), "5.1.4", False),
    ],
)
def test_an_offset_beyond_the_queue_is_said_of_brokers_that_go_by_it(
    offsets: tuple[int, int], version: str | None, said: bool, tmp_path: Path
) -> None:
    """The store has no timed message: the queue would end at 0."""
    root = case("basic-493").unpack(tmp_path)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "timercheck").write_bytes(struct.pack(">4q", 1_700_000_000_000, 0, *offsets).ljust(4096, b"\0"))
    found = [one for one in verify(root, broker_version=version).findings if one.kind == "timer-checkpoint-ahead"]
    assert [(one.expected, one.got) for one in found] == [("at most 0", 7)] * said
