"""Whatever a partition's files hold, verify, rebuild and repair end in a report, and no log changes."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import rebuild, repair, undo_repair, verify
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter, batch, marker

ONE = LocalEngine(1)
OPTIONS: dict[str, Any] = {"index_interval_bytes": 60, "engine": ONE}
ENDINGS = ("index", "timeindex", "txnindex")
Bound = Callable[[float], None]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments, with transactions."""
    writer = PartitionWriter(tmp_path / "logs" / "topic-0", 10, index_interval=60)
    for segment in range(2):
        if segment:
            writer.roll()
        for _ in range(4):
            time = FIRST_TIME + writer.next_offset
            writer.append([KafkaRecord(timestamp=time)], producer_id=1, producer_epoch=0, base_sequence=0,
                          transactional=True)  # fmt: skip
        writer.marker(1, timestamp=time)
    writer.close()
    return tmp_path / "logs" / "topic-0"


def everything(directory: Path, out: Path) -> None:
    """All three end in reports; after the repair the indexes are right, as far as the log goes."""
    logs = {path: path.read_bytes() for path in directory.glob("*.log")}
    verify(directory, deep=True, **OPTIONS)
    rebuild(directory, out, overwrite=True, **OPTIONS)
    repair(directory, **OPTIONS)
    left = [one for one in verify(directory, **OPTIONS).findings if one.severity == "error"]
    left = [one for one in left if one.kind != "offset-checkpoint"]  # of the log dir
    of_logs = [one for one in left if one.kind.startswith(("log-", "segment-"))]
    assert [one for one in left if one not in of_logs and not str(one.hint).startswith("left as it is")] == []
    assert len(of_logs) == len(left) or any(one.kind.startswith("log-") for one in of_logs)
    assert {path: path.read_bytes() for path in directory.glob("*.log")} == logs


