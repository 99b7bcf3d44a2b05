"""The small files of a store or log dir, and names that lead to no file: one clear error, or an answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex import kafka
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError, FormatError, MQIndexError
from mqindex.kafka import TransactionIndex
from mqindex.rocketmq import Checkpoint, ConsumeQueue, MessageStore, repair, undo_repair, verify
from mqindex.rocketmq.dispatch.follow_home import _read
from tests.support.golden_kafka import PartitionCase
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import index_paths

Bound = Callable[[float], None]
ONE = LocalEngine(1)
DEEP = "[" * 200_000
LONG = "9" * 5000  # more digits than Python makes a number of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_small_store(tmp_path / "store")


# ---- what is no file


def no_file(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"endless": "/dev/zero", "loop": path.name}[kind])


@pytest.mark.parametrize("kind", ["fifo", "endless", "loop"])
def test_what_is_no_file_is_neither_waited_for_nor_read_for_ever(
    kind: str, store: Path, tmp_path: Path, time_bound: Bound
) -> None:
    time_bound(60)
    for path, read in (
        (store / "checkpoint", Checkpoint.read),
        (tmp_path / "00000000000000000000.txnindex", lambda path: list(TransactionIndex.open(path).entries())),
    ):
        no_file(path, kind)
        with pytest.raises(OSError, match=path.name):
            read(path)
    config = store / "config"
    config.mkdir()
    no_file(config / "consumerOffset.json", kind)
    with MessageStore.open(store, **OPTIONS) as opened, pytest.raises(OSError, match=r"consumerOffset\.json"):
        _ = opened.consumer_offsets


@pytest.mark.parametrize("kind", ["fifo", "endless", "loop"])
def test_verify_of_what_is_no_file_comes_to_an_end(kind: str, store: Path, time_bound: Bound) -> None:
    time_bound(60)
    (store / "config").mkdir()
    names = {"consumerOffset.json", "subscriptionGroup.json", "delayOffset.json", "consumerFilter.json"}
    for name in names:
        no_file(store / "config" / name, kind)
    report = verify(store, engine=LocalEngine(1), **OPTIONS)
    found = {os.path.basename(finding.path) for finding in report.findings if finding.kind == "side-file-invalid"}
    assert found == names


@pytest.mark.parametrize("kind", ["fifo", "endless", "loop"])
@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", "x.snapshot"])
def test_a_partition_whose_side_file_is_none_is_looked_at_all_the_same(
    name: str, kind: str, tmp_path: Path, time_bound: Bound
) -> None:
    time_bound(60)
    partition = PartitionCase("410-txn").closed(tmp_path)
    snapshot = next(partition.glob("*333.snapshot"))
    no_file(snapshot if name == "x.snapshot" else partition / name, kind)
    for path in (partition, partition.parent):
        try:
            kafka.verify(path, deep=True, engine=ONE)
        except OSError as error:
            assert error.filename is not None


# ---- names


def test_a_queue_file_that_starts_within_a_unit_beside_whole_ones_is_passed_over(tmp_path: Path) -> None:
    for start in (0, 7, 40, 47, 80):
        (tmp_path / f"{start:020d}").write_bytes(bytes(40))
    with ConsumeQueue.open(tmp_path) as queue:
        assert [(file.start, file.size) for file in queue.files] == [(0, 40), (40, 40), (80, 40)]
        assert [os.path.basename(one.path) for one in queue.skipped] == [f"{7:020d}", f"{47:020d}"]


def test_a_queue_of_nothing_but_files_that_start_within_a_unit_is_empty(tmp_path: Path) -> None:
    (tmp_path / f"{7:020d}").write_bytes(bytes(40))
    with ConsumeQueue.open(tmp_path) as queue:
        assert queue.files == ()
        assert len(queue.skipped) == 1


# ---- JSON


@pytest.mark.parametrize(
    "text",
    [DEEP, "null", "[]", "{", LONG, "NaN", '{"schema":"mqindex.follow/1"}', f'{{"schema":{LONG}}}', "\x00", '{"a":'],
    ids=lambda text: text[:12],
)
def test_settings_of_a_follower_that_are_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "follow.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="not the settings of a follower"):
        _read(str(path), str(tmp_path))


@pytest.mark.parametrize(
    "record",
    [
        DEEP,
        LONG,
        "null",
        '{"schema": "mqindex.backup/1", "changes": [{"name": "\\ud800", "kept": true}]}',
        '{"schema": "mqindex.backup/1", "changes": [{"name": "../../lock", "kept": true}]}',
        '{"schema": "mqindex.backup/1", "changes": [{"name": "a\\u0000", "kept": true}]}',
        '{"schema": "mqindex.backup/1", "changes": 7}',
    ],
    ids=range(7),
)
def test_a_backup_whose_record_is_none_is_not_put_back(record: str, store: Path) -> None:
    path = index_paths(store)[0]
    path.write_bytes(path.read_bytes()[:100])
    repair(store, engine=ONE, **OPTIONS)
    backup = next(store.glob("mqindex-backup-*"))
    (backup / "changes.json").write_text(record)
    with pytest.raises(FileStateError, match="not the record of a backup"):
        undo_repair(store, backup)


# ---- broker.conf


@pytest.mark.parametrize(
    "line",
    [
        "maxHashSlotNum=0",
        "mappedFileSizeConsumeQueue=-1",
        f"messageDelayLevel={LONG}s",
        "messageDelayLevel=1x",
        "storePathCommitLog=a\\u0000b",
        "storePathCommitLog=\\ud800",
        "maxHashSlotNumb=5",
    ],
    ids=lambda line: line[:40],
)
def test_a_setting_of_a_file_that_is_none_names_the_file(line: str, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"brokerName=a\n{line}\n")
    with pytest.raises(FormatError, match=line.split("=", maxsplit=1)[0]) as raised:
        verify(store, config=path, engine=ONE)
    assert raised.value.path == str(path)
    assert len(str(raised.value)) < 500


def test_a_limit_of_a_file_that_is_none_names_the_file(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("mappedFileSizeCommitLog=2048\nmaxTransferBytesOnMessageInMemory=-1\n")
    with pytest.raises(MQIndexError, match="maxTransferBytesOnMessageInMemory"):
        MessageStore.open(store, config=path)


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        (f"maxTransferCountOnMessageInMemory={LONG}", 32),
        ("mappedFileSizeCommitLog=99999999999999999999", 1 << 30),
        ("enableLmq=perhaps", "false"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_report_shows_what_a_broker_takes_instead(line: str, taken: object, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"brokerName=a\n{line}\n")
    name = line.partition("=")[0]
    with pytest.warns(UserWarning, match=f"^{name}: {taken}, ") as told:
        report = verify(store, config=path, hash_slot_num=5, index_num=16, engine=ONE)
    assert report.settings[name].value == taken
    assert str(path) in str(report.settings[name])
    assert len(str(told[0].message)) < 500
