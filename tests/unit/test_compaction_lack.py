"""What compacted topics lack of the log: `verify` finds it, and no repair of the queues keeps it from them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.report import Report
from mqindex.rocketmq import MessageStore, NewMessage, rebuild, repair, verify
from mqindex.rocketmq.queue.batch.batch_units import BATCH_UNIT
from tests.reference.commit_log import scan_log
from tests.support.locks import held
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


def lacks(root: Path, **given: object) -> dict[str, object]:
    report = verify(root, **{"config": CONFIG, **given})
    assert {one.severity for one in report.findings if one.kind == "compaction-lacks"} <= {"warning"}
    return lacking(report)


def lacking(report: Report) -> dict[str, object]:
    return {
        str(Path(str(one.path)).relative_to(Path(report.path) / "compaction" / "compactionCq")): one.expected
        for one in report.findings
        if one.kind == "compaction-lacks"
    }


# ---- what is found


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ([range(30, 40)], None),
        ([[0, 3, 39]], None),
        ([range(10), range(10, 20), [39]], None),
        ([[39], []], None),  # a file that has just been made
        ([range(20, 30)], 30),
        ([[5, 38]], 39),
        ([[]], 0),
        ([], 0),
    ],
)
def test_a_compacted_queue_lacks_what_is_after_its_end(
    files: Sequence[Sequence[int]], first: int | None, tmp_path: Path
) -> None:
    """Keys that came again leave holes; only what is after the last unit is missing."""
    root = make_store(tmp_path, some(40))
    compact(root, files)
    told = {"Compacted/0": f"{40 - (first or 0)} message{'s' * (first != 39)} from queue offset {first} on"}
    for given in ({}, {"engine": LocalEngine(2), "deep": True}):
        assert lacks(root, **given) == ({} if first is None else told)


def test_a_compacted_topic_without_any_file_lacks_all(tmp_path: Path) -> None:
    root = make_store(tmp_path, [*some(5), message("Other", 0, queue_id=3)])
    assert lacks(root) == {
        "Compacted/0": "5 messages from queue offset 0 on",
        "Other/3": "1 message from queue offset 0 on",
    }


def test_messages_without_keys_are_in_no_compacted_topic(tmp_path: Path) -> None:
    keys = [None, "a", " ", "b", "\t ", None]
    root = make_store(tmp_path, [message("Compacted", n, keys=key) for n, key in enumerate(keys)])
    assert lacks(root) == {"Compacted/0": "2 messages from queue offset 1 on"}
    compact(root, [[3]])
    assert lacks(root) == {}


def test_a_topic_that_was_created_again_counts_from_there(tmp_path: Path) -> None:
    root = make_store(tmp_path, [*some(30), *some(8)])
    assert lacks(root) == {"Compacted/0": "8 messages from queue offset 0 on"}
    compact(root, [[5]])
    assert lacks(root) == {"Compacted/0": "2 messages from queue offset 6 on"}


def test_a_broker_without_compaction_lacks_nothing(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    assert lacks(root) != {}
    off = {**CONFIG, "enableCompaction": "false"}
    assert lacks(root, config=off) == {}
    shutil.rmtree(root / "consumequeue")
    assert repair(root, config=off).ok


def test_a_running_broker_is_about_to_add_them(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    with held(root / "lock"):
        assert lacks(root) == {}
    assert lacks(root) != {}


@pytest.mark.parametrize("content", [None, "{", '{"topicConfigTable":{}}'])
def test_without_the_configuration_the_files_tell_the_topics(content: str | None, tmp_path: Path) -> None:
    root = make_store(tmp_path, [*some(5), message("Other", 0)])
    compact(root, [[2]])
    (root / "config" / "topics.json").unlink()
    if content is not None:
        (root / "config" / "topics.json").write_text(content)
    assert lacks(root) == {"Compacted/0": "2 messages from queue offset 3 on"}


@pytest.mark.parametrize("data", [b"", b"\7" * 45, b"\xff" * 460, b"\0" * 460, bytes(8) + b"\7" * 460])
def test_files_of_any_bytes_are_no_trouble(data: bytes, tmp_path: Path) -> None:
    root = make_store(tmp_path, some(5))
    home = compact(root, [[1]])
    (home / f"{460:020d}").write_bytes(data)
    (home / "compacting").mkdir()
    (home / "x").write_bytes(data)
    found = lacks(root)
    assert found in ({}, {"Compacted/0": "3 messages from queue offset 2 on"})
    assert (found == {}) == (data[:9] == bytes(8) + b"\7")  # a unit, by its numbers


# ---- what is repaired


def test_queues_are_not_repaired_before_a_broker_has_added_what_they_lack(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(40))
    compact(root, [[19]])
    for topic in ("Compacted", "Plain"):
        cut_queues(root, topic, 20)
    before = contents(root)
    assert lacks(root) == {"Compacted/0": "20 messages from queue offset 20 on"}
    for dry_run in (True, False):
        with pytest.raises(FileStateError, match="20 messages fewer; move consumequeue/ and batchconsumequeue/"):
            repair(root, config=CONFIG, dry_run=dry_run)
        assert contents(root) == before
    repair(root, config=CONFIG, parts=["index"])
    shutil.rmtree(root / "compaction")
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{"Plain":{"topicName":"Plain"}}}')
    assert repair(root, config=CONFIG).ok


def test_queues_that_reach_further_already_are_repaired(tmp_path: Path) -> None:
    """The messages are lost to the topic before; the finding says what to do."""
    root = make_store(tmp_path, [*some(40), message("Plain", 40)])
    compact(root, [[19]])
    cut_queues(root, "Compacted", 10)
    report = repair(root, config=CONFIG)
    assert (report.ok, len(report.actions)) == (True, 1)
    assert lacks(root) == {"Compacted/0": "20 messages from queue offset 20 on"}


def test_without_any_queue_all_is_at_stake(tmp_path: Path) -> None:
    root = make_store(tmp_path, some(10))
    compact(root, [[4]])
    shutil.rmtree(root / "consumequeue")
    with pytest.raises(FileStateError, match="5 messages fewer"):
        repair(root, config=CONFIG)


def test_after_an_unclean_end_a_broker_reads_its_log_again(tmp_path: Path) -> None:
    """From the file on that its checkpoint tells: what is in it is added whatever the queues have."""
    root = make_store(tmp_path, some(10))
    compact(root, [[4]])
    shutil.rmtree(root / "consumequeue")
    (root / "abort").touch()
    (root / "checkpoint").write_bytes(bytes(4096))
    assert lacks(root) == {}
    assert repair(root, config=CONFIG).ok


def test_a_rebuild_says_that_it_writes_no_compacted_topic(tmp_path: Path) -> None:
    root = make_store(tmp_path / "store", some(3))
    kinds = [one.kind for one in rebuild(root, tmp_path / "out", config=CONFIG).findings]
    assert kinds == ["compaction-not-written"]
    for given in ({"config": {**CONFIG, "enableCompaction": "false"}}, {"config": CONFIG, "parts": ["index"]}):
        assert rebuild(root, tmp_path / "out", overwrite=True, **given).findings == []  # type: ignore[arg-type]


# ---- a second opinion


def expected(root: Path, ends: Mapping[tuple[str, int], int]) -> dict[str, object]:
    """Message after message."""
    files = [(int(path.name), path.read_bytes()) for path in sorted((root / "commitlog").iterdir())]
    found: dict[str, list[int]] = {}
    for record in scan_log(files)[0]:
        topic = record.topic.decode()
        name = f"{topic}/{record.queue_id}"
        if record.queue_offset == 0:
            found[name] = []
        keys = record.property_map.get("KEYS", "").strip()
        if topic in COMPACTED and keys and record.queue_offset >= ends.get((topic, record.queue_id), 0):
            found.setdefault(name, []).append(record.queue_offset)
    return {
        name: f"{len(offsets)} message{'s' * (len(offsets) > 1)} from queue offset {offsets[0]} on"
        for name, offsets in found.items()
        if offsets
    }


@pytest.mark.parametrize("seed", range(12))
def test_as_message_after_message_is_found(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    offsets: dict[tuple[str, int], int] = {}
    messages = []
    for _ in range(150):
        name = chosen.choice(["Compacted", "Other", "Plain"]), chosen.randrange(2)
        offset = offsets.get(name, 0) if chosen.random() < 0.99 else 0
        messages.append(message(name[0], offset, queue_id=name[1], keys=chosen.choice(["k", "k l", None, " "])))
        offsets[name] = offset + 1
    root = make_store(tmp_path, messages)
    ends = {}
    for name, following in offsets.items():
        if name[0] in COMPACTED and chosen.random() < 0.7:
            last = chosen.randrange(following)
            compact(root, [[last // 2], [last]] if last else [[last]], topic=name[0], queue_id=name[1])
            ends[name] = last + 1
    assert lacks(root, engine=LocalEngine(chosen.choice([1, 2]))) == expected(root, ends)


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
    assert lacks(root) == {}
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
    with pytest.raises(FileStateError, match="20 messages fewer"):
        MessageStore.open(root, writable=True, config=CONFIG)
    assert contents(root) == before
