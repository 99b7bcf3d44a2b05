"""A store of RocketMQ 5 with something in RocksDB: what is not read is not told as nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.rocketmq import ConsumeQueueTable, MessageStore, report
from tests.cli.conftest import Shell
from tests.support.small_store import OPTIONS, make_small_store, small_messages

WHAT = "the consume queues of this store are in RocksDB"
HOMES = pytest.mark.parametrize("home", ["consumequeue", "consumequeue_rocksdb"])


def in_rocksdb(root: Path, home: str) -> Path:
    """A small store, its queues as storeType=defaultRocksDB keeps them."""
    make_small_store(root)
    shutil.rmtree(root / "consumequeue")
    (root / home).mkdir()
    (root / home / "CURRENT").write_text("MANIFEST-000005\n")
    return root


@HOMES
def test_queues_are_not_answered_as_empty_ones(home: str, tmp_path: Path) -> None:
    """A consumer got NO_MESSAGE_IN_QUEUE, from 0 to 0, where the broker had 150 messages."""
    root = in_rocksdb(tmp_path / "store", home)
    with MessageStore.open(root, **OPTIONS) as store:
        for ask in (
            lambda: store.get_message("Topic0", 0, 0),
            lambda: store.get_messages("Topic0", 0, 0, max_msg_nums=8, exact=False, columns=["phy_offset"]),
            lambda: store.queues,
            lambda: store.consume_queue("Topic0", 0),
        ):
            with pytest.raises(FileStateError, match=WHAT) as told:
                ask()
            assert told.value.path == str(root / home)
        assert store.query_message("Topic0", "k0").messages, "index and log are files"
    young = make_small_store(tmp_path / "young")
    with MessageStore.open(young, config={"storeType": "defaultRocksDB"}) as store, pytest.raises(FileStateError):
        store.get_message("Topic0", 0, 0)


def test_directory_of_rocksdb_is_no_table_of_queues(tmp_path: Path) -> None:
    root = in_rocksdb(tmp_path / "store", "consumequeue")
    for writable in (False, True):
        with pytest.raises(FileStateError, match=WHAT):
            ConsumeQueueTable.open(root / "consumequeue", writable=writable)
    assert [path.name for path in (root / "consumequeue").iterdir()] == ["CURRENT"]


@HOMES
def test_info_says_where_the_queues_are(shell: Shell, home: str, tmp_path: Path) -> None:
    """It was: nothing wrong is seen, 0 units in 0 queues of 0 topics."""
    root = in_rocksdb(tmp_path / "store", home)
    (root / "config").mkdir()
    done = shell("info", root)
    assert done.status == 0
    shown = {line.split()[0]: line.split("  ")[-1] for line in done.lines[1:] if line.strip()}
    assert (shown["queues"], shown["consumequeue"]) == ("in RocksDB, which is not read",) * 2
    assert " units in " not in done.out
    assert shell("info", root, "--json").json[0]["consumequeue"] == {"path": str(root / home), "rocksdb": True}
    assert "rocksdb  True" in shell("info", root, "--all").out


def test_info_of_the_directory_itself(shell: Shell, tmp_path: Path) -> None:
    root = in_rocksdb(tmp_path / "store", "consumequeue")
    for command in ("info", "dump"):
        done = shell(command, root / "consumequeue")
        assert (done.status, done.out) == (2, "")
        assert WHAT in done.err


@HOMES
def test_message_by_the_key_of_its_producer_needs_the_topic(shell: Shell, home: str, tmp_path: Path) -> None:
    """It said that no message has the id in 0 topics, exit 1."""
    root = in_rocksdb(tmp_path / "store", home)
    message = next(one for one in small_messages() if one.uniq_key)
    done = shell("message", root, str(message.uniq_key))
    assert (done.status, done.out) == (2, "")
    assert WHAT in done.err and "--topic says" in done.err
    done = shell("message", root, str(message.uniq_key), "--topic", message.topic)
    assert done.status == 0
    assert str(message.uniq_key) in done.out


def test_groups_that_are_not_read_are_not_told_as_none(shell: Shell, tmp_path: Path) -> None:
    """What an old file says of them does not count either."""
    root = make_small_store(tmp_path / "store")
    (root / "config" / "rdb").mkdir(parents=True)
    (root / "config" / "rdb" / "CURRENT").write_text("MANIFEST-000005\n")
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable": {"Topic0@g": {"0": 1}}}')
    done = shell("info", root)
    assert done.status == 0
    assert "  lag           not known: the groups are in RocksDB, which is not read" in done.lines
    groups = report(root, engine=LocalEngine(1), **OPTIONS).groups
    assert (groups.groups, groups.lag) == ((), 0)
    assert str(groups.error).startswith("the topics and groups of this store are in RocksDB: ")
    with MessageStore.open(root, **OPTIONS) as store:
        for name in ("topics", "consumer_offsets"):
            with pytest.raises(FileStateError, match="topics and groups of this store are in RocksDB"):
                getattr(store, name)
        assert store.queues
