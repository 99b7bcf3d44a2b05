"""Openers that are given another directory or file than their own: refused, and told which one is meant."""

from __future__ import annotations

import shutil

import pytest

from mqindex import kafka
from mqindex.errors import BadMagicError
from mqindex.rocketmq import (
    BatchConsumeQueue,
    CommitLog,
    ConsumeQueue,
    ConsumeQueueExt,
    ConsumeQueueTable,
    IndexFile,
    IndexService,
    MessageStore,
)
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase


@pytest.fixture
def store(tmp_path):
    root = case("basic-493").unpack(tmp_path / "store")
    topic = next(path for path in sorted((root / "consumequeue").iterdir()) if (path / "0").exists())
    topic.rename(root / "consumequeue" / "TopicTest")
    return root


@pytest.mark.parametrize(
    ("opened", "given", "got", "meant"),
    [
        (CommitLog, "", "a store's root", "commitlog"),
        (CommitLog, "index", "an index directory", "commitlog"),
        (CommitLog, "consumequeue", "the directory of all consume queues", "commitlog"),
        (CommitLog, "consumequeue/TopicTest/0", "a consume queue", "commitlog"),
        (IndexService, "", "a store's root", "index"),
        (IndexService, "commitlog", "a commit log", "index"),
        (ConsumeQueue, "", "a store's root", "consumequeue/<topic>/<queueId>"),
        (ConsumeQueue, "commitlog", "a commit log", "consumequeue/<topic>/<queueId>"),
        (ConsumeQueue, "consumequeue", "the directory of all consume queues", "consumequeue/<topic>/<queueId>"),
        (ConsumeQueue, "consumequeue/TopicTest", "a topic's directory of consume", "consumequeue/TopicTest/<queueId>"),
    ],
)
def test_another_part_of_a_store_is_refused(store, opened, given, got, meant):
    """`CommitLog.open` and `IndexService.open` of a store's root answered every question with nothing."""
    with pytest.raises(BadMagicError) as refused:
        opened.open(store / given)
    assert f"got {got}" in str(refused.value)
    assert str(refused.value).endswith(f"pass {store / meant}")


def test_the_right_directories_are_opened(store):
    (queue,) = list((store / "consumequeue" / "TopicTest").iterdir())[:1]
    for opened, given in ((CommitLog, "commitlog"), (IndexService, "index"), (ConsumeQueue, queue)):
        opened.open(store / given).close()


def test_a_young_store_has_empty_directories(tmp_path):
    for name in ("commitlog", "index"):
        (tmp_path / name).mkdir()
    CommitLog.open(tmp_path / "commitlog").close()
    IndexService.open(tmp_path / "index").close()


EVERY = [CommitLog, IndexService, ConsumeQueue, ConsumeQueueTable, BatchConsumeQueue, ConsumeQueueExt]


@pytest.mark.parametrize("opened", EVERY)
def test_a_directory_of_strangers_is_refused(tmp_path, opened):
    """`CommitLog.open("/etc")` was a log without messages, and answered every question with nothing."""
    for name in ("hosts", "passwd", "apt", "ssl", "0001x"):
        (tmp_path / name).mkdir()
    with pytest.raises(BadMagicError, match=r"got other names: .*apt, .*\.\.\."):
        opened.open(tmp_path)


@pytest.mark.filterwarnings("ignore:skipped")
@pytest.mark.parametrize("opened", EVERY)
def test_what_every_directory_may_have_is_no_stranger(tmp_path, opened):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".nfs0001").touch()
    opened.open(tmp_path).close()


def test_files_of_the_index_are_no_log(store):
    copied = store.rename(store.parent / "copy") / "index"
    shutil.move(copied, store.parent / "elsewhere")
    with pytest.raises(BadMagicError, match=r"not a commit log: .*expected files named by 20 digits"):
        CommitLog.open(store.parent / "elsewhere")


def test_the_table_of_queues_is_not_opened_from_another_place(store):
    with pytest.raises(BadMagicError, match=f"got a store's root; pass {store}/consumequeue$"):
        ConsumeQueueTable.open(store)
    for given in ("commitlog", "consumequeue/TopicTest", "consumequeue/TopicTest/0"):
        with pytest.raises(BadMagicError, match=f"pass {store}/consumequeue$"):
            ConsumeQueueTable.open(store / given)
    with ConsumeQueueTable.open(store / "consumequeue") as table:
        assert table.queues()


@pytest.mark.parametrize("given", ["commitlog", "index", "consumequeue", "consumequeue/TopicTest/0"])
def test_a_part_is_no_store(store, given):
    with pytest.raises(BadMagicError) as refused:
        MessageStore.open(store / given)
    assert str(refused.value).endswith(f"pass {store}")


def test_an_index_directory_is_no_file(store):
    with pytest.raises(IsADirectoryError, match=r"IndexService\.open takes a directory"):
        IndexFile.open(store / "index")


def test_a_log_dir_is_no_partition(tmp_path):
    """It had no segments, and no record was ever found."""
    log_dir = PartitionCase("410-txn").closed(tmp_path / "kafka").parent
    partition = next(path for path in log_dir.iterdir() if path.is_dir())
    with pytest.raises(BadMagicError, match=f"partitions in it: .*{partition.name}"):
        kafka.PartitionLog.open(log_dir)


def test_a_store_is_no_partition(store):
    for given in (store, store / "commitlog"):
        with pytest.raises(BadMagicError, match="not a partition"):
            kafka.PartitionLog.open(given)


def test_an_empty_directory_is_a_partition_without_segments(tmp_path):
    with kafka.PartitionLog.open(tmp_path) as log:
        assert len(log) == 0


KINDS = {
    "log": kafka.LogSegment,
    "index": kafka.OffsetIndex,
    "timeindex": kafka.TimeIndex,
    "txnindex": kafka.TransactionIndex,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", KINDS)
def test_another_file_of_a_segment_is_refused(tmp_path, kind, given):
    """A time index that was opened as an offset index gave entries that nobody wrote."""
    path = tmp_path / f"00000000000000000007.{given}.deleted"
    path.write_bytes(bytes(24))
    if kind == given:
        KINDS[kind].open(path).close()
        return
    right = KINDS[given].__name__
    with pytest.raises(BadMagicError, match=rf"expected a \.{kind} file, got \.{given}; {right}\.open takes it"):
        KINDS[kind].open(path)


@pytest.mark.parametrize("opened", KINDS.values())
def test_a_directory_is_no_file_of_a_segment(tmp_path, opened):
    with pytest.raises(IsADirectoryError, match=r"PartitionLog\.open takes a directory"):
        opened.open(tmp_path)
