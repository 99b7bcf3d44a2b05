"""Which files of a directory a starting broker serves, which it deletes, and whether it runs."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from pathlib import Path

import pytest

from mqindex.errors import StoreInUseError
from mqindex.kafka.directories.log_dir import list_partitions, log_dir_of, partitions_of
from mqindex.kafka.directories.partition_files import PartitionFiles, hold_lock, list_segments
from mqindex.kafka.kinds import is_partition
from mqindex.kafka.layout import IndexKind
from tests.support.kafka_writer import KafkaRecord, batch


def name(base: int, ending: str) -> str:
    return f"{base:020d}.{ending}"


def make(directory: Path, *names: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for each in names:
        (directory / each).touch()


def make_log(directory: Path, file_name: str, last_offset: int) -> None:
    """A log of one record, with an offset of its own."""
    make(directory)
    (directory / file_name).write_bytes(batch([KafkaRecord()], last_offset))


def served(files: PartitionFiles) -> dict[int, list[str | None]]:
    return {
        each.base_offset: [
            None if path is None else os.path.basename(path) for path in (each.log, *map(each.indexes.get, IndexKind))
        ]
        for each in files.segments
    }


def names(paths: tuple[str, ...]) -> list[str]:
    return [os.path.basename(path) for path in paths]


def test_segments_are_listed_by_base_offset_with_the_indexes_that_are_there(tmp_path: Path) -> None:
    make(tmp_path, name(100, "log"), name(100, "index"), name(7, "log"), name(7, "timeindex"), name(7, "txnindex"))
    make(tmp_path, name(100, "snapshot"), "leader-epoch-checkpoint", "partition.metadata", "notes.log", "5.log")
    make(tmp_path, name(0, "index"), name(0, "timeindex"), "99999999999999999999.log")
    (tmp_path / name(300, "log")).mkdir()
    files = list_segments(tmp_path)
    assert served(files) == {
        7: [name(7, "log"), None, name(7, "timeindex"), name(7, "txnindex")],
        100: [name(100, "log"), name(100, "index"), None, None],
    }
    assert files.snapshots == {100: str(tmp_path / name(100, "snapshot"))}
    assert names(files.orphans) == [name(0, "index"), name(0, "timeindex")]
    assert names(files.skipped) == ["5.log", "99999999999999999999.log", "notes.log"]
    assert files.leftovers == ()


def test_files_marked_for_deletion_and_half_made_ones_are_leftovers(tmp_path: Path) -> None:
    make(tmp_path, name(0, "log"), name(0, "log.deleted"), name(0, "index.deleted"), name(9, "log.cleaned"))
    make(tmp_path, "00000000000000000005-0000000001.checkpoint.deleted", "00000000000000000005-0000000001.checkpoint")
    files = list_segments(tmp_path)
    assert list(served(files)) == [0]
    assert names(files.leftovers) == [name(0, "index.deleted"), name(0, "log.deleted"), name(9, "log.cleaned")]
    assert files.skipped == ()


def test_a_finished_exchange_replaces_every_segment_that_it_covers(tmp_path: Path) -> None:
    for base in (0, 10, 20):
        make(tmp_path, name(base, "index"), name(base, "timeindex"))
        make_log(tmp_path, name(base, "log"), base)
    make(tmp_path, name(10, "snapshot"), name(0, "index.swap"))
    make_log(tmp_path, name(0, "log.swap"), 19)  # its next offset is 20
    files = list_segments(tmp_path)
    assert served(files) == {
        0: [name(0, "log.swap"), name(0, "index.swap"), None, None],
        20: [name(20, "log"), name(20, "index"), name(20, "timeindex"), None],
    }
    assert sorted(names(files.leftovers)) == sorted(
        [*(name(base, kind) for base in (0, 10) for kind in ("log", "index", "timeindex")), name(10, "snapshot")]
    )


def test_an_exchange_that_is_not_complete_is_given_up(tmp_path: Path) -> None:
    make_log(tmp_path, name(0, "log"), 0)
    make_log(tmp_path, name(0, "log.swap"), 19)
    make_log(tmp_path, name(10, "log.cleaned"), 19)
    assert list(served(list_segments(tmp_path)).values()) == [[name(0, "log.swap"), None, None, None]]
    make_log(tmp_path, name(0, "log.cleaned"), 19)
    files = list_segments(tmp_path)
    assert list(served(files).values()) == [[name(0, "log"), None, None, None]]
    assert names(files.leftovers) == [name(0, "log.cleaned"), name(0, "log.swap"), name(10, "log.cleaned")]


def test_an_exchange_whose_log_has_its_name_already_only_takes_the_indexes(tmp_path: Path) -> None:
    make_log(tmp_path, name(0, "log"), 19)
    make(tmp_path, name(0, "index"), name(0, "index.swap"), name(0, "timeindex"))
    files = list_segments(tmp_path)
    assert served(files) == {0: [name(0, "log"), name(0, "index.swap"), name(0, "timeindex"), None]}
    assert names(files.leftovers) == [name(0, "index")]


def test_an_empty_exchanged_log_replaces_its_namesake_alone(tmp_path: Path) -> None:
    make_log(tmp_path, name(0, "log"), 0)
    make(tmp_path, name(0, "log.swap"), name(0, "index"))
    files = list_segments(tmp_path)
    assert served(files) == {0: [name(0, "log.swap"), name(0, "index"), None, None]}
    assert names(files.leftovers) == [name(0, "log")]


def test_partitions_of_a_log_dir_are_told_by_their_names(tmp_path: Path) -> None:
    stray = "b-2.0123456789abcdef0123456789abcdef-stray"
    for each in ("b-10", "b-2", "a.b-c-0", "a.b-c-x", "nodash", "-1", stray, "b-99999999999", "mqindex-backup-2026Z"):
        (tmp_path / each).mkdir()
    make(tmp_path, "c-3")
    found = list_partitions(tmp_path)
    assert [(each.topic, each.partition, each.state) for each in found] == [
        ("a.b-c", 0, None), ("b", 2, None), ("b", 2, "stray"), ("b", 10, None),
    ]  # fmt: skip
    assert partitions_of(tmp_path) == found
    assert log_dir_of(tmp_path) == str(tmp_path)
    assert [(Path(each.path).name, each.state) for each in found][2] == (stray, "stray")


def test_a_directory_with_a_segment_is_a_partition_of_its_parent(tmp_path: Path) -> None:
    directory = tmp_path / "copy of orders"
    make(directory, name(0, "index"))
    assert is_partition(directory) and not is_partition(tmp_path)
    assert [(each.path, each.topic, each.partition) for each in partitions_of(directory)] == [
        (str(directory), "copy of orders", -1)
    ]
    assert log_dir_of(directory) == str(tmp_path)


def test_an_empty_directory_is_a_partition_beside_a_brokers_files_only(tmp_path: Path) -> None:
    """One that lost all its files could not be given by itself: it was "nothing that mqindex knows"."""
    for name in ("t-0", "elsewhere"):
        (tmp_path / name).mkdir()
    assert not is_partition(tmp_path / "t-0")
    (tmp_path / "meta.properties").touch()
    assert is_partition(tmp_path / "t-0")
    assert not is_partition(tmp_path / "elsewhere")
    (tmp_path / "t-0" / "notes.txt").touch()
    assert is_partition(tmp_path / "t-0")  # as for its broker
    (tmp_path / "meta.properties").unlink()
    assert not is_partition(tmp_path / "t-0")


def broker(path: str, held: object, done: object) -> None:
    with open(path, "r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)  # the whole file, as Java's tryLock()
        held.set()  # type: ignore[attr-defined]
        done.wait(600)  # type: ignore[attr-defined]


def test_a_log_dir_that_a_broker_holds_is_in_use(tmp_path: Path) -> None:
    make(tmp_path, ".lock")
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    process = context.Process(target=broker, args=(str(tmp_path / ".lock"), held, done))
    process.start()
    try:
        assert held.wait(600)
        with pytest.raises(StoreInUseError, match="a broker holds"):
            hold_lock(tmp_path).__enter__()
    finally:
        done.set()
        process.join()
    with hold_lock(tmp_path), pytest.raises(StoreInUseError, match="this process"):
        hold_lock(tmp_path).__enter__()


def test_no_lock_is_made_where_no_broker_ever_ran(tmp_path: Path) -> None:
    with hold_lock(tmp_path), pytest.raises(StoreInUseError):
        hold_lock(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_does_not_exist_or_is_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_segments(tmp_path / "nothing")
    make(tmp_path, "file")
    with pytest.raises(NotADirectoryError):
        list_segments(tmp_path / "file")
