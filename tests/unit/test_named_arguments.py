"""Names, numbers and objects that calls are given: a value of another type is refused by the argument's name."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import kafka, rocketmq
from mqindex.errors import FormatError
from mqindex.rocketmq import CommitLog, ConsumeQueue, ConsumeQueueTable, IndexFile, MessageStore, NewMessage
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase

Call = Callable[[Any], object]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two golden places, read only."""
    home = tmp_path_factory.mktemp("named")
    case("basic-493").unpack(home / "rocketmq")
    PartitionCase("410-txn").closed(home / "kafka")
    return home


@pytest.fixture
def store(place: Path) -> Iterator[MessageStore]:
    with MessageStore.open(next((place / "rocketmq").glob("**/commitlog")).parent) as opened:
        yield opened


@pytest.fixture
def queue(store: MessageStore) -> ConsumeQueue:
    found = store.consume_queue(*store.queues[0])
    assert found is not None
    return found


WRONG_NAMES = [5, 1.5, True, ..., np.array(3), [5], [None], [["a"]], np.zeros((2, 2)), b"index"]


@pytest.mark.parametrize("names", WRONG_NAMES, ids=repr)
def test_parts_and_columns_are_names(place: Path, store: MessageStore, names: Any) -> None:
    """It was "'int' object is not iterable", "sequence item 0: expected str instance" or "unhashable type"."""
    segment = kafka.LogSegment.open(next((place / "kafka").glob("**/*.log")))
    calls: list[tuple[str, Call]] = [
        ("parts", lambda parts: rocketmq.rebuild("store", "out", parts=parts)),
        ("parts", lambda parts: rocketmq.repair("store", parts=parts)),
        ("columns", lambda columns: list(store.commit_log.scan(columns=columns))),
        ("columns", lambda columns: store.get_messages(*store.queues[0], 0, max_msg_nums=1, columns=columns)),
        ("columns", lambda columns: segment.read(0, columns=columns)),
    ]
    with segment:
        for argument, call in calls:
            with pytest.raises(TypeError, match=rf"^{argument}: expected a sequence of names, got "):
                call(names)


@pytest.mark.parametrize("tags", [None, 5, np.array(3), "TagA", [None], [1.5], [b"TagA"], [[1]], [True]], ids=repr)
def test_tags_are_texts_or_hashes(queue: ConsumeQueue, tags: Any) -> None:
    """It was "int() argument must be a string", and 1.5 was the hash 1."""
    with pytest.raises(TypeError, match=r"^tags: expected (several tags or hashes|a whole number), got "):
        queue.select(tags)


@pytest.mark.parametrize("directories", [np.array(3), 5], ids=repr)
def test_directories_are_one_or_several(directories: Any) -> None:
    with pytest.raises(TypeError, match=r"^directories: expected one directory or more, got "):
        CommitLog.open(directories)


@pytest.mark.parametrize("queue_id", [None, 1.5, 1.0, float("nan"), True, "1", [1], np.zeros(2)], ids=repr)
def test_a_queue_id_is_a_whole_number(store: MessageStore, tmp_path: Path, queue_id: Any) -> None:
    """1.5 was a new directory, `1.5`; None was "'<' not supported between instances"."""
    with ConsumeQueueTable.open(tmp_path / "queues", writable=True) as table:
        for call in (store.consume_queue, table.get, table.find_or_create):
            with pytest.raises(TypeError, match=r"^queue_id: expected a whole number, got "):
                call("T", queue_id)
        assert os.listdir(tmp_path / "queues") == []


@pytest.mark.parametrize("topic", [None, 5, b"T", [], (), ["T"], np.array("T"), range(3)], ids=repr)
def test_a_topic_is_text(store: MessageStore, tmp_path: Path, topic: Any) -> None:
    """It was "argument of type 'int' is not iterable", or an `AttributeError`."""
    with ConsumeQueueTable.open(tmp_path / "queues", writable=True) as table:
        for call in (store.consume_queue, table.get, table.find_or_create):
            with pytest.raises(TypeError, match=r"^topic: expected str, got "):
                call(topic, 0)


def test_a_queue_id_is_one_of_java(tmp_path: Path) -> None:
    """It was a directory at whose name a broker fails."""
    with ConsumeQueueTable.open(tmp_path / "queues", writable=True) as table:
        with pytest.raises(FormatError, match=r"a queue id above 2147483647"):
            table.find_or_create("T", 2**31)
        assert table.get("T", 2**63) is None
        assert table.find_or_create("T", np.int64(3)) is table.get("T", 3)


