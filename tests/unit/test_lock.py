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


def test_a_lock_of_a_file_that_its_maker_has_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened while another held it, locked when that one had ended: two runs held one store, each its own file."""
    path, taken = str(tmp_path / "lock"), []
    Path(path).touch()

    def take(fd: int) -> bool | None:
        if not taken:
            os.remove(path)
        taken.append(os.fstat(fd).st_ino)
        return lock_byte(fd)

    lock_byte = lock.lock_byte
    monkeypatch.setattr(lock, "lock_byte", take)
    with lock.hold(path):
        assert len(taken) == 2
        assert os.stat(path).st_ino == taken[1]


def test_a_lock_file_that_goes_before_it_is_opened_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened = str(tmp_path / "lock"), []
    Path(path).touch()

    def open_to_write(path: str) -> int:
        opened.append(path)
        os.remove(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr(lock.disk, "open_to_write", open_to_write)
    with lock.hold(path):
        assert opened == [path]
        assert os.path.exists(path)
    assert not os.path.exists(path)


def test_without_a_lock_file_two_writers_are_kept_apart(tmp_path: Path) -> None:
    """Two repairs of a partition changed the same files at once."""
    path = str(tmp_path / ".lock")
    code = HOLD.replace("sys.argv[1]", "sys.argv[1], create=False")
    other = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    with pytest.raises(StoreInUseError, match="another writer has this directory open"), lock.hold(path, create=False):
        pass
    other.communicate(b"\n")
    with lock.hold(path, create=False):
        assert not os.path.exists(path)


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path) -> None:
    """A thread looked at a lock when its process was forked, and the child waited for it for ever."""
    code = (
        "import os, sys, signal; from mqindex.files import lock\n"
        "lock._held_lock.acquire(); pid = os.fork()\n"
        "if not pid: signal.alarm(20); lock.state(sys.argv[1]); os._exit(0)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], check=True, timeout=60)


@pytest.mark.parametrize(("number", "advice"), [(errno.EACCES, "the broker's user"), (errno.EROFS, "for writing")])
def test_a_lock_file_that_may_not_be_written_is_told_with_what_to_do(
    number: int, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "Permission denied" or "Read-only file system", as if the lock were what `repair` wants to write."""
    path = tmp_path / "lock"
    path.touch()
    monkeypatch.setattr(lock.disk, "open_to_write", Mock(side_effect=OSError(number, os.strerror(number), str(path))))
    with pytest.raises(OSError, match=advice) as caught, lock.hold(str(path)):
        pass
    assert (caught.value.errno, caught.value.filename) == (number, str(path))
