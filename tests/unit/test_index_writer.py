"""`IndexFile.writer`: the bytes, answers and errors of single puts, stored by blocks."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqindex._native.index_file import IndexCore
from mqindex._native.index_writer import IndexWriter
from mqindex.errors import ClosedFileError, FileStateError, ReadOnlyFileError, StoreInUseError
from mqindex.rocketmq import IndexFile
from tests.property.test_index_file import geometries, puts, seeds, twin_and_core

BLOCK = 4096
T0 = 1_700_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "20231114221320000"


@pytest.fixture
def index(path: Path) -> Iterator[IndexFile]:
    with IndexFile.create(path, hash_slot_num=97, index_num=3 * BLOCK) as file:
        yield file


@given(geometries, seeds, puts, st.sets(st.integers(0, 60)))
@settings(max_examples=100)
def test_a_writer_leaves_the_twin_s_bytes(
    geometry: tuple[int, int], seed: tuple[int, int], rows: list[tuple[str, int, int]], flushes: set[int]
) -> None:
    twin, data, core = twin_and_core(geometry, seed)
    with IndexWriter(core, lambda n: None) as writer:
        for number, row in enumerate(rows):
            assert writer.put_key(*row) == twin.put(*row)
            if number in flushes:
                writer.flush()
                assert data == twin.data
    assert data == twin.data


def test_over_several_blocks_to_the_end_of_the_file(index: IndexFile, tmp_path: Path) -> None:
    rows = [(f"T#k{number % 5000}", number * 100, T0 + number) for number in range(3 * BLOCK + 10)]
    with index.writer() as writer:
        accepted = [writer.put_key(*row) for row in rows]
    with IndexFile.create(tmp_path / "single", hash_slot_num=97, index_num=3 * BLOCK) as single:
        assert accepted == [single.put_key(*row) for row in rows]
        assert accepted.count(False) == 11
        single.flush()
    index.flush()
    assert Path(index.path).read_bytes() == Path(single.path).read_bytes()


def test_entries_are_found_after_a_block_after_flush_and_at_the_end(index: IndexFile) -> None:
    with index.writer() as writer:
        writer.put_key("T#a", 1, T0)
        assert (index.header.index_count, len(index.select_phy_offset("T#a"))) == (1, 0)
        writer.flush()
        assert (index.header.index_count, len(index.select_phy_offset("T#a"))) == (2, 1)
        for number in range(BLOCK + 1):
            writer.put_key("T#b", number, T0)
        assert index.header.index_count == 2 + BLOCK
        index.flush()
        assert index.header.index_count == 3 + BLOCK
        writer.put_key("T#c", 7, T0)
    assert index.select_phy_offset("T#c").tolist() == [7]
    assert index.put_key("T#d", 8, T0) and index._check() == []


def test_a_full_file_has_everything_before_the_put_that_it_refuses(tmp_path: Path) -> None:
    with IndexFile.create(tmp_path / "1", hash_slot_num=5, index_num=4) as index, index.writer() as writer:
        assert [writer.put_key("T#a", at, T0) for at in range(5)] == [True, True, True, False, False]
        assert index.is_write_full() and len(index.select_phy_offset("T#a")) == 3
        with pytest.raises(TypeError, match="key: expected str"):
            writer.put_key(b"T#a", 1, T0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((7, 1, T0), TypeError, "key: expected str, got int"),
        (("T#a", 1.5, T0), TypeError, "phy_offset: expected a whole number"),
        (("T#a", 1 << 63, T0), OverflowError, "phy_offset: expected 64 bits"),
        (("T#a", 1, "now"), TypeError, "store_timestamp: expected ms"),
    ],
)
def test_bad_arguments_are_refused_at_once_and_nothing_else_is_lost(
    index: IndexFile, arguments: tuple[str, int, int], error: type[Exception], words: str
) -> None:
    with index.writer() as writer:
        writer.put_key("T#a", 1, T0)
        with pytest.raises(error, match=words):
            writer.put_key(*arguments)
        writer.put_key("T#a", 2, T0)
    assert index.select_phy_offset("T#a").tolist() == [2, 1]


def test_an_exception_in_the_block_loses_nothing(index: IndexFile) -> None:
    with pytest.raises(KeyError), index.writer() as writer:
        writer.put_key("T#a", 5, T0)
        raise KeyError
    assert index.select_phy_offset("T#a").tolist() == [5]


def test_while_a_writer_is_open_it_alone_puts(index: IndexFile) -> None:
    with index.writer():
        for put in (
            lambda: index.put_key("T#a", 1, T0),
            lambda: index.put_keys(["T#a"], [1], [T0]),
            index.writer,
        ):
            with pytest.raises(FileStateError, match="a writer of the file is open"):
                put()
    assert index.put_key("T#a", 1, T0)
    with index.writer() as second:
        assert second.put_key("T#a", 2, T0)
    assert index.header.index_count == 3


def test_closing_the_file_stores_what_was_accepted(path: Path) -> None:
    index = IndexFile.create(path, hash_slot_num=5, index_num=8)
    writer = index.writer()
    writer.put_key("T#a", 5, T0)
    index.close()
    with pytest.raises(ClosedFileError):
        writer.put_key("T#a", 6, T0)
    writer.close()
    with IndexFile.open(path, hash_slot_num=5, index_num=8) as again:
        assert again.select_phy_offset("T#a").tolist() == [5]


def test_a_closed_writer_refuses_and_closes_twice(index: IndexFile) -> None:
    writer = index.writer()
    writer.close()
    writer.close()
    for call in (lambda: writer.put_key("T#a", 1, T0), writer.flush, writer.__enter__):
        with pytest.raises(ClosedFileError, match="the writer is closed"):
            call()
    assert index.header.index_count == 1


def test_there_is_no_writer_of_a_file_that_may_not_be_written(path: Path) -> None:
    IndexFile.create(path, hash_slot_num=5, index_num=8).close()
    with IndexFile.open(path, hash_slot_num=5, index_num=8) as index, pytest.raises(ReadOnlyFileError):
        index.writer()
    with pytest.raises(ClosedFileError):
        index.writer()


def test_a_forked_child_puts_nothing_of_its_parent_s(index: IndexFile) -> None:
    with index.writer() as writer:
        writer.put_key("T#a", 1, T0)
        child = os.fork()
        if child == 0:
            try:
                writer.put_key("T#a", 2, T0)
            except FileStateError:
                writer.close()
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert index.header.index_count == 1
    assert index.select_phy_offset("T#a").tolist() == [1]


def test_a_sparse_file_gets_its_space_before_a_put_is_accepted(tmp_path: Path) -> None:
    with IndexFile.create(tmp_path / "1", hash_slot_num=5, index_num=50_000, sparse=True) as index:
        with index.writer() as writer:
            assert writer.put_key("T#a", 1, T0)
            assert os.stat(index.path).st_blocks * 512 >= 40 + 20 + 20 * BLOCK
        assert index.select_phy_offset("T#a").tolist() == [1]


def test_no_space_for_a_block_refuses_its_first_put() -> None:
    def full(entries: int) -> None:
        raise OSError(28, "No space left on device")

    core = IndexCore(bytearray(40 + 4 * 5 + 20 * 8), 5, 8, True)
    with IndexWriter(core, full) as writer:
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                writer.put_key("T#a", 1, T0)
    assert core.header()[5] == 0


def test_threads_share_a_writer(index: IndexFile) -> None:
    def put(first: int) -> None:
        for at in range(first, first + 2500):
            assert writer.put_key(f"T#{at}", at, T0)

    with index.writer() as writer:
        threads = [threading.Thread(target=put, args=(number * 2500,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(index.entries()["phy_offset"].tolist()) == list(range(10_000))
    assert index._check() == []


def test_a_writer_that_nobody_closes_keeps_nothing_alive(path: Path) -> None:
    index = IndexFile.create(path, hash_slot_num=5, index_num=8)
    index.writer().put_key("T#a", 1, T0)
    with pytest.raises(StoreInUseError):
        IndexFile.open(path, hash_slot_num=5, index_num=8, writable=True)
    index.close()
    del index
    gc.collect()
    with IndexFile.open(path, hash_slot_num=5, index_num=8, writable=True) as again:
        assert again.header.index_count == 2


def test_a_put_that_the_close_of_the_file_overtakes_is_not_accepted(path: Path) -> None:
    index = IndexFile.create(path, hash_slot_num=97, index_num=BLOCK)
    writer = IndexWriter(index._core, lambda n: index.close())  # as another thread, while the block's space is reserved
    with pytest.raises(ClosedFileError):
        writer.put_key("T#a", 0, T0)
    writer.close()
    with IndexFile.open(path, hash_slot_num=97, index_num=BLOCK) as again:
        assert again.header.index_count == 1


def test_a_put_that_the_close_of_the_writer_overtakes_is_not_accepted(index: IndexFile) -> None:
    writer = IndexWriter(index._core, lambda n: writer.close())
    with pytest.raises(ClosedFileError):
        writer.put_key("T#a", 0, T0)
    assert index.put_key("T#b", 0, T0)
    assert index.header.index_count == 2
