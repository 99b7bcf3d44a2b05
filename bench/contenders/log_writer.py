"""Appending to a commit log: columns in bulk, and callers who wait for the disk."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import Any

import numpy as np

from bench import memory
from bench.contenders.result import Result, repeat
from mqindex.columns.columns import BinaryColumn, StringColumn
from mqindex.rocketmq import CommitLog, NewMessage

__all__ = ["append", "append_sync", "sync_each"]

BLOCK = 1 << 16
HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)


def append(*, messages: int, body: int, file_size: int, warm: int, scratch: str, **spec: Any) -> Result:
    """`append_messages` of batches that are ready, one thread, asynchronous flush, a new log each round."""
    result = Result()
    for keep in repeat(**spec):
        directory = os.path.join(scratch, "store", "commitlog")
        seconds = 0.0
        memory.warm(warm)
        with CommitLog.open(directory, writable=True, mapped_file_size=file_size, flush="async") as log:
            for first in range(0, messages, BLOCK):
                columns = batch(first, min(BLOCK, messages - first), body)
                start = time.perf_counter()
                log.append_messages(columns)
                seconds += time.perf_counter() - start
            result.answer(end=log.max_phy_offset)
        if keep:
            result.add("append", seconds, messages)
        shutil.rmtree(os.path.join(scratch, "store"))
    return result


def append_sync(*, messages: int, body: int, callers: int, file_size: int, scratch: str, **spec: Any) -> Result:
    """`append_message` under sync flush by several threads at once: each returns when its message is on the disk."""
    result = Result()
    message = NewMessage("TopicTest", b"x" * body, tags="TagA", keys=f"K{0:016X}", uniq_key=f"{0:032X}")
    each = messages // callers
    for keep in repeat(**spec):
        directory = os.path.join(scratch, "store", "commitlog")
        with CommitLog.open(directory, writable=True, mapped_file_size=file_size, flush="sync") as log:

            def call(log: CommitLog = log) -> None:
                for number in range(each):
                    log.append_message(message, queue_offset=number)

            threads = [threading.Thread(target=call) for _ in range(callers)]
            with result.timed("append", each * callers, keep=keep):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            if log.flushed_phy_offset != log.max_phy_offset:
                raise RuntimeError("not everything is on the disk")
            result.answer(bytes=log.max_phy_offset)
        shutil.rmtree(os.path.join(scratch, "store"))
    return result


def sync_each(*, messages: int, body: int, callers: int, file_size: int, scratch: str, **spec: Any) -> Result:
    """The plain way: write the frame, fdatasync, the next. Nothing but the two system calls."""
    result = Result()
    frame = memoryview(bytes(frame_size(body)))
    count = messages // callers * callers
    path = os.path.join(scratch, "file")
    for keep in repeat(**spec):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        os.ftruncate(fd, file_size)
        os.fsync(fd)
        with result.timed("append", count, keep=keep):
            for number in range(count):
                os.pwrite(fd, frame, number * len(frame))
                os.fdatasync(fd)
        os.close(fd)
        os.unlink(path)
    result.answer(bytes=count * len(frame))
    return result


def frame_size(body: int) -> int:
    """Of a frame as all of these contenders write them: 4.9.3, IPv4 hosts."""
    return 91 + body + len("TopicTest") + len("KEYS_K0123456789ABCDEF_TAGS_TagA_UNIQ_KEY_") + 32


def batch(first: int, count: int, body: int) -> dict[str, Any]:
    """Messages [first, first + count) in columns, every body a place of its own in memory."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    return {
        "topic": "TopicTest",
        "queue_offset": numbers,
        "body": BinaryColumn(np.full(count * body, ord("x"), np.uint8), np.arange(count + 1, dtype=np.int64) * body),
        "tags": "TagA",
        "keys": digits(numbers, 16, b"K"),
        "uniq_key": digits(numbers, 32, b""),
    }


def digits(numbers: np.ndarray[Any, Any], width: int, head: bytes) -> StringColumn:
    """The numbers in hex, padded with zeros."""
    text = np.full((len(numbers), len(head) + width), ord("0"), np.uint8)
    text[:, : len(head)] = np.frombuffer(head, np.uint8)
    for place in range(min(width, 16)):
        text[:, len(head) + width - 1 - place] = HEX[numbers >> 4 * place & 15]
    return StringColumn(text.reshape(-1), np.arange(len(numbers) + 1, dtype=np.int64) * text.shape[1])
