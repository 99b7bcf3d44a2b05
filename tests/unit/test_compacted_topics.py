"""What compacted topics lack of the log is not known, and no repair of the queues keeps it from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mqindex.errors import FileStateError
from mqindex.rocketmq import MessageStore, NewMessage, rebuild, repair, verify
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.tree import contents

CONFIG = {"maxHashSlotNum": 5, "maxIndexNum": 4096, "mappedFileSizeConsumeQueue": 400}
COMPACTED = ("Compacted", "Other")


def message(topic: str, offset: int, *, queue_id: int = 0, keys: str | None = "key") -> LogMessage:
    return LogMessage(topic, keys=keys, uniq_key=f"U{offset}", queue_id=queue_id, queue_offset=offset)


def some(count: int, *, first: int = 0) -> list[LogMessage]:
    """Of a compacted topic and of another, in turn."""
    return [message(topic, n) for n in range(first, first + count) for topic in ("Compacted", "Plain")]


def make_store(root: Path, messages: Iterable[LogMessage]) -> Path:
    """A log, what its broker had in topics.json, and what a rebuild makes of it, in place."""
    writer = LogWriter(root / "commitlog", mapped_file_size=4096)
    for number, one in enumerate(messages):
        writer.write(LogMessage(**{**vars(one), "store_timestamp": FIRST_TIME + number}))
    policies = {topic: {"cleanup.policy": "COMPACTION"} for topic in COMPACTED}
    table = {topic: {"topicName": topic, "attributes": said} for topic, said in {**policies, "Plain": {}}.items()}
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    rebuild(root, root / "out", config=CONFIG)
    for part in (root / "out").iterdir():
        part.rename(root / part.name)
    (root / "out").rmdir()
    return root


def compact(root: Path, files: Sequence[Sequence[int]], *, topic: str = "Compacted", queue_id: int = 0) -> Path:
    """The queue of a compacted topic: the queue offsets in each of its files, after which it is not in use."""
    home = root / "compaction" / "compactionCq" / topic / str(queue_id)
    home.mkdir(parents=True)
    for number, offsets in enumerate(files):
        rows = np.zeros(10, BATCH_UNIT)
        rows["phy_offset"][: len(offsets)] = 100 * np.arange(len(offsets))
        rows["size"][: len(offsets)], rows["batch_size"][: len(offsets)] = 100, 1
        rows["msg_base_offset"][: len(offsets)] = offsets
        rows["phy_offset"][len(offsets) : len(offsets) + 1] = -1  # where a broker went on in the next file
        (home / f"{460 * number:020d}").write_bytes(rows.tobytes())
    log = root / "compaction" / "compactionLog" / topic / str(queue_id)
    log.mkdir(parents=True)
    for name in sorted(path.name for path in home.iterdir()):
        (log / name).write_bytes(bytes(2300))
    return home


def cut_queues(root: Path, topic: str, units: int) -> None:
    """As in an older copy: the queue ends after so many units."""
    for file in sorted((root / "consumequeue" / topic / "0").iterdir()):
        data = file.read_bytes()
        kept = data[: max(20 * units - int(file.name), 0)]
        file.write_bytes(kept.ljust(len(data), b"\0"))


# ---- what is found


def test_messages_that_a_compacted_topic_lacks_are_not_looked_for(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(40))
    compact(root, [[19]])
    report = verify(root, config=CONFIG)
    assert report.ok
    (told,) = [one for one in report.findings if one.kind.startswith("compaction")]
    assert (told.kind, told.severity) == ("compaction-not-compared", "info")
    assert "Whether messages are missing here is not known" in told.hint


# ---- what is repaired


def test_queues_are_not_repaired_where_the_log_has_messages_of_compacted_topics(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(40))
    compact(root, [[19]])
    cut_queues(root, "Plain", 20)
    before = contents(root)
    for dry_run in (True, False):
        with pytest.raises(FileStateError, match="1 compacted topic in the log, the first of them Compacted; move"):
            repair(root, config=CONFIG, dry_run=dry_run)
        assert contents(root) == before
    repair(root, config=CONFIG, parts=["index"])
    assert contents(root) == before


@pytest.mark.parametrize("content", [None, "{", '{"topicConfigTable":{}}'])
def test_without_the_configuration_the_files_tell_the_topics(content: str | None, tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    compact(root, [[2]])
    shutil.rmtree(root / "consumequeue")
    (root / "config" / "topics.json").unlink()
    if content is not None:
        (root / "config" / "topics.json").write_text(content)
    with pytest.raises(FileStateError, match="1 compacted topic in the log"):
        repair(root, config=CONFIG)


@pytest.mark.parametrize(
    ("config", "content"),
    [({**CONFIG, "enableCompaction": "false"}, None), (CONFIG, '{"topicConfigTable":{"Other":{"topicName":"Other"}}}')],
)
def test_queues_are_repaired_where_no_topic_of_the_log_is_compacted(
    config: dict[str, object], content: str | None, tmp_path: Path
) -> None:
    root = make_store(tmp_path, some(5))
    shutil.rmtree(root / "consumequeue")
    if content is not None:
        (root / "config" / "topics.json").write_text(content)
    assert repair(root, config=config).ok


def test_right_queues_beside_compacted_topics_leave_nothing_to_refuse(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    (root / "index" / min(path.name for path in (root / "index").iterdir())).unlink()
    report = repair(root, config=CONFIG)
    assert (report.ok, len(report.out_files)) == (True, 1)


def test_a_rebuild_says_that_it_writes_no_compacted_topic(tmp_path: Path) -> None:
    root = make_store(tmp_path / "store", some(3))
    kinds = [one.kind for one in rebuild(root, tmp_path / "out", config=CONFIG).findings]
    assert kinds == ["compaction-not-written"]
    for given in ({"config": {**CONFIG, "enableCompaction": "false"}}, {"config": CONFIG, "parts": ["index"]}):
        assert rebuild(root, tmp_path / "out", overwrite=True, **given).findings == []  # type: ignore[arg-type]


# ---- a store that is open for writing


def test_only_a_broker_writes_to_a_compacted_topic(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    compact(root, [[4]])
    with MessageStore.open(root, writable=True, config=CONFIG) as store:
        for put in (
            lambda: store.put_message(NewMessage("Compacted", b"x", keys="k")),
            lambda: store.put_messages({"topic": ["Plain", "Compacted"], "body": [b"x", b"y"]}),
        ):
            with pytest.raises(ValueError, match="expected one that is not compacted, got Compacted"):
                put()
        assert store.put_message(NewMessage("Plain", b"x")).queue_offset == 5
    config = {**CONFIG, "enableCompaction": "false"}
    with MessageStore.open(root, writable=True, config=config) as store:
        assert store.put_message(NewMessage("Compacted", b"x", keys="k")).queue_offset == 5


def test_a_store_with_messages_that_a_broker_adds_first_is_not_opened_for_writing(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(40))
    compact(root, [[19]])
    for topic in ("Compacted", "Plain"):
        cut_queues(root, topic, 20)
    (root / "lock").write_bytes(b"lock")
    before = contents(root)
    with pytest.raises(FileStateError, match="may keep messages from compacted topics"):
        MessageStore.open(root, writable=True, config=CONFIG)
    assert contents(root) == before
