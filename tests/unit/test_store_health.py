"""Parts of a store's report that no golden store shows: groups that are ahead, a log that changes meanwhile."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FormatError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import MessageStore, NewMessage, report
from mqindex.rocketmq.checks import log_check
from mqindex.rocketmq.health.groups import groups_of
from mqindex.rocketmq.log.log_entries import NO_TAGS, LogSpan
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.queue.queue_rules import QueueRules


def test_a_group_that_is_ahead_in_one_queue_is_still_behind_in_another(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    offsets = {"T@g": {"0": 40, "1": 900, "2": 7, "9": 3}, "Gone@g": {"0": 5}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": offsets}))
    groups = groups_of(LocalEngine(1), store_options(tmp_path), {("T", 0): 100, ("T", 1): 100, ("T", 2): 7})
    first, gone = groups.groups
    assert [(one.queue_id, one.lag) for one in first.queues] == [(0, 60), (2, 0), (1, -800), (9, None)]
    assert (first.lag, first.unknown, gone.lag, gone.unknown, groups.lag) == (60, 1, 0, 1, 60)


def test_a_batch_queue_ends_where_its_files_say_for_its_log_has_only_where_each_batch_begins(tmp_path: Path) -> None:
    """The last batch begins at queue offset 1 here, and has 7 messages; a lag to 2 was told."""
    root = tmp_path / "store"
    with MessageStore.open(root, writable=True) as store:
        store.put_messages([NewMessage("T", b"x"), NewMessage("T", b"x")])
    shutil.rmtree(root / "consumequeue")
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{"0":3}}}')
    topic = {"topicName": "T", "attributes": {"queue.type": "BatchCQ"}}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": {"T": topic}}))
    (unknown,) = report(root).groups.groups
    assert [(one.end, one.lag) for one in unknown.queues] == [(None, None)]

    queue = root / "batchconsumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    units = struct.pack(">qiqqqhii", 0, 100, 0, 1, 0, 1, -1, 0) + struct.pack(">qiqqqhii", 100, 100, 0, 1, 1, 7, -1, 0)
    (queue / f"{0:020d}").write_bytes(units.ljust(460, b"\0"))
    (known,) = report(root).groups.groups
    assert [(one.end, one.lag) for one in known.queues] == [(8, 5)]


def test_a_message_that_is_gone_from_the_log_meanwhile_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}"
    path.write_bytes(bytes(4096))
    span = LogSpan(str(path), 0, 4096)
    check = log_check.LogCheck(
        span=span, start=0, stop=4096, resync=False, tags=NO_TAGS, check_crc=False, rules=QueueRules(), queues=None,
        ext=None, stretches=(),
    )  # fmt: skip
    with MappedFile.open(str(path)) as log, pytest.raises(FormatError, match="no frame begins here"):
        log_check._stored(log, check, 0)


class Writing(LocalEngine):
    """While the store is read, somebody writes to it; files of its log and of its index fill up and others follow."""

    def __init__(self, store: MessageStore) -> None:
        super().__init__(1)
        self._store, self.written = store, 0

    def map(self, function: Any, items: Any, **options: Any) -> Any:
        if options.get("name") in ("check the index files", "check the log", "check the queues", "check side files"):
            put(self._store, 300)
            self.written += 300
        return super().map(function, items, **options)


def put(store: MessageStore, count: int) -> None:
    messages = [NewMessage("T", b"x" * 100, queue_id=n % 3, keys=f"k{n}", tags="TagA") for n in range(count)]
    store.put_messages(messages)
    store.flush()


def test_a_store_that_is_being_written_is_reported_up_to_where_its_log_ended(tmp_path: Path) -> None:
    config = {"maxHashSlotNum": 50, "maxIndexNum": 500, "mappedFileSizeCommitLog": 8192}
    with MessageStore.open(tmp_path, writable=True, config=config) as store:
        put(store, 200)
        written = 200
        for _ in range(3):
            engine = Writing(store)
            health = report(tmp_path, config=config, engine=engine)
            assert health.ok, health.verify.findings
            assert "log-grew-meanwhile" in {one.kind for one in health.verify.findings}
            assert health.coverage is not None
            assert health.topics is not None
            assert health.coverage.messages == health.topics.messages
            assert written <= health.topics.messages < written + engine.written
            written += engine.written
            assert health.verify.start is not None
            assert health.verify.start.lock == "held"
    quiet = report(tmp_path, config=config)
    assert (quiet.ok, quiet.verify.messages) == (True, written)
    assert "log-grew-meanwhile" not in {one.kind for one in quiet.verify.findings}
