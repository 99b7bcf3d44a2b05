"""The lock of a broker's store: held, refused, or not there to be had."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from mqindex.errors import FileStateError, StoreInUseError
from mqindex.files import lock, tmpfile

HOLD = "import sys; from mqindex.files import lock\nwith lock.hold(sys.argv[1]): print('held', flush=True); input()"


def test_a_lock_that_another_process_holds_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    assert lock.state(path) == "absent"
    other = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    assert lock.state(path) == "held"
    with pytest.raises(StoreInUseError), lock.hold(path):
        pass
    other.communicate(b"\n")
    assert lock.state(path) == "absent"
    with lock.hold(path):
        assert lock.state(str(tmp_path / "other")) == "absent"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_refused_in_words(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a bare "Bad file descriptor"."""

    def refuse(*how: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    path = tmp_path / "lock"
    with pytest.raises(FileStateError, match="takes no locks") as caught, lock.hold(str(path)):
        pass
    assert caught.value.path == str(path)
    assert "work on a copy" in str(caught.value)
    assert not isinstance(caught.value, StoreInUseError)
    path.touch()
    assert lock.state(str(path)) == "unreadable"


@pytest.mark.parametrize("nameless", [True, False])
def test_a_lock_file_that_is_made_has_the_owner_of_the_store(
    nameless: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair run as root that was killed left a `lock` of root's, which the broker cannot open."""
    if not nameless:
        monkeypatch.setattr(tmpfile, "_NAMELESS", None)
    os.chmod(tmp_path, 0o770)
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
    path, home = tmp_path / "lock", tmp_path.stat()
    with lock.hold(str(path)):
        made = path.stat()
    assert (made.st_uid, made.st_gid, stat.S_IMODE(made.st_mode)) == (home.st_uid, home.st_gid, 0o660)
    assert not path.exists()


def test_a_lock_file_that_was_made_is_gone_after_an_error_and_one_that_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with pytest.raises(KeyError), lock.hold(str(path)):
        raise KeyError
    assert not path.exists()
    path.write_bytes(b"mine")
    with pytest.raises(KeyError), lock.hold(str(path)):
        raise KeyError
    assert path.read_bytes() == b"mine"


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError), lock.hold(str(tmp_path / "lock")):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["lock", ".lock"])
def test_a_directory_in_which_a_broker_has_its_store_is_not_moved(tmp_path: Path, name: str) -> None:
    """One with a store three directories below was moved away from its broker."""
    path = tmp_path / "a" / "b" / "c" / "d" / "store" / name
    path.parent.mkdir(parents=True)
    path.touch()
    lock.require_unused(str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for place in (tmp_path, path.parent, tmp_path / "a"):
            with pytest.raises(StoreInUseError, match="a broker holds this lock"):
                lock.require_unused(str(place))
        other.communicate(b"\n")
    lock.require_unused(str(tmp_path))


def test_a_directory_that_cannot_be_looked_through_is_not_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        (tmp_path / "many" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(lock, "_MOST_BELOW", 11)
    lock.require_unused(str(tmp_path))
    (tmp_path / "tenth").mkdir()
    with pytest.raises(FileStateError, match=r"whether a broker has a store .* got more than 11 directories; choose"):
        lock.require_unused(str(tmp_path))
    scandir = os.scandir

    def refused(path: str) -> object:
        if path.endswith("many"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(FileStateError, match=r"so that it is not moved: .*many: got Permission denied"):
        lock.require_unused(str(tmp_path))


@pytest.mark.parametrize("name", ["lock", ".lock"])
def test_a_lock_that_cannot_be_looked_at_keeps_a_directory_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / name).touch()
    lock.require_unused(str(tmp_path / "store"))
    monkeypatch.setattr(lock, "lock_owner", Mock(side_effect=PermissionError))
    for place in ("", "store"):
        with pytest.raises(FileStateError, match="it cannot be seen whether a broker holds this lock"):
            lock.require_unused(str(tmp_path / place))
