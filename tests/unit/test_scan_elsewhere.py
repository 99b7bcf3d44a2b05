"""`rocketmq.scan` and `kafka.scan` of a URL give what they give of the same files here, from a zone map too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import kafka, rocketmq
from mqindex.columns.columns import Columns
from mqindex.errors import FileStateError
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import STORE_CASES, case
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase

__all__ = ["memory"]  # a fixture


def rows(batches: Any) -> list[tuple[Any, ...]]:
    found = []
    for batch in batches:
        columns = [
            column.astype(np.int64).tolist() if isinstance(column, np.ndarray) else column.to_pylist()
            for column in batch.values()
        ]
        found += list(map(repr, zip(*columns, strict=True)))
    return found


@pytest.mark.parametrize("name", STORE_CASES)
def test_messages_of_a_store(memory: Ways, tmp_path: Path, name: str) -> None:
    root = case(name).unpack(tmp_path)
    url = WAYS.upload(root)
    with rocketmq.CommitLog.open(root / "commitlog") as log:
        batches = list(log.scan(columns=["store_timestamp", "topic"]))
    times = np.sort(np.concatenate([batch["store_timestamp"] for batch in batches])) if batches else np.zeros(1, int)
    topic = batches[0]["topic"][0] if batches else "none"
    begin, end = int(times[len(times) // 3]), int(times[2 * len(times) // 3])
    for asked in ({}, {"begin": begin, "end": end}, {"topic": topic}, {"topic": topic, "begin": begin}):
        expected = rows(rocketmq.scan(root, cache=False, **asked))
        for _ in range(2):  # the second time from the map
            assert rows(rocketmq.scan(url, cache=tmp_path / "cache", **asked)) == expected
    assert not asked or os.listdir(tmp_path / "cache")


@pytest.mark.parametrize("name", PARTITION_CASES)
def test_records_of_a_partition(memory: Ways, tmp_path: Path, name: str) -> None:
    directory = PartitionCase(name).closed(tmp_path)
    url = WAYS.upload(directory)
    every = Columns.concat(
        list(kafka.scan(directory, cache=False, columns=["timestamp"]))
        or [kafka.scan(directory).empty().select(["timestamp"])]
    )
    times = np.sort(every["timestamp"][~np.isnat(every["timestamp"])])
    periods = [{"begin": times[len(times) // 3], "end": times[2 * len(times) // 3]}] if len(times) else []
    for asked in ({}, {"start_offset": 10, "end_offset": 100}, *periods):
        expected = rows(kafka.scan(directory, cache=False, **asked))  # type: ignore[arg-type]
        for _ in range(2):
            found = rows(kafka.scan(url, cache=tmp_path / "cache", **asked))  # type: ignore[arg-type]
            assert [row.split(",", 2)[2] for row in found] == [row.split(",", 2)[2] for row in expected]  # other names


def test_a_later_scan_reads_the_period_only(memory: Ways, tmp_path: Path) -> None:
    config = {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 16 << 20}
    with rocketmq.MessageStore.open(tmp_path / "store", writable=True, config=config) as store:
        store.put_messages(
            {
                "topic": "T",
                "body": [bytes(1000)] * 12_000,
                "store_timestamp": [1_700_000_000_000 + at for at in range(12_000)],
            }
        )
    url = WAYS.upload(tmp_path / "store")
    asked: dict[str, Any] = {"begin": 1_700_000_006_000, "end": 1_700_000_006_100, "cache": tmp_path / "cache"}
    assert sum(map(len, rocketmq.scan(url, **asked))) == 100
    WAYS.ranges.clear()
    assert sum(map(len, rocketmq.scan(url, **asked))) == 100
    assert sum(stop - start for path, start, stop in WAYS.ranges if "commitlog" in path) < 2 << 20


def test_a_map_is_of_one_version_of_a_file(memory: Ways, tmp_path: Path) -> None:
    for number in (1, 2):
        config = {"maxHashSlotNum": 100, "maxIndexNum": 400, "mappedFileSizeCommitLog": 1 << 20}
        with rocketmq.MessageStore.open(tmp_path / f"store-{number}", writable=True, config=config) as store:
            store.put_messages({"topic": f"T{number}", "body": [b"x"] * 100})
    url = WAYS.upload(tmp_path / "store-1")
    cache = tmp_path / "cache"
    assert sum(map(len, rocketmq.scan(url, topic="T1", cache=cache))) == 100
    for path in (tmp_path / "store-2").rglob("*"):
        if path.is_file():
            WAYS.put(f"{url}/{path.relative_to(tmp_path / 'store-2')}", path.read_bytes())
    assert sum(map(len, rocketmq.scan(url, topic="T1", cache=cache))) == 0
    assert sum(map(len, rocketmq.scan(url, topic="T2", cache=cache))) == 100


def test_a_file_that_is_replaced_while_it_is_read_is_an_error(memory: Ways, tmp_path: Path) -> None:
    root = case("basic-493").unpack(tmp_path)
    url = WAYS.upload(root)
    with rocketmq.scan(url, cache=False) as scan, pytest.raises(FileStateError, match="replaced"):
        for path in sorted((root / "commitlog").iterdir()):
            WAYS.put(f"{url}/commitlog/{path.name}", path.read_bytes()[::-1])
        list(scan)
