"""Whatever the files of a store hold, and whatever stands between them, `verify` ends in a report or a clear error."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import MQIndexError
from mqindex.rocketmq import IndexService, MessageStore, optimize, repair, verify
from tests.hostile.test_index_file import mutated
from tests.support.golden import case
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.small_store import OPTIONS, QUEUE_FILE_SIZE, make_small_store
from tests.support.tree import contents

Bound = Callable[[float], None]
ONE = LocalEngine(1)
SIDES = ("consumerOffset.json", "delayOffset.json", "lmqConsumerOffset.json", "topics.json", "subscriptionGroup.json")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = make_small_store(tmp_path / "store")
    (root / "config").mkdir()
    for name in SIDES:
        (root / "config" / name).write_text('{"offsetTable":{"Topic0@g":{0:3}},"topicConfigTable":{}}')
    (root / "config" / "delayOffset.json").write_text('{"offsetTable":{1:3}}')
    return root


class PicklingEngine(LocalEngine):
    """One thread, but everything goes through pickle, as on a cluster."""

    def map(
        self,
        stage: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        name: str,
        weights: Sequence[int] | None = None,
        unit: str = "task",
    ) -> list[Any]:
        results: list[Any] = pickle.loads(pickle.dumps([stage(item) for item in pickle.loads(pickle.dumps(items))]))
        return results


def test_small_store_is_right_before_it_is_spoilt(store: Path) -> None:
    for deep in (False, True):
        report = verify(store, deep=deep, engine=ONE, **OPTIONS)
        assert [finding.kind for finding in report.findings] == ["delay-offset-without-queue"]
        assert (report.messages, report.units) == (44, 44)


@pytest.mark.parametrize("name", ["killed-lost-493", "tx-delay-lmq-493", "ipv6-batch-ext-493"])
def test_stages_take_and_give_values_that_travel(name: str, tmp_path: Path) -> None:
    root = case(name).unpack(tmp_path)
    engine = PicklingEngine(1)
    for deep in (False, True):
        assert verify(root, deep=deep, engine=engine).findings == verify(root, deep=deep, engine=ONE).findings
    shutil.rmtree(root / "consumequeue")
    assert verify(root, engine=engine).findings == verify(root, engine=ONE).findings


def test_frames_behind_the_end_may_reach_to_the_end_of_their_file(tmp_path: Path) -> None:
    LogWriter(tmp_path / "commitlog", mapped_file_size=2048).write(*[LogMessage() for _ in range(30)])
    first, *others = sorted((tmp_path / "commitlog").iterdir())
    for path in others:
        path.unlink()
    first.write_bytes(bytes(8) + first.read_bytes()[8:])
    findings = verify(tmp_path, engine=ONE, **OPTIONS).findings
    assert "frames-behind-log-end" in {finding.kind for finding in findings}


@pytest.mark.parametrize("which", range(4))
def test_garbage_in_any_file_is_a_report_or_a_clear_error(
    which: int, store: Path, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(300)
    files = [path.relative_to(store) for path in sorted(store.rglob("*")) if path.is_file()]
    for number in range(60):
        root = shutil.copytree(store, tmp_path / str(number))
        for path in rng.sample(files, rng.randint(1, 3)):
            (root / path).write_bytes(spoilt((root / path).read_bytes(), rng))
        before = contents(root)
        for options in (OPTIONS, {}):
            try:
                report = verify(root, deep=rng.random() < 0.5, engine=ONE, **options)
            except MQIndexError:
                continue
            assert all(str(finding) for finding in report.findings)
        assert contents(root) == before
        shutil.rmtree(root)


def spoilt(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(
        [
            lambda: mutated(data, rng) if len(data) > 40 else b"",
            lambda: rng.randbytes(len(data)),
            lambda: data[: rng.randint(0, len(data))],
            lambda: data + rng.randbytes(rng.randint(1, 50)),
            lambda: b"\xff" * len(data),
            lambda: bytes(len(data)),
            lambda: b"",
        ]
    )()


@pytest.mark.parametrize("which", range(3))
def test_spoilt_queue_is_never_called_right(
    which: int, store: Path, tmp_path: Path, rng: random.Random, time_bound: Bound
) -> None:
    time_bound(200)
    files = [path.relative_to(store) for path in sorted((store / "consumequeue").rglob("*")) if path.is_file()]
    for number in range(60):
        root = shutil.copytree(store, tmp_path / str(number))
        path = root / rng.choice(files)
        intact = path.read_bytes()
        path.write_bytes(spoilt(intact, rng))
        report = verify(root, engine=ONE, config={"mappedFileSizeConsumeQueue": QUEUE_FILE_SIZE}, **OPTIONS)
        used = 20 * sum(struct.unpack_from(">i", intact, at + 8)[0] > 0 for at in range(0, len(intact), 20))
        if path.read_bytes()[:used] != intact[:used] or len(path.read_bytes()) != len(intact):
            assert not report.ok
        elif path.read_bytes() != intact:
            assert [finding for finding in report.findings if finding.path == str(path)]
        shutil.rmtree(root)


def test_strangers_in_every_directory_are_told_or_passed_over(store: Path) -> None:
    directories = [store, *(path for path in sorted(store.rglob("*")) if path.is_dir())]
    for number, directory in enumerate(directories):
        (directory / "notes").write_bytes(b"mine")
        (directory / "empty").touch()
        (directory / "folder").mkdir()
        (directory / f"{number:020d}.bak").write_bytes(b"?" * 100)
        os.symlink("nowhere", directory / "link")
        os.symlink(directory, directory / "loop")
        os.mkfifo(directory / "pipe")
    before = contents_of_files(store)
    for deep in (False, True):
        report = verify(store, deep=deep, engine=ONE, **OPTIONS)
        assert {finding.kind for finding in report.findings if finding.severity == "error"} == {
            "stray-log-file",
            "stray-queue-file",
        }
    assert contents_of_files(store) == before


def contents_of_files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    "kind", ["checkpoint", "config", "consumequeue", "index", "abort", "lock", "config/topics.json"]
)
def test_directory_in_place_of_a_file_and_the_other_way_round(kind: str, store: Path) -> None:
    path = store / kind
    if path.is_dir():
        shutil.rmtree(path)
        path.write_bytes(b"?")
    else:
        path.unlink(missing_ok=True)
        path.mkdir()
    try:
        verify(store, deep=True, engine=ONE, **OPTIONS)
    except (MQIndexError, OSError) as error:
        assert str(path) in str(error)


@pytest.mark.parametrize("topic", ["..", "../../x", "a/b", "", "a\0b", "x" * 127, "é" * 60, "."])
@pytest.mark.parametrize("queue_id", [0, -1, 2**31 - 1])
def test_topics_of_a_log_are_not_trusted_as_paths(topic: str, queue_id: int, tmp_path: Path) -> None:
    root = tmp_path / "store"
    LogWriter(root / "commitlog").write(LogMessage(topic, queue_id=queue_id, keys="k"))
    report = verify(root, deep=True, engine=ONE, **OPTIONS)
    assert len([one for one in report.findings if one.kind in ("queue-name", "queue-missing")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_queue_offsets_of_a_log_are_not_trusted(tmp_path: Path, time_bound: Bound) -> None:
    time_bound(100)
    root = tmp_path / "store"
    writer = LogWriter(root / "commitlog")
    offsets = [0, 2**63 - 1, -(2**63), 2**62, 1, (2**63 - 1) // 20, 2, -1, 2**40, 0, 5]
    writer.write(*(LogMessage("T", queue_offset=offset) for offset in offsets * 5))
    queue = root / "consumequeue" / "T" / "0"
    queue.mkdir(parents=True)
    (queue / f"{0:020d}").write_bytes(bytes(200))
    (queue / f"{2**63 - 8:020d}").write_bytes(bytes(200))
    report = verify(root, deep=True, engine=ONE, **OPTIONS)
    assert not report.ok
    assert any(finding.kind == "queue-offset-impossible" for finding in report.findings)


@pytest.mark.parametrize("which", [slice(4, 5), slice(0, 3), slice(1, 6)], ids=["middle", "from-the-second", "many"])
@pytest.mark.parametrize("optimized", [False, True])
def test_entries_of_missing_log_files_stay(tmp_path: Path, which: slice, optimized: bool) -> None:
    """A directory of the log may be left out, or not mounted: with it back every key is found as before."""
    root, config = tmp_path / "store", {"mappedFileSizeCommitLog": 8192, "maxHashSlotNum": 100, "maxIndexNum": 300}
    root.mkdir()
    count = 500
    with MessageStore.open(root, config=config, writable=True) as written:
        written.put_messages({"topic": ["T"] * count, "body": [b"b"] * count, "keys": [f"k{n}" for n in range(count)]})
    if optimized:
        optimize(root / "index", root, overwrite=True)
    gone = sorted((root / "commitlog").iterdir())[1:-1][which]
    for path in gone:
        path.rename(tmp_path / path.name)
    before = {path: path.read_bytes() for path in sorted((root / "index").iterdir())}
    for deep in (False, True):
        report = verify(root, deep=deep, config=config)
        assert {one.kind for one in report.findings if one.severity == "error"} == {"log-file-missing"}
        told = [one.got for one in report.findings if one.kind == "index-entries-of-damaged-log"]
        low, high = int(gone[0].name), int(gone[-1].name) + 8192
        with IndexService.open(root / "index", hash_slot_num=100, index_num=300) as index:
            found = index.query_offsets("T", [f"k{n}" for n in range(count)]).values
        assert len(found) == count
        assert sum(told) == ((found >= low) & (found < high)).sum() > 0
    assert repair(root, config=config, deep=True).actions == []
    for path in gone:
        (tmp_path / path.name).rename(path)
    assert {path: path.read_bytes() for path in sorted((root / "index").iterdir())} == before
    assert verify(root, deep=True, config=config).findings == []
