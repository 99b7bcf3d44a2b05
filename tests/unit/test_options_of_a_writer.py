"""What a broker.conf says is what a writer's repair after a kill goes by: it is read once, and travels as options."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage
from tests.support.small_store import make_small_store


@pytest.mark.parametrize("line", ["", "storeType=default \n", "mappedFileSizeTimerLog=0x10\n"])
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.filterwarnings("ignore:mappedFileSizeTimerLog")
def test_a_store_opens_after_a_kill_with_the_configuration_that_it_had(tmp_path: Path, line: str, killed: bool) -> None:
    """A text with a blank behind it, which a broker before 5.2 keeps, was refused: "give what the broker has"."""
    store, conf = make_small_store(tmp_path / "store"), tmp_path / "broker.conf"
    length = next((store / "commitlog").iterdir()).stat().st_size
    conf.write_text(
        f"brokerName=a\nmaxHashSlotNum=5\nmaxIndexNum=16\nmappedFileSizeConsumeQueue=240\n"
        f"mappedFileSizeCommitLog={length}\n{line}"
    )
    if killed:
        (store / "abort").touch()
    with MessageStore.open(store, writable=True, config=conf, broker_version="4.9.3") as writer:
        assert writer.put_message(NewMessage("T", b"new", queue_id=0, keys="new")).phy_offset > 0
