"""Partitions of torn, foreign and mutated files: the right answer, or one error of this package; no file is touched."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from mqindex.errors import BadMagicError, ClosedFileError, MQIndexError, TruncatedFileError
from mqindex.kafka import PartitionLog
from mqindex.kafka.directories.partition_files import list_segments
from tests.support.kafka_writer import CODECS, FIRST_TIME, KafkaRecord, PartitionWriter, batch

TXN = {"producer_id": 3, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
NUMBERS = (
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    b"\x80" + bytes(7),
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    bytes(4),
)
ENDINGS = ("log", "index", "timeindex", "txnindex", "log.swap", "index.swap", "log.cleaned", "log.deleted")


def some(count: int, first: int = 0) -> list[KafkaRecord]:
    return [KafkaRecord(b"value", b"k", FIRST_TIME + first + at, [("h", b"x")]) for at in range(count)]


def write_everything(directory: Path) -> PartitionWriter:
    """Three segments: all codecs, all magics, transactions."""
    writer = PartitionWriter(directory, 7, index_interval=50)
    for number, codec in enumerate(CODECS):
        writer.append(some(3, 3 * number), codec=codec)
    writer.roll()
    for codec in CODECS[:4]:
        for magic in (0, 1):
            writer.append(
                [KafkaRecord(each.value, None, each.timestamp) for each in some(2, 40)], codec=codec, magic=magic
            )
    writer.roll()
    writer.append(some(2, 60), **TXN)
    writer.marker(3, timestamp=FIRST_TIME + 62)
    writer.append(some(1, 63), **TXN)
    writer.close()
    return writer


def tree(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def offsets_read(log: PartitionLog) -> list[int]:
    found: list[int] = []
    while (got := log.read(max(found, default=log.log_start_offset - 1) + 1, max_bytes=90)).num_rows:
        found += got["offset"].tolist()
    return found


def calls(log: PartitionLog) -> list[Callable[[], object]]:
    asked = [-3, -1, *(FIRST_TIME + ms for ms in (0, 2, 41, 60, 99))]
    return [
        partial(log.offsets_for_timestamps, asked),
        *(partial(log.offset_for_timestamp, ms) for ms in asked),
        partial(log.collect_aborted_transactions, 0, 2**62),
        *(partial(log.translate_offset, offset) for offset in (7, 20, 40)),
        lambda: log.last_stable_offset,
        lambda: log.read(log.log_start_offset, isolation_level="read_committed"),
        lambda: log.read((log.log_start_offset + log.log_end_offset) // 2),
    ]


@pytest.mark.parametrize("preallocated", [False, True])
def test_a_last_log_of_every_length_ends_with_its_last_whole_batch(preallocated: bool, tmp_path: Path) -> None:
    writer = PartitionWriter(tmp_path, 5, index_interval=60)
    ends = [0]
    for number in range(4):
        writer.append(some(2, 10 * number))
        ends.append(writer.path().stat().st_size)
    writer.close()
    if preallocated:
        writer.preallocate(240)
    indexes = {path: path.read_bytes() for path in tmp_path.glob("*index")}
    whole = writer.path().read_bytes()
    for length in range(len(whole), -1, -1):
        os.truncate(writer.path(), length)
        os.utime(writer.path(), (1, 1))
        batches = sum(end <= length for end in ends) - 1
        with PartitionLog.open(tmp_path) as log:
            assert log.log_end_offset == 5 + 2 * batches
            assert offsets_read(log) == list(range(5, 5 + 2 * batches))
            found = log.offsets_for_timestamps([FIRST_TIME + 10 * number + 1 for number in range(4)])[1].tolist()
            assert found == [6 + 2 * number if number < batches else -1 for number in range(4)]
    assert {path: path.read_bytes() for path in tmp_path.glob("*index")} == indexes


@pytest.mark.parametrize("ending", ["index", "timeindex", "txnindex", "snapshot"])
def test_index_files_of_every_length(ending: str, tmp_path: Path) -> None:
    writer = write_everything(tmp_path)
    snapshot = tmp_path / f"{writer.next_offset:020d}.snapshot"
    snapshot.write_bytes(struct.pack(">hIi", 1, 0, 1) + bytes(46))
    for path in sorted(tmp_path.glob(f"*.{ending}")):
        content = path.read_bytes()
        for length in range(len(content)):
            path.write_bytes(content[:length])
            with PartitionLog.open(tmp_path) as log:
                assert offsets_read(log)[-1] == writer.next_offset - 1
                for call in calls(log):
                    try:
                        call()
                    except MQIndexError as error:
                        assert error.path is not None
        path.write_bytes(content)


def mutate(directory: Path, rng: random.Random) -> None:
    path = rng.choice(sorted(directory.iterdir()))
    data = bytearray(path.read_bytes())
    kind = rng.randrange(6)
    if kind == 0 and data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del data[rng.randrange(len(data) + 1) :]
    elif kind == 2:
        data += rng.choice([bytes(300), rng.randbytes(60)])
    elif kind == 3 and data:
        at, number = rng.randrange(len(data)), rng.choice(NUMBERS)
        data[at : at + len(number)] = number
    elif kind == 4:
        path.unlink()
        return
    elif kind == 5:
        path.rename(path.with_name(f"{rng.choice([0, 7, 8, 22, 40, 2**62]):020d}.{rng.choice(ENDINGS)}"))
        return
    path.write_bytes(data)


def test_mutated_partitions_end_in_an_answer_or_an_error_and_stay_as_they_are(
    tmp_path: Path, rng: random.Random
) -> None:
    write_everything(tmp_path / "t-0")
    errors = 0
    for number in range(60):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(tmp_path / "t-0", copy)
        for _ in range(rng.choice([1, 1, 2, 5])):
            mutate(copy, rng)
        before = tree(copy)
        with PartitionLog.open(copy) as log:
            for call in calls(log):
                try:
                    call()
                except MQIndexError:
                    errors += 1
        assert tree(copy) == before
        shutil.rmtree(copy)
    assert errors < 60 * 8


def test_a_base_offset_that_disagrees_with_the_name(tmp_path: Path) -> None:
    (tmp_path / f"{100:020d}.log").write_bytes(batch(some(2), 0) + batch(some(2, 10), 150))
    with PartitionLog.open(tmp_path) as log:
        assert (log.log_start_offset, log.log_end_offset) == (100, 152)
        assert log.offset_for_timestamp(FIRST_TIME) == (FIRST_TIME + 10, 150)
        assert log.offsets_for_timestamps([FIRST_TIME])[1].tolist() == [150]
        assert log.read(100)["offset"].tolist() == [150, 151]


def test_offsets_that_no_index_of_the_segment_can_hold(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(
        batch(some(1), 1) + batch(some(1, 10), 2**31 + 5) + batch(some(1, 20), 2**62)
    )
    with PartitionLog.open(tmp_path) as log:
        assert log.log_end_offset == 2**62 + 1
        found = log.offsets_for_timestamps([FIRST_TIME, FIRST_TIME + 5, FIRST_TIME + 20, FIRST_TIME + 21])[1]
        assert found.tolist() == [1, 2**31 + 5, 2**62, -1]
        assert log.read(2)["offset"].tolist() == [2**31 + 5, 2**62]


def test_offsets_that_go_back_are_read_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").write_bytes(
        b"".join(batch(some(1, at), offset) for at, offset in ((0, 9), (1, 3), (2, 4)))
    )
    with PartitionLog.open(tmp_path) as log:
        assert log.offset_for_timestamp(FIRST_TIME + 1) == (FIRST_TIME + 1, 3)
        assert log.offsets_for_timestamps([FIRST_TIME + 1, FIRST_TIME])[1].tolist() == [3, 9]


def test_a_directory_of_foreign_things(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.log").mkdir()
    (tmp_path / "mqindex-backup-20260101T000000Z").mkdir()
    for name in (
        "notes.txt",
        ".log",
        "x.swap",
        "x.cleaned",
        f"{'9' * 30}.log",
        "\u0660" * 20 + ".log",
        "a\nb.deleted",
    ):
        (tmp_path / name).write_bytes(b"?")
    files = list_segments(tmp_path)
    assert (files.segments, files.orphans, files.snapshots) == ((), (), {})
    assert {os.path.basename(path) for path in files.leftovers} == {"x.cleaned", "a\nb.deleted"}
    with pytest.raises(BadMagicError, match="not a partition's directory"):
        PartitionLog.open(tmp_path)


def test_a_log_that_is_cut_while_it_is_open_is_an_error(tmp_path: Path) -> None:
    writer = write_everything(tmp_path)
    with PartitionLog.open(tmp_path) as log:
        assert log.offset_for_timestamp(FIRST_TIME + 60) is not None
        os.truncate(writer.path(), 10)
        for call in (log.offset_for_timestamp, lambda ms: log.offsets_for_timestamps([ms])):
            with pytest.raises(TruncatedFileError):
                call(FIRST_TIME + 60)


@pytest.mark.leaves_open
def test_closing_while_others_ask(tmp_path: Path) -> None:
    write_everything(tmp_path)
    log = PartitionLog.open(tmp_path)
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            while True:
                for call in calls(log):
                    call()
        except ClosedFileError:
            pass
        except BaseException as error:
            wrong.append(error)

    threads = [Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    threads[0].join(0.2)
    log.close()
    for thread in threads:
        thread.join(300)
    assert wrong == [] and not any(thread.is_alive() for thread in threads)
