"""Indexes and queues that are open for writing: by one object, in one process, and never in a forked child."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import FileStateError, StoreInUseError
from mqindex.files import disk
from mqindex.files.results.whole_file import have_file, replace_content
from mqindex.kafka import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from mqindex.rocketmq import ConsumeQueue, ConsumeQueueTable, IndexFile, IndexService, MessageStore
from tests.support.forked import in_child
from tests.support.own_process import run_apart

SMALL: dict[str, Any] = {"hash_slot_num": 5, "index_num": 8}
NAME = "00000000000000000000"


def index_file(home: Path) -> IndexFile:
    path = home / "index file"
    if not path.exists():
        IndexFile.create(path, **SMALL).close()
    return IndexFile.open(path, writable=True, **SMALL)


def service(home: Path) -> IndexService:
    return IndexService.open(home / "index", writable=True, **SMALL)


def offset_index(home: Path) -> OffsetIndex:
    path = home / f"{NAME}.index"
    if not path.exists():
        OffsetIndex.create(path, 0, max_index_size=80).close()
    return OffsetIndex.open(path, writable=True)


def time_index(home: Path) -> TimeIndex:
    path = home / f"{NAME}.timeindex"
    if not path.exists():
        TimeIndex.create(path, 0, max_index_size=80).close()
    return TimeIndex.open(path, writable=True)


def transaction_index(home: Path) -> TransactionIndex:
    path = home / f"{NAME}.txnindex"
    path.touch()
    return TransactionIndex.open(path, writable=True)


def queue_table(home: Path) -> ConsumeQueueTable:
    return ConsumeQueueTable.open(home / "consumequeue", writable=True, file_size=200)


def queue(home: Path) -> ConsumeQueue:
    return ConsumeQueue.open(home / "consumequeue" / "T" / "0", writable=True, file_size=200)


PUTS: dict[str, Callable[[Any], object]] = {
    "IndexFile": lambda index: index.put_key("k", 1, 1),
    "IndexService": lambda index: index.build_index("T", ["k"], [1], [1]),
    "OffsetIndex": lambda index: index.truncate(),
    "TimeIndex": lambda index: index.truncate(),
    "TransactionIndex": lambda index: index.append(AbortedTxn(1, 2, 3, 4)),
    "ConsumeQueueTable": lambda table: table.find_or_create("T", 1).put_message_position_info(0, 100, 0, 0),
    "ConsumeQueue": lambda queue: queue.put_message_position_info(0, 100, 0, 0),
}
every = pytest.mark.parametrize(
    "opened", [index_file, service, offset_index, time_index, transaction_index, queue_table, queue]
)


@every
def test_a_second_writer_is_refused_in_this_process_and_in_another(opened, tmp_path: Path) -> None:
    """Two that wrote one directory lost 180 of 400 entries."""
    other = f"""
        import pathlib, sys
        from mqindex.errors import StoreInUseError
        from tests.unit.test_written_alone import {opened.__name__} as opened
        try:
            opened(pathlib.Path(sys.argv[1])).close()
            print("opened")
        except StoreInUseError as error:
            print("in use")
    """
    with opened(tmp_path) as index:
        with pytest.raises(StoreInUseError, match=r"another writer has this (index|queue)"):
            opened(tmp_path)
        assert run_apart(other, tmp_path) == "in use\n"
        PUTS[type(index).__name__](index)
    assert run_apart(other, tmp_path) == "opened\n"
    opened(tmp_path).close()


@every
def test_a_forked_child_writes_nothing(opened, tmp_path: Path) -> None:
    """Parent and child put different entries into one place."""
    with opened(tmp_path) as index:
        put = PUTS[type(index).__name__]
        assert isinstance(in_child(lambda: put(index)), FileStateError)
        in_child(index.close)
        with pytest.raises(StoreInUseError):
            opened(tmp_path)  # what the child closed is still the parent's
        put(index)


@every
def test_a_child_that_lives_on_keeps_nobody_out(opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        os._exit(0)
    try:
        index.close()
        opened(tmp_path).close()
    finally:
        os.write(writing, b".")
        os.waitpid(child, 0)


def test_one_queue_and_the_table_of_all_keep_each_other_out(tmp_path: Path) -> None:
    """Both took no lock: two writers gave one offset to two messages."""
    with queue_table(tmp_path), pytest.raises(StoreInUseError):
        queue(tmp_path)
    with queue(tmp_path) as one:
        with pytest.raises(StoreInUseError):
            queue_table(tmp_path)
        assert one.put_message_position_info(0, 100, 0, 0)
        with ConsumeQueueTable.open(tmp_path / "consumequeue") as reading:
            assert reading["T", 0].max_offset_in_queue == 1
    with queue_table(tmp_path) as table:
        assert table.queues() == [("T", 0)]


def below(opened: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """The file is in a directory of the store, or in a partition of the log dir."""

    def opened_below(home: Path) -> Any:
        (home / "below").mkdir(exist_ok=True)
        return opened(home / "below")

    return opened_below


def created(kind: Any, name: str, **settings: Any) -> Callable[[Path], Any]:
    def create(home: Path) -> Any:
        (home / "below").mkdir(exist_ok=True)
        (home / "below" / name).unlink(missing_ok=True)
        return kind.create(home / "below" / name, **settings)

    return create


def created_below_none(home: Path) -> TransactionIndex:
    """A transaction index whose file does not exist: the first append makes it."""
    (home / "below").mkdir(exist_ok=True)
    return TransactionIndex.open(home / "below" / f"{NAME}.txnindex", writable=True)


@pytest.mark.parametrize(
    ("opened", "name"),
    [
        (service, "lock"),
        (queue_table, "lock"),
        (queue, "lock"),
        (below(index_file), "lock"),
        (below(offset_index), ".lock"),
        (below(time_index), ".lock"),
        (below(transaction_index), ".lock"),
        (created(IndexFile, "1", **SMALL), "lock"),
        (created_below_none, ".lock"),
        (created(OffsetIndex, f"{NAME}.index", base_offset=0), ".lock"),
    ],
)
def test_what_a_running_broker_writes_is_refused(opened, name: str, tmp_path: Path) -> None:
    """Only the log, a repair and `MessageStore` asked for the broker's lock; later all but single index files."""
    (tmp_path / "checkpoint").touch()
    opened(tmp_path).close()
    path = tmp_path / name
    path.write_bytes(b"lock")
    hold = f"""
        import fcntl, sys
        file = open({str(path)!r}, "r+b")
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        print("held", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(hold)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        with pytest.raises(StoreInUseError, match="a broker holds this lock"):
            opened(tmp_path)
        broker.communicate()
    opened(tmp_path).close()


def test_reading_takes_no_lock_and_leaves_no_file(tmp_path: Path) -> None:
    with service(tmp_path) as index:
        index.build_index("T", ["k"], [1], [1])
        before = os.listdir(tmp_path / "index")
        with IndexService.open(tmp_path / "index", **SMALL) as beside:
            assert beside.query_offset("T", "k").phy_offsets.tolist() == [1]
            with IndexFile.open(tmp_path / "index" / before[0], **SMALL):
                pass
    with IndexService.open(tmp_path / "index", **SMALL), service(tmp_path):
        pass
    assert os.listdir(tmp_path / "index") == before == [name for name in before if name.isdigit()]


def test_the_first_aborted_transaction_makes_its_file_and_holds_it(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    with TransactionIndex.open(path, writable=True) as one, TransactionIndex.open(path, writable=True) as other:
        assert not path.exists()
        one.append(AbortedTxn(1, 2, 3, 4))
        with pytest.raises(StoreInUseError):
            other.append(AbortedTxn(1, 5, 6, 7))
        assert [txn.first_offset for txn in other.entries()] == [2]


def test_a_store_that_writes_its_own_index_is_not_in_its_own_way(tmp_path: Path) -> None:
    config = {"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 2000}
    with MessageStore.open(tmp_path, writable=True, config=config, **SMALL), pytest.raises(StoreInUseError):
        service(tmp_path)
    service(tmp_path).close()


@every
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_written_with_one_warning(
    opened, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused, on NFS for example, where indexes had been written before there was a lock."""

    def refuse(*how: object) -> None:
        raise OSError(number, os.strerror(number))

    opened(tmp_path).close()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match="takes no locks") as told:
        opened(tmp_path).close()
    assert [str(one.message).split(": ")[1].startswith(str(tmp_path)) for one in told] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(tmp_path).close()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.EOPNOTSUPP])
