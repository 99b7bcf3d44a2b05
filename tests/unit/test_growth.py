"""Twice the queues are twice the work: counted in calls, not timed."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex import kafka
from mqindex.cli.rocketmq.kinds import STORE
from mqindex.cli.rocketmq.store_facts import facts_of
from mqindex.engines import LocalEngine
from mqindex.files import disk
from mqindex.kafka import LogSegment
from mqindex.rocketmq import CommitLog, IndexFile, rebuild, repair, verify
from mqindex.rocketmq.checks.queues import queue_diagnosis
from mqindex.rocketmq.mending import queue_repair
from mqindex.rocketmq.messages.log_columns import COLUMNS as ROCKETMQ_COLUMNS
from mqindex.rocketmq.options import store_options
from mqindex.rocketmq.pipeline.survey import survey
from mqindex.rocketmq.queue.old_queue import OldQueue
from tests.support.big_log import write_big_log
from tests.support.big_segments import write_big_segment
from tests.support.log_writer import LogWriter
from tests.support.queued_store import tagged

GEOMETRY = {"hash_slot_num": 500, "index_num": 4000, "broker_version": "4.9.3"}


class CountedName(str):
    """A topic whose every hash is a call of Python: of looking a name up there is no other trace."""

    __slots__ = ()

    def __hash__(self) -> int:
        return super().__hash__()


def make_store(root: Path, queues: int) -> Path:
    """A whole store of so many queues, two messages in each."""
    write_big_log(root, messages=queues * 2, body_size=0, mapped_file_size=1 << 20, topics=queues // 4, queues=4)
    rebuild(root, f"{root}-built", engine=LocalEngine(1), **GEOMETRY)
    for part in ("index", "consumequeue"):
        os.rename(f"{root}-built/{part}", root / part)
    return root


def count_calls(work: Callable[[], Any]) -> int:
    """Calls of functions, in Python and C, that `work` makes in this thread."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_four_times_the_queues_are_four_times_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = queue_diagnosis.list_queues

    def counted(directory: str) -> Any:
        names, skipped = listed(directory)
        return [(CountedName(topic), queue_id) for topic, queue_id in names], skipped

    monkeypatch.setattr(queue_diagnosis, "list_queues", counted)
    calls = []
    for queues in (100, 400):
        store = make_store(tmp_path / str(queues), queues)
        calls.append(count_calls(lambda store=store: verify(store, deep=True, engine=LocalEngine(1), **GEOMETRY)))
    assert calls[1] < 4.4 * calls[0]


def test_four_times_the_tasks_are_four_times_the_calls() -> None:
    """Also where threads run them: who waits for them does not look at all of them each time."""
    calls = []
    for tasks in (100, 400):
        seconds = [0.002] * tasks
        calls.append(count_calls(lambda seconds=seconds: LocalEngine(2).map(time.sleep, seconds, name="sleep")))
    assert calls[1] < 5 * calls[0]


def test_the_facts_of_four_times_the_queues_are_four_times_the_calls(tmp_path: Path) -> None:
    calls = []
    for queues in (100, 400):
        store = str(make_store(tmp_path / str(queues), queues))
        calls.append(count_calls(lambda store=store: facts_of(STORE, store, GEOMETRY)))
    assert calls[1] < 4.1 * calls[0]


def test_the_version_is_decided_without_a_call_for_each_message(tmp_path: Path) -> None:
    """Every message has tags, which the index leaves out. Where a file's last entries begin is found by halves."""
    calls = []
    for messages in (25, 1000):
        root = tmp_path / str(messages)
        LogWriter(root / "commitlog", mapped_file_size=1 << 20).write(*tagged(messages))
        rebuild(root, f"{root}-built", engine=LocalEngine(1), parts=["index"], **GEOMETRY)
        os.rename(f"{root}-built/index", root / "index")
        options = store_options(root, hash_slot_num=500, index_num=4000)
        calls.append(count_calls(lambda options=options: survey(options)))
    assert calls[1] < calls[0] + 700  # of 975 more


