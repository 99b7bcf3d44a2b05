"""A message that a restarted broker indexed again, where a look at the last entries begins in the middle of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.rocketmq import repair, verify
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from tests.reference.index_file import IndexFile as TwinFile
from tests.reference.sidecar import optimised
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter

ONE = LocalEngine(1)
GIVEN = {"hash_slot_num": 500, "index_num": 5000}
WITHOUT_QUEUES = {"file-length-unknown", "queue-file-size-unknown", "queue-missing"}  # and one file of a log


class Store:
    """A log, and the index file that a broker before 5.4 makes of it meanwhile."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.index = TwinFile(GIVEN["hash_slot_num"], GIVEN["index_num"])
        self._log = LogWriter(root / "commitlog", mapped_file_size=1 << 20)
        self._messages = 0

    def write(self, keys: str | None = None) -> tuple[int, int, list[str]]:
        """A message with a unique key, or with these keys alone: its place, its time, and its keys."""
        n, self._messages = self._messages, self._messages + 1
        unique = None if keys else f"U{n}"
        message = LogMessage(  # of any broker, by its form
            "T", keys=keys, tags="TagA", uniq_key=unique, separator=True, store_timestamp=FIRST_TIME + n, queue_offset=n
        )
        (at,) = self._log.write(message)
        return at, FIRST_TIME + n, [f"T#{key}" for key in (keys or str(unique)).split()]

    def put(self, at: int, timestamp: int, keys: list[str]) -> None:
        assert all(self.index.put(key, at, timestamp) for key in keys)

    def save(self) -> None:
        (self.root / "index").mkdir()
        (self.root / "index" / "20231114221320000").write_bytes(self.index.flush())


@pytest.mark.parametrize("after", [99, 100, 101, 999, 1000, 1001])
@pytest.mark.parametrize(("keys", "first_time"), [("same same", 2), ("a b a b", 4), ("a b c", 2)])
@pytest.mark.parametrize("moved", [False, True])
def test_it_is_an_intact_file(tmp_path: Path, moved: bool, keys: str, first_time: int, after: int) -> None:
    """`first_time`: so many of its keys were put before the broker died."""
    store = Store(tmp_path)
    for _ in range(300):
        store.put(*store.write())
    if moved:
        store.index = optimised(store.index)
    at, timestamp, full = store.write(keys)
    store.put(at, timestamp, full[:first_time])
    store.put(at, timestamp, full)
    for _ in range(after - len(full)):
        store.put(*store.write())
    store.save()
    assert survey(store_options(tmp_path, **GIVEN)).version.known
    for deep in (False, True):
        report = verify(tmp_path, deep=deep, engine=ONE, **GIVEN)  # type: ignore[arg-type]
        assert {finding.kind for finding in report.findings if finding.severity != "info"} <= WITHOUT_QUEUES
    assert repair(tmp_path, parts=["index"], dry_run=True, engine=ONE, **GIVEN).actions == []  # type: ignore[arg-type]
