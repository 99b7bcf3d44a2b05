"""Files that a broker deletes while they are read: everybody goes on at the log's new begin, and says so."""

from __future__ import annotations

import os
import shutil
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import FormatError
from mqindex.report import Report
from mqindex.rocketmq import CommitLog, IndexFile, MessageStore, follow, rebuild, repair, scan, verify
from mqindex.rocketmq.log.expiry import LOOK_AGAIN_SECONDS
from mqindex.rocketmq.scanning import scan as of_scan
from mqindex.rocketmq.tally import log_zones
from tests.support.log_writer import LogMessage, LogWriter
from tests.support.nightly import NIGHTLY
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import index_paths

Happen = Callable[[], object]
COUNT = 50  # messages: six log files
ONE = LocalEngine(1)
LISTS = {"os.scandir", "os.listdir"}


class _Opens:
    """Something that happens before the n-th time that something below a directory is opened or listed."""

    root, at, seen = "", -1, 0
    happen: Happen | None = None

    @classmethod
    def hear(cls, event: str, args: tuple[Any, ...]) -> None:
        if cls.happen is None or event not in LISTS | {"open"} or not str(args[0]).startswith(cls.root):
            return
        cls.seen += 1
        if cls.seen == cls.at or (cls.at == 0 and cls.seen % 3 == 0):
            happen, cls.happen = cls.happen, None
            happen()
            cls.happen = happen if cls.at == 0 else None


sys.addaudithook(_Opens.hear)


@contextmanager
def before_open(number: int, root: Path, happen: Happen) -> Iterator[type[_Opens]]:
    """`number` 0: again and again."""
    _Opens.root, _Opens.at, _Opens.seen, _Opens.happen = str(root), number, 0, happen
    try:
        yield _Opens
    finally:
        _Opens.happen = None


def expire(store: Path, files: int = 1) -> None:
    """What a broker does: the oldest log files, then index files and queue files that lead there only."""
    logs = sorted((store / "commitlog").iterdir())
    for path in logs[: min(files, len(logs) - 3)]:
        path.unlink()
    low = int(min((store / "commitlog").iterdir()).name)
    for path in sorted((store / "index").iterdir()):
        if struct.unpack_from(">q", path.read_bytes(), 24)[0] < low:
            path.unlink()
    for queue in (store / "consumequeue").glob("*/*"):
        for path in sorted(queue.iterdir())[:-1]:
            if struct.unpack_from(">q", path.read_bytes(), len(path.read_bytes()) - 20)[0] < low:
                path.unlink()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_store(tmp_path_factory.mktemp("expiry") / "store", count=COUNT)


def how_often(store: Path, work: Callable[[Path], object]) -> int:
    """How many times something of the store is opened or listed in a run without any trouble."""
    with before_open(-1, store, lambda: None) as opens:
        work(store)
        return opens.seen


def at_every_open(
    original: Path, tmp_path: Path, work: Callable[[Path], Any], *, step: int = 1
) -> Iterator[tuple[int, Path, Any]]:
    """`work` with a deletion before the first open, before every `step`-th behind it, and at last again and again.

    In the nightly run; else before one of four of these.
    """
    step *= 1 if NIGHTLY else 4
    copy = Path(shutil.copytree(original, tmp_path / "counted"))
    times = how_often(copy, work)
    assert times > 3
    for number in [*range(1, times + 1, step), 0]:
        store = Path(shutil.copytree(original, tmp_path / f"store-{number}"))
        with before_open(number, store, lambda store=store: expire(store, 2)):  # type: ignore[misc]
            yield number, store, work(store)
        shutil.rmtree(store)


def require_right(report: Report, number: int) -> None:
    wrong = [str(one) for one in report.findings if one.severity != "info"]
    assert wrong == [], f"deleted at open {number}"


@pytest.mark.parametrize("deep", [False, True])
def test_verify_goes_on_at_the_new_begin(original: Path, tmp_path: Path, deep: bool) -> None:
    """It ended in a raw ENOENT."""
    told = 0
    for number, _, report in at_every_open(
        original, tmp_path, lambda store: verify(store, deep=deep, engine=ONE, **OPTIONS), step=3
    ):
        require_right(report, number)
        told += "log-expired-meanwhile" in {one.kind for one in report.findings}
    assert told > 0


def test_a_dry_run_of_repair_goes_on_at_the_new_begin(original: Path, tmp_path: Path) -> None:
    for number, _, report in at_every_open(
        original, tmp_path, lambda store: repair(store, dry_run=True, engine=ONE, **OPTIONS), step=3
    ):
        require_right(report, number)
        assert report.actions == []


def test_a_rebuild_goes_on_at_the_new_begin(original: Path, tmp_path: Path) -> None:
    """What it writes is of the whole log, or of what is left of it."""
    built: dict[int, set[tuple[int, ...]]] = {}

    def work(store: Path) -> Report:
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        return rebuild(store, out, engine=ONE, config={"mappedFileSizeConsumeQueue": "240"}, **OPTIONS)

    for number, _, report in at_every_open(original, tmp_path, work, step=2):
        require_right(report, number)
        built.setdefault(report.messages, set()).add((report.entries, report.units))
    assert len(built) > 1
    assert all(len(results) == 1 for results in built.values())


