"""A result in an object store without its list of files is unfinished: whoever reads it says so, whatever is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mqindex
from mqindex import kafka, rocketmq
from mqindex.errors import FileStateError
from mqindex.files.places.object_storage import ObjectStorage
from mqindex.files.places.place import place_of
from mqindex.rocketmq import kinds
from tests.cli.conftest import Shell
from tests.support.elsewhere import WAYS, MemoryStorage, Ways, memory
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.kafka_damage import filled_log_dir

__all__ = ["memory"]  # a fixture

UNFINISHED = "its run has not finished: {}: expected mqindex.json; run it again"
INDEX, QUEUE, BATCH = "index/<file>", "consumequeue/<topic>/0/<file>", "batchconsumequeue/<topic>/0/<file>"


def take_list_away(out: str) -> None:
    """As a run that was killed before its last step leaves it."""
    WAYS.store.delete(f"{out.removeprefix('memory://')}/mqindex.json")
    WAYS.put(f"{out}/_mqindex-0123456789ab/owner", b"mqindex\n[]")


def below(out: str, name: str) -> list[str]:
    """The directories of a result down to a file, and this."""
    parts = name.split("/")
    found = next(one for one in WAYS.files(out) if len(one.split("/")) == len(parts) and one.startswith(parts[0]))
    return [f"{out}/{'/'.join(found.split('/')[:n])}".rstrip("/") for n in range(len(parts) + 1)]


@pytest.fixture
def store(memory: Ways, tmp_path: Path) -> str:
    out = "memory://results/one"
    rocketmq.rebuild(case("ipv6-batch-ext-493").unpack(tmp_path), out)
    take_list_away(out)
    return out


@pytest.fixture
def partition(memory: Ways, tmp_path: Path) -> str:
    out = "memory://results/one"
    kafka.rebuild(PartitionCase("410-txn").closed(tmp_path / "logs"), out)
    take_list_away(out)
    return out


@pytest.fixture
def log_dir(memory: Ways, tmp_path: Path) -> str:
    out = "memory://results/logs"
    kafka.rebuild(filled_log_dir(tmp_path / "log-dir"), out)
    take_list_away(out)
    return out


@pytest.mark.parametrize("command", ["info", "dump", "verify", "query"])
def test_of_a_store_every_command_says_it(shell: Shell, store: str, command: str) -> None:
    asked = ["--topic", "T", "key"] if command == "query" else []
    refused = f"mqindex: {UNFINISHED.format(store)}\n"
    for path in dict.fromkeys([*below(store, INDEX), *below(store, QUEUE)]):
        done = shell(command, path, *asked)
        if "expected" in done.err and UNFINISHED.format(store) not in done.err:
            assert f"{path} is " in done.err  # a kind that the command does not take
            continue
        assert (done.status, done.err) == (2, refused), path
    said = " ".join(shell("info", store).out.split())
    assert f"would a broker start not known: {UNFINISHED.format(store)}" in said


def test_other_commands_of_a_store_say_it(shell: Shell, store: str, tmp_path: Path) -> None:
    log = WAYS.upload(case("ipv6-batch-ext-493").unpack(tmp_path / "again")) + "/commitlog"
    for line in (
        ["message", store, "0", "--commitlog", log],
        ["messages", store, "--commitlog", log],
        ["report", store, "--commitlog", log, "--out", tmp_path / "page.html"],
        ["optimize", store, "--out", tmp_path / "cold"],
        ["optimize", below(store, INDEX)[-1], "--out", tmp_path / "cold"],
        ["sql", "SELECT count(*) FROM one.units", f"one={store}"],
        ["sql", "SELECT count(*) FROM one", f"one={store}/index"],
        ["query", store, "--timestamp", "0", "--commitlog", log],
        ["rebuild", store, "--commitlog", log, "--out", tmp_path / "new"],
    ):
        done = shell(*line)
        assert (done.status, UNFINISHED.format(store) in done.err) == (2, True), (line, done)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (PermissionError(13, "no"), "Permission denied; it is listed to know"),
        (TimeoutError(110, "late"), "Connection timed out"),
    ],
)
def test_what_cannot_be_listed_is_not_taken_for_finished(
    store: str, monkeypatch: pytest.MonkeyPatch, error: OSError, why: str
) -> None:
    """Whatever the reason was, a part of an unfinished result was read as if it were the whole."""
    entries = MemoryStorage.entries

    def failing(self: MemoryStorage, path: str) -> Any:
        if path.endswith("one"):
            raise error
        return entries(self, path)

    monkeypatch.setattr(MemoryStorage, "entries", failing)
    index = below(store, INDEX)
    for ask in (lambda: rocketmq.IndexService.open(index[1]), lambda: rocketmq.IndexFile.open(index[2])):
        with pytest.raises(type(error), match=why) as told:
            ask()
        assert told.value.filename == store


@pytest.mark.parametrize("ending", ["index", "timeindex", "txnindex"])
def test_of_partitions_every_command_says_it(shell: Shell, partition: str, ending: str) -> None:
    name = next(one for one in WAYS.files(partition) if one.endswith(f".{ending}"))
    asked = ["--timestamp" if ending == "timeindex" else "--offset", "0"]
    for path in (partition, f"{partition}/{name}"):
        for command in ("info", "dump", "verify", *(["query"] if ending != "txnindex" or path == partition else [])):
            done = shell(command, path, *(asked if command == "query" else ()))
            assert (done.status, UNFINISHED.format(partition) in done.err) == (2, True), (command, path, done)


def test_of_a_log_dir_every_command_says_it(shell: Shell, log_dir: str) -> None:
    name = next(one for one in WAYS.files(log_dir) if one.startswith("topic-0/") and one.endswith(".index"))
    for path in (log_dir, f"{log_dir}/topic-0", f"{log_dir}/{name}"):
        asked = ["--offset" if path.endswith(".index") else "--timestamp", "0"]
        for command in ("info", "dump", "verify", "query"):
            done = shell(command, path, *(asked if command == "query" else ()))
            assert (done.status, UNFINISHED.format(log_dir) in done.err) == (2, True), (command, path, done)


def test_python_says_it_of_a_store(store: str) -> None:
    index, queue = below(store, INDEX), below(store, QUEUE)
    asks: list[Callable[[], Any]] = [
        lambda: rocketmq.IndexFile.open(index[-1]),
        lambda: rocketmq.IndexFile.open(index[-1], hash_slot_num=1, index_num=2),
        lambda: rocketmq.IndexService.open(index[1]),
        lambda: rocketmq.ConsumeQueueTable.open(queue[1]),
        lambda: rocketmq.ConsumeQueue.open(queue[3]),
        lambda: rocketmq.ConsumeQueueExt.open(queue[3].replace("consumequeue", "consumequeue_ext")),
        lambda: rocketmq.BatchConsumeQueue.open(queue[3].replace("consumequeue", "batchconsumequeue")),
        lambda: rocketmq.MessageStore.open(store, commitlog=f"{store}/commitlog"),
        lambda: rocketmq.scan(store, commitlog=f"{store}/commitlog"),
        lambda: rocketmq.verify(store),
        lambda: rocketmq.report(store),
        lambda: mqindex.dataset(store, "units").to_table(),
        lambda: mqindex.dataset(index[1]).to_table(),
    ]
    for ask in asks:
        with pytest.raises(FileStateError, match="its run has not finished"):
            ask()


def test_python_says_it_of_partitions(partition: str) -> None:
    name = min(one for one in WAYS.files(partition) if one.endswith(".index")).removesuffix("index")
    for opened in (kafka.OffsetIndex, kafka.TimeIndex, kafka.TransactionIndex):
        with pytest.raises(FileStateError, match="its run has not finished"):
            opened.open(f"{partition}/{name}{opened.kind}")
    for ask in (kafka.PartitionLog.open, kafka.scan, kafka.verify, kafka.report):
        with pytest.raises(FileStateError, match="its run has not finished"):
            ask(partition)


def test_a_web_server_has_no_lists(memory: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it answers who asks for one says nothing."""

    def refused(self: ObjectStorage, path: str) -> Any:
        raise PermissionError(13, "no")

    monkeypatch.setattr(ObjectStorage, "entries", refused)
    index = place_of("https://files.example/store/index")
    assert kinds.require_finished(index) == {}
    with pytest.raises(PermissionError):
        kinds.require_finished(place_of("memory://files/store/index"))


