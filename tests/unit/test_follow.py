"""`follow`: a side-car beside a log that grows, rolls, is cut, expires and vanishes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine, Progress
from mqindex.errors import BadMagicError, OutputExistsError, ReadOnlyFileError, StoreInUseError
from mqindex.rocketmq import Checkpoint, IndexService, rebuild
from mqindex.rocketmq.dispatch.dispatch_flush import DispatchFlush
from mqindex.rocketmq.dispatch.follow import FollowReport, follow
from mqindex.rocketmq.dispatch.reput import ReputProgress
from mqindex.rocketmq.log import growing_log
from tests.support.elsewhere import Ways, memory
from tests.support.growing_store import OPTIONS, GrowingStore, Turns
from tests.support.log_writer import frame
from tests.support.tree import contents, index_bytes, queue_bytes

__all__ = ["memory"]  # a fixture

ONE = LocalEngine(1)


@pytest.fixture
def store(tmp_path: Path) -> GrowingStore:
    return GrowingStore(tmp_path / "store")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


class Follower(threading.Thread):
    """`follow` in a thread. `report`, `error`: how it ended."""

    def __init__(self, store: GrowingStore, out: Path, **options: Any) -> None:
        super().__init__()
        self.stopping = threading.Event()
        self.progress: list[ReputProgress] = []
        self.report: FollowReport | None = None
        self.error: BaseException | None = None
        self._call = lambda: follow(
            store.root, out, stop=self.stopping, progress=self.progress.append, engine=ONE, **{**OPTIONS, **options}
        )

    def run(self) -> None:
        try:
            self.report = self._call()
        except BaseException as error:
            self.error = error

    def end(self) -> FollowReport:
        self.stopping.set()
        self.join(120)
        assert self.error is None, repr(self.error)
        assert self.report is not None
        return self.report


@contextmanager
def following(store: GrowingStore, out: Path) -> Iterator[Follower]:
    follower = Follower(store, out)
    follower.start()
    try:
        yield follower
    finally:
        follower.stopping.set()
        follower.join(120)


def eventually(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.002)


def has(out: Path, store: GrowingStore, tmp_path: Path) -> bool:
    return files_of(out) == store.expected(tmp_path / "rebuilt")


def files_of(out: Path) -> tuple[list[bytes], dict[str, bytes]]:
    return index_bytes(out), queue_bytes(out)


def once(store: GrowingStore, out: Path, **options: Any) -> FollowReport:
    return follow(store.root, out, stop=Turns(12), **{"engine": ONE, **OPTIONS, **options})


def test_a_log_that_grows_and_rolls_is_followed(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.writer.directories[0].mkdir(exist_ok=True)
    with following(store, out) as follower:
        for _ in range(80):
            store.write(1)
            time.sleep(0.001)
        eventually(lambda: has(out, store, tmp_path))
        report = follower.end()
    assert (report.messages, report.phy_offset, report.repairs) == (80, store.writer.position, 0)
    assert (out / "commitlog").exists() is False
    assert store.writer.position > 3 * 2048
    assert len(index_bytes(out)) > 5


def test_frames_that_appear_piecewise_are_dispatched_whole(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(2)
    with following(store, out) as follower:
        for _ in range(9):  # all in one file
            message, at = store.message(), store.writer.position
            data = frame(message, at)
            store.writer.write_bytes(data[:20])
            time.sleep(0.003)
            store.writer.write_bytes(data[20:-5])
            time.sleep(0.003)
            store.writer.write_bytes(data[-5:])
        report_at = store.writer.position
        eventually(lambda: has(out, store, tmp_path))
        assert follower.end().phy_offset == report_at


def test_a_message_is_found_a_moment_after_its_append(store: GrowingStore, out: Path) -> None:
    store.write(1)
    with following(store, out) as follower:
        eventually(lambda: bool(index_bytes(out)) and follower.is_alive())
        for n in range(1, 12):
            (at,) = store.write(1)
            if n % 5 and n % 17 not in (5,):
                eventually(lambda n=n, at=at: found(out, n) == [at])  # type: ignore[misc]
        follower.end()


def found(out: Path, n: int) -> list[int]:
    with IndexService.open(out / "index", hash_slot_num=5, index_num=16) as service:
        offsets: list[int] = service.query_offset(f"Topic{n % 2}", f"C0A8010A1F902B193F2D{n:012X}").phy_offsets.tolist()
        return offsets


def test_it_goes_on_where_it_was(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    for count in (7, 0, 30):
        store.write(count)
        report = once(store, out)
        assert (report.messages, report.repairs) == (count, 0)
        assert has(out, store, tmp_path)


def test_what_was_not_stopped_cleanly_is_repaired(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(30)
    once(store, out)
    for path in (out / "index").iterdir():
        path.unlink()
        break
    shutil.rmtree(out / "consumequeue" / "Topic1")
    (out / "abort").touch()
    store.write(5)
    assert once(store, out).repairs == 1
    assert queue_bytes(out) == store.expected(tmp_path / "rebuilt")[1]
    assert not (out / "abort").exists()


@pytest.mark.parametrize("alive", [True, False])
def test_a_log_that_is_cut_and_written_anew_is_dispatched_anew(
    store: GrowingStore, out: Path, tmp_path: Path, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    store.write(40)
    other = GrowingStore(tmp_path / "other")
    other.write(25)
    other.number += 500  # other keys from here on
    other.write(30)
    with following(store, out) as follower:
        eventually(lambda: has(out, store, tmp_path))
        if not alive:
            follower.end()
        for path in sorted((other.root / "commitlog").iterdir()):  # as a broker that lost its newest messages
            target = store.root / "commitlog" / path.name
            with path.open("rb") as new, target.open("r+b" if target.exists() else "wb") as old:
                old.write(new.read())
        if alive:
            eventually(lambda: has(out, other, tmp_path) or not follower.is_alive())
            assert follower.end().repairs > 0
    if not alive:
        assert once(store, out).repairs == 1
    assert has(out, other, tmp_path)


def test_a_log_cut_short_while_nobody_followed_is_noticed(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    offsets = store.write(40)
    once(store, out)
    cut = offsets[20]
    for path in sorted((store.root / "commitlog").iterdir()):
        if int(path.name) > cut:
            path.unlink()
    store.writer.overwrite(cut, bytes(2048 - cut % 2048))
    store.writer.position = cut
    assert once(store, out).repairs == 1
    assert has(out, store, tmp_path)


@pytest.mark.parametrize("dispatched", [0, 20], ids=["from_the_start", "meanwhile"])
def test_messages_after_lost_ones_keep_their_queue_offsets(
    store: GrowingStore, out: Path, tmp_path: Path, dispatched: int
) -> None:
    store.write(20)
    if dispatched:
        assert once(store, out).messages == dispatched
    for _ in range(8):
        store.message()  # they had queue offsets, and are in no log
    store.write(30)
    once(store, out)
    assert has(out, store, tmp_path)


def test_a_damaged_stretch_of_the_log_shifts_no_unit(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(50)
    store.writer.overwrite(2048 + 300, bytes(700))
    once(store, out)
    assert has(out, store, tmp_path)


def test_index_files_of_what_the_log_has_lost_go(store: GrowingStore, out: Path) -> None:
    store.write(80)
    once(store, out)
    before = len(index_bytes(out))
    store.writer.path(0).unlink()
    store.writer.path(2048).unlink()
    once(store, out)
    with IndexService.open(out / "index", hash_slot_num=5, index_num=16) as service:
        assert len(service.files) < before
        assert all(file.header.end_phy_offset >= 4096 for file in service.files)


def test_the_checkpoint_says_what_is_on_the_disk(store: GrowingStore, out: Path) -> None:
    store.write(80)
    report = once(store, out)
    checkpoint = Checkpoint.read(out / "checkpoint")
    assert checkpoint is not None
    assert checkpoint.logics_msg_timestamp == checkpoint.physic_msg_timestamp == report.store_timestamp
    assert 0 < checkpoint.logics_physical_offset < report.phy_offset
    with IndexService.open(out / "index", hash_slot_num=5, index_num=16) as service:
        full = [file.header.end_timestamp for file in service.files if file.is_write_full()]
    assert checkpoint.index_msg_timestamp == full[-1]


def test_two_followers_of_one_place_are_refused(store: GrowingStore, out: Path) -> None:
    store.write(3)
    with following(store, out) as follower:
        eventually((out / "abort").exists)
        with pytest.raises(StoreInUseError, match="another follower"):
            once(store, out)
        assert follower.end().repairs == 0


def test_nothing_in_the_store_is_touched(store: GrowingStore, out: Path) -> None:
    store.write(30)
    before = contents(store.root)
    once(store, out)
    assert contents(store.root) == before


@pytest.mark.parametrize("where", ["store", "store/beside", "store/commitlog/beside", "."])
def test_a_place_in_the_store_is_refused(store: GrowingStore, tmp_path: Path, where: str) -> None:
    store.write(1)
    with pytest.raises(ValueError, match="out: expected a place of its own"):
        once(store, tmp_path / where)


def test_a_link_into_the_store_is_refused(store: GrowingStore, tmp_path: Path) -> None:
    store.write(1)
    (store.root / "inner").mkdir()
    (tmp_path / "link").symlink_to(store.root / "inner")
    with pytest.raises(ValueError, match="out: expected a place of its own"):
        once(store, tmp_path / "link")


def test_where_a_part_of_the_store_is_a_link_to_is_refused(store: GrowingStore, tmp_path: Path) -> None:
    """The broker found a directory among its index files."""
    store.write(1)
    (tmp_path / "disk").mkdir()
    (store.root / "index").symlink_to(tmp_path / "disk")
    with pytest.raises(ValueError, match="out: expected a place of its own"):
        once(store, tmp_path / "disk" / "new")
    assert list((tmp_path / "disk").iterdir()) == []


def test_a_place_that_holds_something_else_is_refused(store: GrowingStore, out: Path) -> None:
    store.write(1)
    out.mkdir()
    (out / "mine").write_text("mine")
    with pytest.raises(OutputExistsError):
        once(store, out)
    assert os.listdir(out) == ["mine"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "mqindex.follow-home/1"}', "\0"])
def test_settings_that_cannot_be_read_are_told(store: GrowingStore, out: Path, text: str) -> None:
    store.write(1)
    out.mkdir()
    (out / "follow.json").write_text(text)
    with pytest.raises(BadMagicError, match="not the settings of a follower"):
        once(store, out)


@pytest.mark.parametrize(
    "options",
    [{"index_num": 17}, {"broker_version": "5.5.0"}, {"config": {"mappedFileSizeConsumeQueue": 400}}],
)
def test_other_settings_are_refused(store: GrowingStore, out: Path, options: dict[str, Any]) -> None:
    store.write(1)
    once(store, out)
    with pytest.raises(ValueError, match="was made with"):
        once(store, out, **options)


def test_settings_that_mean_the_same_are_taken_again(store: GrowingStore, out: Path) -> None:
    """A configuration with which it was made was refused at the second run."""
    config = {**OPTIONS["config"], "messageIndexEnable": "true", "indexFileWriteEnable": "false"}
    more = {"messageDelayLevel": "1s 5s 10s 30s 60s 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 60m 2h", "enableLmq": "TRUE"}
    for again in (config, config, {**config, "indexFileWriteEnable": "FALSE"}, {**config, **more}):
        once(store, out, config=again, broker_version="5.4.0")
    with pytest.raises(
        ValueError,
        match=r"^indexFileWriteEnable and messageIndexEnable: .* was made with no index files, got index files",
    ):
        once(store, out, config={**config, "indexFileWriteEnable": "true"}, broker_version="5.4.0")
    with pytest.raises(ValueError, match=r"^enableLmq: .* was made with true, got false"):
        once(store, out, config={**config, "enableLmq": "false"}, broker_version="5.4.0")
    with pytest.raises(ValueError, match=r"^commitlog: .* was made with .*commitlog, got /other"):
        once(store, out, config=config, broker_version="5.4.0", commitlog="/other")


def test_settings_need_not_be_given_again(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(5)
    once(store, out)
    store.write(30)
    follow(store.root, out, stop=Turns(12), engine=ONE)
    assert has(out, store, tmp_path)


def test_a_full_disk_is_an_error_and_the_next_run_goes_on(
    store: GrowingStore, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(10)
    once(store, out)
    store.write(40)

    def full(fd: int, data: bytes, at: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match=f"No space left .*{out}"):
            once(store, out)
    assert (out / "abort").exists()
    assert once(store, out).repairs == 1
    assert has(out, store, tmp_path)


def test_a_slow_disk_at_the_end_is_told_of(store: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    told = threading.Event()

    def show(progress: Progress) -> None:
        notes.append(progress.note)
        if "goes to the disk" in progress.note:
            told.set()

    store.write(3)
    monkeypatch.setattr(sys.modules[FollowReport.__module__], "_SLOW", 0.01)
    monkeypatch.setattr(DispatchFlush, "flush", lambda self: told.wait(20))
    once(store, out, engine=LocalEngine(progress=show))
    assert told.is_set()
    assert str(out) in notes[-1]


def test_an_error_of_the_flush_ends_following(store: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(60)

    def broken(self: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("mqindex.rocketmq.index.index_file.IndexFile.flush", broken)
    with pytest.raises(OSError, match="Input/output error"):
        once(store, out)
    assert (out / "abort").exists()


def test_the_store_that_is_gone_is_an_error(
    store: GrowingStore, out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(growing_log, "_LOOK_SECONDS", 0.0)
    store.write(10)
    with following(store, out) as follower:
        eventually(lambda: has(out, store, tmp_path))
        store.root.rename(tmp_path / "moved")
        eventually(lambda: not follower.is_alive())
    assert isinstance(follower.error, FileNotFoundError)


def test_topics_that_are_no_names_are_counted_and_left_out(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    store.write(3)
    for topic in ("../evil", "..", "a/b"):
        store.writer.write(replace(store.message(), topic=topic, sys_flag=0))
    store.write(3)
    report = once(store, out)
    assert report.refused == 3
    assert not (tmp_path / "evil").exists()
    assert {path.name for path in (out / "consumequeue").iterdir()} == {"Topic0", "Topic1"}


def test_progress_says_where_it_is(store: GrowingStore, out: Path) -> None:
    store.write(10)
    with following(store, out) as follower:
        eventually(lambda: bool(follower.progress))
        follower.end()
    told = follower.progress[-1]
    assert (told.phy_offset, told.lag_bytes, told.messages) == (store.writer.position, 0, 10)
    assert json.loads((out / "follow.json").read_text())["store"] == str(store.root)


def test_what_was_assumed_is_said(store: GrowingStore, out: Path) -> None:
    notes: list[str] = []
    engine = LocalEngine(1, progress=lambda now: notes.append(now.note))
    follow(store.root, out, stop=Turns(12), engine=engine)
    (note,) = [note for note in notes if note.startswith("the geometry of the index files is not known")]
    assert "the broker's default is taken: pass --hash-slot-num 5000000 --index-num 20000000" in note
    again: list[str] = []
    follow(store.root, out, stop=Turns(12), engine=LocalEngine(1, progress=lambda now: again.append(now.note)))
    assert not any("not known" in note for note in again)  # the first run has settled it


def test_a_log_that_ends_before_the_index_is_told_of(store: GrowingStore, out: Path, tmp_path: Path) -> None:
    """As a rebuild tells it: another volume may have the log's later part."""
    store.write(40)
    rebuild(store.root, tmp_path / "rebuilt", engine=ONE, **OPTIONS)
    shutil.move(tmp_path / "rebuilt" / "index", store.root / "index")
    notes: list[str] = []
    engine = LocalEngine(1, progress=lambda now: notes.append(now.note))
    once(store, out, engine=engine)
    assert not any("log-missing" in note for note in notes)
    for path in sorted((store.root / "commitlog").iterdir())[2:]:
        path.unlink()
    once(store, tmp_path / "other", engine=engine)
    (note,) = {note for note in notes if "log-missing" in note}
    assert "its last file, which ends at 4096" in note


@pytest.mark.parametrize("which", ["store", "out", "commitlog"])
def test_what_grows_is_not_followed_elsewhere(tmp_path: Path, memory: Ways, which: str) -> None:
    """Refused at once: a URL was the name of a directory of this machine."""
    url = "memory://logs/one"
    given = {"store": tmp_path / "store", "out": tmp_path / "out", "commitlog": tmp_path / "log", which: url}
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    with pytest.raises(ReadOnlyFileError, match="rebuild reads and writes a URL, once") as refused:
        follow(given["store"], given["out"], commitlog=[given["commitlog"]], stop=threading.Event())
    assert url in str(refused.value)
    assert not (tmp_path / "out").exists()
