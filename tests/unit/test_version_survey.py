"""What survives of a store tells which broker wrote it, as far as it tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.rocketmq import repair, verify
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.queued_store import tagged

ONE = LocalEngine(1)
GIVEN = {"hash_slot_num": 5, "index_num": 100}


def store(root: Path, *messages: LogMessage) -> Path:
    """A log and nothing else."""
    LogWriter(root / "commitlog", mapped_file_size=65536).write(*messages)
    return root


def told(root: Path) -> tuple[str, bool]:
    version = survey(store_options(root)).version
    return str(version.reported), version.known


def test_newest_messages_without_a_separator_are_of_a_broker_before_5_2(tmp_path: Path) -> None:
    old = tagged(10, separator=False)
    assert told(store(tmp_path, *old)) == ("before 5.2 (inferred from the properties of the newest messages)", True)
    (tmp_path / "timerwheel").mkdir()
    assert told(tmp_path) == ("5.0 or 5.1 (inferred from the properties of the newest messages)", True)


def test_separators_are_of_the_oldest_brokers_and_of_the_newest(tmp_path: Path) -> None:
    store(tmp_path, *tagged(10, separator=True))
    assert told(tmp_path) == ("unknown (nothing shows it; the rules before 5.4 are applied)", False)


@pytest.mark.parametrize("name", ["abort.bak", "timerwheel", "timerlog", "batchconsumequeue"])
def test_what_only_5_x_leaves_behind_is_told_and_decides_not_all(tmp_path: Path, name: str) -> None:
    store(tmp_path, *tagged(10, separator=True))
    (tmp_path / name).mkdir()
    assert told(tmp_path) == (f"5.0 or newer (inferred from {name}; the rules before 5.4 are applied)", False)


def test_topics_with_attributes_are_of_5_x(tmp_path: Path) -> None:
    store(tmp_path, *tagged(10, separator=True))
    (tmp_path / "config").mkdir()
    table = {"Topic": {"topicName": "Topic", "attributes": {"message.type": "NORMAL"}}}
    (tmp_path / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    assert told(tmp_path)[0].startswith("5.0 or newer (inferred from config/topics.json")


def test_frames_of_version_2_are_of_5_x(tmp_path: Path) -> None:
    store(tmp_path, *tagged(10, separator=True, version=2))
    assert told(tmp_path)[0].startswith("5.0 or newer (inferred from the newest messages")


def test_log_without_properties_tells_nothing(tmp_path: Path) -> None:
    assert told(store(tmp_path, *(LogMessage(queue_offset=n) for n in range(5))))[1] is False


def test_version_is_not_asked_for_where_no_message_has_tags(tmp_path: Path) -> None:
    store(tmp_path, *tagged(40, tags=[None], separator=True))
    report = verify(tmp_path, engine=ONE, **GIVEN)  # type: ignore[arg-type]
    assert "broker-version-unknown" not in {finding.kind for finding in report.findings}
    assert repair(tmp_path, engine=ONE, parts=["index"], **GIVEN).backup  # type: ignore[arg-type]
    assert verify(tmp_path, engine=ONE, broker_version="5.5.0", deep=True, **GIVEN).entries == 80  # type: ignore[arg-type]


def test_one_message_with_tags_asks_for_the_version(tmp_path: Path) -> None:
    messages = tagged(40, tags=[None], separator=True)
    messages[30] = tagged(31, tags=["TagA"], separator=True)[30]
    store(tmp_path, *messages)
    with pytest.raises(FileStateError, match="--broker-version V"):
        repair(tmp_path, engine=ONE, parts=["index"], **GIVEN)  # type: ignore[arg-type]
    assert repair(tmp_path, engine=ONE, parts=["index"], broker_version="5.5.0", **GIVEN).entries == 81  # type: ignore[arg-type]


def test_records_of_many_messages_show_a_batch_topic(tmp_path: Path) -> None:
    """Without `batchconsumequeue/` and topics.json, classic queues were written for it."""
    store(tmp_path, *tagged(10, separator=True, sys_flag=0x80))
    report = verify(tmp_path, engine=ONE, broker_version="5.5.0", **GIVEN)  # type: ignore[arg-type]
    assert "batch-queue-missing" in {finding.kind for finding in report.findings}
    given = {**GIVEN, "config": {"mapperFileSizeBatchConsumeQueue": 460}}
    with pytest.raises(FileStateError, match="BatchCQ of topic Topic"):  # with its files no broker would start
        repair(tmp_path, engine=ONE, broker_version="5.5.0", **given)  # type: ignore[arg-type]
    assert not (tmp_path / "consumequeue").exists()
