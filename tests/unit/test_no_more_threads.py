"""Where the system allows no more threads, a program of the library gets one clear sentence, or does without."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import CommitLog, MessageStore, NewMessage, follow, verify
from mqindex.rocketmq.dispatch import follow as following
from mqindex.rocketmq.log.writing import log_writer
from tests.cli.test_no_more_threads import refused
from tests.support.golden import case

SAID = r"no more threads can be started: expected a higher limit, of this user \(ulimit -u\) or of the container"
SMALL = {"maxHashSlotNum": 100, "maxIndexNum": 300, "mappedFileSizeCommitLog": 1 << 16}


def put(path: Path) -> None:
    with MessageStore.open(path, writable=True, config=SMALL) as store:
        store.put_message(NewMessage("T", b"a", keys="k"))


def append(path: Path) -> None:
    with CommitLog.open(path / "commitlog", writable=True, mapped_file_size=1 << 16) as log:
        log.append_message(NewMessage("T", b"a"), queue_offset=0)


def stopped() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def followed(path: Path) -> None:
    follow(path, path.parent / "out", stop=stopped(), config=SMALL)


@pytest.mark.parametrize("act", [put, append, followed])
def test_what_needs_a_thread_says_so_and_works_later(
    act: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a RuntimeError, and the lock of a log stayed with this process."""
    put(tmp_path / "store")
    with monkeypatch.context() as full, pytest.raises(MQIndexError, match=SAID):
        full.setattr(threading.Thread, "start", refused)
        act(tmp_path / "store")
    act(tmp_path / "store")


def test_a_log_is_written_without_a_spare_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append that was to begin one failed with a RuntimeError."""
    monkeypatch.setattr(log_writer, "_SPARED", 1)
    config = {"flushDiskType": "SYNC_FLUSH"}
    with CommitLog.open(tmp_path, writable=True, mapped_file_size=4096, config=config) as log:
        monkeypatch.setattr(threading.Thread, "start", refused)
        for number in range(100):
            log.append_message(NewMessage("T", b"a"), queue_offset=number)
        assert len(log.files) > 2


def test_nothing_is_explained_of_a_slow_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", refused)
    store = type("Home", (), {"out": "out"})()
    with following._explained_if_slow(LocalEngine(), store):
        pass


def test_the_local_engine_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = case("basic-493").unpack(tmp_path)
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert verify(store, engine=LocalEngine(3), hash_slot_num=100, index_num=400).ok
