"""Each topic's own index.interval.bytes, from the metadata log beside it; and where that does not say it."""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import rebuild, repair, verify
from mqindex.kafka.directories.topic_settings import topic_settings
from mqindex.report import Value
from tests.support.kafka_writer import KafkaRecord, PartitionWriter, batch

ONE = LocalEngine(1)
TOPIC = "the topic's, by the metadata log"
BROKER = "the broker's, by the metadata log"
BEGIN, END, ABORT = (bytes([1, api_key, 0, 0]) for api_key in (23, 24, 25))
NO_OP = b"\x01\x14\x00\x00"


# ---- records of the metadata log


def text(value: str | None) -> bytes:
    return b"\0" if value is None else bytes([len(value) + 1]) + value.encode()


def an_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def topic(name: str, number: int = 1) -> bytes:
    return b"\x01\x02\x00" + text(name) + an_id(number) + b"\0"


def removed(number: int) -> bytes:
    return b"\x01\x09\x00" + an_id(number) + b"\0"


def config(name: str, value: str | None, *, of: int = 2, setting: str | None = None) -> bytes:
    setting = setting or ("index.interval.bytes" if of == 2 else "log.index.interval.bytes")
    return b"\x01\x04\x00" + bytes([of]) + text(name) + text(setting) + text(value) + b"\0"


def write_log(log_dir: Path, values: Sequence[bytes], *, begin: int = 0, segments: int = 1) -> Path:
    """The metadata log, its records from the offset `begin` on."""
    writer = PartitionWriter(log_dir / "__cluster_metadata-0", begin)
    for number, value in enumerate(values):
        if number and number * segments % len(values) < segments:
            writer.roll()
        writer.append([KafkaRecord(value)])
    writer.close()
    (log_dir / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=abc\n")
    return writer.directory


def write_snapshot(directory: Path, end: int, values: Sequence[bytes], *, footer: bool = True) -> Path:
    key = struct.Struct(">hh").pack
    data = batch([KafkaRecord(b"\0\0" + bytes(8) + b"\0", key(0, 3))], 0, control=True)
    data += batch([KafkaRecord(value) for value in values], 1)
    if footer:
        data += batch([KafkaRecord(b"\0\0\0", key(0, 4))], 1 + len(values), control=True)
    path = directory / f"{end:020d}-{0:010d}.checkpoint"
    path.write_bytes(data)
    return path


def said(log_dir: Path, name: str = "orders") -> Value | None:
    found = topic_settings(str(log_dir))
    return None if found is None else found.interval_of(str(log_dir / f"{name}-0"))


# ---- what is done with it


def write(directory: Path, interval: int, rng: random.Random) -> Path:
    writer = PartitionWriter(directory, index_interval=interval)
    for number in range(3):
        if number:
            writer.roll()
        for _ in range(150):
            writer.append([KafkaRecord(bytes(rng.randrange(1, 30)))])
    writer.close()
    return directory


def logs(tmp_path: Path, rng: random.Random) -> Path:
    """Two topics of other intervals, and one of which nothing is said."""
    home = tmp_path / "logs"
    for name, interval in (("orders", 500), ("paid", 1000), ("plain", 4096)):
        write(home / f"{name}-0", interval, rng)
    write_log(home, [topic("orders", 1), config("orders", "500"), topic("paid", 2), config("paid", "1000")])
    return home


def test_one_repair_of_a_log_dir_gives_each_partition_its_own_interval(tmp_path: Path, rng: random.Random) -> None:
    home = logs(tmp_path, rng)
    before = {path: path.read_bytes() for path in home.glob("*-0/*.index") if "__" not in str(path)}
    for path in before:
        path.unlink()
    report = repair(home, engine=ONE)
    assert {path: path.read_bytes() for path in before} == before
    assert report.settings["index_interval_bytes"] == Value("several", f"1 partition: default; 2 partitions: {TOPIC}")


def test_so_does_a_rebuild_and_verify_says_where_it_is_from(tmp_path: Path, rng: random.Random) -> None:
    home = logs(tmp_path, rng)
    rebuild(home, tmp_path / "out", engine=ONE)
    for path in home.glob("[!_]*-0/*.index"):
        assert (tmp_path / "out" / path.parent.name / path.name).read_bytes() == path.read_bytes()
    for path in (home / "orders-0", home / "orders-0" / f"{0:020d}.index", home / "orders-0" / f"{150:020d}.log"):
        assert verify(path, engine=ONE).settings["index_interval_bytes"] == Value(500, TOPIC)
    assert verify(home / "orders-0", engine=ONE, index_interval_bytes=4096).settings["index_interval_bytes"] == Value(
        4096, "given"
    )


# ---- what the log says


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([topic("orders"), config("orders", "500")], Value(500, TOPIC)),
        ([topic("orders"), config("orders", "500"), config("orders", "600")], Value(600, TOPIC)),
        ([topic("orders"), config("orders", "500"), config("orders", None)], None),
        ([topic("orders"), config("orders", "500", setting="retention.ms")], None),
        ([topic("paid"), config("paid", "500")], None),
        ([topic("orders"), config("orders", "500"), removed(1)], None),
        ([topic("orders"), config("orders", "500"), removed(1), topic("orders", 2)], None),
        ([topic("orders"), config("", "700", of=4)], Value(700, BROKER)),
        ([topic("orders"), config("", "700", of=4), config("3", "800", of=4)], Value(800, BROKER)),
        ([topic("orders"), config("", "700", of=4), config("4", "800", of=4)], Value(700, BROKER)),
        ([topic("orders"), config("3", "800", of=4), config("orders", "500")], Value(500, TOPIC)),
        ([BEGIN, topic("orders"), config("orders", "500"), END], Value(500, TOPIC)),
        ([topic("orders"), config("orders", "500"), BEGIN, config("orders", "600"), ABORT], Value(500, TOPIC)),
        ([topic("orders"), config("orders", "500"), BEGIN, config("orders", "600")], Value(500, TOPIC)),
        ([topic("orders"), config("orders", "many")], None),
        ([topic("orders"), config("orders", "500"), b"\x01\x04\x01\x00"], None),  # of a version to come
        ([topic("orders"), NO_OP, config("orders", "500"), b"\x01\x4d\x00", b"", b"\x01"], Value(500, TOPIC)),
    ],
)
def test_what_counts(values: list[bytes], expected: Value | None, tmp_path: Path) -> None:
    write_log(tmp_path, values, segments=min(2, len(values)))
    assert said(tmp_path) == expected


