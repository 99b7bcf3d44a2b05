"""A topic that an administrator deleted is no damage; a lost queue of a living topic is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.report import Report
from mqindex.rocketmq import repair, report, verify
from tests.support.log_writer import FIRST_TIME, LogMessage
from tests.support.queued_store import make_queued_store
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents

ONE = LocalEngine(1)
LATER = FIRST_TIME + 3_600_000
GONE = "Topic1"


def found(told: Report, kind: str) -> list[tuple[str, str | None]]:
    return [(one.severity, one.path) for one in told.findings if one.kind == kind]


def list_topics(root: Path, *topics: str, changed: int = LATER, name: str = "topics.json") -> None:
    table = {topic: {"topicName": topic, "readQueueNums": 1} for topic in ("SCHEDULE_TOPIC_XXXX", *topics)}
    text = {"dataVersion": {"counter": 4, "timestamp": changed}, "topicConfigTable": table}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / name).write_text(json.dumps(text))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three topics, one of them deleted: as `mqadmin deleteTopic` leaves the store of a 4.9.3 broker."""
    root = make_small_store(tmp_path / "store")
    shutil.rmtree(root / "consumequeue" / GONE / "0")
    list_topics(root, "Topic0", "Topic2")
    return root


def test_a_deleted_topic_is_told_and_left(store: Path) -> None:
    """`verify` ended with exit code 1 until the log expired, and `repair` brought the queues back."""
    (store / "config" / "consumerOffset.json").write_text(f'{{"offsetTable": {{"{GONE}@g": {{"0": 15}}}}}}')
    before = contents(store)
    told = verify(store, engine=ONE, **OPTIONS)
    assert (told.ok, told.actions) == (True, [])
    assert [(one.severity, one.kind, one.path) for one in told.findings] == [
        ("warning", "topic-deleted", str(store / "consumequeue" / GONE))
    ]
    mended = repair(store, engine=ONE, **OPTIONS)
    assert (mended.ok, mended.actions, found(mended, "topic-deleted")) == (True, [], found(told, "topic-deleted"))
    assert contents(store) == before
    coverage = report(store, engine=ONE, **OPTIONS).coverage
    assert coverage is not None and coverage.missing_units == 0


def test_a_broker_of_5_leaves_no_directory(store: Path) -> None:
    shutil.rmtree(store / "consumequeue" / GONE)
    assert found(verify(store, engine=ONE, **OPTIONS), "topic-deleted")


def still_missed(root: Path, topic: str = GONE, **options: Any) -> None:
    """The queue is an error, and repair writes it."""
    told = verify(root, engine=ONE, **OPTIONS | options)
    queue = root / "consumequeue" / topic / "0"
    assert found(told, "queue-missing") == [("error", str(queue))]
    assert found(told, "topic-deleted") == []
    assert repair(root, engine=ONE, **OPTIONS | options).ok
    assert queue.is_dir()


@pytest.mark.parametrize("text", [None, "", "{", '{"topicConfigTable": {}}', '{"topicConfigTable": {"Topic0": {}}}'])
def test_topics_that_are_not_known_prove_nothing(store: Path, text: str | None) -> None:
    """Missing, empty, cut, of no topic, or of no time; a `.bak` is the list of an earlier time."""
    path = store / "config" / "topics.json"
    path.unlink() if text is None else path.write_text(text)
    list_topics(store, "Topic0", "Topic2", name="topics.json.bak")
    still_missed(store)


def test_list_from_before_the_topic_proves_nothing(store: Path) -> None:
    """A backup, what a power failure left, a slave's that is not up to date."""
    list_topics(store, "Topic0", "Topic2", changed=FIRST_TIME)
    still_missed(store)


def test_list_of_no_other_topic_proves_nothing(store: Path) -> None:
    """A broker that has lost its list begins a new one, with its own topics alone."""
    list_topics(store, "Unused")
    still_missed(store)


@pytest.mark.parametrize(
    ("config", "version"), [({"enableMultiDispatch": "true"}, "4.9.3"), ({"configManagerVersion": "v2"}, "5.3.3")]
)
def test_settings_with_which_the_list_proves_nothing(store: Path, config: dict[str, str], version: str) -> None:
    still_missed(store, config=config, broker_version=version)


def test_a_broker_before_5_2_knows_no_rocksdb(store: Path) -> None:
    told = verify(store, engine=ONE, **OPTIONS, config={"configManagerVersion": "v2", "storeType": "defaultRocksDB"})
    assert found(told, "topic-deleted")


def test_living_topic_that_lost_all_its_queues(store: Path) -> None:
    list_topics(store, "Topic0", "Topic1", "Topic2")
    still_missed(store)


@pytest.mark.parametrize("topic", ["%RETRY%g", "%LMQ%a", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"])
def test_topics_that_a_broker_keeps_by_itself(topic: str, tmp_path: Path) -> None:
    messages = [LogMessage("T", keys="k", queue_offset=n, store_timestamp=FIRST_TIME + n) for n in range(4)]
    root = make_queued_store(tmp_path / "store", [*messages, *(replace(one, topic=topic) for one in messages)])
    shutil.rmtree(root / "consumequeue" / topic)
    list_topics(root, "T")
    still_missed(root, topic, config={"messageDelayLevel": "1s"})


def test_topic_of_which_one_queue_is_left(tmp_path: Path) -> None:
    """A broker deletes all queues of a topic: this one lost the other."""
    messages = [LogMessage("T", queue_offset=n, store_timestamp=FIRST_TIME + n) for n in range(4)]
    more = [replace(one, topic="Two", queue_id=number) for number in (0, 1) for one in messages]
    root = make_queued_store(tmp_path / "store", [*messages, *more])
    shutil.rmtree(root / "consumequeue" / "Two" / "0")
    list_topics(root, "T")
    still_missed(root, "Two")


def test_queue_that_only_multi_dispatch_fills(tmp_path: Path) -> None:
    """It has no topic that could be listed."""
    messages = [
        LogMessage(
            "T", queue_offset=n, store_timestamp=FIRST_TIME + n,
            properties=[("INNER_MULTI_DISPATCH", "Other"), ("INNER_MULTI_QUEUE_OFFSET", str(n))],
        )
        for n in range(4)
    ]  # fmt: skip
    root = make_queued_store(tmp_path / "store", messages)
    list_topics(root, "T")
    still_missed(root, "Other")
