"""Where a switch of the configuration turns the index off, who writes a store writes no index file, as the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import MessageStore, NewMessage, follow, verify
from tests.support.growing_store import OPTIONS, GrowingStore, Turns

ONE = LocalEngine(1)
SWITCHES: list[dict[str, Any]] = [{"messageIndexEnable": "false"}, {"indexFileWriteEnable": False}]


def messages(first: int) -> list[NewMessage]:
    return [NewMessage("T", b"body", keys=f"k{number}") for number in range(first, first + 20)]


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_store_that_is_written(switch: dict[str, Any], tmp_path: Path) -> None:
    config = {"mappedFileSizeCommitLog": 4096, "mappedFileSizeConsumeQueue": 200, **switch}
    for first in (0, 20):
        with MessageStore.open(tmp_path, writable=True, config=config, broker_version="5.4.0") as store:
            store.put_messages(messages(first))
            store.flush()
            assert store.query_message("T", "k0").messages == []
            assert store.get_messages("T", 0, 0, max_msg_nums=99).messages.num_rows == first + 20
    (tmp_path / "abort").touch()
    with MessageStore.open(tmp_path, writable=True, config=config, broker_version="5.4.0") as store:
        assert store.put_messages(messages(40)).queue_offsets.tolist() == [*range(40, 60)]
    assert not (tmp_path / "index").exists()
    assert verify(tmp_path, deep=True, engine=ONE, config=config, broker_version="5.4.0").ok


@pytest.mark.parametrize("switch", [*SWITCHES, {}])
def test_a_follower(switch: dict[str, Any], tmp_path: Path) -> None:
    source, out = GrowingStore(tmp_path / "store"), tmp_path / "out"
    options = {**OPTIONS, "config": {**OPTIONS["config"], **switch}, "broker_version": "5.4.0"}
    for number in range(3):
        source.write(10)
        report = follow(source.root, out, stop=Turns(12), engine=ONE, **options)
        assert (report.messages, report.repairs) == ((10, 0) if number < 2 else (0, 1))
        assert report.phy_offset == source.writer.position
        if number == 1:
            (out / "abort").touch()
    assert (out / "index").exists() is (not switch)
    assert len(list((out / "consumequeue").glob("*/*"))) == 4
