"""A read of one place does not look for the log's end, for which all of the last file is read."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.rocketmq import CommitLog, MessageStore, rebuild
from mqindex.rocketmq.log import commit_log
from mqindex.rocketmq.log.log_files import LogFile
from tests.support.log_writer import LogMessage
from tests.support.queued_store import make_queued_store


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files in which an end was looked for."""
    found: list[str] = []
    end_of_file: Callable[..., int] = commit_log.end_of_file

    def counted(file: LogFile) -> int:
        found.append(os.path.basename(file.path))
        return end_of_file(file)

    monkeypatch.setattr(commit_log, "end_of_file", counted)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """40 messages in three files, the last of them with room for more; queues and index."""
    messages = [
        LogMessage(topic="Topic", queue_offset=number, keys=f"key-{number}", body=b"x" * 100) for number in range(40)
    ]
    store = make_queued_store(tmp_path / "store", messages, file_size=4096)
    rebuild(store, tmp_path / "built", parts=["index"], hash_slot_num=100, index_num=400, broker_version="4.9.3")
    os.rename(tmp_path / "built/index", store / "index")
    return store


def test_single_calls_find_messages_of_the_last_file(root: Path, looked: list[str]) -> None:
    with MessageStore.open(root, hash_slot_num=100, index_num=400) as store:
        answer = store.get_message("Topic", 0, 30)
        assert [message.queue_offset for message in answer.messages] == list(range(30, 40))
        for exact in (False, True):
            (found,) = store.query_message("Topic", "key-39", exact=exact).messages
            assert found.queue_offset == 39
        assert store.look_message_by_offset(found.phy_offset) == found
        assert store.view_message(found.msg_id) == found
        assert looked == []
        assert store.commit_log.max_phy_offset == found.phy_offset + found.size
    assert len(looked) == 1


def test_a_place_without_a_message_in_an_earlier_file_is_not_behind_the_end(root: Path, looked: list[str]) -> None:
    with MessageStore.open(root) as store:
        assert [store.look_message_by_offset(place) for place in (-1, 1, 4095)] == [None] * 3
        assert looked == []
        assert [store.look_message_by_offset(place) for place in (1 << 20, 1 << 40)] == [None] * 2
        assert looked == []


def test_a_place_behind_the_end_is_looked_at_once(root: Path, looked: list[str]) -> None:
    with CommitLog.open(root / "commitlog") as log:
        end = log.max_phy_offset
    last = sorted((root / "commitlog").iterdir())[-1]
    with last.open("r+b") as file:  # a frame that is being written
        file.seek(end - int(last.name))
        file.write(struct.pack(">ii", 300, -626843481))
    looked.clear()
    with MessageStore.open(root) as store:
        assert [store.look_message_by_offset(place) for place in (end, end + 8)] == [None] * 2
    assert looked == [last.name]


def test_a_unit_that_is_ahead_of_the_log_leads_to_no_message_yet(root: Path, looked: list[str]) -> None:
    with CommitLog.open(root / "commitlog") as log:
        end = log.max_phy_offset
    queue = root / "consumequeue/Topic/0/00000000000000000000"
    looked.clear()
    with queue.open("r+b") as file:
        for number, place in enumerate((end, end + 300, 1 << 20)):
            file.seek((40 + number) * 20)
            file.write(struct.pack(">qiq", place, 300, 0))
    with MessageStore.open(root) as store:
        answer = store.get_message("Topic", 0, 38)
        assert [message.queue_offset for message in answer.messages] == [38, 39]
        assert (answer.status, answer.next_begin_offset) == ("FOUND", 43)
        answer = store.get_message("Topic", 0, 40)
        assert (answer.status, answer.messages) == ("MESSAGE_WAS_REMOVING", [])
    assert len(looked) == 1
