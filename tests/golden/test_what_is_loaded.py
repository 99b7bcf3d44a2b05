"""What is in a queue's directory and not the queue's: the finding and the start verdict say the same of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqindex.rocketmq import verify
from tests.support.golden import case
from tests.support.locks import held

QUEUE = "consumequeue/BBTopic/0"
LENGTH = 1000
STRANGERS = {  # name: how many bytes, None: a directory
    "a directory": ("old", None),
    "a directory before all": ("!old", None),
    "a short file": ("notes", 3),
    "an empty file": ("notes", 0),
    "an empty file before all": ("!notes", 0),
    "an empty next file": (f"{2000:020d}", 0),
    "an empty first file": (f"{0:020d}", 0),
    "a file of no name": ("notes", LENGTH),
    "a number of another length": ("7", LENGTH),
    "a short number": ("7", 20),
    "no place of a unit": (f"{2007:020d}", LENGTH),
}


@pytest.mark.parametrize("version", [None, "4.5.0", "4.9.3", "5.0.0", "5.1.0", "5.1.3", "5.5.0"])
@pytest.mark.parametrize("stranger", STRANGERS)
def test_the_finding_and_the_start_verdict_say_the_same(tmp_path: Path, stranger: str, version: str | None) -> None:
    """`MappedFileQueue.load`: a number of another length was said to stop a start that comes up."""
    store = case("basic-493").unpack(tmp_path)
    name, size = STRANGERS[stranger]
    path = store / QUEUE / name
    _ = path.mkdir() if size is None else path.write_bytes(bytes(size))
    report = verify(store, broker_version=version)
    assert report.start is not None
    (found,) = (one for one in report.findings if one.path == str(path) and one.kind == "stray-queue-file")
    obstacle = next((one for one in report.start.obstacles if one.path == str(path)), None)
    assert ("refuses to start" in str(found.hint)) is (obstacle is not None)
    if obstacle is not None:
        assert found.severity == "error"
        assert (obstacle.brokers in str(found.hint)) is (version is None and obstacle.brokers != "every")
    assert ("ignores it" in str(found.hint)) is (found.severity == "warning")


@pytest.mark.parametrize(
    ("stranger", "version", "hint"),
    [
        ("a number of another length", "5.5.0", "a broker loads it as a file of the queue"),
        ("a directory", "5.1.0", "the broker ignores it"),
        ("a directory", None, "a broker before 5.1 refuses to start"),
        ("an empty next file", "5.1.3", "the broker ignores it"),
        ("an empty first file", "5.1.3", "the broker refuses to start"),
    ],
)
def test_what_a_broker_does_with_it(tmp_path: Path, stranger: str, version: str | None, hint: str) -> None:
    store = case("basic-493").unpack(tmp_path)
    name, size = STRANGERS[stranger]
    _ = (store / QUEUE / name).mkdir() if size is None else (store / QUEUE / name).write_bytes(bytes(size))
    report = verify(store, broker_version=version)
    assert [hint in str(one.hint) for one in report.findings if one.kind == "stray-queue-file"] == [True]


@pytest.mark.parametrize(
    ("name", "loaded"), [("07", False), ("+7", False), ("7" * 10, False), ("7", True), ("-1", True)]
)
def test_the_directories_that_a_broker_loads_as_queues(tmp_path: Path, name: str, loaded: bool) -> None:
    """RocketMQ 4.9.3 `DefaultMessageStore.loadConsumeQueue` opens `7` for `07`; more than an int is passed over."""
    store = case("basic-493").unpack(tmp_path)
    (store / "consumequeue/BBTopic" / name).mkdir()
    (store / "consumequeue/BBTopic" / name / "notes").write_bytes(bytes(3))
    report = verify(store, broker_version="4.9.3")
    assert report.start is not None
    assert report.start.starts is not loaded


@pytest.mark.parametrize("version", [None, "4.9.3", "5.1.3"])
def test_a_next_file_of_a_queue_that_a_live_broker_makes_is_nothing(tmp_path: Path, version: str | None) -> None:
    """As of the log, where it was nothing already."""
    store = case("basic-493").unpack(tmp_path)
    path = store / QUEUE / f"{2000:020d}"
    path.touch()
    with held(store / "lock"):
        report = verify(store, broker_version=version)
    assert [one.kind for one in report.findings if one.path == str(path)] == []
    assert report.start is not None
    assert str(path) not in (*report.start.deletes, *(one.path for one in report.start.obstacles))


@pytest.mark.parametrize("below", ["commitlog", QUEUE])
def test_a_live_broker_shows_that_it_starts_with_what_some_refuse(tmp_path: Path, below: str) -> None:
    """In the log it was a warning, in a queue an error."""
    store = case("basic-493").unpack(tmp_path)
    path = store / below / "lost+found"
    path.mkdir()
    with held(store / "lock"):
        report = verify(store)
    assert [one.severity for one in report.findings if one.path == str(path)] == ["warning"]


def test_a_stray_file_in_a_batch_queue_stops_brokers_that_have_them(tmp_path: Path) -> None:
    """Of a version that is not known it was said that every broker refuses it."""
    store = case("basic-493").unpack(tmp_path)
    path = store / "batchconsumequeue/Other/0/notes"
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(3))
    start = verify(store).start
    assert start is not None
    assert [one.brokers for one in start.obstacles if one.path == str(path)] == ["from 5.0 on"]
