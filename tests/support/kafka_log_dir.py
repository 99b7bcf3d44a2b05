"""A Kafka log dir that its broker closed, and what the next start would make of it."""

from __future__ import annotations

import os
from pathlib import Path

from mqindex.engines import LocalEngine
from mqindex.kafka import verify
from mqindex.report import Report, Start
from tests.support.kafka_writer import FIRST_TIME, KafkaRecord, PartitionWriter

__all__ = ["META", "ONE", "PROPERTIES", "closed_log_dir", "look", "names", "unclean"]

ONE = LocalEngine(1)
PROPERTIES = (
    "#\n#Mon Jan 01 00:00:00 UTC 2024\nversion=1\ncluster.id=abc\nnode.id=1\ndirectory.id=zFDWe4lDHgAC9Rh7SXNPqA\n"
)
META = "version: 0\ntopic_id: eBhZQWkgQB6Yh7vKbPQ1Sg"


def closed_log_dir(home: Path) -> Path:
    """One partition of three segments, closed."""
    writer = PartitionWriter(home / "topic-0", 10)
    for segment in range(3):
        if segment:
            writer.roll()
        for _ in range(3):
            writer.append([KafkaRecord(timestamp=FIRST_TIME + writer.next_offset)])
    writer.close()
    (writer.directory / "partition.metadata").write_text(META)
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 10\n")
    (home / "meta.properties").write_text(PROPERTIES)
    (home / ".kafka_cleanshutdown").touch()
    (home / "recovery-point-offset-checkpoint").write_text("0\n1\ntopic 0 19\n")
    return home


def unclean(log_dir: Path, point: str | None = "0\n1\ntopic 0 14\n") -> None:
    """As a crash leaves it. `point`: the checkpoint of recovery points; None: there is none."""
    (log_dir / ".kafka_cleanshutdown").unlink()
    if point is None:
        (log_dir / "recovery-point-offset-checkpoint").unlink()
    else:
        (log_dir / "recovery-point-offset-checkpoint").write_text(point)


def look(log_dir: Path) -> tuple[Report, Start]:
    """A report, and its verdict on a start."""
    report = verify(log_dir, engine=ONE)
    assert report.start is not None
    return report, report.start


def names(paths: tuple[str, ...]) -> list[str]:
    """The last parts of paths."""
    return [os.path.basename(path) for path in paths]
