"""After a sync that failed nobody knows what the disk has: every later one says so, though the system says success."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.kafka import AbortedTxn, OffsetIndex, TransactionIndex
from mqindex.rocketmq import ConsumeQueue, IndexFile
from mqindex.rocketmq.queue.consume_queue_table import ConsumeQueueTable


def queue(home: Path) -> ConsumeQueue:
    opened = ConsumeQueue.open(home / "queue", file_size=200, writable=True)
    opened.put_message_position_info(0, 100, 0, 0)
    return opened


def table(home: Path) -> ConsumeQueueTable:
    opened = ConsumeQueueTable.open(str(home / "queues"), file_size=200, writable=True)
    opened.find_or_create("T", 0)
    return opened


def index_file(home: Path) -> IndexFile:
    opened = IndexFile.create(home / "index", hash_slot_num=5, index_num=8)
    opened.put_key("k", 0, 0)
    return opened


def offset_index(home: Path) -> OffsetIndex:
    return OffsetIndex.create(home / "00000000000000000000.index", 0, max_index_size=80)


def transaction_index(home: Path) -> TransactionIndex:
    opened = TransactionIndex.open(home / "00000000000000000000.txnindex", writable=True)
    opened.append(AbortedTxn(1, 2, 3, 4))
    return opened


@pytest.mark.parametrize("opened", [queue, table, index_file, offset_index, transaction_index])
def test_a_flush_after_one_that_failed_is_no_success(
    opened: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = False

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def sync(*what: object) -> object:
            if broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*what)

        return sync

    class Map(mmap.mmap):
        flush = failing(mmap.mmap.flush)  # type: ignore[assignment]

    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    monkeypatch.setattr(os, "fdatasync", failing(os.fdatasync))
    monkeypatch.setattr(mmap, "mmap", Map)
    with opened(tmp_path) as writer:
        for now in (True, False, False):
            broken = now
            with pytest.raises(OSError, match="error") as caught:
                writer.flush()
            assert caught.value.errno == errno.EIO
            assert str(caught.value.filename).startswith(str(tmp_path))
