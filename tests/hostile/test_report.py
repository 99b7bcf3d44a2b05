"""A health report of stores that are damaged, empty, foreign or half there, and of names that nobody would give."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import StoreHealth, rebuild, report, verify
from mqindex.rocketmq.log.log_entries import FileWalk
from tests.hostile.test_index_file import mutated
from tests.support.big_log import write_big_log
from tests.support.golden import case
from tests.support.log_writer import FIRST_TIME, LogMessage, LogWriter
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents, index_paths

Bound = Callable[[float], None]
ONE = LocalEngine(1)


def said(root: Path, **options: Any) -> StoreHealth:
    """The report, which is JSON and changes nothing."""
    before = contents(root)
    health = report(root, engine=ONE, **options)
    assert contents(root) == before
    json.dumps(health.to_dict())
    return health


def test_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = case("basic-493").unpack(tmp_path)
    walked: list[int] = []
    walk = FileWalk.__iter__

    def counting(self: FileWalk) -> Any:
        for chunk in walk(self):
            walked.append(len(self.units))
            yield chunk

    monkeypatch.setattr(FileWalk, "__iter__", counting)
    verify(root, engine=ONE)
    alone = sorted(walked)
    walked.clear()
    report(root, engine=ONE)
    assert sorted(walked) == alone


def test_log_that_is_gone(tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable": {"AaTopic@g": {0: 5}}}')
    shutil.rmtree(root / "commitlog")
    health = said(root)
    assert (health.ok, health.coverage, health.index, health.topics) == (False, None, None, None)
    assert health.verify.to_dict()["findings"]
    assert [(one.group.text, one.lag, one.unknown) for one in health.groups.groups] == [("g", 0, 1)]


def test_store_without_a_message(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    health = said(tmp_path)
    assert health.coverage is not None and health.topics is not None and health.index is not None
    assert (health.coverage.begin, health.coverage.end, health.coverage.messages) == (0, 0, 0)
    assert (health.topics.topics, health.index.files, health.index.cold_reads) == ((), (), None)


def test_directory_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises((MQIndexError, OSError)) as told:
        report(tmp_path, engine=ONE)
    with pytest.raises(told.type) as also:
        verify(tmp_path, engine=ONE)
    assert str(told.value) == str(also.value)


def test_damage_in_the_log_is_where_it_is(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=4096)
    writer.write(*(LogMessage(queue_offset=n, keys=f"k{n}", body=b"x" * 200) for n in range(40)))
    at, size = writer.frames[3]
    writer.overwrite(at, bytes(size))
    health = said(tmp_path, **OPTIONS)
    assert health.coverage is not None and health.topics is not None
    assert [(one.begin, one.end) for one in health.coverage.damaged] == [(at, at + size)]
    assert health.topics.messages == health.coverage.messages == 39


def test_file_of_the_log_that_is_missing(tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    (root / "commitlog" / f"{2048:020d}").unlink()
    coverage = said(root, **OPTIONS).coverage
    assert coverage is not None
    assert [(one.begin, one.end, one.kind) for one in coverage.damaged] == [(2048, 4096, "log-file-missing")]


def test_index_files_of_another_log(tmp_path: Path) -> None:
    root, other = case("basic-493").unpack(tmp_path), case("clock-back-493").unpack(tmp_path)
    health = said(root, commitlog=other / "commitlog")
    assert health.coverage is not None and health.index is not None
    assert len(health.coverage.bad_index_files) == len(index_paths(root))
    assert health.coverage.missing_entries == health.index.log_entries > 0


def test_index_spoilt_anywhere(tmp_path: Path, rng: random.Random, time_bound: Bound) -> None:
    time_bound(120)
    store = make_small_store(tmp_path / "store")
    for number in range(25):
        root = shutil.copytree(store, tmp_path / str(number))
        for path in rng.sample(index_paths(root), 2):
            path.write_bytes(mutated(path.read_bytes(), rng))
        health = said(root, **OPTIONS)
        assert health.ok == verify(root, engine=ONE, **OPTIONS).ok


def test_log_spoilt_anywhere(tmp_path: Path, rng: random.Random, time_bound: Bound) -> None:
    time_bound(120)
    store = make_small_store(tmp_path / "store")
    for number in range(25):
        root = shutil.copytree(store, tmp_path / str(number))
        for path in rng.sample(sorted((root / "commitlog").iterdir()), 2):
            path.write_bytes(mutated(path.read_bytes(), rng))
        health = said(root, deep=bool(number % 2), **OPTIONS)
        assert health.topics is None or health.topics.messages >= 0


def test_names_are_cut_and_counted(tmp_path: Path) -> None:
    topic, key, tag = "<script>\0\u202e" + "T" * 30000, "<b>" + "k" * 9000, "\x1b[31m" + "t" * 9000
    messages = [LogMessage(topic, keys=key, tags=tag, version=2, queue_offset=n) for n in range(3)]
    LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 18).write(*messages)
    (tmp_path / "config").mkdir()
    group = "g" * 10_000_000
    offsets = {"offsetTable": {f"T@{group}": {"0": 1}}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    health = said(tmp_path, show_keys=True, **OPTIONS)
    assert health.topics is not None and health.index is not None
    (shown,) = health.topics.topics
    assert (shown.name.text, shown.name.length) == (topic[:200], len(topic))
    assert [(one.tag and (one.tag.text, one.tag.length), one.messages) for one in shown.tags] == [
        ((tag[:200], len(tag)), 3)
    ]
    assert [(one.key and one.key.length, one.entries) for one in health.index.frequent] == [(len(key), 3)]
    assert [one.group.length for one in health.groups.groups] == [len(group)]
    assert len(json.dumps(health.to_dict())) < 100_000


def test_many_topics_and_queues_are_summed(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=1 << 18)
    writer.write(*(LogMessage(f"Topic{n:04}", keys="k", queue_id=n % 3) for n in range(400)))
    writer.write(*(LogMessage("Wide", queue_id=n, body=b"x" * 100) for n in range(100)))
    topics = said(tmp_path, **OPTIONS).topics
    assert topics is not None
    assert (len(topics.topics), topics.more, topics.more_messages) == (50, 351, 351)
    wide = topics.topics[0]
    assert (wide.name.text, len(wide.queues), wide.queue_count, wide.skew) == ("Wide", 64, 100, 1.0)
    assert topics.messages == 500
    assert topics.bytes == topics.more_bytes + sum(one.bytes for one in topics.topics)


def test_queues_in_rocksdb_are_not_read(tmp_path: Path) -> None:
    LogWriter(tmp_path / "commitlog").write(*(LogMessage("T", queue_offset=n) for n in range(4)))
    home = tmp_path / "consumequeue"
    home.mkdir()
    (home / "CURRENT").write_text("MANIFEST-000001\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "consumerOffset.json").write_text('{"offsetTable": {"T@g": {0: 1}}}')
    health = said(tmp_path, **OPTIONS)
    assert health.coverage is not None and health.topics is not None
    assert (health.coverage.queues, health.coverage.missing_units) == (None, 0)
    assert [one.messages for one in health.topics.topics] == [4]
    assert health.groups.lag == 3, "the end of a queue is known from the log"


def test_groups_and_delays(tmp_path: Path) -> None:
    messages = [LogMessage("T", queue_id=n % 2, queue_offset=n // 2) for n in range(10)]
    messages += [LogMessage("%DLQ%g"), LogMessage("%RETRY%g")]
    messages += [
        LogMessage("SCHEDULE_TOPIC_XXXX", queue_id=2, queue_offset=n, properties=[("DELAY", "3")]) for n in range(4)
    ]
    LogWriter(tmp_path / "commitlog").write(*messages)
    rebuild(tmp_path, tmp_path / "made", engine=ONE, **OPTIONS)
    for part in ("index", "consumequeue"):
        os.rename(tmp_path / "made" / part, tmp_path / part)
    shutil.rmtree(tmp_path / "made")
    (tmp_path / "config").mkdir()
    table = {"T@g": {"0": 2, "1": 5}, "T@slow": {"0": 0, "7": 3}}
    (tmp_path / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    (tmp_path / "config" / "delayOffset.json").write_text(json.dumps({"offsetTable": {"3": 1}}))
    health = said(tmp_path, **OPTIONS)
    groups = [(one.group.text, one.topic.text, one.lag, one.unknown) for one in health.groups.groups]
    assert groups == [("slow", "T", 5, 1), ("g", "T", 3, 0)]
    assert [(one.queue_id, one.lag) for one in health.groups.groups[0].queues] == [(0, 5), (7, None)]
    assert [(one.level, one.offset, one.end, one.waiting) for one in health.groups.delays] == [(3, 1, 4, 3)]
    assert health.topics is not None
    assert {one.kind: one.messages for one in health.topics.kinds} == {
        "messages": 10, "dead letters": 1, "retries": 1, "delayed": 4,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "{", '{"offsetTable": {"T@g": {"0": "many"}}}', "\0" * 100])
def test_consumer_offsets_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    root = make_small_store(tmp_path / "store")
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(text)
    health = said(root, **OPTIONS)
    assert health.groups.groups == ()
    assert health.coverage is not None


def test_long_log_is_sampled_and_says_so(tmp_path: Path) -> None:
    write_big_log(tmp_path, total_bytes=160 << 20, body_size=300, mapped_file_size=32 << 20, tags=3)
    health = said_of_big(tmp_path)
    topics, index, coverage = health.topics, health.index, health.coverage
    assert topics is not None and index is not None and coverage is not None
    (topic,) = topics.topics
    assert topic.messages == coverage.messages == health.verify.messages
    assert not topics.sampled.whole
    assert topics.sampled.seen == pytest.approx(topics.messages / 3, rel=0.01)
    assert sum(topic.times.counts) == pytest.approx(topic.messages, rel=0.01)
    assert [one.messages for one in topic.tags] == pytest.approx([topic.messages / 3] * 3, rel=0.05)
    assert {one.tag and one.tag.text for one in topic.tags} == {"TagA", "TagB", "TagC"}
    assert sum(topic.sizes.counts) == pytest.approx(topic.messages, rel=0.01)
    assert 0 < index.sampled.seen < index.sampled.total
    assert [str(one).partition(":")[0] for one in health.read.sampled] == ["times, sizes and tags", "keys"]
    assert coverage.timeline[0].timestamp == FIRST_TIME
    moments = [(one.phy_offset, one.timestamp) for one in coverage.timeline]
    assert moments == sorted(moments)


def said_of_big(root: Path) -> StoreHealth:
    return report(root, engine=LocalEngine(2), **OPTIONS)