def test_a_snapshot_and_what_the_log_says_after_it(tmp_path: Path) -> None:
    old = [topic("orders"), config("orders", "500"), topic("paid", 2), config("paid", "900")]
    directory = write_log(tmp_path, [config("orders", "1"), NO_OP, config("orders", "600")], begin=40)
    assert said(tmp_path) is None  # the log begins behind what was said
    write_snapshot(directory, 41, old)
    assert (said(tmp_path), said(tmp_path, "paid")) == (Value(600, TOPIC), Value(900, TOPIC))
    write_snapshot(directory, 43, [topic("orders"), config("orders", "700")])
    assert (said(tmp_path), said(tmp_path, "paid")) == (Value(700, TOPIC), None)
    write_snapshot(directory, 44, old)  # of another log: the records between are missing
    PartitionWriter(directory, 45).append([KafkaRecord(NO_OP)])
    assert said(tmp_path) is None


def test_a_snapshot_that_was_not_finished_says_nothing(tmp_path: Path) -> None:
    directory = write_log(tmp_path, [NO_OP], begin=41)
    path = write_snapshot(directory, 41, [topic("orders"), config("orders", "500")], footer=False)
    assert said(tmp_path) is None
    path.write_bytes(b"\0" * 100)
    assert said(tmp_path) is None
    path.write_bytes(b"")
    assert said(tmp_path) is None


def test_a_damaged_log_says_nothing(tmp_path: Path) -> None:
    directory = write_log(tmp_path, [topic("orders"), config("orders", "500"), *[NO_OP] * 5])
    log = directory / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    assert said(tmp_path) is None


def test_another_topic_of_that_name_and_what_is_put_aside_have_none(tmp_path: Path) -> None:
    write_log(tmp_path, [topic("orders"), config("orders", "500")])
    (tmp_path / "orders-0").mkdir()
    metadata = tmp_path / "orders-0" / "partition.metadata"
    for number, expected in ((1, Value(500, TOPIC)), (2, None)):
        written = base64.urlsafe_b64encode(an_id(number)).decode().rstrip("=")
        metadata.write_text(f"version: 0\ntopic_id: {written}")
        assert said(tmp_path) == expected
    found = topic_settings(str(tmp_path))
    assert found is not None
    for name in ("orders-0.0c5d1fbd61fa4d56b5ad4b6b2a9a5a0e-delete", "copy of orders"):
        assert found.interval_of(str(tmp_path / name)) is None


def test_whose_broker_is_not_known_takes_only_what_is_for_all(tmp_path: Path) -> None:
    write_log(tmp_path, [topic("orders"), config("", "700", of=4)])
    (tmp_path / "meta.properties").unlink()
    assert said(tmp_path) == Value(700, BROKER)
    write_log(tmp_path, [topic("orders"), config("", "700", of=4), config("4", "800", of=4)])
    (tmp_path / "meta.properties").write_bytes(b"\xff")
    assert said(tmp_path) is None


def test_any_bytes_are_no_error(tmp_path: Path, rng: random.Random) -> None:
    for number in range(60):
        values = [bytearray(value) for value in (topic("orders"), config("orders", "500"), BEGIN, removed(1))]
        for value in values:
            value[rng.randrange(len(value))] = rng.randrange(256)
        home = tmp_path / str(number)
        write_log(home, [bytes(value) for value in values])
        said(home)


def test_without_a_metadata_log_nothing_is_said(tmp_path: Path) -> None:
    assert topic_settings(str(tmp_path)) is None
    (tmp_path / "__cluster_metadata-0").mkdir()
    assert said(tmp_path) is None