def test_who_may_not_give_files_away_keeps_them(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file in a directory that belongs to others was an EPERM."""

    def refuse(*how: object) -> None:
        raise OSError(number, os.strerror(number))

    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(os, "chmod", refuse)
    have_file(str(tmp_path / "lock"), b"lock")
    disk.make_directories(str(tmp_path / "a" / "b"), inherit=True)
    replace_content(str(tmp_path / "checkpoint"), b"new", like=str(tmp_path))
    with service(tmp_path) as index:
        index.build_index("T", ["k"], [0], [0])
    assert sorted(os.listdir(tmp_path)) == ["a", "checkpoint", "index", "lock"]


def test_new_files_have_owner_and_mode_of_what_lies_beside(tmp_path: Path) -> None:
    """Made by root, they belonged to root, and the broker could not open them."""
    home = tmp_path / "index"
    home.mkdir()
    home.chmod(0o770)
    owner = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(home, *owner)

    def kind(path: Path) -> tuple[int, int, int]:
        status = path.stat()
        return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)

    with service(tmp_path) as index:
        index.build_index("T", [f"k{i}" for i in range(20)], range(20), range(20))
        assert [kind(home / name) for name in os.listdir(home)] == [(*owner, 0o660)] * 3
    for path in home.iterdir():
        path.chmod(0o640)
    OffsetIndex.create(home / f"{NAME}.index", 0, max_index_size=80).close()
    assert kind(home / f"{NAME}.index") == (*owner, 0o640)
    with TransactionIndex.open(home / f"{NAME}.txnindex", writable=True) as transactions:
        transactions.append(AbortedTxn(1, 2, 3, 4))
    assert kind(home / f"{NAME}.txnindex") == (*owner, 0o660)