def test_every_length_of_a_log(partition: Path, tmp_path: Path, time_bound: Bound) -> None:
    time_bound(120)
    log = max(partition.glob("*.log"))
    whole = log.read_bytes()
    for length in range(0, len(whole), 3):
        log.write_bytes(whole[:length])
        report = verify(partition, **OPTIONS)
        assert report.batches <= 10
    log.write_bytes(whole[: len(whole) // 2])
    everything(partition, tmp_path / "out")


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_length_of_an_index(ending: str, partition: Path, time_bound: Bound) -> None:
    time_bound(120)
    for path in sorted(partition.glob(f"*.{ending}")):
        whole = path.read_bytes()
        assert len(whole) >= 24
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            report = verify(partition, **OPTIONS)
            assert {finding.path for finding in report.findings if finding.path != str(partition)} <= {str(path)}
            if length % {"index": 8, "timeindex": 12, "txnindex": 34}[ending] or ending != "index":
                assert not report.ok, length
        path.write_bytes(whole)


@pytest.mark.parametrize("seed", range(40))
def test_bytes_that_are_none(seed: int, partition: Path, tmp_path: Path, time_bound: Bound) -> None:
    time_bound(60)
    source = random.Random(seed)
    for path in sorted(partition.iterdir()):
        if source.random() < 0.5:
            path.write_bytes(garbage(source, path.read_bytes()))
    (partition / f"{10:020d}.snapshot").write_bytes(garbage(source, bytes(100)))
    (tmp_path / "log-start-offset-checkpoint").write_bytes(garbage(source, b"0\n1\ntopic 0 5\n"))
    (tmp_path / "log-start-offset-checkpoint").rename(partition.parent / "log-start-offset-checkpoint")
    everything(partition, tmp_path / "out")


def garbage(source: random.Random, data: bytes) -> bytes:
    kind = source.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return source.randbytes(source.randrange(200))
    if kind == 2:
        return bytes(source.randrange(300))
    if kind == 3:
        return b"\xff" * source.randrange(300)
    changed = bytearray(data)
    for _ in range(source.randrange(1, 6) if changed else 0):
        changed[source.randrange(len(changed))] = source.choice([0, 1, 0x7F, 0x80, 0xFF])
    return bytes(changed[: source.randrange(len(changed) + 1)] if kind == 4 else changed)


@pytest.mark.parametrize(
    "strange",
    [
        marker(10, 1)[:61] + bytes(17),  # a record of length 0
        batch([KafkaRecord(b"", b"")], 10, control=True, transactional=True, producer_id=1),  # a key that is none
        batch([KafkaRecord(b"", b"\x80\0\0\0")], 10, control=True, transactional=True, producer_id=1),
        batch([KafkaRecord(b"", b"\0\0\0\5")], 10, control=True, transactional=True, producer_id=1),
        batch([KafkaRecord(b"", None)], 10, control=True, transactional=True, producer_id=1, codec="gzip"),
        batch([], 10, control=True, transactional=True, producer_id=1),
        batch([KafkaRecord(timestamp=2**63 - 1)], 10, transactional=True, producer_id=2**63 - 1),
        batch([KafkaRecord()], 10, last_offset=9, producer_id=1, transactional=True),
        batch([KafkaRecord()], 10, max_timestamp=-(2**63)),
        batch([KafkaRecord()], 10, magic=127),
    ],
)
def test_batches_that_no_broker_writes(strange: bytes, tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    directory.mkdir()
    (directory / f"{10:020d}.log").write_bytes(strange + marker(12, 1, abort=True))
    everything(directory, tmp_path / "out")


def test_lengths_that_no_memory_holds(partition: Path, tmp_path: Path, time_bound: Bound) -> None:
    """Sparse files: they are told, not read."""
    time_bound(60)
    first, second = sorted(partition.glob("*.log"))
    for path, length in [
        (first.with_suffix(".index"), 1 << 40),
        (first.with_suffix(".timeindex"), 3 << 30),
        (first.with_suffix(".txnindex"), 1 << 40),
        (second.with_suffix(".index"), 1 << 26),
    ]:
        os.truncate(path, length)
    report = verify(partition, **OPTIONS)
    assert (
        len({finding.path for finding in report.findings if finding.severity == "error"}) == 3
    )  # the last may be open
    assert repair(partition, **OPTIONS).ok
    os.truncate(second, 1 << 31)  # no position reaches its end
    report = verify(partition, **OPTIONS)
    assert {(finding.kind, finding.path) for finding in report.findings if finding.severity == "error"} == {
        ("log-refused", str(second))
    }
    shutil.rmtree(partition)


@pytest.mark.parametrize("offset", [2**31 + 9, 2**31 + 10, 2**62, -1, 9])
def test_offsets_that_fit_no_entry(offset: int, tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    directory.mkdir()
    log = b"".join(batch([KafkaRecord(b"v" * 80)], at) for at in (10, 11))
    (directory / f"{10:020d}.log").write_bytes(log + struct.pack(">q", offset) + batch([KafkaRecord()], 12)[8:])
    report = rebuild(directory, tmp_path / "out", **OPTIONS)
    assert report.ok == (offset == 2**31 + 9)
    assert {finding.kind for finding in report.findings} <= {"log-refused"}
    everything(directory, tmp_path / "out")


def test_names_that_are_not_of_partitions(partition: Path, tmp_path: Path) -> None:
    for name in (
        "-1",
        "topic-",
        "topic-x",
        "topic--1",
        "topic-99999999999",
        "notes.txt-0",
        "\N{ARABIC-INDIC DIGIT ONE}-\u0661",
    ):
        (partition.parent / name).mkdir()
    (partition.parent / "topic-7").write_bytes(b"a file")
    for name in ("x.log", f"{2**63:020d}.log", "1.log", f"{1:019d}.index", "mqindex-backup-19700101T000000Z"):
        (partition / name).mkdir() if name.startswith("mq") else (partition / name).write_bytes(b"?")
    names: Sequence[str] = sorted(os.listdir(partition))
    report = repair(partition.parent, **OPTIONS)
    assert {one.kind for one in report.findings if one.severity == "error"} == {
        "stray-directory", "stray-segment-file", "segment-name",
    }  # fmt: skip
    assert (report.actions, sorted(os.listdir(partition))) == ([], names)


@pytest.mark.parametrize("what", ["directory", "link that leads nowhere"])
def test_a_log_that_is_no_file_is_an_error(partition: Path, what: str, tmp_path: Path) -> None:
    """Its records were passed over, and the partition was called clean."""
    log = min(partition.glob("*.log"))
    log.unlink()
    if what == "directory":
        log.mkdir()
    else:
        log.symlink_to(tmp_path / "nowhere")
    for report in (verify(partition, **OPTIONS), repair(partition, **OPTIONS), rebuild(partition, tmp_path / "out")):
        assert [(one.path, one.got) for one in report.findings if one.kind == "log-not-a-file"] == [
            (str(log), f"a {what}")
        ]
        assert not report.ok
    assert log.is_dir() if what == "directory" else log.is_symlink()


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_index_that_is_a_directory_is_replaced_and_comes_back(partition: Path, ending: str) -> None:
    path = max(partition.glob("*.index")).with_suffix(f".{ending}")
    right = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "mine").write_bytes(b"mine")
    report = repair(partition, **OPTIONS)
    assert (report.ok, verify(partition, **OPTIONS).ok) == (True, True)
    if right is not None:
        assert path.read_bytes() == right
        undo_repair(partition, str(report.backup))
    assert (path / "mine").read_bytes() == b"mine"
