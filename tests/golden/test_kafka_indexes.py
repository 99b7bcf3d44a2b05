"""Index files that brokers wrote, intact and damaged, answer as Kafka's own classes answered."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex.columns.columns import Columns
from mqindex.errors import CorruptIndexError
from mqindex.kafka import AbortedTxn, OffsetIndex, OffsetPosition, TimeIndex, TransactionIndex
from tests.support.golden_kafka import DATA, PARTITION_CASES, PartitionCase, damaged

MANY = 3  # so often in one call that the layers above the entries pay


def test_golden_partitions_are_the_recorded_ones() -> None:
    manifest = json.loads((DATA / "MANIFEST.json").read_text())
    for path, said in manifest.items():
        content = (DATA / path).read_bytes()
        assert {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} == said, path
    assert sorted(str(path.relative_to(DATA)) for path in DATA.rglob("*.gz")) == sorted(
        path for path in manifest if path.endswith(".gz")
    )


def rows(columns: Columns) -> list[list[int]]:
    return [[int(first), int(second)] for first, second in zip(*columns.values(), strict=True)]


def indexes(directory: Path, segment: dict[str, Any]) -> tuple[OffsetIndex, TimeIndex]:
    stem = directory / f"{segment['base']:020d}"
    return OffsetIndex.open(f"{stem}.index"), TimeIndex.open(f"{stem}.timeindex")


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_entries_and_look_ups_are_the_brokers(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for segment in case.truth["segments"]:
        offsets, times = indexes(directory, segment)
        with offsets, times:
            assert (len(offsets), offsets.last_offset) == (segment["offsetEntries"], segment["offsetLast"])
            assert (len(times), list(times.last_entry)) == (segment["timeEntries"], segment["timeLast"])
            first = segment["offsetIndex"]
            assert rows(offsets.entries(0, len(first))) == first
            first = segment["timeIndex"]
            assert rows(times.entries(0, len(first))) == first
            offsets.sanity_check()
            times.sanity_check()
            for index, said in ((offsets, segment["offsetLookup"]), (times, segment["timeLookup"])):
                for _ in range(2):  # the second time there may be layers
                    assert [list(index.lookup(target)) for target, *_ in said] == [answer for _, *answer in said]
                many = index.lookup_many([target for target, *_ in said] * MANY)
                assert np.stack(many, 1).tolist() == [answer for _, *answer in said] * MANY
                ordered = sorted(said)
                many = index.lookup_many([target for target, *_ in ordered])
                assert np.stack(many, 1).tolist() == [answer for _, *answer in ordered]
            for position, size, offset, found in segment["upperBound"]:
                expected = None if offset is None else OffsetPosition(offset, found)
                assert offsets.fetch_upper_bound_offset(OffsetPosition(0, position), size) == expected


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_appending_the_brokers_entries_gives_the_brokers_bytes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for segment in case.truth["segments"]:
        stem = f"{segment['base']:020d}"
        offsets, times = indexes(directory, segment)
        with (
            offsets,
            times,
            OffsetIndex.create(tmp_path / f"{stem}.index", segment["base"], max_index_size=4000) as new_offsets,
            TimeIndex.create(tmp_path / f"{stem}.timeindex", segment["base"], max_index_size=6000) as new_times,
        ):
            new_offsets.append_many(*offsets.entries().values())
            new_times.maybe_append_many(*times.entries().values(), skip_full_check=True)
            new_offsets.trim_to_valid_size()
            new_times.trim_to_valid_size()
        for kind in ("index", "timeindex"):
            assert (tmp_path / f"{stem}.{kind}").read_bytes() == (directory / f"{stem}.{kind}").read_bytes()
            (tmp_path / f"{stem}.{kind}").unlink()


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_transactions_are_collected_as_by_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for segment in case.truth["segments"]:
        with TransactionIndex.open(directory / f"{segment['base']:020d}.txnindex") as index:
            known = list(index.entries())
            assert known == [AbortedTxn(*fields, version) for version, *fields in segment.get("txnIndex", [])]
            index.sanity_check()
            for fetch_offset, upper_bound, which, complete in segment.get("collectAborted", []):
                found = index.collect_aborted_txns(fetch_offset, upper_bound)
                assert ([known.index(txn) for txn in found.aborted_transactions], found.is_complete) == (
                    which, complete,
                )  # fmt: skip


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_damaged_files_answer_as_the_brokers_classes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for number, damage in enumerate(case.truth.get("damage", [])):
        if not damage["file"].endswith((".index", ".timeindex")):
            continue
        kind = OffsetIndex if damage["file"].endswith(".index") else TimeIndex
        path = tmp_path / str(number) / damage["file"]
        path.parent.mkdir()
        path.write_bytes(damaged((directory / damage["file"]).read_bytes(), damage["ops"]))
        with kind.open(path, writable=True) as index:
            assert len(index) == damage["entries"]
            if damage["sanity"] == "ok":
                index.sanity_check()
            else:
                with pytest.raises(CorruptIndexError):
                    index.sanity_check()
            said = damage["lookup"]
            assert [list(index.lookup(target)) for target, *_ in said] == [answer for _, *answer in said]
            many = index.lookup_many([target for target, *_ in said] * MANY)
            assert np.stack(many, 1).tolist() == [answer for _, *answer in said] * MANY
            index.trim_to_valid_size()
            assert path.stat().st_size == damage["sizeAfterClose"]
