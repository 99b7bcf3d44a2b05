"""A file of the log that somebody cuts while a store is read: one sentence that names it, and nothing is published."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqindex.engines import LocalEngine
from mqindex.errors import TruncatedFileError
from mqindex.files.reading.mapped_file import MappedFile
from mqindex.rocketmq import rebuild, repair, verify
from mqindex.rocketmq.dispatch.follow import follow
from tests.support.growing_store import OPTIONS as FOLLOWED
from tests.support.growing_store import GrowingStore, Turns
from tests.support.small_store import OPTIONS, make_small_store
from tests.support.tree import contents, index_bytes, queue_bytes

ONE = LocalEngine(1)
CALLS: dict[str, Callable[[Path], Any]] = {
    "verify": lambda root: verify(root, engine=ONE, **OPTIONS),
    "version unknown": lambda root: verify(
        root, engine=ONE, **{name: value for name, value in OPTIONS.items() if name != "broker_version"}
    ),
    "dry run": lambda root: repair(root, dry_run=True, engine=ONE, **OPTIONS),
    "repair": lambda root: repair(root, engine=ONE, **OPTIONS),
    "rebuild": lambda root: rebuild(root, root.parent / "out", engine=ONE, **OPTIONS),
}


class Cutter:
    """Cuts a file of the log just before it is mapped for the n-th time, and remembers it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = self.size = 0
        self.cut: str | None = None
        self._open = MappedFile.open
        monkeypatch.setattr(MappedFile, "open", self.open)

    def aim(self, n: int) -> None:
        self.left, self.size, self.cut = n, (0, 100, 1100)[n % 3], None

    def open(self, path: str, **given: Any) -> MappedFile:
        if os.path.basename(os.path.dirname(path)) == "commitlog":
            self.left -= 1
            if self.left == 0:
                self.cut = path
                os.truncate(path, self.size)
        return self._open(path, **given)


@pytest.fixture
def stores(tmp_path: Path) -> Callable[[], Path]:
    made = 0

    def make() -> Path:
        nonlocal made
        made += 1
        root = make_small_store(tmp_path / str(made) / "store")
        sorted((root / "index").iterdir())[1].write_bytes(bytes(10))  # so that there is something to repair
        return root

    return make


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_file_that_was_cut(
    stores: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It was "start: expected 98304..105344, the file's phy offsets", or a rebuild of what was left."""
    cutter, n = Cutter(monkeypatch), 0
    while True:
        n += 1
        root = stores()
        cutter.aim(n)
        before = contents(root / "index")
        try:
            CALLS[name](root)
        except TruncatedFileError as error:
            assert error.path == cutter.cut, n
            assert "was cut while it was read" in str(error), n
            assert contents(root / "index") == before, n
            assert not (root.parent / "out").exists(), n
        else:
            if cutter.cut is None:
                break
            assert name == "repair", n  # cut while it looked at what it had done
    assert n > 3


def test_a_follower_repairs_and_goes_on_whenever_the_log_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut while it was repaired, or opened, it ended the follower."""
    cutter, n = Cutter(monkeypatch), 0
    while n == 0 or cutter.cut is not None:
        n += 1
        home = tmp_path / str(n)
        store, out = GrowingStore(home / "store"), home / "out"
        store.write(30)
        cutter.left = 0
        follow(store.root, out, stop=Turns(12), engine=ONE, **FOLLOWED)
        (out / "abort").touch()
        cutter.aim(3 * n + n % 3)
        report = follow(store.root, out, stop=Turns(40), engine=ONE, **FOLLOWED)
        cutter.left = 0
        assert report.repairs > 0, n
        if cutter.cut == str(store.writer.path(store.writer.position)):
            assert (index_bytes(out), queue_bytes(out)) == store.expected(home / "rebuilt"), n
    assert n > 3


def test_a_follower_goes_on_where_all_files_that_it_repairs_from_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with "No such file or directory": none of the files that its repair had listed was left."""
    opened, left, n = MappedFile.open, [0], 0

    def expiring(path: str, **given: Any) -> MappedFile:
        if os.path.basename(os.path.dirname(path)) == "commitlog":
            left[0] -= 1
            if left[0] == 0:
                before = list((store.root / "commitlog").iterdir())
                store.write(60)
                for file in before:
                    file.unlink()
        return opened(path, **given)

    monkeypatch.setattr(MappedFile, "open", expiring)
    while left[0] <= 0:
        n += 1
        home = tmp_path / str(n)
        store, out = GrowingStore(home / "store"), home / "out"
        store.write(30)
        left[0] = 0
        follow(store.root, out, stop=Turns(12), engine=ONE, **FOLLOWED)
        (out / "abort").touch()
        left[0] = 3 * n
        report = follow(store.root, out, stop=Turns(60), engine=ONE, **FOLLOWED)
        assert report.repairs > 0, n
        if left[0] <= 0:
            assert report.phy_offset == store.writer.position, n
    assert n > 3