def test_a_scan_goes_on_at_the_new_begin(original: Path, tmp_path: Path) -> None:
    def work(store: Path) -> tuple[list[int], int]:
        with CommitLog.open(store / "commitlog") as log:
            found = [at for batch in log.scan(columns=["phy_offset"]) for at in batch["phy_offset"].tolist()]
            return found, len(log.expired)

    whole, _ = work(original)
    left_out = 0
    for number, store, (found, expired) in at_every_open(original, tmp_path, work):
        low = int(min((store / "commitlog").iterdir()).name)
        assert found[-1] == whole[-1], f"deleted at open {number}"
        assert [at for at in found if at >= low] == [at for at in whole if at >= low]
        left_out += expired
    assert left_out > 0


@pytest.mark.parametrize("asked", [{}, {"begin": 0}, {"begin": 0, "cache": False}, {"start_offset": 100}])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_file_that_is_open_is_read_whoever_deletes_it(asked: dict[str, Any], damaged: bool, tmp_path: Path) -> None:
    """What was left of the file was missing from the answer."""
    writer = LogWriter(tmp_path / "commitlog", mapped_file_size=8 << 20)
    offsets = writer.write(*(LogMessage("Topic", body=bytes(1000)) for _ in range(10_000)))
    first = min(writer.directories[0].iterdir())
    if damaged:
        with open(first, "r+b") as file:
            file.seek(offsets[7000])
            file.write(bytes(10))
        del offsets[7000]
    expected = [at for at in offsets if at >= asked.get("start_offset", 0)]
    with scan(
        tmp_path / "commitlog", columns=["phy_offset", "body"], **{"cache": tmp_path / "zones", **asked}
    ) as found:
        begun = next(found)["phy_offset"].tolist()
        first.unlink()
        assert len(begun) < 7000
        assert begun + [at for batch in found for at in batch["phy_offset"].tolist()] == expected
        assert not found.expired


