"""Segments that brokers wrote, intact and damaged, read and recovered as Kafka's own classes did."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from mqindex.errors import MQIndexError, OffsetOverflowError, OutOfOrderError
from mqindex.kafka import LogSegment, OffsetPosition
from mqindex.kafka.log.batches import codec_of, has_append_time, is_control, is_transactional
from tests.reference import kafka_partition as twin
from tests.support.golden_kafka import PARTITION_CASES, PartitionCase, damaged

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
OLD = ("baseOffset", "count")  # of wrappers Kafka's classes look inside for these
every_case = pytest.mark.parametrize("name", PARTITION_CASES)


def options(case: PartitionCase) -> dict[str, int]:
    config = case.truth["config"]
    return {
        "index_interval_bytes": int(config.get("index.interval.bytes", 4096)),
        "max_index_size": int(config.get("segment.index.bytes", 10_485_760)),
    }


def segments(case: PartitionCase, directory: Path) -> list[tuple[dict[str, Any], Path]]:
    return [(segment, directory / f"{segment['base']:020d}.log") for segment in case.truth["segments"]]


def as_told(rows: Any) -> list[dict[str, Any]]:
    """Rows in the words of the truth."""
    times = rows["base_timestamp"].tolist()
    columns = [
        rows["position"], rows["size"], rows["base_offset"], rows["last_offset"], rows["max_timestamp"], rows["magic"],
        [CODECS[number] for number in codec_of(rows)],
        ["LogAppendTime" if flag else "CreateTime" for flag in has_append_time(rows)],
        rows["producer_id"], rows["producer_epoch"], rows["base_sequence"], rows["leader_epoch"], rows["count"],
        is_transactional(rows), is_control(rows), rows["crc"],
        [time if flag else None for time, flag in zip(times, rows["attributes"] & 0x40, strict=True)],
    ]  # fmt: skip
    names = [
        "position", "size", "baseOffset", "lastOffset", "maxTimestamp", "magic", "codec", "timestampType",
        "producerId", "producerEpoch", "baseSequence", "leaderEpoch", "count", "isTransactional", "isControl", "crc",
        "deleteHorizon",
    ]  # fmt: skip
    lists = [column.tolist() if hasattr(column, "tolist") else column for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


@every_case
def test_batches_are_the_brokers(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    fields = case.truth["batch_fields"]
    for segment, path in segments(case, case.closed(tmp_path)):
        with LogSegment.open(path) as opened:
            found = [row for rows in opened._batch_arrays(check_crc=True) for row in as_told(rows)]
            assert opened.damage == []
        assert len(found) == len(segment["batches"])
        for got, said in zip(found, segment["batches"], strict=True):
            told = dict(zip(fields, said, strict=True))
            assert told.pop("valid")
            if told["magic"] == 0:
                got["timestampType"] = "NoTimestampType"
            if told["magic"] < 2:
                for field in OLD:
                    del told[field]
            assert {field: got[field] for field in told} == told


@every_case
def test_a_recovery_gives_the_brokers_bytes(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    rebuilt = [directory.parents[1] / name / directory.name for name in ("recovered-4.1.0", "rebuilt")]
    assert rebuilt[0].is_dir()
    for _, path in segments(case, directory):
        with LogSegment.open(path) as segment:
            for check_crc in (True, False):
                made = segment.recover(**options(case), check_crc=check_crc)
                assert (made.truncated_bytes, made.fault) == (0, None)
                for files in filter(Path.is_dir, rebuilt):
                    assert made.offset_index == (files / path.name).with_suffix(".index").read_bytes()
                    assert made.time_index == (files / path.name).with_suffix(".timeindex").read_bytes()


def digest(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@every_case
def test_damaged_logs_are_recovered_as_by_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    for number, damage in enumerate(case.truth.get("damage", [])):
        if not damage["file"].endswith(".log"):
            continue
        path = tmp_path / str(number) / damage["file"]
        path.parent.mkdir()
        content = damaged((directory / damage["file"]).read_bytes(), damage["ops"])
        path.write_bytes(content)
        with LogSegment.open(path) as segment:
            if "error" in damage:
                with pytest.raises(OFFENCES[damage["error"].rpartition(".")[2]]) as error:
                    segment.recover(**options(case))
                assert error.value.path == str(path) and error.value.at is not None
                continue
            made = segment.recover(**options(case))
        assert made.truncated_bytes == damage["truncatedBytes"], damage["name"]
        assert digest(content[: made.valid_bytes]) == damage["files"][".log"]
        assert digest(made.offset_index) == damage["files"][".index"], damage["name"]
        assert digest(made.time_index) == damage["files"][".timeindex"], damage["name"]


OFFENCES: dict[str, type[MQIndexError]] = {
    "InvalidOffsetException": OutOfOrderError,
    "IndexOffsetOverflowException": OffsetOverflowError,
    "LogSegmentOffsetOverflowException": OffsetOverflowError,
}


@every_case
def test_offsets_are_translated_as_by_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    for segment, path in segments(case, case.closed(tmp_path)):
        with LogSegment.open(path) as opened:
            assert opened.next_offset == segment["nextOffset"]
            assert opened.max_timestamp_so_far.timestamp == segment["largestTimestampFromIndex"]
            for offset, base, position, size in segment["translateOffset"]:
                found = opened.translate_offset(offset)
                told = None if base is None else (position, size, base)
                assert (None if found is None else found[:2]) == (None if told is None else told[:2])
                if found is not None and opened.batches(position, position + 1)["magic"][0] == 2:
                    assert found.base_offset == base
            for position, size, offset, _ in segment["upperBound"]:
                assert opened.fetch_upper_bound_offset(OffsetPosition(0, position), size) == offset


@every_case
def test_times_are_found_as_by_the_broker(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    for segment, path in segments(case, case.closed(tmp_path)):
        with LogSegment.open(path) as opened:
            for timestamp, start, *said in segment["findOffsetByTimestamp"]:
                found = opened.find_offset_by_timestamp(timestamp, start)
                assert (None if found is None else list(found)) == (None if said[0] is None else said)


@every_case
def test_records_are_those_of_the_twin_and_of_the_consumer(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    directory = case.closed(tmp_path)
    seen: list[int] = []
    for _, path in segments(case, directory):
        with LogSegment.open(path) as opened:
            parts = list(opened.records())
            batches = opened.batches()
        found = [row for part in parts for row in as_records(part)]
        said = [(record, batch) for batch in twin.batches(path.read_bytes()) for record in twin.records(batch)]
        assert found == [
            (*record, batch.position, batch.producer_id, batch.is_transactional, batch.is_control)
            for record, batch in said
        ]
        seen += [record[0] for record in found if not record[-1]]
        with_records = batches["position"][batches["count"] > 0].tolist()
        assert with_records == list(dict.fromkeys(row[5] for row in found))
    consumer = (case.truth["broker"] or {}).get("answers", {}).get("read_uncommitted")
    if consumer is not None:
        assert len(seen) == consumer["records"]
        assert runs(seen) == consumer["offsetRuns"]


def as_records(part: Any) -> list[tuple[Any, ...]]:
    names = ("offset", "timestamp", "key", "value", "headers", "position", "producer_id")
    flags = ("is_transactional", "is_control")
    columns = [
        part[name].to_pylist() if hasattr(part[name], "to_pylist") else part[name].tolist() for name in (*names, *flags)
    ]
    return list(zip(*columns, strict=True))


def runs(offsets: list[int]) -> list[list[int]]:
    """[first, last] of what follows without a gap."""
    found: list[list[int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset - 1:
            found[-1][1] = offset
        else:
            found.append([offset, offset])
    return found


@every_case
def test_reading_begins_at_the_offset_asked_for(name: str, tmp_path: Path) -> None:
    case = PartitionCase(name)
    segment, path = segments(case, case.closed(tmp_path))[0]
    with LogSegment.open(path) as opened:
        every = [row for part in opened.records() for row in as_records(part)]
        for offset in (0, *(record[0] + 1 for record in every[:: max(len(every) // 7, 1)])):
            asked = offset + segment["base"] if offset == 0 else offset
            read = as_records(opened.read(asked, max_bytes=2000))
            expected = [record for record in every if record[0] >= asked]
            assert read == expected[: len(read)] and (len(read) > 0) == (len(expected) > 0)
            assert opened.read(asked, max_bytes=2000, columns=["key"])["key"].to_pylist() == [row[2] for row in read]
