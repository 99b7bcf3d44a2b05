"""Delay levels that were not given: told by the units of delayed messages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.rocketmq import MessageStore, NewMessage, repair, verify
from mqindex.rocketmq.dispatch.follow import follow
from tests.support.growing_store import Turns

FILES = {"maxHashSlotNum": 50, "maxIndexNum": 200, "mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 200}


def put(root: Path, levels: str | None, delays: tuple[int, ...] = (1, 2, 3, 0) * 7) -> Path:
    """Messages with these delay levels (0: none) in the store of a broker with this `messageDelayLevel`."""
    root.mkdir(exist_ok=True)
    config = {**FILES, **({} if levels is None else {"messageDelayLevel": levels})}
    with MessageStore.open(root, config=config, writable=True) as store:
        for level in delays:
            store.put_message(
                NewMessage("T", b"b", keys="k", tags="TagA", properties={"DELAY": str(level)} if level else {})
            )
    return root


def schedule(root: Path) -> dict[str, bytes]:
    home = root / "consumequeue" / "SCHEDULE_TOPIC_XXXX"
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_units_that_agree_tell_the_levels(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", "1s 2m 3h"))
    assert report.findings == []
    levels = report.settings["message_delay_level"]
    assert levels.value.startswith("1s 120s 10800s 30s 60s")
    assert levels.source == "inferred from the units of SCHEDULE_TOPIC_XXXX"


def test_more_levels_than_a_broker_has_by_default(tmp_path: Path) -> None:
    levels = " ".join(f"{2 * number}m" for number in range(1, 21))
    report = verify(put(tmp_path / "s", levels, (19, 20, 19)))
    assert report.findings == []
    assert report.settings["message_delay_level"].value.endswith(" 7200s 2280s 2400s")


def test_the_default_levels_are_not_told(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", None))
    assert (report.findings, "message_delay_level" in report.settings) == ([], False)


def test_levels_that_are_given_count(tmp_path: Path) -> None:
    report = verify(put(tmp_path / "s", "1s 2m 3h"), config={"messageDelayLevel": "1s 2m 4h"})
    assert {finding.kind for finding in report.findings} == {"wrong-unit"}
    assert {Path(finding.path or "").parent.name for finding in report.findings} == {"2"}


def test_repair_keeps_the_times_of_delivery(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    before = schedule(root)
    shutil.rmtree(root / "consumequeue" / "T")
    (name,) = (name for name in before if name.startswith("2/"))
    damaged = root / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / name
    damaged.write_bytes(b"\0" * 20 + before[name][20:])
    assert repair(root).ok
    assert schedule(root) == before


@pytest.mark.parametrize("second", ["1s 3m 3h", "2s 2m 3h"])
def test_units_that_disagree_tell_nothing(tmp_path: Path, second: str) -> None:
    root = put(put(tmp_path / "s", "1s 2m 3h"), second)
    report = verify(root)
    queues = {Path(finding.path or "").parent.name for finding in report.findings}
    assert queues == ({"1"} if second.startswith("1s") else {"0"})


def test_a_log_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    for path in (root / "commitlog").iterdir():
        path.write_bytes(b"?" * 65536)
    assert "message_delay_level" not in verify(root).settings


def test_who_follows_the_store_writes_the_same_times_of_delivery(tmp_path: Path) -> None:
    root = put(tmp_path / "s", "1s 2m 3h")
    follow(root, tmp_path / "out", stop=Turns(12))
    assert schedule(tmp_path / "out") == schedule(root)
