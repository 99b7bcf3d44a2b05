"""A store of which one directory may not be written: a repair is done as a whole, or nothing is; else it says so."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqindex.engines import LocalEngine
from mqindex.files import disk
from mqindex.rocketmq import repair, verify
from tests.cli.conftest import NOBODY, ordinary_user
from tests.crash.test_full_disk import REPOSITORY, mountable
from tests.crash.test_repair import OPTIONS, queues_spoilt, spoilt
from tests.support.small_store import make_small_store
from tests.support.tree import contents, scraps


@pytest.fixture
def public_home() -> Iterator[Path]:
    """A place that every user of this machine may enter."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        yield Path(place)


def damaged(home: Path) -> Path:
    """The index is exchanged first, then the queues."""
    store = make_small_store(home / "store")
    spoilt(store)
    queues_spoilt(store)
    return store


def test_a_directory_that_may_not_be_written_is_told_before_the_first_change(public_home: Path) -> None:
    """The index was exchanged, then the words of an inner file ended it."""
    store = damaged(public_home)
    for path in [store, *store.rglob("*")]:
        os.chown(path, NOBODY, NOBODY) if os.geteuid() == 0 else None
    queues = sorted(path for path in (store / "consumequeue").glob("*/*") if path.is_dir())
    for queue in queues:
        queue.chmod(0o555)
    before = contents(store)
    with ordinary_user(), pytest.raises(PermissionError) as raised:
        repair(store, engine=LocalEngine(1), **OPTIONS)
    assert raised.value.filename in map(str, queues)
    assert str(raised.value.strerror).endswith("; nothing was changed")
    assert contents(store) == before
    assert scraps(store) == []
    for queue in queues:
        queue.chmod(0o755)
    with ordinary_user():
        assert repair(store, engine=LocalEngine(1), **OPTIONS).ok


READ_ONLY = """
import errno, pathlib, subprocess, sys
from mqindex.engines import LocalEngine
from mqindex.rocketmq import repair
from tests.crash.test_repair import OPTIONS
from tests.support.tree import contents, scraps

store = pathlib.Path(sys.argv[1])
queues = str(store / "consumequeue")
subprocess.run(["mount", "--bind", queues, queues], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", queues], check=True)
before = contents(store)
try:
    repair(store, engine=LocalEngine(1), **OPTIONS)
except OSError as error:
    assert error.errno == errno.EROFS and error.filename.startswith(queues), error
assert contents(store) == before
assert scraps(store) == []
print("done")
"""


@pytest.mark.skipif(not mountable(), reason="no file system may be mounted here; rights are tested anyway")
def test_a_part_on_a_disk_that_is_read_only_is_told_before_the_first_change(tmp_path: Path) -> None:
    command = ["unshare", "-Urm", sys.executable, "-c", READ_ONLY, str(damaged(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_an_error_between_two_changes_says_what_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, rename = damaged(tmp_path), disk.rename

    def fails(source: str, target: str) -> None:
        if target.startswith(str(store / "consumequeue")):
            raise OSError(errno.EIO, os.strerror(errno.EIO), source, None, target)
        rename(source, target)

    with monkeypatch.context() as failing:
        failing.setattr(disk, "rename", fails)
        with pytest.raises(OSError, match="Input/output error") as raised:
            repair(store, engine=LocalEngine(1), **OPTIONS)
    (backup,) = store.glob("mqindex-backup-*")
    told = f"; each file is the old or the new one, the old ones are in {backup}; run it again"
    assert raised.value.strerror == os.strerror(errno.EIO) + told
    assert str(raised.value.filename2).startswith(str(store / "consumequeue"))
    assert repair(store, engine=LocalEngine(1), **OPTIONS).ok
    assert verify(store, deep=True, **OPTIONS).ok
