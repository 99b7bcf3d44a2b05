"""`mqindex query --timestamp` of a whole store and a whole log dir: the offset of each queue, of each partition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mqindex import kafka, rocketmq
from mqindex.errors import BadMagicError
from tests.cli.conftest import Shell, Store
from tests.support.golden_kafka import PartitionCase

MOMENTS = (0, 1_680_169_438_552, 1_680_170_240_000, 1_680_170_469_252, 9_000_000_000_000)


@pytest.mark.parametrize("boundary", ["lower", "upper", "nearest"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_the_offset_of_each_queue(shell: Shell, lost: Store, moment: int, boundary: str) -> None:
    rule = None if boundary == "nearest" else boundary
    with rocketmq.MessageStore.open(lost.root) as store:
        expected = []
        for topic, queue_id in sorted(store.queues):
            queue = store.consume_queue(topic, queue_id)
            assert queue is not None
            offset = queue.get_offset_in_queue_by_time(moment, store.commit_log, boundary=rule)  # type: ignore[arg-type]
            found = store.get_message(topic, queue_id, offset, max_msg_nums=1).messages
            there = [one.store_timestamp for one in found if one.queue_offset == offset]
            expected.append((topic, queue_id, offset, there[0] if there else None))
    rows = shell("query", lost.root, "--timestamp", str(moment), "--boundary", boundary, "--json").json
    assert [(row["topic"], row["queue_id"], row["offset"], row["store_timestamp"]) for row in rows] == expected
    assert {row["timestamp"] for row in rows} == {moment}


def test_the_default_rule_is_said(shell: Shell, lost: Store) -> None:
    done = shell("query", lost.root, "--timestamp", "2023-03-30T09:57:20Z", "--topic", "LostTopic")
    assert "offsets of the first message from then on, as RocketMQ 5.1.4 and newer" in done.err
    assert done.lines[0].split() == ["queue_id", "offset", "time", "topic"] and len(done.lines) == 5


def test_a_time_that_is_none_is_one_sentence(shell: Shell, lost: Store) -> None:
    for text, words in (("nan", "'nan': expected ms since the epoch"), (str(2**63), "expected 64 bits, got more")):
        done = shell("query", lost.root, "--timestamp", "0", "--timestamp", text)
        assert (done.status, done.out) == (2, "") and done.err.count("\n") == 1 and words in done.err


def test_the_offset_of_each_partition(shell: Shell, tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    for name in ("410-txn-open", "410-backwards", "410-codecs"):
        one = PartitionCase(name).closed(tmp_path / name)
        one.rename(directory / one.name)
    partitions = sorted(path.name for path in directory.iterdir())
    for moment in (-2, -1, 1_700_000_010_000, 9_000_000_000_000):
        rows = shell("query", directory, "--timestamp", str(moment), "--json").json
        assert [f"{row['topic']}-{row['partition']}" for row in rows] == partitions
        lines = shell("query", directory, "--timestamp", str(moment), "--csv").lines
        answers = kafka.offsets_for_time(directory, moment)
        assert lines == [
            f"{name.rpartition('-')[0]},0,{at}" for name, at in zip(partitions, answers["offset"], strict=True)
        ]
        for row, offset, time in zip(rows, answers["offset"], answers["timestamp"], strict=True):
            with kafka.PartitionLog.open(directory / f"{row['topic']}-{row['partition']}") as log:
                found = log.offset_for_timestamp(moment)
                assert row["found_offset"] == (None if found is None else found.offset)
                assert offset == (log.log_end_offset if found is None else found.offset)
                assert np.isnat(time) == (found is None or found.timestamp < 0)


def test_words(shell: Shell, lost: Store, tmp_path: Path) -> None:
    partition = PartitionCase("410-txn").closed(tmp_path / "p")
    for arguments, words in (
        ([lost.root, "--timestamp", "0", "key"], "--timestamp takes no KEY"),
        ([lost.root / "index", "--timestamp", "0"], "expected a store's root directory"),
        ([lost.root, "--csv"], "--csv is for Kafka"),
        ([partition, "--offset", "1", "--csv"], "expected a log dir or a partition, and one --timestamp"),
        ([partition, "some-key"], "records by key or time: mqindex messages"),
    ):
        done = shell("query", *arguments)
        assert (done.status, done.out) == (2, "") and words in done.err, done.err
    (tmp_path / "none").mkdir()
    with pytest.raises(BadMagicError, match="no partition is in it"):
        kafka.offsets_for_time(tmp_path / "none", 0)
