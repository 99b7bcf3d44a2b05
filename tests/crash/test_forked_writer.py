"""A process that forks while it writes: the child may not write, and whatever it does, the parent goes on alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.rocketmq import CommitLog, ConsumeQueue, MessageStore, NewMessage, verify
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable
from tests.crash.test_full_disk import REPOSITORY
from tests.support.forked import in_child

CONFIG = {
    "maxHashSlotNum": 5,
    "maxIndexNum": 16,
    "mappedFileSizeCommitLog": 1 << 12,
    "mappedFileSizeConsumeQueue": 100,
    "flushDiskType": "SYNC_FLUSH",
}


def message(text: str) -> NewMessage:
    return NewMessage("T", text.encode(), keys=text)


def refused(call: Callable[[], Any]) -> bool:
    said = in_child(call)
    return isinstance(said, FileStateError) and "a forked child may not write" in str(said)


def test_a_child_of_a_store_may_neither_put_nor_dispatch_nor_clean_up(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path, writable=True, config=CONFIG) as store:
        store.put_message(message("first"))
        assert refused(lambda: store.put_message(message("child")))
        assert refused(lambda: store.put_messages([message("child")]))
        assert refused(store.flush)
        assert refused(store.reput)
        before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
        assert in_child(store.close) is None
        assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
        assert (tmp_path / "abort").exists()
        said = in_child(lambda: MessageStore.open(tmp_path, writable=True, config=CONFIG))
        assert "holds this" in str(said)
        assert store.put_message(message("second")).queue_offset == 1
    assert not (tmp_path / "abort").exists()
    with MessageStore.open(tmp_path, config=CONFIG) as store:
        assert [found.keys for found in store.get_message("T", 0, 0).messages] == ["first", "second"]
    assert verify(tmp_path, deep=True, engine=LocalEngine(1), config=CONFIG).ok


def test_a_child_closes_a_store_whose_locks_other_threads_held_when_it_was_forked(tmp_path: Path) -> None:
    """It waited for ever: the threads that would give them back are not in the child."""
    with MessageStore.open(tmp_path, writable=True, config=CONFIG) as store:
        store.put_message(message("first"))
        queue = store.consume_queue("T", 0)
        assert queue is not None
        held, done = threading.Event(), threading.Event()
        locks = [store._lock, store.commit_log._maps._lock, queue._units.maps._lock]

        def hold() -> None:
            with locks[0], locks[1], locks[2]:
                held.set()
                done.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            for read in (
                lambda: store.look_message_by_offset(0).keys,  # type: ignore[union-attr]
                lambda: store.commit_log.get_message(0).keys,
                lambda: queue.units().num_rows,
                store.close,
            ):
                assert in_child(lambda read=read: (signal.alarm(20), read()))[0] == 0  # type: ignore[misc]
        finally:
            done.set()
            thread.join()
        assert store.put_message(message("second")).queue_offset == 1


def test_a_child_of_a_log_may_not_append(tmp_path: Path) -> None:
    with CommitLog.open(tmp_path / "commitlog", writable=True, config=CONFIG) as log:
        log.append_message(message("first"), queue_offset=0)
        assert refused(lambda: log.append_message(message("child"), queue_offset=1))
        assert refused(lambda: log.append_messages([message("child")], queue_offset=[1]))
        assert refused(log.flush)
        assert in_child(log.close) is None
        assert "another writer" in str(in_child(lambda: CommitLog.open(tmp_path / "commitlog", writable=True)))
        second = log.append_message(message("second"), queue_offset=1).phy_offset
    with CommitLog.open(tmp_path / "commitlog") as log:
        assert [batch["keys"].to_pylist() for batch in log.scan(columns=["keys"])] == [["first", "second"]]
        assert log.get_message(second).body == b"second"


def test_a_child_of_queues_may_not_put(tmp_path: Path) -> None:
    with ConsumeQueueTable.open(tmp_path, file_size=100, writable=True) as table:
        queue = table.find_or_create("T", 0)
        assert queue.put_message_position_info(0, 100, 0, 0)
        assert refused(lambda: queue.put_message_position_info(100, 100, 0, 1))
        assert refused(lambda: queue.truncate_dirty_logic_files(0))
        assert refused(lambda: table.find_or_create("T", 1))
        assert refused(table.flush)
        assert in_child(table.close) is None
    with ConsumeQueue.open(tmp_path / "T" / "0", writable=True) as queue:
        assert refused(lambda: queue.put_message_position_info(100, 100, 0, 1))
        assert refused(queue.flush)
        assert queue.put_message_position_info(100, 100, 0, 1)


def test_a_child_that_lives_on_does_not_keep_the_log_from_the_next_writer(tmp_path: Path) -> None:
    log = CommitLog.open(tmp_path / "commitlog", writable=True, config=CONFIG)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    try:
        log.close()
        with CommitLog.open(tmp_path / "commitlog", writable=True, config=CONFIG) as log:
            log.append_message(message("next"), queue_offset=0)
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


NATURAL = """
import os, sys
from mqindex.rocketmq import MessageStore, NewMessage
from tests.crash.test_forked_writer import CONFIG
with MessageStore.open(sys.argv[1], writable=True, config=CONFIG) as store:
    store.put_message(NewMessage("T", b"first"))
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        assert os.path.exists(os.path.join(sys.argv[1], "abort"))
        print(store.put_message(NewMessage("T", b"second")).queue_offset)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_leaves_the_block_and_ends_like_any_program_changes_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NATURAL, str(tmp_path)], capture_output=True, text=True, cwd=REPOSITORY, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert not (tmp_path / "abort").exists()
