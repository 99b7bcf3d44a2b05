"""A store whose broker is late: messages are in its log, and not yet in its queues and its index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.files import lock
from mqindex.rocketmq import CommitLog, MessageStore, NewMessage, repair, verify
from mqindex.rocketmq.checks import waiting as patience

CONFIG = {"maxHashSlotNum": 50, "maxIndexNum": 5000, "mappedFileSizeCommitLog": 8192}


def message(n: int) -> NewMessage:
    return NewMessage("T", b"x" * 100, queue_id=n % 3, keys=f"k{n}")


class Late(LocalEngine):
    """While the log is read, messages are appended; they are dispatched before the look that is named, if any."""

    def __init__(self, home: Path, at: int | None) -> None:
        super().__init__(1)
        self._home, self._at, self.looked, self.first = home, at, 0, 300

    def map(self, function: Any, items: Any, **options: Any) -> Any:
        name = options.get("name")
        if name == "check again":
            self.looked += 1
            if self.looked == self._at:
                MessageStore.open(self._home, writable=True, config=CONFIG).close()
        if name == "check the log":
            self.append(100)
        done = super().map(function, items, **options)
        if name == "check the log":
            self.append(10)
        return done

    def append(self, count: int) -> None:
        with CommitLog.open(self._home / "commitlog", writable=True, config=CONFIG) as log:
            for n in range(self.first, self.first + count):
                log.append_message(message(n), queue_offset=n // 3)
        self.first += count


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(patience, "_BETWEEN_LOOKS", 0.001)
    with MessageStore.open(tmp_path, writable=True, config=CONFIG) as store:
        store.put_messages([message(n) for n in range(300)])
    return tmp_path


@pytest.mark.parametrize("deep", [False, True])
def test_what_is_dispatched_a_moment_later_is_not_missing(home: Path, deep: bool) -> None:
    engine = Late(home, 3)
    report = verify(home, deep=deep, engine=engine, config=CONFIG)
    assert [one.kind for one in report.findings if one.severity == "error"] == []
    assert "log-grew-meanwhile" in {one.kind for one in report.findings}
    assert (report.ok, engine.looked) == (True, 3)


@pytest.mark.parametrize("deep", [False, True])
def test_a_dry_run_of_repair_beside_a_broker_says_what_verify_says(home: Path, deep: bool) -> None:
    report = repair(home, deep=deep, dry_run=True, engine=Late(home, 3), config=CONFIG)
    assert "log-grew-meanwhile" in {one.kind for one in report.findings}
    assert (report.ok, report.actions) == (True, [])


def test_what_stays_missing_is_told(home: Path) -> None:
    engine = Late(home, None)
    report = verify(home, engine=engine, config=CONFIG)
    assert {"missing-units", "missing-entries"} <= {one.kind for one in report.findings}
    assert engine.looked == patience._LOOKS


def test_a_store_that_nobody_writes_is_looked_at_once(home: Path) -> None:
    Late(home, None).append(100)
    engine = Late(home, None)
    engine.append = lambda count: None  # type: ignore[method-assign]
    report = verify(home, engine=engine, config=CONFIG)
    assert "missing-units" in {one.kind for one in report.findings}
    assert engine.looked == 0


class Slow(LocalEngine):
    """A broker of which nothing is seen but its lock: a message is in its log, not yet in its index.

    It writes the entry before the look of that number.
    """

    def __init__(self, home: Path, at: int) -> None:
        super().__init__(1)
        self._home, self._at, self.looked = home, at, 0

    def map(self, function: Any, items: Any, **options: Any) -> Any:
        if options.get("name") == "look for new index files":
            self.looked += 1
            if self.looked == self._at:
                index = str(next((self._home / "index").iterdir()))
                shutil.copyfile(self._home / "later", index)
        return super().map(function, items, **options)


@pytest.mark.parametrize("deep", [False, True])
def test_an_entry_that_a_running_broker_writes_a_moment_later_is_not_missing(home: Path, deep: bool) -> None:
    index = next((home / "index").iterdir())
    before = index.read_bytes()
    with MessageStore.open(home, writable=True, config=CONFIG) as store:
        store.put_messages([message(300)])
    shutil.copyfile(index, home / "later")
    index.write_bytes(before)
    with lock.hold(str(home / "lock")):
        engine = Slow(home, 4)
        report = verify(home, deep=deep, engine=engine, config=CONFIG)
        assert [one.kind for one in report.findings if one.severity == "error"] == []
        assert (report.ok, engine.looked, report.entries) == (True, 4, 301)
        index.write_bytes(before)
        never = Slow(home, 10_000)
        report = verify(home, deep=deep, engine=never, config=CONFIG)
        assert "missing-entries" in {one.kind for one in report.findings}
        assert never.looked == patience._LOOKS


def test_an_entry_that_nobody_will_write_is_looked_for_once(home: Path) -> None:
    index = next((home / "index").iterdir())
    before = index.read_bytes()
    with MessageStore.open(home, writable=True, config=CONFIG) as store:
        store.put_messages([message(300)])
    index.write_bytes(before)
    engine = Slow(home, 10_000)
    assert "missing-entries" in {one.kind for one in verify(home, engine=engine, config=CONFIG).findings}
    assert engine.looked == 0
