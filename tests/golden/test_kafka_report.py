"""A health report of each golden partition counts what Kafka's own classes said of it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqindex.kafka import LogDirHealth, report, verify
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase

each_partition = pytest.mark.parametrize("name", PARTITION_CASES)


def batches(case: PartitionCase) -> list[dict[str, Any]]:
    """All batches of a partition, field by field."""
    fields = case.truth["batch_fields"]
    return [dict(zip(fields, row, strict=True)) for segment in case.truth["segments"] for row in segment["batches"]]


def records(found: list[dict[str, Any]]) -> int:
    """Of old formats a batch is a message; what is compressed in it only its records show."""
    return sum(one["count"] if one["magic"] == 2 else 1 for one in found)


@each_partition
def test_a_report_counts_what_the_broker_counted(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    found = batches(case)
    health = report(case.closed(tmp_path), index_interval_bytes=case_interval(case))
    (partition,) = health.partitions
    assert (health.kind, health.totals, health.others.partitions) == ("partition", partition.totals, 0)
    totals = partition.totals
    assert (totals.segments, totals.unread) == (len(case.truth["segments"]), 0)
    assert (totals.batches, totals.records, totals.bytes) == (len(found), records(found), sum(b["size"] for b in found))
    for one in partition.codecs:
        own = [batch for batch in found if batch["codec"] == one.codec]
        assert (one.batches, one.records, one.bytes) == (len(own), records(own), sum(b["size"] for b in own))
        assert (one.ratio or 0) >= 1
    assert {one.codec for one in partition.codecs} == {one["codec"] for one in found}
    assert list(partition.magics) == [sum(one["magic"] == magic for one in found) for magic in range(3)]
    for histogram, sizes in (
        (partition.batch_bytes, [one["size"] for one in found]),
        (partition.batch_records, [one["count"] if one["magic"] == 2 else 1 for one in found]),
    ):
        expected = Counter(1 << size.bit_length() >> 1 for size in sizes)
        assert {low: n for low, n in zip(histogram.bounds, histogram.counts, strict=True) if n} == dict(expected)


@each_partition
def test_a_report_has_the_brokers_offsets_and_times(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    found = batches(case)
    health = report(case.closed(tmp_path), index_interval_bytes=case_interval(case))
    (partition,) = health.partitions
    times = [one["maxTimestamp"] for one in found if one["maxTimestamp"] >= 0]
    assert (partition.min_timestamp, partition.max_timestamp) == (min(times, default=None), max(times, default=None))
    assert partition.next_offset == (case.truth["segments"][-1]["nextOffset"] if found else None)
    assert len(partition.stretches) <= 200
    assert sum(one.batches for one in partition.stretches) == len(found)
    assert sum(one.bytes for one in partition.stretches) == partition.totals.bytes
    for one in partition.stretches:
        own = [each for each in found if one.offset <= each["lastOffset"] <= one.last_offset]
        stamps = [each["maxTimestamp"] for each in own if each["maxTimestamp"] >= 0]
        assert (one.min_timestamp, one.max_timestamp) == (min(stamps, default=None), max(stamps, default=None))
    greatest, back = -1, 0
    for stamp in times:
        greatest = max(greatest, stamp)
        back = max(back, greatest - stamp)
    assert partition.furthest_back == back


@each_partition
def test_a_report_has_the_brokers_transactions_producers_and_indexes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    found = batches(case)
    health = report(case.closed(tmp_path), index_interval_bytes=case_interval(case))
    (partition,) = health.partitions
    aborted = [entry for segment in case.truth["segments"] for entry in segment["txnIndex"]]
    assert partition.transactions.aborted == len(aborted)
    assert partition.transactions.control_batches == sum(one["isControl"] for one in found)
    ids = {one["producerId"] for one in found} - {-1}
    assert (partition.producers.count, partition.producers.whole) == (len(ids), True)
    for producer in partition.producers.biggest:
        own = [one for one in found if one["producerId"] == producer.producer_id]
        assert (producer.batches, producer.records, producer.bytes) == (
            len(own), sum(one["count"] for one in own), sum(one["size"] for one in own),
        )  # fmt: skip
    epochs = [one["leaderEpoch"] for one in found if one["leaderEpoch"] >= 0]
    assert [one.epoch for one in partition.leader_epochs] == list(dict.fromkeys(epochs))
    for one, expected in zip(partition.segments, case.truth["segments"], strict=True):
        assert one.base_offset == expected["base"]
        if "offsetEntries" in expected and one.batches:
            assert one.offset_index.entries == expected["offsetEntries"]
            assert one.time_index.entries == expected["timeEntries"]


@each_partition
@pytest.mark.parametrize("ending", ["", "index", "timeindex"])
def test_a_report_says_what_verify_says(name: str, ending: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    path = case.closed(tmp_path)
    for index in path.glob(f"*.{ending}") if ending else ():
        index.unlink()
    health = report(path, index_interval_bytes=case_interval(case))
    plain = verify(path, index_interval_bytes=case_interval(case))
    plain.seconds = health.verify.seconds = 0
    assert health.verify == plain
    (partition,) = health.partitions
    timed = sum(one.max_timestamp is not None for one in partition.segments)
    assert partition.time_indexes_lost == (timed if ending == "timeindex" else 0)
    json.dumps(health.to_dict())


def test_open_transactions_are_those_that_no_marker_ends(tmp_path: Path) -> None:
    (partition,) = report(PartitionCase("410-txn-open").closed(tmp_path)).partitions
    assert partition.transactions.open == 1
    (left,) = partition.transactions.listed
    rows = [one for one in batches(PartitionCase("410-txn-open")) if one["producerId"] == left.producer_id]
    last_marker = max((one["baseOffset"] for one in rows if one["isControl"]), default=-1)
    assert left.first_offset == min(one["baseOffset"] for one in rows if one["baseOffset"] > last_marker)


@pytest.mark.parametrize("ending", ["log", "index", "timeindex"])
def test_one_file_has_a_report_of_its_segment(ending: str, tmp_path: Path) -> None:
    case = PartitionCase("410-codecs")
    path = case.closed(tmp_path)
    second = sorted(path.glob(f"*.{ending}"))[1]
    health: LogDirHealth = report(second, index_interval_bytes=case_interval(case))
    expected = case.truth["segments"][1]
    assert (health.kind, health.totals.segments, health.totals.batches) == ("file", 1, len(expected["batches"]))
    assert health.partitions[0].first_offset == expected["base"]


def case_interval(case: PartitionCase) -> int:
    return int(case.truth["config"].get("index.interval.bytes", 4096))
