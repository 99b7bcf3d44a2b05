"""A server that does not answer one request says nothing: no file is absent by that, and no verdict is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, rocketmq
from mqindex.cli import main
from mqindex.cli.rocketmq import key_query
from mqindex.engines import LocalEngine
from mqindex.errors import FileStateError, GeometryError
from mqindex.files.paths import join
from mqindex.files.places.place import place_of
from mqindex.rocketmq import ConsumeQueueTable, kinds
from mqindex.rocketmq.checks import entry_check, side_check
from mqindex.rocketmq.checks.entry_check import EntryStretch
from mqindex.rocketmq.checks.queues.served import Served, name_served
from mqindex.rocketmq.checks.sidecar_check import sidecars_to_check
from mqindex.rocketmq.directories.store import places_of
from mqindex.rocketmq.index import geometry
from mqindex.rocketmq.index.compare import Place
from mqindex.rocketmq.kinds import index_paths
from mqindex.rocketmq.metadata.consumer_offsets import ConsumerOffsets
from mqindex.rocketmq.options import store_options
from tests.support.elsewhere import WAYS, Ways, memory
from tests.support.golden import case
from tests.support.golden_kafka import PartitionCase
from tests.support.nightly import NIGHTLY

__all__ = ["memory"]  # a fixture

STEP = 1 if NIGHTLY else 11  # from one request that nobody answers to the next
ONE: dict[str, Any] = {"engine": LocalEngine(workers=1)}
CHANGES = ("seconds", "newest_age", "made_at")  # from run to run


def without_times(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_times(one) for name, one in told.items() if name not in CHANGES}
    return [without_times(one) for one in told] if isinstance(told, list) else told


def reported(report: Any) -> Any:
    return without_times(json.loads(json.dumps(report.to_dict(), default=str)))


def of_shell(*arguments: str) -> Callable[[pytest.CaptureFixture[str]], Any]:
    def ask(capsys: pytest.CaptureFixture[str]) -> Any:
        status = main([*arguments, "--json"])
        out, err = capsys.readouterr()
        if status == 2:
            raise OSError(err)
        return without_times([json.loads(line) for line in out.splitlines()])

    return ask


ASKS: dict[str, Callable[[str], Callable[[pytest.CaptureFixture[str]], Any]]] = {
    "verify": lambda url: lambda _: reported(rocketmq.verify(url, deep=True, **ONE)),
    "report": lambda url: lambda _: reported(rocketmq.report(url, **ONE)),
    "info": lambda url: of_shell("info", url),
    "info of an index": lambda url: of_shell("info", f"{url}/index"),
    "query": lambda url: of_shell("query", url, "--topic", "AaTopic", "Aa"),
    "verify of an index": lambda url: of_shell("verify", f"{url}/index"),
}
OF_KAFKA: dict[str, Callable[[str], Callable[[pytest.CaptureFixture[str]], Any]]] = {
    "verify": lambda url: lambda _: reported(kafka.verify(url, **ONE)),
    "report": lambda url: lambda _: reported(kafka.report(url, **ONE)),
    "info": lambda url: of_shell("info", url),
}


@pytest.mark.parametrize("name", ASKS)
def test_of_a_store(name: str, memory: Ways, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_all_or_nothing(ASKS[name](WAYS.upload(case("basic-493").unpack(tmp_path))), capsys)


@pytest.mark.parametrize("name", OF_KAFKA)
def test_of_a_partition(name: str, memory: Ways, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_all_or_nothing(OF_KAFKA[name](WAYS.upload(PartitionCase("410-txn").closed(tmp_path))), capsys)


def test_where_the_log_begins_and_whether_entries_agree(memory: Ways, tmp_path: Path) -> None:
    """Not known, these were "not expired", "other entries", "a damaged index"."""
    pytest.importorskip("pyarrow")
    from mqindex.spark.sources import kafka_log
    from mqindex.spark.sources.kafka_files import SegmentOf

    url = WAYS.upload(case("basic-493").unpack(tmp_path))
    index = place_of(f"{url}/index/{case('basic-493').truth['indexFiles'][0]['name']}")
    log = place_of(f"{WAYS.upload(PartitionCase('410-txn').closed(tmp_path))}/{0:020d}.log")
    segment = SegmentOf("T", 0, 0, (("index", f"{log.removesuffix('log')}index"),), url)
    stretch = EntryStretch(index, case("basic-493").geometry, 1, Place(0, 0), Place(9, 0))
    for ask in (
        lambda: key_query._log_begin(place_of(url), {}),
        lambda: entry_check._File(stretch, 0, 100),
        lambda: kafka_log._borders(segment, log, 1 << 40),
    ):
        WAYS.unanswered = 0
        ask()
        WAYS.requests, WAYS.unanswered = 0, 1
        with pytest.raises(TimeoutError):
            ask()


def served_of(root: str) -> Served:
    """The first unit of a queue of the store, by its number in the log."""
    topic, queue_id = next(iter(ConsumeQueueTable.open(join(root, "consumequeue")).queues()))
    return Served((topic, queue_id), False, ((0, 1),), 0, 1 << 40)


def test_what_a_store_has_and_whether_its_files_are_read(memory: Ways, tmp_path: Path) -> None:
    """Not known, these were "no such names", "no other geometry", "no messages", "no offsets"."""
    root = place_of(WAYS.upload(case("basic-493").unpack(tmp_path)))
    index = index_paths(join(root, "index"))
    options = store_options(root)
    served = served_of(root)
    asks: dict[str, Callable[[], Any]] = {
        "names of a directory": lambda: kinds.names_seen(root),
        "parts of a store": lambda: places_of(root),
        "a geometry that was given": lambda: refused(index),
        "messages that are served": lambda: name_served(options, served),
        "offsets of groups": lambda: side_check._read(join(root, "config"), lambda: consumer_offsets(root)),
        "names beside an index": lambda: sidecars_to_check(join(root, "index"), index, case("basic-493").geometry),
    }
    for what, ask in asks.items():
        WAYS.requests = WAYS.unanswered = 0
        ask()
        for number in range(1, WAYS.requests + 1):
            WAYS.requests, WAYS.unanswered = 0, number
            with pytest.raises(TimeoutError):
                pytest.fail(f"{what}: {ask()} without the answer to request {number}")


def refused(index: list[str]) -> str:
    try:
        geometry.require(index, (7, 11), "given")
    except GeometryError:
        return "refused"
    return "taken"


def consumer_offsets(root: str) -> Any:
    return ConsumerOffsets._read(join(root, "config"), lambda topic, queue_id: 0)


def require_all_or_nothing(
    ask: Callable[[pytest.CaptureFixture[str]], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = ask(capsys)
    WAYS.requests = 0
    assert ask(capsys) == expected
    for number in range(1, WAYS.requests + 1, STEP):
        WAYS.requests, WAYS.unanswered = 0, number
        try:
            assert ask(capsys) == expected
        except OSError as error:
            assert "timed out" in str(error)
    WAYS.unanswered = 0


REPLACED = {name: ask for name, ask in ASKS.items() if name != "info"}  # which says of each part what is wrong with it


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_meanwhile_is_not_damaged(
    name: str, memory: Ways, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was an index or a queue that cannot be read, and a version that no message showed."""
    require_told(REPLACED[name](WAYS.upload(case("basic-493").unpack(tmp_path))), capsys)