def test_verify_compares_the_checksums_of_a_list(shell: Shell, memory: Ways, tmp_path: Path) -> None:
    """A file of the right length with other bytes was right."""
    root, out = case("basic-493").unpack(tmp_path), "memory://results/one"
    rocketmq.rebuild(root, out)
    more = ["--commitlog", f"{WAYS.upload(root)}/commitlog", "--cache", tmp_path / "zones"]
    assert "result-changed" not in shell("verify", out, "--deep", *more).out
    name = next(one for one in WAYS.files(out) if one.startswith("index/"))
    data = bytearray(WAYS.files(out)[name])
    data[-1] ^= 1  # of an entry that nobody has written yet
    WAYS.put(f"{out}/{name}", bytes(data))
    assert "result-changed" not in shell("verify", out, *more).out
    done = shell("verify", out, "--deep", *more)
    assert done.status == 1
    assert "error: result-changed. A file of a result in an object store has other bytes" in done.out
    assert name.rpartition("/")[2] in done.out.partition("result-changed")[2]


def test_verify_compares_the_checksums_of_partitions(shell: Shell, memory: Ways, tmp_path: Path) -> None:
    out = "memory://results/one"
    kafka.rebuild(PartitionCase("410-txn").closed(tmp_path / "logs"), out)
    assert "result-changed" not in {one.kind for one in kafka.verify(out, deep=True).findings}
    name = next(one for one in WAYS.files(out) if one.endswith(".index"))
    data = bytearray(WAYS.files(out)[name])
    data[-1] ^= 1
    WAYS.put(f"{out}/{name}", bytes(data))
    (found,) = [one for one in kafka.verify(out, deep=True).findings if one.kind == "result-changed"]
    assert (found.path, found.severity) == (f"{out}/{name}", "error")


def test_a_partition_of_several_is_compared_with_the_list_above_it(memory: Ways, tmp_path: Path) -> None:
    log_dir, out = filled_log_dir(tmp_path / "log-dir"), "memory://results/logs"
    (one,) = (path for path in log_dir.iterdir() if path.is_dir())
    shutil.copytree(one, one.with_name("other-7"))
    kafka.rebuild(log_dir, out)
    name = next(one for one in WAYS.files(out) if one.endswith(".index"))
    partition = f"{out}/{name.partition('/')[0]}"
    assert "result-changed" not in {one.kind for one in kafka.verify(partition, deep=True).findings}
    data = bytearray(WAYS.files(out)[name])
    data[-1] ^= 1
    WAYS.put(f"{out}/{name}", bytes(data))
    (found,) = [one for one in kafka.verify(partition, deep=True).findings if one.kind == "result-changed"]
    assert found.path == f"{out}/{name}"
    (other,) = {f"{out}/{one.partition('/')[0]}" for one in WAYS.files(out) if "/" in one} - {partition}
    assert "result-changed" not in {one.kind for one in kafka.verify(other, deep=True).findings}
