"""The tests' own writer of partitions gives the bytes of Kafka's classes (worked examples of the format document)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka_writer import KafkaRecord, PartitionWriter, batch, marker, messages

T = 1_700_000_000_000
SECOND, LAST = "0000018bcfe569f400000001", "0000018bcfe56c4c00000005"
FIRST_ENTRY, LAST_ENTRY = "0000000200000054", "000000050000009d"


@pytest.mark.parametrize(
    ("interval", "offsets", "times"),
    [
        (72, FIRST_ENTRY + LAST_ENTRY, SECOND + LAST),
        (73, FIRST_ENTRY, SECOND + LAST),
        (83, FIRST_ENTRY, SECOND + LAST),
        (84, LAST_ENTRY, LAST),
        (156, LAST_ENTRY, LAST),
        (157, "", LAST),
    ],
)
def test_three_batches_and_their_indexes(interval: int, offsets: str, times: str, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, 100, index_interval=interval)
    writer.append([KafkaRecord(b"v0", b"k0", T), KafkaRecord(b"v1", b"k1", T + 500)])
    writer.append([KafkaRecord(b"hello", None, T + 200)])
    third = [
        KafkaRecord(b"v3", b"k3", T + 1000),
        KafkaRecord(None, b"k4", T + 1100),
        KafkaRecord(b"v5", b"k5", T + 900),
    ]
    writer.append(third, leader_epoch=1)
    writer.close()
    log = writer.path().read_bytes()
    assert len(log) == 251
    assert [log[at : at + 4].hex() for at in (17, 84 + 17, 157 + 17)] == ["3834a893", "d248282b", "5d8fc851"]
    assert writer.path("index").read_bytes().hex() == offsets
    assert writer.path("timeindex").read_bytes().hex() == times


def test_markers_and_headers() -> None:
    said = marker(106, 5, timestamp=T + 2000, producer_epoch=2, leader_epoch=3, coordinator_epoch=9)
    assert said.hex().startswith("000000000000006a000000420000000302aa6189050030")
    record = KafkaRecord(b"v", b"k", T, (("h", b"\1\2"), ("n", None)))
    assert batch([record])[61:].hex() == "20000000026b027604026804" + "0102" + "026e01"


def test_old_messages_and_wrappers() -> None:
    one = KafkaRecord(b"v", b"k", T)
    assert messages([one], 7, magic=0).hex() == "0000000000000007000000101fecd70a0000000000016b0000000176"
    assert messages([one], 7).hex().startswith("00000000000000070000001839268c330100")
    wrapper = messages([one, KafkaRecord(b"w", None, T + 5)], 7, codec="gzip")
    assert wrapper[:12].hex() == "000000000000000800000052" and wrapper[16:30].hex() == "01010000018bcfe56805ffffffff"


def test_an_aborted_transaction(tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, 100, index_interval=10)
    two = [KafkaRecord(b"a" * 9), KafkaRecord(b"b")]
    for producer in (5, 10):
        writer.append(two, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
    writer.append(two)
    writer.marker(10)
    writer.marker(5, abort=False)
    assert writer.path("txnindex").read_bytes().hex() == (
        "0000000000000000000a0000000000000066000000000000006a0000000000000064"
    )