@pytest.mark.parametrize("before", ["first_at", "identity_of", "known_zones"])
def test_a_file_that_goes_when_it_was_just_opened_is_read(
    before: str, original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(shutil.copytree(original, tmp_path / "store"))
    asked: dict[str, Any] = {"start_offset": 1} if before == "first_at" else {"begin": 0}
    with scan(original, columns=["phy_offset"], cache=False, **asked) as found:
        expected = [at for batch in found for at in batch["phy_offset"].tolist()]
    module = of_scan if before == "first_at" else log_zones
    call = getattr(module, before)

    def gone(*arguments: Any, **named: Any) -> Any:
        min((root / "commitlog").iterdir()).unlink()
        monkeypatch.undo()
        return call(*arguments, **named)

    monkeypatch.setattr(module, before, gone)
    with scan(root, columns=["phy_offset"], cache=tmp_path / "zones", **asked) as found:
        assert [at for batch in found for at in batch["phy_offset"].tolist()] == expected
        assert not found.expired and len(list((root / "commitlog").iterdir())) == 5


def test_a_file_that_goes_between_others_is_an_error(original: Path, tmp_path: Path) -> None:
    """No broker deletes the middle of its log."""
    store = Path(shutil.copytree(original, tmp_path / "store"))
    logs = sorted((store / "commitlog").iterdir())
    engine = Expiring("look at the files", logs[2].unlink)
    report = verify(store, engine=engine, **OPTIONS)
    assert str(logs[2]) in {one.path for one in report.findings if one.kind == "log-file-missing"}
    assert not report.ok
    store = Path(shutil.copytree(original, tmp_path / "again"))
    path = sorted((store / "commitlog").iterdir())[2]
    with CommitLog.open(store / "commitlog") as log:
        path.unlink()
        with pytest.raises(FileNotFoundError):
            list(log.scan())


def test_a_log_that_is_deleted_altogether_is_an_error(original: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(original, tmp_path / "store"))
    engine = Expiring("look at the files", lambda: [path.unlink() for path in (store / "commitlog").iterdir()])
    with pytest.raises(FileNotFoundError):
        verify(store, engine=engine, **OPTIONS)


def test_a_link_that_leads_nowhere_is_no_expired_file(original: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(original, tmp_path / "store"))
    os.symlink("nowhere", store / "index" / "20231114221329999")
    report = verify(store, engine=ONE, **OPTIONS)
    assert [finding.kind for finding in report.findings if finding.severity == "error"] == ["index-size"]


class Expiring(LocalEngine):
    """Something happens once, when a stage is done."""

    def __init__(self, stage: str, happen: Happen) -> None:
        super().__init__(1)
        self._stage, self._happen = stage, happen

    def map(self, stage: Any, items: Any, *, name: str, **more: Any) -> Any:
        done = super().map(stage, items, name=name, **more)
        if name == self._stage:
            self._happen()
        return done


class Turns:
    """Stops after so many looks at the log."""

    def __init__(self, turns: int) -> None:
        self.left = turns

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0

    def wait(self, timeout: float | None = None) -> bool:
        return self.is_set()


@pytest.mark.parametrize("killed", [False, True])
def test_follow_that_starts_again_goes_on_at_the_new_begin(original: Path, tmp_path: Path, killed: bool) -> None:
    """Its side-car stayed dead, and what it answered grew old."""
    young = make_small_store(tmp_path / "young", count=20)
    begun, side = tmp_path / "begun", tmp_path / "side"
    store = tmp_path / "store"
    shutil.copytree(young, store)
    follow(store, begun, stop=Turns(12), engine=ONE, **OPTIONS)
    shutil.rmtree(store)
    if killed:
        (begun / "abort").touch()

    def work(_: Path) -> int:
        shutil.rmtree(side, ignore_errors=True)
        shutil.copytree(begun, side)
        return follow(store, side, stop=Turns(12), engine=ONE, **OPTIONS).phy_offset

    shutil.copytree(original, store)
    times, end = how_often(store, work), work(store)
    for number in [*range(1, times + 1, 3 if NIGHTLY else 12), 0]:
        shutil.rmtree(store)
        shutil.copytree(original, store)
        with before_open(number, store, lambda: expire(store, 2)):
            position = work(store)
        assert position == end, f"deleted at open {number}"
        low = int(min((store / "commitlog").iterdir()).name)
        assert entries_from(side, low) == entries_from(original, low), f"deleted at open {number}"


def entries_from(root: Path, low: int) -> list[tuple[int, int]]:
    """(key_hash, phy_offset) of the index entries of messages from `low` on."""
    found = []
    for path in index_paths(root):
        with IndexFile.open(path, hash_slot_num=5, index_num=16) as index:
            entries = index.entries()
            found += list(zip(entries["key_hash"].tolist(), entries["phy_offset"].tolist(), strict=True))
    return [one for one in found if one[1] >= low]


def test_a_repair_behind_files_of_what_has_expired_writes_every_entry_once(original: Path, tmp_path: Path) -> None:
    """New files were named behind the oldest good file: they took the places of those that came next."""
    young, side = make_small_store(tmp_path / "young", count=20), tmp_path / "side"
    for path in index_paths(young):
        path.rename(path.with_name(f"2026{path.name[4:]}"))  # a follower's: made long after the messages

    def work(store: Path) -> None:
        shutil.rmtree(side, ignore_errors=True)
        shutil.copytree(young, side, ignore=shutil.ignore_patterns("commitlog"))
        repair(side, parts=["index"], commitlog=[store / "commitlog"], engine=ONE, **OPTIONS)

    for number, store, _ in at_every_open(original, tmp_path, work):
        low, found = int(min((store / "commitlog").iterdir()).name), entries_from(side, 0)
        before = [entry for entry in found if entry[1] < low]  # what it had, and what it read in time
        assert found == before + entries_from(original, low), f"deleted at open {number}"
        assert before == entries_from(original, 0)[: len(before)], f"deleted at open {number}"
        assert len(before) >= sum(entry[1] < low for entry in entries_from(young, 0)), f"deleted at open {number}"


@pytest.mark.parametrize("opened_before", [False, True])
def test_a_message_whose_file_has_expired_is_below_the_minimum(
    original: Path, tmp_path: Path, opened_before: bool
) -> None:
    """Single calls ended in a raw ENOENT."""
    root = Path(shutil.copytree(original, tmp_path / "store"))
    with MessageStore.open(root, **OPTIONS) as store, MessageStore.open(root, **OPTIONS) as bulk:
        log = CommitLog.open(root / "commitlog")
        first, last = log.min_phy_offset, log.files[-2].start
        topic = store.look_message_by_offset(first).topic  # type: ignore[union-attr]
        if opened_before:
            assert log.get_message(first).phy_offset == first
            assert store.get_message(topic, 0, 0).messages
        expire(root, 2)
        begin = CommitLog.open(root / "commitlog").min_phy_offset
        assert begin > first
        time.sleep(LOOK_AGAIN_SECONDS)  # until then it may still be read
        with pytest.raises(FormatError, match=rf"not in the log: .*expected {begin}\.\."):
            log.get_message(first)
        assert store.look_message_by_offset(first) is None
        for asked in (store.get_message, bulk.get_messages):
            answer = asked(topic, 0, 0, max_msg_nums=32)  # type: ignore[operator]
            assert (answer.status, answer.next_begin_offset) == ("OFFSET_TOO_SMALL", answer.min_offset)
            assert answer.min_offset > 0
            again = asked(topic, 0, answer.min_offset, max_msg_nums=32)  # type: ignore[operator]
            assert again.status == "FOUND"
        assert store.get_message(topic, 0, again.min_offset).messages[0].phy_offset >= begin
        with log:
            assert log.get_message(last).phy_offset == last