@pytest.mark.parametrize("log", [None, 5, "commitlog"])
def test_a_commit_log_is_one(queue: ConsumeQueue, log: Any) -> None:
    """It was "'NoneType' object has no attribute 'min_phy_offset'"."""
    with pytest.raises(TypeError, match=r"^commit_log: expected a CommitLog, got "):
        queue.get_offset_in_queue_by_time(5, log)


@pytest.mark.parametrize("start", [2**63, 2**64])
def test_entries_behind_all_are_none(tmp_path: Path, start: int) -> None:
    """It was "Python int too large to convert to C ssize_t"."""
    with IndexFile.create(tmp_path / "index", hash_slot_num=5, index_num=9) as index:
        index.put_key("a", 1, 1_700_000_000_000)
        assert len(index.entries(start)["phy_offset"]) == 0
        assert index.entries(-start, start)["phy_offset"].tolist() == [1]


@pytest.mark.parametrize("argument", ["phy_offset", "size", "tags_code", "queue_offset"])
def test_the_numbers_of_a_unit_fit_their_fields(tmp_path: Path, argument: str) -> None:
    """It was "Python int too large to convert to C long"."""
    unit = {"phy_offset": 0, "size": 5, "tags_code": 0, "queue_offset": 0}
    with ConsumeQueue.open(tmp_path, file_size=1000, writable=True) as queue:
        for number in (2**63, -(2**63) - 1):
            with pytest.raises((OverflowError, ValueError), match=rf"^{argument}: expected "):
                queue.put_message_position_info(**{**unit, argument: number})


@pytest.mark.parametrize("offsets", [[], [1, 2, 3], [[1], [2, 3]]], ids=repr)
def test_queue_offsets_are_one_for_each_message(tmp_path: Path, offsets: Any) -> None:
    """It was "operands could not be broadcast together", or "inhomogeneous shape"."""
    with CommitLog.open(tmp_path, writable=True, mapped_file_size=1 << 20) as log:
        with pytest.raises((TypeError, ValueError), match=r"^queue_offset: expected "):
            log.append_messages([NewMessage("T"), NewMessage("T")], queue_offset=offsets)
        assert len(log.append_messages([NewMessage("T"), NewMessage("T")], queue_offset=np.array(3)).sizes) == 2


def test_a_single_entry_is_named_as_its_argument(tmp_path: Path) -> None:
    """It was named as the argument of the bulk call."""
    name = f"{0:020d}"
    with kafka.OffsetIndex.create(tmp_path / f"{name}.index", 0, max_index_size=80) as offsets:
        for argument, values in (("offset", (None, 5)), ("position", (5, 1.5))):
            with pytest.raises(TypeError, match=rf"^{argument}: expected a whole number, got "):
                offsets.append(*values)  # type: ignore[arg-type]
    with kafka.TimeIndex.create(tmp_path / f"{name}.timeindex", 0, max_index_size=80) as times:
        for argument, values in (("timestamp", (None, 5)), ("offset", (5, 1.5))):
            with pytest.raises(TypeError, match=rf"^{argument}: expected "):
                times.maybe_append(*values)  # type: ignore[arg-type]


def test_an_index_has_a_size_of_java(tmp_path: Path) -> None:
    """It was "Python int too large to convert to C long"."""
    with pytest.raises(ValueError, match=r"^max_index_size: expected a whole number from 8 to 2147483647, got "):
        kafka.OffsetIndex.create(tmp_path / "0.index", 0, max_index_size=2**63)
    with kafka.OffsetIndex.create(tmp_path / "0.index", 0, max_index_size=80) as index:
        with pytest.raises(ValueError, match=r"^new_size: expected a whole number from 0 to 2147483647, got "):
            index.resize(2**63)
        assert len(index) == 0


@pytest.mark.parametrize(
    "call",
    [ConsumeQueue.open, ConsumeQueueTable.open, rocketmq.ConsumeQueueExt.open, rocketmq.BatchConsumeQueue.open],
)
def test_a_queue_that_is_not_there_says_nothing_of_the_log(tmp_path: Path, call: Call) -> None:
    """It said that the commit log is to be there, and which option says where the log is."""
    with pytest.raises(FileNotFoundError) as raised:
        call(tmp_path / "none")
    assert (raised.value.strerror, raised.value.filename) == (os.strerror(errno.ENOENT), str(tmp_path / "none"))
