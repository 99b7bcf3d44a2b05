"""Several stores are one job with one report: each result is as if its store had been alone."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka, several
from mqindex.engines import LocalEngine
from mqindex.engines.together import together
from mqindex.errors import FileStateError, OutputExistsError, RebuildError
from mqindex.files import disk
from mqindex.rocketmq import rebuild
from tests.support.elsewhere import Ways, memory
from tests.support.golden import case
from tests.support.kafka_writer import KafkaRecord, PartitionWriter

__all__ = ["memory"]  # a fixture

NAMES = ("basic-493", "medium-493", "ipv6-batch-ext-493")


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    """Stores `broker-0/store` and so on."""
    found = []
    for number, name in enumerate(NAMES):
        (tmp_path / "unpacked").mkdir()
        found.append(tmp_path / f"broker-{number}" / "store")
        found[-1].parent.mkdir()
        case(name).unpack(tmp_path / "unpacked").rename(found[-1])
        shutil.rmtree(tmp_path / "unpacked")
    return found


class Counting(LocalEngine):
    """Counts the rounds of tasks by their names."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.rounds: list[tuple[str, int]] = []

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], *, name: str, **rest: Any) -> list[Any]:
        self.rounds.append((name, len(items)))
        return super().map(stage, items, name=name, **rest)


class Elsewhere:
    """An engine whose tasks do not share this process's memory, as Spark's."""

    def __init__(self) -> None:
        self.engine, self.progress = Counting(2), None

    def map(self, stage: Callable[[Any], Any], items: Sequence[Any], **rest: Any) -> list[Any]:
        return self.engine.map(stage, items, **rest)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("damaged", [False, True])
