"""What the files and directories of a Kafka log dir itself make of a broker's start: names, properties, checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mqindex.kafka import PartitionLog, verify
from mqindex.kafka import report as kafka_report
from tests.support.kafka_log_dir import ONE, closed_log_dir, look, names, unclean


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return closed_log_dir(tmp_path / "logs")


@pytest.mark.parametrize("name", [f"topic-0.{32 * 'a'}-future", f"topic-0.{32 * 'a'}-stray", "topic-00"])
def test_a_directory_of_another_name_has_its_partitions_checkpoints(name: str, log_dir: Path) -> None:
    """A broker looks a topic and a number up, not a directory's name."""
    unclean(log_dir)
    moved = (log_dir / "topic-0").rename(log_dir / name)
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 12\n")
    for path in (log_dir, moved):
        assert look(path)[1].recovers == 2
        with PartitionLog.open(moved) as log:
            assert log.log_start_offset == 12
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 20\n")
    report, start = look(log_dir)
    assert names(start.deletes) == [f"{base:020d}.log" for base in (10, 13, 16)]
    assert [finding.kind for finding in report.findings] == ["log-start-beyond-end"]
    (partition,) = kafka_report(log_dir, engine=ONE).partitions
    assert (partition.log_start_offset, partition.recovery_point) == (20, 14)


def test_the_metadata_log_is_recovered_at_every_start(log_dir: Path) -> None:
    """From its first segment on: KRaft has neither the sign of a clean stop for it nor a recovery point."""
    metadata = shutil.copytree(log_dir / "topic-0", log_dir / "__cluster_metadata-0")
    report, start = look(log_dir)
    assert (report.findings, start.starts, start.recovers, start.cuts) == ([], True, 3, ())
    torn = metadata / f"{13:020d}.log"
    content = bytearray(torn.read_bytes())
    content[64] ^= 1
    torn.write_bytes(content)
    for path in (log_dir, metadata, torn):
        report = verify(path, engine=ONE)
        (finding,) = [one for one in report.findings if one.kind == "log-bad-crc"]
        assert str(finding.hint).startswith("a broker's recovery cuts"), path
        if report.start is not None:
            assert (names(report.start.cuts), names(report.start.deletes)) == ([torn.name], [f"{16:020d}.log"])
