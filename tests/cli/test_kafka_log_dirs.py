"""Several log dirs of one broker, verified together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import BadMagicError
from mqindex.kafka import verify
from tests.cli.conftest import Shell
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

ONE = LocalEngine(1)


def write(directory: Path) -> None:
    writer = PartitionWriter(directory)
    writer.append([KafkaRecord()])
    writer.close()
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    homes = [tmp_path / "a", tmp_path / "b"]
    for number, home in enumerate(homes):
        write(home / f"topic-{number}")
        (home / ".kafka_cleanshutdown").touch()
        (home / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            (home / name).write_text("0\n0\n")
    return homes


def test_log_dirs_that_are_right_together(two: list[Path], shell: Shell) -> None:
    report = verify(two, engine=ONE)
    assert report.findings == []
    assert (report.path, report.segments, report.batches) == (str(two[0].parent), 2, 2)
    assert report.start is not None and report.start.starts
    assert report.bytes == sum(verify(home, engine=ONE).bytes for home in two)
    done = shell("verify", *two)
    assert (done.status, done.lines[0]) == (0, f"{two[0]} {two[1]}: clean")


def test_a_partition_in_two_of_them_is_found(two: list[Path], shell: Shell) -> None:
    """Each by itself is clean; "Duplicate log directories" (Kafka 2.8.2 to 4.4.0)."""
    write(two[1] / "topic-0")
    assert all(verify(home, engine=ONE).ok for home in two)
    report = verify([*two, two[0]], engine=ONE)
    assert [(one.kind, one.severity) for one in report.findings] == [("duplicate-directory", "error")]
    assert report.start is not None and report.start.starts is False
    assert [one.path for one in report.start.obstacles] == [str(two[1] / "topic-0")]
    done = shell("verify", *two)
    assert done.status == 1
    assert str(two[0] / "topic-0") in done.out


def test_what_is_wrong_in_each_is_in_the_one_report(two: list[Path], shell: Shell) -> None:
    (two[0] / "nonsense").mkdir()
    next((two[1] / "topic-1").glob("*.timeindex")).unlink()
    report = verify(two, engine=ONE)
    assert {one.kind for one in report.findings} == {"stray-directory", "time-index-missing"}
    assert report.actions == verify(two[1], engine=ONE).actions
    assert f"`mqindex repair {two[0]}`, `mqindex repair {two[1]}` would:" in shell("verify", *two).out


def test_several_paths_are_log_dirs_of_one_kafka_broker(two: list[Path], shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(BadMagicError, match="not a log dir"):
        verify([two[0], two[1] / "topic-1"], engine=ONE)
    with pytest.raises(ValueError, match="got none"):
        verify([], engine=ONE)
    shell("sample", tmp_path / "sample")
    for other in (tmp_path / "sample" / "store", two[1] / "topic-1"):
        done = shell("verify", two[0], other)
        assert (done.status, done.out) == (2, "")
        assert "expected log dirs of one Kafka broker where several are given" in done.err
