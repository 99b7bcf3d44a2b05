"""What a broker that was stopped cleanly takes for open, by its newest snapshot, against what the log shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.kafka import repair, verify
from mqindex.report import Finding
from tests.support.kafka_log_dir import PROPERTIES
from tests.support.kafka_writer import KafkaRecord, PartitionWriter, snapshot

ONE = LocalEngine(1)


def append(writer: PartitionWriter, producer: int) -> None:
    writer.append([KafkaRecord()] * 2, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Producer 7 committed 10..11, and has left 13..14 open; another segment begins at 15 and ends before 17."""
    writer = PartitionWriter(tmp_path / "logs" / "t-0", 10)
    append(writer, 7)
    writer.marker(7, abort=False)
    append(writer, 7)
    writer.roll()
    writer.append([KafkaRecord()] * 2)
    writer.close()
    snapshot(writer.directory / f"{15:020d}.snapshot", (7, 13))
    snapshot(writer.directory / f"{17:020d}.snapshot", (7, 13))
    (writer.directory / "leader-epoch-checkpoint").write_text("0\n1\n0 10\n")
    (tmp_path / "logs" / ".kafka_cleanshutdown").touch()
    (tmp_path / "logs" / "meta.properties").write_text(PROPERTIES)
    return writer.directory


def findings(partition: Path) -> list[Finding]:
    found = list(verify(partition.parent, engine=ONE).findings)
    assert repair(partition.parent, engine=ONE).findings == found
    return found


def at(partition: Path, offset: int) -> Path:
    return partition / f"{offset:020d}.snapshot"


def remove_all(partition: Path) -> None:
    for path in partition.glob("*.snapshot"):
        path.unlink()


def test_a_broker_that_loads_what_the_log_shows_is_no_finding(partition: Path) -> None:
    assert findings(partition) == []


def test_lost_snapshots_of_open_transactions_are_told(partition: Path) -> None:
    remove_all(partition)
    (one,) = findings(partition)
    assert (one.severity, one.kind, one.path) == ("error", "open-transactions", str(at(partition, 17)))
    assert (one.expected, one.got) == ("producer 7 from offset 13 on", "no file")
    assert "remove .kafka_cleanshutdown" in str(one.hint)
    (partition.parent / ".kafka_cleanshutdown").unlink()  # then a broker reads the log for it
    assert findings(partition) == []


@pytest.mark.parametrize(
    ("opened", "expected", "got"),
    [
        ([], "producer 7 from offset 13 on", "none of producer 7"),
        ([(7, -1)], "producer 7 from offset 13 on", "none of producer 7"),
        ([(7, 10)], "producer 7 from offset 13 on", "producer 7 from offset 10 on"),
        ([(7, 14)], "producer 7 from offset 13 on", "producer 7 from offset 14 on"),
        ([(7, 13), (8, 11)], "none of producer 8", "producer 8 from offset 11 on"),
        ([(7, 3)], "producer 7 from offset 13 on", "producer 7 from offset 3 on"),  # the log shows how that ended
    ],
)
def test_a_snapshot_of_another_time_is_told(
    opened: list[tuple[int, int]], expected: str, got: str, partition: Path
) -> None:
    snapshot(at(partition, 17), *opened)
    (one,) = findings(partition)
    assert (one.kind, one.path, one.expected, one.got) == (
        "open-transactions", str(at(partition, 17)), expected, got,
    )  # fmt: skip
    (partition.parent / ".kafka_cleanshutdown").unlink()
    assert findings(partition) == []


def lose(partition: Path) -> None:
    at(partition, 17).unlink()  # the one of the roll leads a broker


def move_the_start(partition: Path) -> None:
    """A broker that reads the log from its start on does not know of what lies below."""
    remove_all(partition)
    (partition.parent / "log-start-offset-checkpoint").write_text("0\n1\nt 0 15\n")
    (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 15\n")


def delete_the_first_segment(partition: Path) -> None:
    for path in partition.glob(f"{10:020d}.*"):
        path.unlink()


def spoil_older(partition: Path) -> None:
    snapshot(at(partition, 15))


@pytest.mark.parametrize("change", [lose, move_the_start, delete_the_first_segment, spoil_older])
def test_what_leads_no_broker_astray_is_no_finding(change: Callable[[Path], None], partition: Path) -> None:
    change(partition)
    assert findings(partition) == []


def test_a_snapshot_that_a_broker_deletes_counts_as_none(partition: Path) -> None:
    at(partition, 17).rename(at(partition, 19))
    snapshot(at(partition, 19))
    assert {one.kind for one in findings(partition)} == {"log-end"}


def test_a_snapshot_that_cannot_be_read_counts_as_none(partition: Path) -> None:
    remove_all(partition)
    at(partition, 17).write_bytes(b"")  # it is there: a broker reads the log
    assert {one.kind for one in findings(partition)} == {"producer-snapshot"}
