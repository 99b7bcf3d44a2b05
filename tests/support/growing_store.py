"""A store whose log grows, of messages with the queue offsets that a broker gives, and what ends a follower."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqindex.engines import LocalEngine
from mqindex.rocketmq import rebuild
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.tree import index_bytes, queue_bytes

__all__ = ["OPTIONS", "GrowingStore", "Turns", "Until"]

OPTIONS: dict[str, Any] = {
    "hash_slot_num": 5,
    "index_num": 16,
    "broker_version": "4.9.3",
    "config": {"mappedFileSizeConsumeQueue": "200"},
}
PREPARED, COMMIT, ROLLBACK = 0x4, 0x8, 0xC


class GrowingStore:
    """A log in 2 KiB files; `expected` is what a rebuild makes of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.writer = LogWriter(root / "commitlog", mapped_file_size=2048)
        self.number = 0
        self._queue_offsets: Counter[tuple[str, int]] = Counter()

    def write(self, count: int) -> list[int]:
        """Append so many messages; their phy offsets."""
        return [self.writer.write(self.message())[0] for _ in range(count)]

    def message(self) -> LogMessage:
        """The next one: two topics of two queues, some without keys, some of transactions."""
        n, self.number = self.number, self.number + 1
        queue = f"Topic{n % 2}", n // 2 % 2
        flag = {3: PREPARED, 5: ROLLBACK, 7: COMMIT}.get(n % 17, 0)
        offset = 0
        if flag not in (PREPARED, ROLLBACK):
            offset = self._queue_offsets[queue]
            self._queue_offsets[queue] += 1
        return LogMessage(
            queue[0],
            keys=f"k{n % 7} k{n}" if n % 4 else None,
            tags="TagA" if n % 3 else None,
            uniq_key=f"C0A8010A1F902B193F2D{n:012X}" if n % 5 else None,
            body=bytes([65 + n % 26]) * (n % 50),
            store_timestamp=FIRST_TIME + n * 700,
            queue_id=queue[1],
            queue_offset=offset,
            sys_flag=flag,
        )

    def expected(self, scratch: Path) -> tuple[list[bytes], dict[str, bytes]]:
        """Index files and queue files of a rebuild of the log as it is now."""
        rebuild(self.root, scratch, engine=LocalEngine(1), overwrite=True, **OPTIONS)
        for backup in scratch.parent.glob(f"{scratch.name}.backup-*"):
            backup.rename(backup.with_name(f"old-{time.monotonic_ns()}"))
        return index_bytes(scratch), queue_bytes(scratch)


class Turns:
    """Ends a follower after so many looks at the log. Can be pickled."""

    def __init__(self, turns: int) -> None:
        self.left = turns

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0

    def wait(self, timeout: float) -> None:
        time.sleep(min(timeout, 0.001))


class Until:
    """Ends a follower when something is true; a test that waits in vain fails."""

    def __init__(self, reached: Callable[[], bool], seconds: float = 120.0) -> None:
        self.reached, self.deadline = reached, time.monotonic() + seconds

    def is_set(self) -> bool:
        assert time.monotonic() < self.deadline, "it never came true"
        return self.reached()

    def wait(self, timeout: float) -> None:
        time.sleep(timeout)