def test_each_result_is_that_of_its_store_alone(
    stores: list[Path], tmp_path: Path, workers: int, damaged: bool
) -> None:
    if damaged:  # its index is not built in turn: it takes more rounds than the others
        with min((stores[0] / "commitlog").iterdir()).open("r+b") as file:
            file.seek(case(NAMES[0]).truth["messages"][20]["phyOffset"] + 4)
            file.write(b"\1\2\3\4")
    (tmp_path / "alone").mkdir()
    alone = [rebuild(root, tmp_path / "alone" / root.parent.name, split_size=4096) for root in stores]
    report = rebuild(stores, tmp_path / "out", split_size=4096, engine=LocalEngine(workers))
    assert files_below(tmp_path / "out") == files_below(tmp_path / "alone")
    assert list(report.stores) == ["broker-0", "broker-1", "broker-2"]
    assert (report.path, report.ok) == (str(tmp_path), not damaged)
    for field in ("entries", "units", "messages", "bytes", "files"):
        assert getattr(report, field) == sum(getattr(one, field) for one in alone)
    assert [(one.kind, one.at, one.got) for one in report.findings] == [
        (finding.kind, finding.at, finding.got) for one in alone for finding in one.findings
    ]
    assert [(one.path, one.ok, one.settings) for one in report.stores.values()] == [
        (one.path, one.ok, one.settings) for one in alone
    ]
    assert sorted(report.out_files) == sorted(str(path) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert not [name for name in os.listdir(tmp_path / "out") if name.startswith(".")]


def test_all_stores_go_through_each_stage_together(stores: list[Path], tmp_path: Path) -> None:
    """There are as many rounds as the store has that needs most of them, and each has the items of all."""
    alone, many = [Elsewhere() for _ in stores], Elsewhere()
    for root, engine in zip(stores, alone, strict=True):
        rebuild(root, tmp_path / root.parent.name / "out", split_size=4096, engine=engine)
    rebuild(stores, tmp_path / "out", split_size=4096, engine=many)
    rounds = many.engine.rounds
    before = ["look at the place", "make the place", "look at the files", "check the free space"]
    assert [name for name, _ in rounds[:4]] == before
    own = [engine.engine.rounds[1:] for engine in alone]  # the first looks at the files
    assert [count for _, count in rounds[4:]] == [
        sum(one[at][1] for one in own if at < len(one)) for at in range(max(map(len, own)))
    ]
    assert rounds[4] == ("read the log", sum(one[0][1] for one in own))


def test_what_is_wrong_with_one_takes_nothing_from_the_others(stores: list[Path], tmp_path: Path) -> None:
    shutil.rmtree(stores[1] / "commitlog")
    report = rebuild([*stores, tmp_path / "broker-9" / "store"], tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["broker-0", "broker-2"]
    assert not report.ok
    assert [(one.kind, one.path) for one in report.findings if one.severity == "error"] == [
        ("not-rebuilt", str(stores[1])), ("not-rebuilt", str(tmp_path / "broker-9" / "store")),
    ]  # fmt: skip
    assert "the commit log is missing" in report.findings[-2].got
    assert report.findings[-2].expected == f"a result at {tmp_path}/out/broker-1"
    assert [one.ok for one in report.stores.values()] == [True, False, True, False]
    assert report.to_dict()["stores"]["broker-1"]["ok"] is False


def test_one_that_fails_at_work_leaves_nothing_and_stops_no_other(
    stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = disk.sync_tree

    def fails(path: str) -> None:
        if any(name.startswith("M") for name in os.listdir(os.path.join(path, "consumequeue"))):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        sync(path)

    assert any(path.name.startswith("M") for path in (stores[1] / "consumequeue").iterdir())
    monkeypatch.setattr(disk, "sync_tree", fails)
    report = rebuild(stores, tmp_path / "out")
    failed = [one.path for one in report.findings if one.kind == "not-rebuilt"]
    assert str(stores[1]) in failed and len(failed) < 3
    assert sorted(os.listdir(tmp_path / "out")) == sorted(
        root.parent.name for root in stores if str(root) not in failed
    )


def test_nothing_is_left_where_none_was_rebuilt(stores: list[Path], tmp_path: Path) -> None:
    for root in stores:
        shutil.rmtree(root / "commitlog")
    report = rebuild(stores, tmp_path / "out")
    assert [one.kind for one in report.findings] == ["not-rebuilt"] * 3
    assert not (tmp_path / "out").exists()


def test_results_that_are_there_stay_or_are_moved_aside(stores: list[Path], tmp_path: Path) -> None:
    rebuild(stores[:1], tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["store"]  # of one alone nothing else tells more
    (tmp_path / "out" / "store").rename(tmp_path / "out" / "broker-0")
    (tmp_path / "out" / "mine").write_text("a file of others")
    report = rebuild(stores, tmp_path / "out")
    assert [(one.kind, one.path) for one in report.findings] == [("not-rebuilt", str(stores[0]))]
    assert "the output exists and is not empty" in report.findings[0].got
    again = rebuild(stores, tmp_path / "out", overwrite=True)
    assert again.ok
    backups = [one.backup for one in again.stores.values()]
    assert all(path is not None and os.path.dirname(path) == str(tmp_path / "out") for path in backups)
    assert (tmp_path / "out" / "mine").read_text() == "a file of others"


def test_all_must_find_room_together(stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = []

    def check(place: str, needed: int) -> str:
        needs.append((place, needed))
        if len(needs) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
        return "enough"

    monkeypatch.setattr(disk, "check_space", check)
    with pytest.raises(OSError, match="No space left") as raised:
        rebuild(stores, tmp_path / "out")
    assert raised.value.errno == errno.ENOSPC
    assert needs[-1] == (str(tmp_path / "out"), sum(size for _, size in needs[:-1]))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("where", ["broker-1/store/commitlog/x", "broker-2/store", ".", "broker-0"])
def test_a_place_that_is_a_stores_is_refused_for_all(stores: list[Path], tmp_path: Path, where: str) -> None:
    before = files_below(tmp_path)
    with pytest.raises(ValueError, match=r"out: expected a place of its own"):
        rebuild(stores, tmp_path / where, overwrite=True)
    assert files_below(tmp_path) == before


def test_stores_cannot_have_one_log_or_one_name(stores: list[Path], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"commitlog: .*would be the log of .*broker-0/store and of .*broker-1/store"):
        rebuild(stores, tmp_path / "out", commitlog=stores[0] / "commitlog")
    with pytest.raises(ValueError, match=r"store: expected paths that differ in a name.* twice"):
        rebuild([stores[0], stores[0]], tmp_path / "out")
    with pytest.raises(ValueError, match=r"store: expected paths .* got none"):
        rebuild([], tmp_path / "out")
    (tmp_path / "file").touch()
    with pytest.raises(OutputExistsError, match="the output is no directory"):
        rebuild(stores, tmp_path / "file")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a", "/b"], ["a", "b"]),
        (["/backup/a/store", "/backup/b/store"], ["a", "b"]),
        (["/x/a/store", "/x/b/store", "/y/c"], ["a-store", "b-store", "y-c"]),
        (["/dc1/a/store", "/dc2/a/store"], ["dc1", "dc2"]),
        (["s3://bucket/a/store", "hdfs://host:8020/b/store", "/c/store"], ["a", "b", "c"]),
        (["s3://one/store", "hdfs://host:8020/store"], ["one", "host-8020"]),
        (["/store", "/a/store"], ["store", "a-store"]),
    ],
)
def test_names_are_those_by_which_people_know_the_stores(paths: list[str], names: list[str]) -> None:
    assert several.names_of("store", paths) == names


def test_stores_elsewhere_are_rebuilt_there(memory: Ways, stores: list[Path], tmp_path: Path) -> None:
    rebuild(stores, tmp_path / "here")
    urls = [f"{memory.upload(root.parent)}/store" for root in stores]
    report = rebuild(urls, "memory://results/many")
    assert report.ok
    found = memory.files("memory://results/many")
    assert len([name for name in found if name.endswith("/mqindex.json")]) == 3
    here = sorted(files_below(tmp_path / "here").items())
    there = sorted((name, data) for name, data in found.items() if not name.endswith("mqindex.json"))
    assert [data for _, data in there] == [data for _, data in here]
    assert [name.partition("/")[0] for name, _ in there] == [
        url.removeprefix("memory://").partition("/")[0]
        for name, _ in here
        for url in urls
        if name.partition("/")[0] == url.removeprefix("memory://").rpartition("-")[0]
    ]
    memory.forbidden = f"{urls[1].removeprefix('memory://').partition('/')[0]}/mqindex.json"
    again = rebuild(urls, "memory://results/again")
    assert [one.ok for one in again.stores.values()] == [True, False, True]
    left = memory.files("memory://results/again")
    assert {name.partition("/")[0] for name in left} == set(again.stores) - {list(again.stores)[1]}


def test_log_dirs_and_partitions_of_kafka_are_rebuilt_so_too(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        writer = PartitionWriter(tmp_path / f"disk{number}" / "kafka" / f"topic-{number}")
        writer.append([KafkaRecord(key=b"k" * number)])
        writer.close()
        paths.append(tmp_path / f"disk{number}" / "kafka")
    (tmp_path / "alone").mkdir()
    for path in paths:
        kafka.rebuild(path, tmp_path / "alone" / path.parent.name)
    report = kafka.rebuild(paths, tmp_path / "out")
    assert (report.ok, report.batches, list(report.stores)) == (True, 3, ["disk0", "disk1", "disk2"])
    assert files_below(tmp_path / "out") == files_below(tmp_path / "alone")
    partitions = [path / f"topic-{number}" for number, path in enumerate(paths)]
    more = kafka.rebuild([*partitions, tmp_path / "alone"], tmp_path / "partitions")
    assert sorted(os.listdir(tmp_path / "partitions")) == ["topic-0", "topic-1", "topic-2"]
    assert [one.kind for one in more.findings if one.severity == "error"] == ["not-rebuilt"]


# ---- the rounds


def work(engine: Any, item: int) -> int:
    total = sum(engine.map(lambda n: n * item, range(4), name=f"first {item}"))
    for _ in range(item):
        total += sum(engine.map(abs, [total], name="more"))
    if item == 2:
        raise FileStateError("bad", path="2")
    return total


def no_paths(_: object) -> Sequence[str]:
    return ()


def test_rounds_answer_all_that_ask_and_keep_errors_apart() -> None:
    engine = Counting(2)
    found = together(engine, work, [0, 1, 2, 3], no_paths)
    assert [one if isinstance(one, int) else str(one) for one in found] == [0, 12, "bad: 2", 144]
    assert [name for name, _ in engine.rounds] == ["first 0, first 1, first 2, first 3", "more", "more", "more"]
    assert [count for _, count in engine.rounds] == [16, 3, 2, 1]
    assert together(engine, work, [], no_paths) == []


def test_an_engine_that_dies_is_the_error_of_each() -> None:
    class Dead(LocalEngine):
        def map(self, *_: Any, **__: Any) -> list[Any]:
            raise RebuildError("the engine died", hint="nothing was published")

    found = together(Dead(), work, [0, 1], no_paths)
    assert [str(one) for one in found] == ["the engine died; nothing was published"] * 2
    assert found[0] is not found[1]


def test_an_interrupt_reaches_each_once_and_its_clean_up_runs() -> None:
    cleaned: list[int] = []

    class Interrupted(LocalEngine):
        interrupts = 1

        def map(self, stage: Any, items: Any, *, name: str, **rest: Any) -> list[Any]:
            if name != "clean up" and self.interrupts:
                self.interrupts -= 1
                raise KeyboardInterrupt
            return super().map(stage, items, name=name, **rest)

    def guarded(engine: Any, item: int) -> int:
        try:
            return work(engine, item)
        finally:
            cleaned.extend(engine.map(abs, [item], name="clean up"))

    with pytest.raises(KeyboardInterrupt):
        together(Interrupted(), guarded, [0, 1, 3], no_paths)
    assert sorted(cleaned) == [0, 1, 3]


def test_where_no_thread_can_be_started_each_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqindex.engines.together.started", lambda *_: None)
    found = together(LocalEngine(), work, [1, 2], no_paths)
    assert ["no more threads can be started" in str(one) for one in found] == [True, True]
