"""What brokers keep in topics of their own, decoded: bytes that their classes write, and bytes that nobody wrote."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mqindex import kafka
from mqindex.columns.columns import BinaryColumn, Columns, StringColumn
from tests.reference.kafka_commits import Commit, commit
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

# Written by the generated classes of Kafka 4.4.0 (`MessageUtil`, `MetadataRecordSerde`).
COMMITS = {
    "0000" "0000011f71fb04cb" "0007" "6772c3b6c39f65" "0000018bcfe56800": (-1, -1),
    "0001" "0000011f71fb04cb" "0007" "6772c3b6c39f65" "0000018bcfe56800" "0000018bcfee8fc0": (-1, 1700000600000),
    "0002" "0000011f71fb04cb" "0007" "6772c3b6c39f65" "0000018bcfe56800": (-1, -1),
    "0003" "0000011f71fb04cb" "00000007" "0007" "6772c3b6c39f65" "0000018bcfe56800": (7, -1),
    "0004" "0000011f71fb04cb" "00000007" "08" "6772c3b6c39f65" "0000018bcfe56800" "00": (7, -1),
    "0004" "0000011f71fb04cb" "00000007" "08" "6772c3b6c39f65" "0000018bcfe56800"
    "01" "00" "10" "00000000000000010000000000000002": (7, -1),
}  # fmt: skip
KEY = "000361707000066f726465727300000002"
TRANSACTIONS = {
    "0000" "000000000000004d" "0003" "0000ea60" "03" "00000002" "0006" "6f7264657273" "00000002" "00000000" "00000002"
    "0004" "70616964" "00000001" "00000005" "0000018bcfe56be8" "0000018bcfe56800",
    "0001" "000000000000004d" "0003" "0000ea60" "03" "03" "07" "6f7264657273" "03" "00000000" "00000002" "00"
    "05" "70616964" "02" "00000005" "00" "0000018bcfe56be8" "0000018bcfe56800"
    "03" "00" "08" "000000000000004c" "01" "08" "000000000000004e" "02" "02" "0002",
}  # fmt: skip
NO_PARTITIONS = "0000000000000000004d00000000000000ffffffff0000000000000001ffffffffffffffff"
MARKERS = {
    ("0000", "0000" "00000009"): ("abort", 9, -1, None, -1),
    ("0001", "0000" "00000009"): ("commit", 9, -1, None, -1),
    ("0002", "0000" "00000002" "03" "00000001" "00" "00000002" "00" "02" "00000002" "00" "00"): (
        "leader-change", -1, 2, "1, 2", -1,
    ),
    ("0002", "0001" "00000002" "03" "00000001" "00000000000000030000000000000004" "00"
     "00000002" "00000000000000000000000000000000" "00"
     "02" "00000002" "00000000000000000000000000000000" "00" "00"): ("leader-change", -1, 2, "1, 2", -1),
    ("0003", "0000" "0000018bcfe56800" "00"): ("snapshot-header", -1, -1, None, -1),
    ("0004", "0000" "00"): ("snapshot-footer", -1, -1, None, -1),
    ("0005", "0000" "0001" "00"): ("kraft-version", -1, -1, None, 1),
    ("0006", "0000" "02" "00000001" "00000000000000010000000000000002" "02" "0b" "434f4e54524f4c4c4552" "02" "68" "2385"
     "00" "0000" "0001" "00" "00" "00"): ("kraft-voters", -1, -1, "1", -1),
    ("0007", ""): ("other", -1, -1, None, -1),
}  # fmt: skip
ID = "00000000000000010000000000000002"
ID_TEXT = "AAAAAAAAAAEAAAAAAAAAAg"
PARTITION = "00000003" + ID + "0300000001000000020200000002010100000002000000090000000b"
METADATA = [
    "01" "02" "00" "07" "6f7264657273" + ID + "00",
    "01" "03" "00" + PARTITION + "01" "00" "01" "01",
    "01" "03" "01" + PARTITION + "03" + ID + "00000000000000030000000000000004" "01" "00" "01" "01",
    "01" "03" "02" + PARTITION + "03" + ID + "00000000000000030000000000000004"
    "02" "00" "01" "01" "01" "05" "02" "00000001",
    "01" "04" "00" "02" "07" "6f7264657273" "15" "696e6465782e696e74657276616c2e6279746573" "04" "373030" "00",
    "01" "04" "00" "04" "01" "19" "6c6f672e696e6465782e696e74657276616c2e6279746573" "00" "00",
    "01" "09" "00" + ID + "00",
    "01" "17" "00" "01" "00" "02" "02" "78",
    "01" "14" "00" "00",
    "01" "4d" "00" "00",
]  # fmt: skip


def column(values: Sequence[bytes | None]) -> BinaryColumn:
    offsets = np.cumsum([0, *(len(value or b"") for value in values)])
    data = np.frombuffer(b"".join(value or b"" for value in values), np.uint8)
    return BinaryColumn(data, offsets, np.array([value is not None for value in values], np.bool_))


def records(keys: Sequence[bytes | None], values: Sequence[bytes | None], **more: Any) -> Columns:
    return Columns({"key": column(keys), "value": column(values), **more})


def rows(columns: Columns) -> list[dict[str, Any]]:
    """Row by row, times as milliseconds; only what is there, and no `record_`."""
    lists = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            lists[name] = np.where(np.isnat(values), -1, values.astype(np.int64)).tolist()
        else:
            lists[name] = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
    made = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return [{name: value for name, value in row.items() if value not in (None, -1)} for row in made]


# ---- commits


@pytest.mark.parametrize("key", ["0000", "0001"])
@pytest.mark.parametrize("value", COMMITS)
def test_every_version_of_a_commit(key: str, value: str) -> None:
    (found,) = rows(kafka.decode_commits(records([bytes.fromhex(key + KEY)], [bytes.fromhex(value)])))
    leader_epoch, expire_time = COMMITS[value]
    later = {"leader_epoch": leader_epoch, "expire_time": expire_time}
    assert found == {
        "kind": "commit", "group": "app", "topic": "orders", "partition": 2, "offset": 1234567890123,
        "metadata": "größe", "commit_time": 1_700_000_000_000,
        **{name: value for name, value in later.items() if value != -1},
    }  # fmt: skip


def test_records_that_are_no_commits_have_a_kind_and_a_row_each() -> None:
    commit_key, value = bytes.fromhex("0001" + KEY), bytes.fromhex(next(iter(COMMITS)))
    keys = [
        commit_key, bytes.fromhex("0002" "0003617070"), bytes.fromhex("0003" "0003617070"), b"\0\1\0\0", None,
        commit_key[:-1], commit_key, commit_key, b"\0", commit_key,
    ]  # fmt: skip
    values = [None, b"", b"", b"", value, value, value[:-1], b"\0\x05" + value[2:], value, b""]
    control = np.arange(len(keys)) == 3
    timestamps = np.where(np.arange(len(keys)) == 0, -1, 1_700_000_000_000)
    more = {"offset": np.arange(len(keys)) + 40, "timestamp": timestamps, "is_control": control}
    decoded = kafka.decode_commits(records(keys, values, **more))
    assert decoded["record_offset"].tolist() == list(range(40, 50))
    assert np.isnat(decoded["record_timestamp"]).tolist() == [True] + [False] * 9
    assert [(row["kind"], row.get("problem")) for row in rows(decoded)] == [
        ("deleted", None),
        ("group", None),
        ("other", None),
        ("marker", None),
        ("unreadable", "there is no key"),
        ("unreadable", "the key's lengths lead outside it"),
        ("unreadable", "the value's lengths lead outside it"),
        ("unreadable", "the value's version is none of 0 to 4"),
        ("unreadable", "the key is shorter than a version"),
        ("unreadable", "the value is shorter than a version"),
    ]
    assert rows(decoded)[0]["group"] == "app"
    assert rows(decoded)[6].keys() == {"record_offset", "record_timestamp", "kind", "problem"}  # nothing half-read


def test_no_records_are_no_rows() -> None:
    for decode in (kafka.decode_commits, kafka.decode_transactions, kafka.decode_markers, kafka.decode_metadata):
        assert decode(records([], [])).num_rows == 0


def mutated(data: bytes, source: random.Random) -> bytes:
    some = bytearray(data)
    for _ in range(source.choice((0, 1, 1, 3))):
        if some:
            some[source.randrange(len(some))] = source.choice((0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, source.randrange(256)))
    return bytes(some[: source.choice((len(some), len(some), source.randrange(len(some) + 1)))])


def test_whatever_the_bytes_say_commits_are_the_twins(rng: random.Random) -> None:
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for _ in range(4000):
        keys.append(mutated(bytes.fromhex(rng.choice(("0000", "0001", "0002")) + KEY), rng))
        values.append(mutated(bytes.fromhex(rng.choice(list(COMMITS))), rng) if rng.random() < 0.95 else None)
    found = rows(kafka.decode_commits(records(keys, values)))
    kinds = set()
    for row, key, value in zip(found, keys, values, strict=True):
        expected = commit(key, value)
        kinds.add(expected.kind)
        assert {name: given for name, given in row.items() if name != "problem"} == as_row(expected)
        assert ("problem" in row) == (expected.kind == "unreadable")
    assert kinds == {"commit", "deleted", "group", "other", "unreadable"}


def as_row(expected: Commit) -> dict[str, Any]:
    fields = expected._asdict()
    for name in ("commit_time", "expire_time"):
        fields[name] = max(fields[name], -1)  # no time is before the epoch
    for name in ("group", "topic", "metadata"):
        if fields[name] is not None:
            data = fields[name]
            fields[name] = StringColumn(np.frombuffer(data, np.uint8), np.array([0, len(data)]))[0]
    return {name: value for name, value in fields.items() if value not in (None, -1)}


# ---- the others


@pytest.mark.parametrize("value", sorted(TRANSACTIONS))
def test_every_version_of_a_transaction(value: str) -> None:
    key = bytes.fromhex("00000003746964")
    assert rows(kafka.decode_transactions(records([key], [bytes.fromhex(value)]))) == [
        {
            "kind": "transaction", "transactional_id": "tid", "producer_id": 77, "producer_epoch": 3,
            "state": "PrepareAbort", "timeout_ms": 60000, "partitions": "orders-0, orders-2, paid-5",
            "start_time": 1_700_000_000_000, "update_time": 1_700_000_001_000,
        }
    ]  # fmt: skip


def test_transactions_without_partitions_or_value_and_of_other_versions() -> None:
    key = bytes.fromhex("00000003746964")
    values = [bytes.fromhex(NO_PARTITIONS), None, b"\0\x02", b"", b""]
    found = rows(kafka.decode_transactions(records([key, key, key, b"\0\x01", None], values)))
    assert [row["kind"] for row in found] == ["transaction", "deleted", "unreadable", "other", "unreadable"]
    assert found[0]["partitions"] == "" and found[0]["state"] == "Empty" and found[1]["transactional_id"] == "tid"
    assert found[2]["problem"] == "no known version of TransactionLogValue: field version: expected 0..1, got 2"


@pytest.mark.parametrize(("key", "value"), MARKERS)
def test_every_marker(key: str, value: str) -> None:
    given = records([bytes.fromhex("0000" + key), b"a key"], [bytes.fromhex(value), b"a value"])
    decoded = kafka.decode_markers(Columns({**given, "is_control": np.array([True, False])}))
    names = ("kind", "coordinator_epoch", "leader", "voters", "kraft_version")
    assert tuple(decoded[name][0] for name in names) == MARKERS[key, value]
    assert rows(decoded)[1] == {}
    assert (rows(decoded)[0].get("last_contained_time") == 1_700_000_000_000) == (key == "0003")


def test_the_records_of_the_metadata_log() -> None:
    values = [bytes.fromhex(value) for value in METADATA]
    found = rows(kafka.decode_metadata(records([None] * len(values), values)))
    for row in found:
        del row["api_key"]
    partition = {
        "kind": "Partition", "topic_id": ID_TEXT, "partition": 3, "leader": 2, "leader_epoch": 9, "replicas": "1, 2",
        "isr": "2",
    }  # fmt: skip
    assert found == [
        {"kind": "Topic", "version": 0, "topic": "orders", "topic_id": ID_TEXT},
        *({**partition, "version": version} for version in range(3)),
        {
            "kind": "Config", "version": 0, "resource_type": 2, "resource": "orders", "name": "index.interval.bytes",
            "value": "700",
        },
        {"kind": "Config", "version": 0, "resource_type": 4, "resource": "", "name": "log.index.interval.bytes"},
        {"kind": "RemoveTopic", "version": 0, "topic_id": ID_TEXT},
        {"kind": "BeginTransaction", "version": 0},
        {"kind": "NoOp", "version": 0},
        {"kind": "other", "version": 0},
    ]  # fmt: skip


def test_a_record_with_bytes_behind_it_and_of_another_frame_is_not_read() -> None:
    whole = bytes.fromhex(METADATA[4])
    values = [whole + b"\0", b"\0" + whole[1:], whole[:-2], b"", bytes.fromhex("0180800400")]
    found = rows(kafka.decode_metadata(records([None] * len(values), values)))
    assert [row["kind"] for row in found] == ["unreadable"] * len(values)
    assert all(row["problem"] for row in found)


def test_whatever_the_bytes_say_there_is_a_row_for_each_record(rng: random.Random) -> None:
    values = [
        bytes.fromhex(value) for value in (*TRANSACTIONS, NO_PARTITIONS, *METADATA, *(value for _, value in MARKERS))
    ]
    keys = [bytes.fromhex("00000003746964"), *(bytes.fromhex("0000" + key) for key, _ in MARKERS)]
    some = records(
        [mutated(rng.choice(keys), rng) for _ in range(6000)],
        [mutated(rng.choice(values), rng) for _ in range(6000)],
    )
    for decode in (kafka.decode_transactions, kafka.decode_markers, kafka.decode_metadata):
        assert len(rows(decode(some))) == 6000


def test_lengths_that_promise_more_than_the_bytes_are_no_work() -> None:
    huge = bytes.fromhex("0001000000000000004d00030000ea6003ffffffff0f") + b"\0" * 100
    many_tags = bytes.fromhex("01020001") + bytes(16) + bytes.fromhex("ffffffff0f") + b"\0\0" * 1000
    key = bytes.fromhex("00000003746964")
    assert rows(kafka.decode_transactions(records([key], [huge])))[0]["kind"] == "unreadable"
    assert rows(kafka.decode_metadata(records([None], [many_tags])))[0]["kind"] == "unreadable"


# ---- from files


def test_what_is_read_and_what_is_scanned_is_decoded_as_it_is(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path / "logs" / "__consumer_offsets-3", 7)
    key, value = bytes.fromhex("0001" + KEY), bytes.fromhex(next(iter(COMMITS)))
    txn = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    writer.append([KafkaRecord(value, key), KafkaRecord(None, key, -1)])
    for abort in (True, False):
        writer.append([KafkaRecord(value, key)], **txn)  # type: ignore[arg-type]
        writer.marker(5, abort=abort)
    writer.close()
    with kafka.PartitionLog.open(writer.directory) as log:
        read = kafka.decode_commits(log.read(7, isolation_level="read_committed"))
    assert read["record_offset"].tolist() == [7, 8, 11]
    assert read["kind"].to_pylist() == ["commit", "deleted", "commit"]
    assert np.isnat(read["record_timestamp"]).tolist() == [False, True, False]
    with kafka.scan(tmp_path / "logs", cache=False) as scan:
        scanned = Columns.concat([kafka.decode_commits(records) for records in scan])
    assert scanned["record_partition"].tolist() == [3] * 6
    assert scanned["kind"].to_pylist() == ["commit", "deleted", "commit", "marker", "commit", "marker"]
    assert scanned.to_polars().filter(kind="commit")["offset"].to_list() == [1234567890123] * 3
