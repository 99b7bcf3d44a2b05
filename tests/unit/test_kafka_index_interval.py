"""The topic's index.interval.bytes, estimated from intact offset indexes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError
from mqindex.kafka import rebuild, repair, verify
from mqindex.kafka.directories.partition_files import list_segments
from mqindex.kafka.directories.survey import interval_bounds
from mqindex.report import Report, Value
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

ONE = LocalEngine(1)


def write(directory: Path, interval: int, rng: random.Random, most: int = 400, segments: int = 4) -> Path:
    writer = PartitionWriter(directory, index_interval=interval)
    for number in range(segments):
        if number:
            writer.roll()
        for _ in range(150):
            writer.append([KafkaRecord(bytes(rng.randrange(1, most)))])
    writer.close()
    return directory


def used(report: Report) -> Value:
    return report.settings["index_interval_bytes"]


@pytest.mark.parametrize("interval", [0, 1, 100, 512, 1000, 1024, 3000, 4096, 8192])
def test_the_true_interval_is_within_the_bounds(interval: int, tmp_path: Path, rng: random.Random) -> None:
    directory = write(tmp_path / "logs" / "t-0", interval, rng)
    bounds = interval_bounds(list_segments(str(directory)).segments[:-1])
    assert bounds is not None
    assert bounds[0] <= interval <= bounds[1]
    report = verify(directory, engine=ONE)
    assert [one for one in report.findings if one.kind == "index-unlike-rebuilt"] == []
    if interval == 4096:
        assert used(report) == Value(4096, "default")
    else:
        assert used(report).source == "estimated from 3 .index files"


def test_the_option_wins(tmp_path: Path, rng: random.Random) -> None:
    directory = write(tmp_path / "logs" / "t-0", 1000, rng, most=30)
    assert used(verify(directory, engine=ONE)) == Value(1000, "estimated from 3 .index files")
    assert used(verify(directory, engine=ONE, index_interval_bytes=4096)) == Value(4096, "given")


def test_indexes_that_contradict_each_other_show_nothing(tmp_path: Path, rng: random.Random) -> None:
    directory = write(tmp_path / "logs" / "t-0", 1000, rng)
    other = write(tmp_path / "other" / "t-0", 3000, rng, segments=2)
    base = max(int(path.stem) for path in directory.glob("*.log")) - 150
    for ending in ("log", "index"):
        (directory / f"{base:020d}.{ending}").write_bytes((other / f"{0:020d}.{ending}").read_bytes())
    assert interval_bounds(list_segments(str(directory)).segments[:-1]) is None


@pytest.mark.parametrize("content", [b"", b"\0" * 80, b"\xff" * 80, b"\1" * 7, bytes(range(200))])
def test_a_damaged_index_shows_nothing(content: bytes, tmp_path: Path, rng: random.Random) -> None:
    directory = write(tmp_path / "logs" / "t-0", 1000, rng, most=30)
    (directory / f"{0:020d}.index").write_bytes(content)
    assert used(verify(directory, engine=ONE)) == Value(1000, "estimated from 2 .index files")


def test_a_lost_index_is_written_as_it_was_or_not_at_all(tmp_path: Path) -> None:
    """It was written with a quarter of its entries."""
    written = 0
    for number in range(12):
        directory = write(tmp_path / str(number) / "t-0", 1000, random.Random(number), most=30)
        index = directory / f"{150:020d}.index"
        before = index.read_bytes()
        index.unlink()
        try:
            repair(directory, engine=ONE)
        except FileStateError as error:
            assert "index.interval.bytes" in str(error) and not index.exists()
            repair(directory, engine=ONE, index_interval_bytes=1000)
        else:
            written += 1
        assert index.read_bytes() == before
    assert written


def test_a_rebuild_has_the_same_entries(tmp_path: Path, rng: random.Random) -> None:
    directory = write(tmp_path / "logs" / "t-0", 1000, rng, most=30)
    rebuild(directory, tmp_path / "out", engine=ONE)
    for path in directory.glob("*.index"):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


def test_topics_of_a_log_dir_have_their_own(tmp_path: Path, rng: random.Random) -> None:
    for number, interval in enumerate((500, 1000)):
        write(tmp_path / "logs" / f"t{number}-0", interval, rng, most=30)
    report = verify(tmp_path / "logs", engine=ONE)
    assert used(report).value == "several"
    assert [one for one in report.findings if one.kind == "index-unlike-rebuilt"] == []
