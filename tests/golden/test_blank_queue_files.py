"""A queue's last file that holds nothing but zeros, as a power cut leaves it: what a start makes of it, and repair.

The real brokers of these versions did this with the very stores.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.report import Report
from mqindex.rocketmq import ConsumeQueue, repair, verify
from tests.support.golden import case

QUEUE = "consumequeue/BBTopic/0"
LAST = f"{QUEUE}/00000000000000001000"  # with one unit, of the log's last message
LAST_MESSAGE, LOG_FILE = 126763, 65536  # phy offsets
KIND = "queue-file-blank"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = case("basic-493").unpack(tmp_path)
    blank(root / LAST)
    return root


def blank(path: Path) -> None:
    path.write_bytes(bytes(1000))


def lose_last_message(store: Path) -> None:
    path = store / "commitlog" / f"{LOG_FILE:020d}"
    data = path.read_bytes()
    path.write_bytes(data[: LAST_MESSAGE - LOG_FILE].ljust(len(data), b"\0"))


def lose_last_unit(store: Path) -> None:
    """That of the message before: the queues no longer reach to the log's end."""
    path = store / "consumequeue/AaTopic/1/00000000000000000000"
    path.write_bytes(path.read_bytes()[:760].ljust(1000, b"\0"))


def starts(report: Report) -> bool | None:
    assert report.start is not None
    return report.start.starts


@pytest.mark.parametrize(
    ("version", "expected"),
    [("4.9.7", True), ("5.0.0", False), ("5.3.3", False), ("5.4.0", False), ("5.5.0", True), (None, None)],
)
def test_brokers_from_5_0_to_5_4_do_not_start_where_the_log_goes_on(
    store: Path, version: str | None, expected: bool | None
) -> None:
    """It was said that they do: `load` fails at 20 bytes before the file."""
    report = verify(store, broker_version=version)
    assert starts(report) is expected
    assert [one.kind for one in report.findings] == ["missing-units"]
    lose_last_message(store)
    lose_last_unit(store)
    assert starts(verify(store, broker_version=version)) is expected


def test_where_the_queues_reach_to_the_logs_end_they_start(store: Path) -> None:
    lose_last_message(store)
    report = verify(store, broker_version="5.3.3")
    assert starts(report) is True
    assert [one.path for one in report.findings if one.kind == KIND] == [str(store / LAST)]


def test_after_an_unclean_end_it_is_not_known(store: Path) -> None:
    """It may write the units again before it looks: 5.3.3 started on the one store, and not on the other."""
    (store / "abort").touch()
    assert starts(verify(store, broker_version="5.3.3")) is None


def test_repair_removes_it(store: Path) -> None:
    """Brokers 4.9.7 to 5.5.1 gave the next message of this queue the offset 51, with the file removed 50."""
    lose_last_message(store)
    repair(store)
    assert not (store / LAST).exists()
    with ConsumeQueue.open(store / QUEUE) as queue:
        assert queue.max_offset_in_queue == 50
    assert not [one for one in verify(store).findings if one.severity == "error"]


def test_the_only_file_of_a_queue_stays_as_its_name_has_the_next_offset(store: Path) -> None:
    """All messages of the queue have expired."""
    only = store / "consumequeue/Expired/0/00000000000000001000"
    only.parent.mkdir(parents=True)
    blank(only)
    repair(store)
    assert only.exists()
    assert [(one.severity, one.kind) for one in verify(store).findings if one.path == str(only)] == [("warning", KIND)]


@pytest.mark.parametrize(
    ("empty", "severity"), [("00000000000000000000", "error"), ("00000000000000002000", "warning")]
)
def test_an_empty_file_is_ignored_only_as_the_last_one(store: Path, empty: str, severity: str) -> None:
    """It was said on one screen that no 5.5.0 starts with it, and that the broker ignores it."""
    (store / QUEUE / empty).write_bytes(b"")
    report = verify(store, broker_version="5.5.0")
    assert starts(report) is (severity == "warning")
    assert [one.severity for one in report.findings if one.kind == "stray-queue-file"] == [severity]