@pytest.mark.parametrize("name", ["verify", "report"])
def test_what_is_replaced_in_a_partition_meanwhile_is_not_damaged(
    name: str, memory: Ways, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require_told(OF_KAFKA[name](WAYS.upload(PartitionCase("410-txn").closed(tmp_path))), capsys)


def require_told(ask: Callable[[pytest.CaptureFixture[str]], Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The same answer, or that the file was replaced, whichever is."""
    expected = ask(capsys)
    WAYS.requests = 0
    assert ask(capsys) == expected
    for number in range(1, WAYS.requests + 1, 1 if NIGHTLY else 3):
        WAYS.requests, WAYS.replaced = 0, number
        try:
            assert ask(capsys) == expected
        except (OSError, FileStateError) as error:
            assert "the file was replaced while it was read" in str(error)


def test_groups_in_rocksdb_are_said_of_a_url_as_of_a_directory(tmp_path: Path, memory: Ways) -> None:
    store = case("basic-550").unpack(tmp_path)
    topics = store / "config" / "topics"
    topics.mkdir(parents=True)
    (topics / "CURRENT").write_text("MANIFEST-000001\n")
    (topics / "MANIFEST-000001").write_bytes(b"a database")
    for path in (str(store), memory.upload(store)):
        assert "in RocksDB" in str(rocketmq.report(path, **ONE).groups.error)
