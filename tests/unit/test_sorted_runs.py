"""Sorted runs: exact cuts and merges over any number of runs, against one sorted list."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from mqindex.rocketmq.index.index_file import IndexFile
from mqindex.rocketmq.pipeline import sorted_runs
from mqindex.rocketmq.pipeline.sorted_runs import SortedRun, SortedRunWriter, assign_sorted, build_sorted

Entry = tuple[int, int, int, int]  # key_hash, phy_offset, store_timestamp, seq


def random_entries(rng: Random, count: int) -> list[Entry]:
    """Many equal phy_offsets and seqs; the key hash numbers the entries."""
    return [(i, rng.randrange(count // 3 + 1), 1_000_000 + i, rng.randrange(3)) for i in range(count)]


def write(directory: Path, entries: list[Entry], *, with_seq: bool, chunk: int) -> list[SortedRun]:
    writer = SortedRunWriter(str(directory), with_seq=with_seq, chunk=chunk)
    for start in range(0, len(entries), 7):
        hashes, phys, times, seqs = (
            np.array(column, np.int64) for column in zip(*entries[start : start + 7], strict=True)
        )
        writer.add(hashes.astype(np.int32), phys, times, seqs if with_seq else None)
    return writer.finish()


def built(directory: Path, runs: list[SortedRun], index_num: int) -> tuple[list[tuple[int, int]], int]:
    """(key_hash, phy_offset) of all files in their order, and how many phy_offsets begin in them."""
    entries, offsets = [], 0
    for part in assign_sorted(runs, out=str(directory), hash_slot_num=3, index_num=index_num):
        file, fresh = build_sorted(part)
        offsets += fresh
        with IndexFile.open(file.path, hash_slot_num=3, index_num=index_num) as index:
            columns = index.entries()
            entries += zip(columns["key_hash"].tolist(), columns["phy_offset"].tolist(), strict=True)
            assert file.entries == index.header.index_count - 1
    return entries, offsets


@pytest.mark.parametrize("with_seq", [False, True], ids=["arrival", "seq"])
@pytest.mark.parametrize("index_num", [2, 8, 200])
def test_merge_is_the_sorted_sequence(
    tmp_path: Path, rng: Random, monkeypatch: pytest.MonkeyPatch, with_seq: bool, index_num: int
) -> None:
    monkeypatch.setattr(sorted_runs, "CHUNK", 11)  # a merge in many pieces
    for attempt in range(4):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        most = 15 if index_num == 2 else 90  # each file takes its time to the disk
        parts = [random_entries(rng, rng.randrange(1, most)) for _ in range(rng.randrange(1, 6))]
        runs = [run for part in parts for run in write(directory, part, with_seq=with_seq, chunk=20)]
        arrived = [entry for part in parts for entry in part]
        expected = sorted(arrived, key=lambda entry: (entry[1], entry[3] if with_seq else 0))  # stable: by arrival
        got, offsets = built(directory, runs, index_num)
        assert got == [(entry[0], entry[1]) for entry in expected]
        assert offsets == len({entry[1] for entry in arrived})
        assert not list(directory.glob("merged*"))


def test_sorted_input_is_one_run(tmp_path: Path) -> None:
    entries = [(i, i // 2, i, 0) for i in range(100)]
    (run,) = write(tmp_path, entries, with_seq=False, chunk=10)
    assert run.entries == 100
    assert [path.name for path in tmp_path.iterdir()] == [Path(run.path).name]


def test_no_entries_are_one_empty_file(tmp_path: Path) -> None:
    assert SortedRunWriter(str(tmp_path), with_seq=False).finish() == []
    (part,) = assign_sorted([], out=str(tmp_path), hash_slot_num=3, index_num=8)
    file, offsets = build_sorted(part)
    assert (file.entries, offsets) == (0, 0)


def test_extreme_offsets_are_cut_right(tmp_path: Path) -> None:
    phys = [2**63 - 1, 0, 2**62, 1, 2**63 - 1, -(2**63)]
    runs = [run for i, phy in enumerate(phys) for run in write(tmp_path, [(i, phy, 1, 0)], with_seq=False, chunk=1)]
    entries, _ = built(tmp_path, runs, 3)
    assert entries == [(5, -(2**63)), (1, 0), (3, 1), (2, 2**62), (0, 2**63 - 1), (4, 2**63 - 1)]
