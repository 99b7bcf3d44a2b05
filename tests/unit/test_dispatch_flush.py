"""The thread that flushes beside dispatch, where the disk is full for a while."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from mqindex.rocketmq import Checkpoint, IndexService, MessageStore, NewMessage, verify
from mqindex.rocketmq.dispatch import dispatch_flush
from mqindex.rocketmq.dispatch.dispatch_flush import DispatchFlush, Stored
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable

CONFIG = {"maxHashSlotNum": 100, "maxIndexNum": 300, "mappedFileSizeCommitLog": 1 << 16}


def full(path: str, checkpoint: Checkpoint) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def test_a_checkpoint_that_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One minute on a full disk ended a writer for good: every later call failed, though there was space again."""
    tried, there_is_space = threading.Event(), dispatch_flush.write_checkpoint

    def fail(path: str, checkpoint: Checkpoint) -> None:
        tried.set()
        full(path, checkpoint)

    monkeypatch.setitem(DispatchFlush.__init__.__kwdefaults__, "interval", 0.02)
    with MessageStore.open(tmp_path / "store", writable=True, config=CONFIG) as store:
        monkeypatch.setattr(dispatch_flush, "write_checkpoint", fail)
        store.put_message(NewMessage("T", b"a", keys="k1"))
        assert len(store.query_message("T", "k1").messages) == 1
        assert tried.wait(20)
        assert store.put_message(NewMessage("T", b"b", keys="k2")).store_timestamp
        monkeypatch.setattr(dispatch_flush, "write_checkpoint", there_is_space)
        last = store.put_message(NewMessage("T", b"c", keys="k3"))
        store.flush()
        written = Checkpoint.read(tmp_path / "store" / "checkpoint")
        assert written is not None
        assert written.physic_msg_timestamp == last.store_timestamp
    assert verify(tmp_path / "store", deep=True).ok


def test_a_flush_says_that_the_checkpoint_could_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MessageStore.open(tmp_path / "store", writable=True, config=CONFIG)
    store.put_message(NewMessage("T", b"a"))
    monkeypatch.setattr(dispatch_flush, "write_checkpoint", full)
    with pytest.raises(OSError, match="No space left"):
        store.flush()
    store.close()
    assert (tmp_path / "store" / "abort").exists()


def test_a_full_index_file_that_expires_before_its_flush_is_left_out(tmp_path: Path) -> None:
    """It ended `follow`: the thread asked a closed file for its header."""
    place = tmp_path / "index"
    with IndexService.open(place, hash_slot_num=3, index_num=4, writable=True) as index:
        queues = ConsumeQueueTable.open(tmp_path / "consumequeue", writable=True)
        flush = DispatchFlush(str(tmp_path / "checkpoint"), index, queues, lambda: Stored(0, 0))
        with flush._lock:  # the thread waits
            index.build_index("T", list("abcabcabc"), range(9), range(9))
            assert len(index.delete_expired_file(1 << 40)) == 2
        flush.close()
        flush.check()
        queues.close()