def page_faults(work: Callable[[], Any]) -> tuple[Any, int]:
    """What it returns, and how many pages this process got meanwhile."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return work(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_few_pages_of_a_file_show_that_a_broker_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "20231114221320000"
    with IndexFile.create(path, hash_slot_num=5_000_000, index_num=20_000_000, sparse=True) as index:
        index.put_keys([f"Topic#{number}" for number in range(1000)], range(1000), range(1000))
    with IndexFile._open_known(path, (5_000_000, 20_000_000)) as index:
        order, pages = page_faults(index._order)
    assert order.entries < 100
    assert pages < 100  # its slots are 4 900 pages


def test_the_hole_behind_the_units_of_a_queue_is_not_read(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", 4)
    pages = []
    for size in (6_000_000, 20 << 25):
        for path in (store / "consumequeue").rglob("0" * 20):
            os.truncate(path, size)
        config = {"mappedFileSizeConsumeQueue": size}
        report, faults = page_faults(
            lambda config=config: verify(store, engine=LocalEngine(1), config=config, **GEOMETRY)
        )
        assert report.ok
        assert report.units == 8
        pages.append(faults)
    assert pages[1] < pages[0] + 20_000  # 2.6 GiB are 650 000 pages; a sanitizer has 20 000 of its own


MIB = 64
FRESH_PAGES = 256  # of a MiB, if each batch has pages of its own


def read_with_bodies(kind: str, root: Path) -> int:
    """The bytes of all bodies or values of a log of 64 MiB, all columns made."""
    if kind == "rocketmq":
        with CommitLog.open(root / "commitlog") as log:
            return sum(len(batch["body"].data) for batch in log.scan(columns=ROCKETMQ_COLUMNS))
    with LogSegment.open(root / f"{0:020d}.log") as segment:
        return sum(len(batch["value"].data) for batch in segment.records())


def write_with_bodies(kind: str, root: Path) -> None:
    if kind == "rocketmq":
        write_big_log(root, total_bytes=MIB << 20, body_size=1024, mapped_file_size=MIB << 20)
    else:
        write_big_segment(str(root), 0, MIB << 20)


@pytest.mark.parametrize("kind", ["rocketmq", "kafka"])
def test_bodies_are_copied_into_memory_that_is_in_use(kind: str, tmp_path: Path) -> None:
    """A process of its own: what malloc keeps for later is that of a program that only reads."""
    write_with_bodies(kind, tmp_path / "log")
    code = (
        "import sys; from pathlib import Path; from tests.unit.test_growth import page_faults, read_with_bodies\n"
        "read = lambda: read_with_bodies(sys.argv[1], Path(sys.argv[2]))\n"
        "print(read(), *page_faults(read))"
    )
    command = [sys.executable, "-c", code, kind, str(tmp_path / "log")]
    first, again, faults = map(int, subprocess.check_output(command, text=True).split())
    assert first == again > MIB * 800_000
    if platform.libc_ver()[0] == "glibc" and "LD_PRELOAD" not in os.environ:  # others keep what they like
        assert faults < MIB * FRESH_PAGES / 3  # what reading a mapped file costs is among them


def count_places(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> int:
    """Places of old queues that `work` looks at."""
    places: list[int] = []
    keep = OldQueue.keep

    def counted(old: OldQueue, first: int, stop: int, *bounds: int) -> Any:
        places.append(stop - first)
        return keep(old, first, stop, *bounds)

    with monkeypatch.context() as patched:
        patched.setattr(OldQueue, "keep", counted)
        work()
    return sum(places)


@pytest.mark.parametrize("size", [20, 6_000_000])
def test_a_repair_of_many_small_queues_looks_at_few_places(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked at 65 536 places behind the last unit of each, file by file: 93 s for 800 queues of 3 files."""
    given: dict[str, Any] = {**GEOMETRY, "config": {"mappedFileSizeConsumeQueue": size}, "engine": LocalEngine(1)}
    looked = []
    for queues in (4, 16):
        root = tmp_path / str(queues)
        write_big_log(root, messages=queues * 3, body_size=0, mapped_file_size=1 << 20, topics=queues // 4, queues=4)
        rebuild(root, f"{root}-built", **given)
        os.rename(f"{root}-built/consumequeue", root / "consumequeue")
        for path in (root / "consumequeue").rglob("0" * 20):
            path.write_bytes(b"\1" * 20 + path.read_bytes()[20:])
        looked.append(count_places(monkeypatch, lambda root=root: repair(root, **given)))
        assert verify(root, **given).ok
    assert looked[1] == 4 * looked[0]
    assert looked[1] < 16 * 200


def test_the_hole_of_an_old_queue_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    units = b"".join(struct.pack(">qiq", 100 * number, 100, 0) for number in range(3))
    looked = []
    for size in (6000, 6_000_000):
        queue = tmp_path / str(size)
        queue.mkdir()
        for number, written in enumerate((b"\0" * size, units)):
            path = queue / f"{number * size:020d}"
            path.write_bytes(written)
            os.truncate(path, size)
        old = OldQueue(str(queue), str(queue), size, ((0, 300),))
        looked.append(count_places(monkeypatch, old.last_stretch) - size // 20)
        assert old.last_stretch() == (0, size // 20 + 3)
    assert looked[1] <= 4096 // 20 + 1  # what a file system takes for three units
    assert looked[0] <= looked[1]


def test_files_are_compared_up_to_their_holes(tmp_path: Path) -> None:
    pages = []
    for size in (6_000_000, 20 << 24):
        paths = [tmp_path / f"{name}{size}" for name in "ab"]
        for path in paths:
            path.write_bytes(b"\1" * 60)
            os.truncate(path, size)
        same, faults = page_faults(lambda paths=paths: queue_repair._same(*map(str, paths)))
        assert same
        pages.append(faults)
    assert pages[1] < pages[0] + 20_000  # 320 MiB twice are 160 000 pages


def test_four_times_the_partitions_are_four_times_the_calls(tmp_path: Path) -> None:
    """The checkpoint of the log dir names all of them, and is read once."""
    calls = []
    for partitions in (25, 100):
        root = tmp_path / str(partitions)
        write_big_segment(root / "topic-0", 0, 10)
        for number in range(1, partitions):
            shutil.copytree(root / "topic-0", root / f"topic-{number}")
        lines = "".join(f"topic {number} 0\n" for number in range(partitions))
        (root / "log-start-offset-checkpoint").write_text(f"0\n{partitions}\n{lines}")
        calls.append(count_calls(lambda root=root: kafka.verify(root, deep=True, engine=LocalEngine(1))))
    assert calls[1] < 4.1 * calls[0]


def test_the_disk_is_waited_for_once_for_many_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, each takes a commit of its own: 20 000 queues took a minute longer."""
    for number in range(7):
        (tmp_path / "topic" / str(number)).mkdir(parents=True)
    synced: list[str] = []
    together = threading.Barrier(9, timeout=20)

    def sync(path: str) -> None:
        together.wait()
        synced.append(os.path.relpath(path, tmp_path))

    monkeypatch.setattr(disk, "sync_directory", sync)
    disk.sync_tree(str(tmp_path))
    assert sorted(synced) == sorted([".", "topic", *(f"topic/{number}" for number in range(7))])
