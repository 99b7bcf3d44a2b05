"""Kafka's index classes: states, refusals, lengths; what they answer is compared in golden and property tests."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex._native.kafka_index import Entries
from mqindex.errors import (
    BadMagicError,
    ClosedFileError,
    CorruptIndexError,
    IndexFullError,
    OffsetOverflowError,
    OutOfOrderError,
    ReadOnlyFileError,
    TruncatedFileError,
)
from mqindex.kafka import AbortedTxn, OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset, TransactionIndex

KINDS = (OffsetIndex, TimeIndex)
ENDINGS = {OffsetIndex: "index", TimeIndex: "timeindex"}


def filled(directory: Path, kind: type[OffsetIndex] | type[TimeIndex], n: int = 3, size: int = 240) -> Path:
    path = directory / f"00000000000000000100.{ENDINGS[kind]}"
    numbers = np.arange(1, n + 1)
    with kind.create(path, 100, max_index_size=size) as index:
        if isinstance(index, OffsetIndex):
            index.append_many(100 + 10 * numbers, 4096 * numbers)
        else:
            index.maybe_append_many(1000 * numbers, 100 + 10 * numbers, skip_full_check=True)
    return path


def test_a_new_file_has_the_default_length_in_whole_entries(tmp_path: Path) -> None:
    with OffsetIndex.create(tmp_path / "0.index", 0) as offsets, TimeIndex.create(tmp_path / "0.timeindex", 0) as times:
        assert (len(offsets), offsets.max_entries, os.path.getsize(offsets.path)) == (0, 1310720, 10485760)
        assert (len(times), times.max_entries, os.path.getsize(times.path)) == (0, 873813, 10485756)
        assert offsets.lookup(5) == OffsetPosition(0, 0) and times.lookup(5) == TimestampOffset(-1, 0)
        assert os.stat(offsets.path).st_blocks * 512 >= 10485760  # a full disk is met here


@pytest.mark.parametrize("kind", KINDS)
def test_an_existing_file_is_never_overwritten(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind)
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        kind.create(path, 100)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_not_made_by_opening_it(kind: type[OffsetIndex], tmp_path: Path) -> None:
    for writable in (False, True):
        with pytest.raises(FileNotFoundError):
            kind.open(tmp_path / f"00000000000000000000.{ENDINGS[kind]}", writable=writable)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_offset_comes_from_the_name_or_the_caller(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind)
    strange = path.rename(tmp_path / "strange.index")
    with pytest.raises(BadMagicError, match="give base_offset"):
        kind.open(strange)
    with kind.open(strange, base_offset=100) as index:
        assert index.base_offset == 100
    with pytest.raises(ValueError, match="base_offset"):
        kind.open(strange, base_offset=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_file_is_an_index_without_entries(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = tmp_path / f"00000000000000000100.{ENDINGS[kind]}"
    path.touch()
    with kind.open(path) as index:
        assert (len(index), index.max_entries, index.last_offset) == (0, 0, 100)
        first, second = index.lookup_many([1, 100, 1000])
        assert first.tolist() in ([100] * 3, [-1] * 3) and second.tolist() in ([0] * 3, [100] * 3)
        index.sanity_check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_only_index_refuses_every_change(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind)
    before = path.read_bytes()
    with kind.open(path) as index:
        for change in (
            lambda: index.append(10_000, 2**31 - 1),
            index.truncate,
            lambda: index.truncate_to(100),
            lambda: index.resize(0),
            index.trim_to_valid_size,
        ):
            with pytest.raises(ReadOnlyFileError):
                change()
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_index_says_so(kind: type[OffsetIndex], tmp_path: Path) -> None:
    index = kind.open(filled(tmp_path, kind), writable=True)
    index.close()
    index.close()
    for call in (
        lambda: index.lookup(1),
        lambda: index.lookup_many([1]),
        lambda: index.entry(0) if len(index) else index.lookup(1),
        lambda: index.append(10_000, 20_000),
        lambda: index.truncate_to(0),
        lambda: index.resize(800),
    ):
        with pytest.raises(ClosedFileError):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_truncating_keeps_the_bytes_and_trimming_cuts_them(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind)
    before = path.read_bytes()
    with kind.open(path, writable=True) as index:
        assert len(index) == 240 // kind.entry_size  # zeros included
        index.truncate()
    assert path.read_bytes() == before
    with kind.open(path, writable=True) as index:
        index.truncate()
        index.trim_to_valid_size()
        assert (len(index), os.path.getsize(path)) == (0, 0)
        assert index.resize(1000)
        assert (len(index), os.path.getsize(path)) == (0, 1000 // kind.entry_size * kind.entry_size)
        assert not index.resize(1001)
    assert not any(path.read_bytes())


@pytest.mark.parametrize("kind", KINDS)
def test_entries_survive_a_resize_and_are_not_cut_by_one(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind, n=3, size=3 * kind.entry_size)
    with kind.open(path, writable=True) as index:
        before = [index.entry(number) for number in range(3)]
        assert index.resize(100_000)
        assert [index.entry(number) for number in range(len(index))] == before
        with pytest.raises(ValueError, match="new_size"):
            index.resize(2 * kind.entry_size)
        index.trim_to_valid_size()
        assert (len(index), os.path.getsize(path)) == (3, 3 * kind.entry_size)


def test_what_the_broker_refuses_is_refused_and_named(tmp_path: Path) -> None:
    with OffsetIndex.create(tmp_path / "0.index", 100, max_index_size=24) as index:
        index.append(110, -5)
        with pytest.raises(OutOfOrderError, match="expected more than 110, got 110"):
            index.append(110, 1)
        with pytest.raises(OffsetOverflowError, match="got 99"):
            OffsetIndex.create(tmp_path / "1.index", 100, max_index_size=8).append(99, 0)
        with pytest.raises(OffsetOverflowError):
            index.append(100 + 2**31, 1)
        with pytest.raises(OffsetOverflowError, match="position"):
            index.append(111, 2**31)
        with pytest.raises(IndexFullError, match="fewer than 3 entries"):
            index.append_many([111, 112, 113], [1, 2, 3])
        assert index.entries()["offset"].tolist() == [110, 111, 112]
        with pytest.raises(ValueError, match="positions"):
            index.append_many([1, 2], [1])
        with pytest.raises(TypeError, match="offsets"):
            index.append_many([0.5], [1])


def test_times_that_no_index_takes_are_refused_and_named(tmp_path: Path) -> None:
    with TimeIndex.create(tmp_path / "0.timeindex", 100, max_index_size=120) as index:
        index.maybe_append(1000, 101)
        with pytest.raises(OffsetOverflowError):
            index.maybe_append(2000, 100 + 2**31)
        with pytest.raises(OutOfOrderError):
            index.maybe_append_many([2000, -1], [102, 103])
        assert index.entries()["timestamp"].tolist() == [1000, 2000]


def test_the_closing_entry_takes_the_last_place_of_a_time_index(tmp_path: Path) -> None:
    with TimeIndex.create(tmp_path / "0.timeindex", 0, max_index_size=36) as index:
        index.maybe_append_many([0, 1], [5, 6])
        assert index.is_full
        for ignored in (1, 2):
            with pytest.raises(IndexFullError):
                index.maybe_append(ignored, 7)
        index.maybe_append(2, 7, skip_full_check=True)
        assert index.last_entry == TimestampOffset(2, 7)
        index.maybe_append(2, 8, skip_full_check=True)  # nothing new
        with pytest.raises(IndexFullError):
            index.maybe_append(3, 8, skip_full_check=True)
        with pytest.raises(OutOfOrderError):
            index.maybe_append(1, 9, skip_full_check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_length_of_broken_entries_is_corrupt(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind, n=3, size=3 * kind.entry_size)
    with path.open("ab") as file:
        file.write(b"\0")
    with kind.open(path) as index:
        assert len(index) == 3
        with pytest.raises(CorruptIndexError, match="rebuild it"):
            index.sanity_check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_by_others_is_an_error_not_a_fault(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind, n=500, size=12_000)
    with kind.open(path) as index:
        os.truncate(path, 8)
        with pytest.raises(TruncatedFileError):
            index.lookup_many(np.arange(100))
        with pytest.raises(TruncatedFileError):
            index.entries()


@pytest.mark.parametrize("kind", KINDS)
def test_closing_while_look_ups_run_is_safe(kind: type[OffsetIndex], tmp_path: Path) -> None:
    path = filled(tmp_path, kind, n=20_000, size=400_000)
    targets = np.random.default_rng(0).integers(0, 20_000_000, 200_000)
    for _ in range(20):
        index = kind.open(path)
        expected = index.lookup_many(targets)
        found: list[object] = []

        def look_up(index: OffsetIndex | TimeIndex = index, found: list[object] = found) -> None:
            try:
                found.append(index.lookup_many(targets))
            except ClosedFileError:
                found.append(None)

        threads = [threading.Thread(target=look_up) for _ in range(2)]
        for thread in threads:
            thread.start()
        index.close()
        for thread in threads:
            thread.join()
        for one in found:
            assert one is None or np.array_equal(one[0], expected[0])  # type: ignore[index]
        assert len(found) == 2


def test_transactions_are_appended_in_order_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.txnindex"
    with TransactionIndex.open(path) as index:
        assert (len(index), index.collect_aborted_txns(0, 10)) == (0, ([], False))
        with pytest.raises(ReadOnlyFileError):
            index.append(AbortedTxn(1, 100, 101, 102))
    assert not path.exists()
    with TransactionIndex.open(path, writable=True) as index:
        for last in (106, 110, 120):
            index.append(AbortedTxn(5, 102, last, 100))
        with pytest.raises(OutOfOrderError, match="more than 120"):
            index.append(AbortedTxn(5, 102, 120, 100))
    with path.open("ab") as file:
        file.write(b"half")
    with TransactionIndex.open(path, writable=True) as index:
        assert len(index) == 3
        index.append(AbortedTxn(6, 121, 130, 131))
        assert [txn.last_offset for txn in index.entries()] == [106, 110, 120, 130]
        index.truncate_to(110)
        assert [txn.last_offset for txn in index.entries()] == [106]
    assert path.stat().st_size == 34
    assert path.read_bytes().hex() == ("000000000000000000050000000000000066000000000000006a0000000000000064")


def test_transactions_of_a_later_version_or_another_segment_are_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000100.txnindex"
    with TransactionIndex.open(path, writable=True) as index:
        index.append(AbortedTxn(5, 50, 99, 100))
        with pytest.raises(CorruptIndexError, match="last_offset"):
            index.sanity_check()
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    with TransactionIndex.open(path) as index, pytest.raises(CorruptIndexError, match="version"):
        list(index.entries())


@pytest.mark.parametrize("bad", [0, 1, 2, 255, 256, 257, 258, 512, 513, 598])
def test_what_stands_before_the_refused_one_is_appended_however_far_it_is(tmp_path: Path, bad: int) -> None:
    offsets = np.arange(600) * 3 + 101
    spoilt = np.where(np.arange(600) == bad + 1, offsets[bad], offsets)
    with OffsetIndex.create(tmp_path / "00000000000000000100.index", 100) as index:
        with pytest.raises(OutOfOrderError):
            index.append_many(spoilt, np.arange(600))
        assert index.entries()["offset"].tolist() == offsets[: bad + 1].tolist()
    with TimeIndex.create(tmp_path / "00000000000000000100.timeindex", 100) as times:
        with pytest.raises(OutOfOrderError):
            times.maybe_append_many(np.arange(600) * 5, np.where(np.arange(600) == bad + 1, 100, offsets))
        assert times.entries()["timestamp"].tolist() == [5 * i for i in range(bad + 1)]
        times.truncate()
        times.maybe_append_many(np.where(np.arange(600) == bad + 1, 5 * bad, np.arange(600) * 5), offsets)
        assert times.entries()["timestamp"].tolist() == [5 * i for i in range(600) if i != bad + 1]


@pytest.mark.parametrize("times", [False, True])
def test_many_look_ups_see_entries_that_others_changed_since_the_last_ones(times: bool) -> None:
    """The layers above the entries are kept: an answer that does not fit the entries as they are is looked up anew."""
    kind = [("key", ">i8" if times else ">i4"), ("value", ">i4")]
    entries = np.zeros(1000, kind)
    entries["key"], entries["value"] = np.arange(1000) * 10 + 5, np.arange(1000)
    buffer = bytearray(entries.tobytes())
    core = Entries(buffer, times, 0, TimestampOffset if times else OffsetPosition, False, "index")
    targets = np.random.default_rng(7).integers(-5, 20_000, 3000)
    for shift in (0, 1, 5000, 0):
        now = entries.copy()
        now["key"] += shift
        buffer[:] = now.tobytes()
        fresh = Entries(bytes(buffer), times, 0, TimestampOffset if times else OffsetPosition, False, "index")
        for wanted in (targets, np.sort(targets), targets):
            found, expected = core.lookup_many(wanted), fresh.lookup_many(wanted)
            assert [one.tolist() for one in found] == [one.tolist() for one in expected]
        assert core.lookup(5000) == fresh.lookup(5000)


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("sort", [np.sort, np.asarray])
def test_all_look_ups_answer_alike_when_others_have_put_the_entries_out_of_order(times: bool, sort: Any) -> None:
    """A call for one, which has layers above the entries, did not notice it where a call for many did."""
    entry = TimestampOffset if times else OffsetPosition
    random = np.random.default_rng(11)
    for entries in (3, 70, 1000):
        right = np.zeros(entries, [("key", ">i8" if times else ">i4"), ("value", ">i4")])
        right["key"], right["value"] = np.arange(entries) * 10 + 5, np.arange(entries)
        buffer = bytearray(right.tobytes())
        core = Entries(buffer, times, 0, entry, False, "index")
        core.lookup_many(random.permutation(entries * 10))
        for _ in range(20):
            wrong = right.copy()
            wrong["key"][random.integers(0, entries, 3)] = random.integers(0, entries * 10, 3)
            buffer[:] = wrong.tobytes()
            targets = sort(random.integers(-5, entries * 10, 200))
            found = [tuple(core.lookup(int(target))) for target in targets]
            for part in (1, 9, 200):
                many = [core.lookup_many(targets[at : at + part]) for at in range(0, 200, part)]
                columns = [np.concatenate(column).tolist() for column in zip(*many, strict=True)]
                assert list(zip(*columns, strict=True)) == found
